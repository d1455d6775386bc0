//! A world small enough to be read: machines that move when told, operators that answer at once.

use std::collections::BTreeMap;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use bigfleet_engine::ActionKind;
use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::MachineState::{
    Configured, Configuring, Creating, Deleting, Draining, Idle, Speculative,
};
use bigfleet_model::machine::{HostRef, Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::{Operator, Requirement};
use bigfleet_model::resource::ResourceVec;
use bigfleet_shard::*;

pub(crate) const START: i64 = 1_800_000_000 * SECOND;

/// A provider in memory.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct Cloud {
    pub(crate) machines: BTreeMap<String, Machine>,
    /// Whether moves end as soon as they begin.
    pub(crate) instant: bool,
    /// What every call is answered with instead.
    pub(crate) broken: Option<CallErrorKind>,
    /// What moves of one machine are answered with instead.
    pub(crate) refused: BTreeMap<String, CallErrorKind>,
    /// What a listing leaves out.
    pub(crate) hidden: Vec<String>,
    pub(crate) has_revisions: bool,
    /// Another number writes the same machines in other bytes.
    pub(crate) writing: u64,
    /// Its listings are put together from several answers.
    pub(crate) is_pieced: bool,
    pub(crate) takes_no_deletes: bool,
    /// Records its listings have besides.
    pub(crate) doubles: Vec<Machine>,
    /// What its listings say of machines instead.
    pub(crate) listed_as: BTreeMap<String, Machine>,
}

/// Records, and how their maps are written.
pub(crate) struct Records(Vec<Machine>, u64);

impl Records {
    pub(crate) fn of(machines: Vec<Machine>) -> Self {
        Self(machines, 0)
    }
}

struct Record<'a>(&'a Machine, u64);

impl Report for Record<'_> {
    fn id(&self) -> &str {
        &self.0.id
    }
    fn digest(&self) -> u128 {
        // What it says, in the order in which it is written; ids are part of it.
        let order = u128::from(self.1) << 64;
        order | u128::from(foldhash::fast::FixedState::default().hash_one(format!("{:?}", self.0)))
    }
    fn content(&self) -> u64 {
        foldhash::fast::FixedState::default().hash_one(format!("{:?}", self.0))
    }
    fn read(&self) -> Result<Told, BadRecord> {
        match self.0.check() {
            Ok(()) => Ok(Told { machine: self.0.clone(), bad_stamps: 0 }),
            Err(error) => {
                Err(BadRecord { id: self.0.id.clone(), code: error.problem.code(), text: error.to_string() })
            }
        }
    }
}

impl Reports for Records {
    fn each(&self, take: &mut dyn FnMut(&dyn Report)) {
        self.0.iter().for_each(|machine| take(&Record(machine, self.1)));
    }
}

impl Cloud {
    pub(crate) fn apply(&mut self, request: &Request) -> Result<Option<Machine>, CallErrorKind> {
        if let Some(kind) = self.broken {
            return Err(kind);
        }
        let machine = self.machines.get_mut(request.machine()).ok_or(CallErrorKind::NotFound)?;
        let is_get = matches!(request, Request::Get { .. });
        if let Some(kind) = self.refused.get(request.machine()).filter(|_| !is_get) {
            return Err(*kind);
        }
        let to = match (request, machine.state) {
            (Request::Get { .. }, state) => state,
            (Request::Create { .. }, Speculative | Creating) => Creating,
            (Request::Configure { cluster, metadata, .. }, Idle) => {
                machine.cluster = (&**cluster).into();
                machine.assigned.cluster = cluster.clone();
                machine.assigned.decode(metadata.iter().map(|(k, v)| (&**k, &**v)));
                Configuring
            }
            (Request::Drain { .. }, Configured) => Draining,
            (Request::Delete { .. }, _) if self.takes_no_deletes => return Err(CallErrorKind::NotSupported),
            (Request::Delete { .. }, Idle) => Deleting,
            (Request::Configure { .. }, Configuring | Configured)
            | (Request::Drain { .. }, Draining)
            | (Request::Delete { .. }, Deleting | Speculative) => machine.state,
            _ => return Err(CallErrorKind::Refused),
        };
        machine.state = to;
        let id = machine.id.to_string();
        if self.instant {
            self.finish(&id);
        }
        Ok(self.machines.get(&id).cloned())
    }

