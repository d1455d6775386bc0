//! The machines: real providers made with the kit, called in process, on a clock that stands still until it is moved.
//!
//! Everything the wire promises is the kit's own code here: fences, repeated calls, positions, revisions, time-outs. Only
//! what a cloud would do, take its time and sometimes fail, is played by [`Plant`].

mod plant;

use std::sync::Arc;
use std::time::Duration;

use bigfleet_border::provider::Outgoing;
use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::capacity_provider_server::CapacityProvider;
use bigfleet_proto::v1alpha1::{ListFilter, Machine};
use bigfleet_provider_kit::{Clock as _, Options, Provider, Store, VirtualClock};
use bytes::Bytes;
use prost::Message;
use tokio::runtime::Runtime;
use tonic::{Request, Response, Status};

use crate::present::{Present, stand};
use crate::scenario::{Scenario, StartState};

pub(crate) use plant::{Plant, Trouble, Troubles};

/// How often everybody gets a turn before time moves on: far more than the longest chain of tasks waking each other.
const TURNS: usize = 24;

/// All providers of a run.
pub(crate) struct Clouds {
    runtime: Runtime,
    clock: Arc<VirtualClock>,
    providers: Vec<Provider<Plant>>,
    /// What was asked for last by [`Clouds::changes`].
    seen: Vec<Vec<u8>>,
    /// What goes wrong with moves right now.
    pub(crate) troubles: Troubles,
    /// A planted bug: whoever calls may move machines.
    pub(crate) ignore_fences: bool,
}

impl Clouds {
    /// The providers of a scenario, with their machines as they are at the start.
    pub(crate) fn open(scenario: &Scenario, present: Option<&Present>, start_unix_nanos: i64) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .event_interval(1 << 20)
            .build()
            .expect("a runtime needs only memory");
        let clock = Arc::new(VirtualClock::at(start_unix_nanos));
        let troubles = Troubles::default();
        let mut providers = Vec::new();
        for name in scenario.providers() {
            let plant = Plant::new(scenario, present, &name, clock.clone(), troubles.clone());
            let options = Options::new(clock.clone(), scenario.seed);
            let provider = runtime.block_on(Provider::open(plant, Store::memory(), options));
            providers.push(provider.expect("the slots of a checked scenario or fleet are good"));
        }
        let seen = vec![Vec::new(); providers.len()];
        let mut clouds = Self { runtime, clock, providers, seen, troubles, ignore_fences: false };
        clouds.bind_incumbents(scenario);
        if let Some(present) = present {
            clouds.stand_as(scenario, present);
        }
        clouds
    }

    /// Machines are what they are in a fleet.
    fn stand_as(&mut self, scenario: &Scenario, present: &Present) {
        for (provider, name) in scenario.providers().iter().enumerate() {
            for standing in present.of_provider(name) {
                self.update(provider, &standing.machine.id, |slot| stand(slot, &standing.machine));
            }
        }
    }

    fn bind_incumbents(&mut self, scenario: &Scenario) {
        let names = scenario.providers();
        for pool in scenario.fleet.iter().filter(|pool| pool.state == StartState::Configured) {
            let provider = names.iter().position(|name| *name == pool.provider).expect("it is one of them");
            for number in 0..pool.count {
                self.update(provider, &pool.id(number), |machine| {
                    machine.state = MachineState::Configured.to_wire();
                    machine.cluster.clone_from(&pool.cluster);
                });
            }
        }
    }

    /// How many providers there are.
    pub(crate) fn len(&self) -> usize {
        self.providers.len()
    }

    /// When a move ends next, if nothing happens before.
    pub(crate) fn next_wake(&self) -> Option<i64> {
        self.clock.next_wake_unix_nanos()
    }

    /// Lets time pass up to an instant; moves that end by then have ended.
    pub(crate) fn advance(&self, now: i64) {
        let passed = now - self.clock.now_unix_nanos();
        let due = self.next_wake().is_some_and(|wake| wake <= now);
        self.clock.advance(Duration::from_nanos(passed.max(0).unsigned_abs()));
        if due {
            self.settle();
        }
    }

    /// Lets everything that is ready run to its next wait.
    fn settle(&self) {
        self.runtime.block_on(async {
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
        });
    }

    /// Calls a provider: bytes in, bytes out, as over a socket.
    pub(crate) fn call(&self, provider: usize, call: &Outgoing) -> Result<Bytes, Status> {
        let provider = &self.providers[provider];
        let method = call.path.rsplit('/').next().unwrap_or_default();
        let body = &call.body;
        let answer = self.runtime.block_on(async {
            match method {
                "Create" => provider.create(read(body)?).await.map(written),
                "Configure" => provider.configure(read(body)?).await.map(written),
                "Drain" => provider.drain(read(body)?).await.map(written),
                "Delete" => provider.delete(read(body)?).await.map(written),
                "Get" => provider.get(read(body)?).await.map(written),
                _ => Err(Status::unimplemented(call.path)),
            }
        });
        // The work behind the call takes its first step.
        if method != "Get" {
            self.settle();
        }
        answer
    }

    /// Lists a provider's machines: those changed since a revision, or all.
    pub(crate) fn list(&self, provider: usize, since: &[u8]) -> (Vec<Machine>, Vec<u8>) {
        let filter = ListFilter { since_revision: since.to_vec(), ..ListFilter::default() };
        let list = self.runtime.block_on(self.providers[provider].list(Request::new(filter)));
        let list = list.expect("listing never fails").into_inner();
        (list.machines, list.revision)
    }

    /// Machines that changed since this was last asked, each as it is now.
    pub(crate) fn changes(&mut self) -> Vec<(usize, Machine)> {
        let mut changes = Vec::new();
        for provider in 0..self.providers.len() {
            let revision = self.providers[provider].handle().revision().to_string().into_bytes();
            if revision != self.seen[provider] {
                let (machines, revision) = self.list(provider, &self.seen[provider].clone());
                self.seen[provider] = revision;
                changes.extend(machines.into_iter().map(|machine| (provider, machine)));
            }
        }
        changes
    }

    /// Changes a machine from inside its provider: it dies, costs something else, is there again.
    pub(crate) fn update(&self, provider: usize, id: &str, change: impl FnOnce(&mut Machine)) {
        let handle = self.providers[provider].handle();
        self.runtime
            .block_on(handle.update(id, change))
            .expect("the simulator changes machines in legal ways");
    }

    /// One machine as it is now.
    pub(crate) fn machine(&self, provider: usize, id: &str) -> Option<Arc<Machine>> {
        self.providers[provider].handle().get(id)
    }
}

fn read<M: Message + Default>(body: &Bytes) -> Result<Request<M>, Status> {
    let message = M::decode(body.clone()).map_err(|error| Status::internal(error.to_string()))?;
    Ok(Request::new(message))
}

fn written(answer: Response<impl Message>) -> Bytes {
    answer.into_inner().encode_to_vec().into()
}

/// The state of a record the kit keeps.
pub(crate) fn state_of(machine: &Machine) -> MachineState {
    MachineState::from_wire(machine.state).expect("the kit keeps good records")
}
