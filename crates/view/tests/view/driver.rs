//! A shard driven by hand: its provider and its operators are a few lines each, and nothing happens unless told.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::{HostRef, Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::Requirement;
use bigfleet_model::resource::ResourceVec;
use bigfleet_model::stamp::Assignment;
use bigfleet_net::{Clock as _, SystemClock, VirtualClock};
use bigfleet_record::tape::{Limits, Writer};
use bigfleet_shard::{
    BadRecord, Blob, CallError, CallErrorKind, Config, CycleRecord, Effect, Event, Frame, ListEnd, Memory,
    ProviderConfig, Report, Reports, Request, Rollup, SECOND, SessionId, Shard, Step, Told,
};
use bigfleet_view::{About, Gone, Shards, View};
use tokio::sync::watch;

/// When every test begins.
pub(crate) const START: i64 = 1_800_000_000 * SECOND;

struct Batch(Vec<Machine>);
struct Record<'a>(&'a Machine);

impl Report for Record<'_> {
    fn id(&self) -> &str {
        &self.0.id
    }
    fn content(&self) -> u64 {
        let text = format!("{:?}", self.0);
        text.bytes().fold(7, |hash, byte| hash.rotate_left(5).wrapping_mul(31) ^ u64::from(byte))
    }
    fn read(&self) -> Result<Told, BadRecord> {
        Ok(Told { machine: self.0.clone(), bad_stamps: 0 })
    }
}

impl Reports for Batch {
    fn each(&self, take: &mut dyn FnMut(&dyn Report)) {
        self.0.iter().for_each(|machine| take(&Record(machine)));
    }
}

pub(crate) struct State {
    pub(crate) shard: Shard,
    pub(crate) now: i64,
    /// What the provider has.
    pub(crate) machines: BTreeMap<Box<str>, Machine>,
    /// Whether operators let go of machines they are asked for.
    pub(crate) lets_go: bool,
    /// Whether the provider cannot be listed.
    pub(crate) listing_fails: bool,
    /// The edition of the rules the record says it was decided under.
    pub(crate) edition: u32,
    tape: Option<Writer>,
    sessions: u64,
}

/// Runs a shard under a lock.
pub(crate) struct Driver {
    state: Mutex<State>,
    cycles: watch::Sender<u64>,
    /// The longest anybody looked, for who measures.
    pub(crate) longest_look_nanos: AtomicI64,
    clock: SystemClock,
}

impl Driver {
    pub(crate) fn new(config: Config, machines: Vec<Machine>, record_dir: Option<&PathBuf>) -> Arc<Self> {
        let shard = Shard::new(config, Memory::default(), START);
        let machines = machines.into_iter().map(|machine| (machine.id.clone(), machine)).collect();
        let tape = record_dir.map(|folder| Writer::open(folder, Limits::default()).unwrap().0);
        let state = State {
            shard,
            now: START,
            machines,
            lets_go: true,
            listing_fails: false,
            edition: bigfleet_engine::EDITION,
            tape,
            sessions: 0,
        };
        let driver = Self::of(state);
        driver.run();
        Arc::new(driver)
    }

    /// A shard as it is, that nobody has set going.
    pub(crate) fn holding(shard: Shard) -> Arc<Self> {
        let machines = BTreeMap::new();
        let state = State {
            shard,
            now: START,
            machines,
            lets_go: true,
            listing_fails: false,
            edition: bigfleet_engine::EDITION,
            tape: None,
            sessions: 0,
        };
        Arc::new(Self::of(state))
    }

    fn of(state: State) -> Self {
        Self {
            state: Mutex::new(state),
            cycles: watch::channel(0).0,
            longest_look_nanos: AtomicI64::new(0),
            clock: SystemClock::start(),
        }
    }

    /// Lets somebody do something to it, and then everything that follows from it.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut State, &mut Step) -> R) -> R {
        let mut state = self.state.lock().unwrap();
        let mut step = Step::default();
        let result = act(&mut state, &mut step);
        state.follow(step);
        self.cycles.send_if_modified(|last| {
            let cycle = state.shard.cycle();
            std::mem::replace(last, cycle) != cycle
        });
        result
    }

    pub(crate) fn run(&self) {
        self.with(|state, step| state.shard.advance(state.now, step));
    }

    /// Lets time pass, a second at a time.
    pub(crate) fn pass(&self, secs: i64) {
        for _ in 0..secs {
            self.with(|state, step| {
                state.now += SECOND;
                state.shard.advance(state.now, step);
            });
        }
    }

    /// An operator of a cluster comes and reports.
    pub(crate) fn report(&self, cluster: &str, needs: Vec<Need>) {
        self.with(|state, step| {
            let known = state.shard.clusters().get(cluster).and_then(|cluster| cluster.session);
            let session = known.unwrap_or_else(|| {
                state.sessions += 1;
                let session = SessionId(state.sessions);
                let opened = Event::Opened { session, cluster: cluster.into(), protocol: "v1alpha1".into() };
                state.shard.handle(opened, state.now, step);
                session
            });
            let rollup = Rollup { cluster: cluster.into(), taken_unix_nanos: state.now, needs };
            state.shard.handle(Event::of_rollup(session, Ok(rollup)), state.now, step);
        });
        self.pass(2);
    }

    pub(crate) fn view(self: &Arc<Self>, record_dir: Option<PathBuf>) -> View<Self> {
        let about = About {
            server_version: "1.2.3".into(),
            simulated: true,
            record_dir,
            record_only: false,
            clock: Arc::new(VirtualClock::at(START)),
        };
        View::new(self.clone(), about)
    }
}