    /// Ends the move of one machine.
    pub(crate) fn finish(&mut self, id: &str) {
        let machine = self.machines.get_mut(id).unwrap();
        machine.state = match machine.state {
            Creating | Draining => Idle,
            Configuring => Configured,
            Deleting => Speculative,
            other => other,
        };
        if machine.state == Idle {
            machine.host = Some(HostRef { provider: "test".into(), reference: id.into() });
            machine.cluster = "".into();
            machine.assigned = bigfleet_model::stamp::Assignment::default();
        }
        if machine.state == Speculative {
            machine.host = None;
        }
    }

    pub(crate) fn finish_all(&mut self) {
        let ids: Vec<String> = self.machines.keys().cloned().collect();
        for id in &ids {
            self.finish(id);
        }
    }

    pub(crate) fn count(&self, state: MachineState) -> usize {
        self.machines.values().filter(|machine| machine.state == state).count()
    }
}

/// How an operator behaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Gives blobs and lets go of machines at once.
    Prompt,
    /// Says nothing.
    Silent,
    /// Has no blobs.
    Refusing,
}

pub(crate) struct World {
    pub(crate) shard: Shard,
    pub(crate) config: Config,
    pub(crate) now: i64,
    pub(crate) clouds: Vec<Cloud>,
    pub(crate) memory: Memory,
    pub(crate) manner: Manner,
    pub(crate) sent: Vec<(SessionId, Frame)>,
    pub(crate) hung_up: Vec<(SessionId, HangUp)>,
    pub(crate) said: Vec<Notice>,
    pub(crate) calls: Vec<(i64, Request)>,
    pub(crate) lists: Vec<bool>,
    /// When listings were asked for.
    pub(crate) listed_at: Vec<i64>,
    pub(crate) records: Vec<Arc<CycleRecord>>,
    /// Effects that are not carried out until [`World::release`].
    pub(crate) hold_calls: bool,
    pub(crate) hold_lists: bool,
    held: Vec<Effect>,
}

impl World {
    pub(crate) fn new(machines: Vec<Machine>) -> Self {
        Self::with(machines, |_| {})
    }

    pub(crate) fn with(machines: Vec<Machine>, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new("s1", 1, vec![ProviderConfig::named("test")]);
        change(&mut config);
        let clouds = config.providers.iter().map(|_| Cloud::default()).collect();
        let shard = Shard::new(config.clone(), Memory::default(), START);
        let mut world = Self {
            shard,
            config,
            now: START,
            clouds,
            memory: Memory::default(),
            manner: Manner::Prompt,
            sent: vec![],
            hung_up: vec![],
            said: vec![],
            calls: vec![],
            lists: vec![],
            listed_at: vec![],
            records: vec![],
            hold_calls: false,
            hold_lists: false,
            held: vec![],
        };
        world.clouds[0].instant = true;
        world.clouds[0].machines = machines.into_iter().map(|m| (m.id.to_string(), m)).collect();
        world
    }

    /// Kills the shard and starts it again from what it remembers.
    pub(crate) fn crash(&mut self) {
        self.config.epoch += 1;
        self.held.clear();
        self.shard = Shard::new(self.config.clone(), self.memory.clone(), self.now);
    }

    pub(crate) fn event(&mut self, event: Event) {
        let mut step = Step::default();
        self.shard.handle(event, self.now, &mut step);
        self.carry_out(step);
    }

    pub(crate) fn command<R>(&mut self, command: impl FnOnce(&mut Shard, i64, &mut Step) -> R) -> R {
        let mut step = Step::default();
        let result = command(&mut self.shard, self.now, &mut step);
        self.carry_out(step);
        result
    }

    fn carry_out(&mut self, step: Step) {
        step.facts.into_iter().for_each(|fact| self.memory.learn(fact));
        for effect in step.effects {
            if let Effect::List { .. } = effect {
                self.listed_at.push(self.now);
            }
            match &effect {
                Effect::Call { .. } if self.hold_calls => self.held.push(effect),
                Effect::List { .. } if self.hold_lists => self.held.push(effect),
                _ => self.perform(effect),
            }
        }
    }