impl State {
    /// Carries out effects until there are none.
    fn follow(&mut self, first: Step) {
        let mut effects: std::collections::VecDeque<Effect> = first.effects.into();
        while let Some(effect) = effects.pop_front() {
            let mut step = Step::default();
            match effect {
                Effect::List { call, .. } if self.listing_fails => {
                    let error = CallError { kind: CallErrorKind::Unavailable, text: "no route".into() };
                    self.shard.handle(Event::Failed { call, error }, self.now, &mut step);
                }
                Effect::List { call, provider, .. } => {
                    // Of two providers the second has what begins with b.
                    let one = self.shard.providers().len() == 1;
                    let listed = self.machines.values();
                    let listed = listed.filter(|m| one || m.id.starts_with('b') == (provider.0 == 1));
                    let records = Box::new(Batch(listed.cloned().collect()));
                    let end = Some(ListEnd::default());
                    self.shard.handle(Event::Listed { call, records, end }, self.now, &mut step);
                    self.shard.advance(self.now, &mut step);
                }
                Effect::Call { call, request, .. } => {
                    let machine =
                        self.machines.get_mut(request.machine()).expect("a machine the provider listed");
                    carry_out(machine, &request);
                    let told = Some(Ok(Told { machine: machine.clone(), bad_stamps: 0 }));
                    self.shard.handle(Event::Answered { call, machine: told }, self.now, &mut step);
                }
                Effect::Send { session, frame: Frame::Bootstrap { request, .. } } => {
                    let blob = Ok(Blob { user_data: Arc::from(*b"join"), ttl_secs: 0 });
                    self.shard.handle(Event::Blob { session, request, blob }, self.now, &mut step);
                }
                Effect::Send { session, frame: Frame::Reclaim { instruction, .. } } if self.lets_go => {
                    let acked = Event::ReclaimAcked { session, instruction, nodes_started: 0 };
                    self.shard.handle(acked, self.now, &mut step);
                }
                Effect::Record(record) => {
                    if let Some(tape) = &mut self.tape {
                        let record = CycleRecord { edition: self.edition, ..CycleRecord::clone(&record) };
                        tape.append(&record).unwrap();
                        tape.sync().unwrap();
                    }
                }
                _ => {}
            }
            effects.extend(step.effects);
        }
    }
}

/// What a provider does, at once.
fn carry_out(machine: &mut Machine, request: &Request) {
    match request {
        Request::Create { .. } => {
            machine.state = MachineState::Idle;
            machine.host = Some(host(&machine.id));
        }
        Request::Configure { cluster, metadata, .. } => {
            machine.state = MachineState::Configured;
            machine.cluster = (&**cluster).into();
            machine.assigned.cluster = cluster.clone();
            let pairs = metadata.iter().map(|(key, value)| (key.as_str(), value.as_str()));
            assert!(machine.assigned.decode(pairs).is_empty(), "the shard writes stamps it can read");
        }
        Request::Drain { .. } => {
            machine.state = MachineState::Idle;
            machine.cluster = "".into();
            machine.assigned = Assignment::default();
        }
        Request::Delete { .. } => {
            machine.state = MachineState::Speculative;
            machine.host = None;
        }
        Request::Get { .. } => {}
    }
}

impl Shards for Driver {
    async fn inspect<R: Send + 'static>(
        &self,
        look: impl FnOnce(&Shard, i64) -> R + Send + 'static,
    ) -> Result<R, Gone> {
        let state = self.state.lock().unwrap();
        let begun = self.clock.now_unix_nanos();
        let seen = look(&state.shard, state.now);
        self.longest_look_nanos.fetch_max(self.clock.now_unix_nanos() - begun, Ordering::Relaxed);
        Ok(seen)
    }

    async fn command<R: Send + 'static>(
        &self,
        order: impl FnOnce(&mut Shard, i64, &mut Step) -> R + Send + 'static,
    ) -> Result<R, Gone> {
        Ok(self.with(|state, step| order(&mut state.shard, state.now, step)))
    }

    fn cycles(&self) -> watch::Receiver<u64> {
        self.cycles.subscribe()
    }
}

fn host(id: &str) -> HostRef {
    HostRef { provider: "sim".into(), reference: format!("host-{id}").into() }
}

pub(crate) fn config() -> Config {
    Config::new("s1", 7, vec![ProviderConfig::named("sim")])
}

/// Hardware of ours that stands ready.
pub(crate) fn metal(id: &str, zone: &str, cpu: &str) -> Machine {
    let mut machine = Machine::new(id, MachineState::Idle);
    machine.host = Some(host(id));
    machine.zone = zone.into();
    machine.instance_type = "metal".into();
    machine.capacity_type = CapacityType::BareMetal;
    machine.resources = ResourceVec::parse([("cpu", cpu)]).unwrap();
    machine
}

/// Quota for a rented machine.
pub(crate) fn quota(id: &str, capacity_type: CapacityType, price: f64) -> Machine {
    let mut machine = Machine::new(id, MachineState::Speculative);
    machine.zone = "za".into();
    machine.instance_type = "m5".into();
    machine.capacity_type = capacity_type;
    machine.price_usd_per_hour = price;
    machine.interruption_probability = if capacity_type == CapacityType::Spot { 0.01 } else { 0.0 };
    machine.resources = ResourceVec::parse([("cpu", "8")]).unwrap();
    machine
}

/// So many pieces of one cpu at a priority.
pub(crate) fn need(cluster: &str, priority: i32, pieces: u64, requirements: Vec<Requirement>) -> Need {
    let zero = PenaltyBucket::ZERO;
    let profile = Profile::new(requirements, vec![], priority, zero, zero);
    Need::of_unit(cluster, Arc::new(profile), ResourceVec::parse([("cpu", "1")]).unwrap()).times(pieces)
}