    /// Carries out what was held back.
    pub(crate) fn release(&mut self) {
        (self.hold_calls, self.hold_lists) = (false, false);
        for effect in std::mem::take(&mut self.held) {
            self.perform(effect);
        }
    }

    /// What was held back, for somebody else to carry out.
    pub(crate) fn take_held(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.held)
    }

    /// Carries out held calls; the listings they lead to are held.
    pub(crate) fn release_calls(&mut self) {
        (self.hold_calls, self.hold_lists) = (false, true);
        for effect in std::mem::take(&mut self.held) {
            self.perform(effect);
        }
    }

    /// Carries out held listings; the calls they lead to are held.
    pub(crate) fn release_lists(&mut self) {
        (self.hold_calls, self.hold_lists) = (true, false);
        for effect in std::mem::take(&mut self.held) {
            self.perform(effect);
        }
    }

    pub(crate) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::List { call, provider, since, .. } => {
                self.lists.push(since.is_empty());
                let cloud = &self.clouds[provider.0 as usize];
                let event = if let Some(kind) = cloud.broken {
                    Event::Failed { call, error: CallError { kind, text: "broken".into() } }
                } else {
                    let shown = cloud.machines.values().filter(|m| !cloud.hidden.contains(&m.id.to_string()));
                    let revision: Arc<[u8]> = if cloud.has_revisions { [1].into() } else { [].into() };
                    let shown = shown.map(|m| cloud.listed_as.get(&*m.id).unwrap_or(m));
                    let shown = shown.chain(&cloud.doubles).cloned().collect();
                    let records = Box::new(Records(shown, cloud.writing));
                    Event::Listed {
                        call,
                        records,
                        end: Some(ListEnd { revision, is_pieced: cloud.is_pieced }),
                    }
                };
                self.event(event);
            }
            Effect::Call { call, provider, request, sequence, .. } => {
                self.calls.push((sequence, request.clone()));
                let event = match self.clouds[provider.0 as usize].apply(&request) {
                    Ok(machine) => {
                        let machine = machine.map(|machine| Ok(Told { machine, bad_stamps: 0 }));
                        Event::Answered { call, machine }
                    }
                    Err(kind) => Event::Failed { call, error: CallError { kind, text: "said no".into() } },
                };
                self.event(event);
            }
            Effect::Send { session, frame } => {
                self.sent.push((session, frame.clone()));
                match (frame, self.manner) {
                    (Frame::Bootstrap { request, .. }, Manner::Prompt) => {
                        let blob = Ok(Blob { user_data: Arc::from(*b"join"), ttl_secs: 60 });
                        self.event(Event::Blob { session, request, blob });
                    }
                    (Frame::Bootstrap { request, .. }, Manner::Refusing) => {
                        self.event(Event::Blob { session, request, blob: Err("no template".into()) });
                    }
                    (Frame::Reclaim { instruction, .. }, Manner::Prompt) => {
                        for _ in 0..2 {
                            self.event(Event::ReclaimAcked { session, instruction, nodes_started: 1 });
                        }
                    }
                    _ => {}
                }
            }
            Effect::HangUp { session, why } => self.hung_up.push((session, why)),
            Effect::Record(record) => self.records.push(record),
            Effect::Say(notice) => self.said.push(notice),
        }
    }

    /// Answers the requests for blobs so far, in turn, with blobs that are good for so many seconds.
    pub(crate) fn answer_blobs(&mut self, ttls: &[i64]) {
        let requests = self.sent.iter().filter_map(|(session, frame)| match frame {
            Frame::Bootstrap { request, .. } => Some((*session, *request)),
            _ => None,
        });
        let requests: Vec<_> = requests.collect();
        assert_eq!(requests.len(), ttls.len());
        for ((session, request), ttl_secs) in requests.into_iter().zip(ttls) {
            let blob = Ok(Blob { user_data: Arc::from(*b"join"), ttl_secs: *ttl_secs });
            self.event(Event::Blob { session, request, blob });
        }
    }

    /// Lets time go by, doing everything when it is due.
    pub(crate) fn pass(&mut self, span: i64) {
        let end = self.now + span;
        loop {
            let wake = self.shard.next_wake_unix_nanos().max(self.now);
            if wake > end {
                break;
            }
            self.now = wake;
            let mut step = Step::default();
            self.shard.advance(self.now, &mut step);
            self.carry_out(step);
        }
        self.now = end;
    }

    pub(crate) fn open(&mut self, session: u64, cluster: &str) {
        let opened = Event::Opened {
            session: SessionId(session),
            cluster: cluster.into(),
            protocol: "v1alpha1+acks-done".into(),
        };
        self.event(opened);
    }

    pub(crate) fn report(&mut self, session: u64, cluster: &str, needs: Vec<Need>) {
        let rollup = Rollup { cluster: cluster.into(), taken_unix_nanos: self.now, needs };
        self.event(Event::of_rollup(SessionId(session), Ok(rollup)));
    }

    /// What became of the last roll-up.
    pub(crate) fn reception(&self) -> &Reception {
        let acks = self.sent.iter().rev().filter_map(|(_, frame)| match frame {
            Frame::RollupAck(reception) => Some(reception),
            _ => None,
        });
        acks.into_iter().next().expect("a roll-up was answered")
    }

    pub(crate) fn state(&self, id: &str) -> MachineState {
        self.shard.machine(id).expect("the shard knows the machine").machine.state
    }

    pub(crate) fn begun(&self, kind: ActionKind) -> usize {
        self.records.iter().map(|record| record.begun(kind)).sum()
    }

    pub(crate) fn fates(&self, kind: ActionKind, fate: Fate) -> u64 {
        self.shard.tally().actions.get(&(kind, fate)).copied().unwrap_or(0)
    }

    pub(crate) fn called(&self, name: &str) -> usize {
        self.calls.iter().filter(|(_, request)| request.name() == name).count()
    }

    pub(crate) fn has_said(&self, code: &str) -> bool {
        self.said.iter().any(|notice| notice.code == code)
    }
}

/// A machine of 16 cpu.
pub(crate) fn machine(id: &str, state: MachineState) -> Machine {
    let mut machine = Machine::new(id, state);
    machine.instance_type = "m".into();
    machine.zone = "a".into();
    machine.capacity_type = CapacityType::OnDemand;
    machine.resources = ResourceVec::parse([("cpu", "16")]).unwrap();
    machine.price_usd_per_hour = 1.0;
    if !matches!(state, MachineState::Speculative | MachineState::Creating) {
        machine.host = Some(HostRef { provider: "test".into(), reference: id.into() });
    }
    machine
}

pub(crate) fn machines(count: usize, state: MachineState) -> Vec<Machine> {
    (0..count).map(|n| machine(&format!("m-{n:03}"), state)).collect()
}

/// A machine that serves a cluster at a priority.
pub(crate) fn bound(id: &str, cluster: &str, priority: i32) -> Machine {
    let mut machine = machine(id, MachineState::Configured);
    machine.cluster = cluster.into();
    machine.assigned.cluster = cluster.into();
    machine.assigned.priority = priority;
    machine
}

/// A need for so many machines of 16 cpu.
pub(crate) fn need(cluster: &str, priority: i32, machines: u64) -> Need {
    need_where(cluster, priority, machines, vec![])
}

pub(crate) fn need_where(
    cluster: &str,
    priority: i32,
    machines: u64,
    requirements: Vec<Requirement>,
) -> Need {
    let profile = Profile::new(requirements, vec![], priority, PenaltyBucket::ZERO, PenaltyBucket::ZERO);
    Need::of_unit(cluster, profile.into(), ResourceVec::parse([("cpu", "16")]).unwrap()).times(machines)
}

pub(crate) fn gang(cluster: &str, priority: i32, machines: u64, name: &str) -> Need {
    let same = Requirement::new("rack", Operator::Same, [] as [&str; 0]);
    Need { group: name.into(), ..need_where(cluster, priority, machines, vec![same]) }
}
