//! A cloud on virtual time, called without a socket.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::capacity_provider_server::CapacityProvider as _;
use bigfleet_proto::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, Machine, TransitionAck,
};
use bigfleet_provider_kit::{CapacityType, Store, VirtualClock};
use bigfleet_provider_sim::models::Models;
use bigfleet_provider_sim::replay::{START_UNIX_NANOS, pass};
use bigfleet_provider_sim::{Config, Inventory, Sim};
use tonic::{Code, Request, Response, Status};

pub(crate) struct VirtualCloud {
    pub(crate) clock: Arc<VirtualClock>,
    pub(crate) sim: Sim,
}

/// A fleet of this size with every surprise switched off.
pub(crate) fn quiet(machines: usize) -> Config {
    let zones = ["zone-a", "zone-b"].map(String::from).to_vec();
    Config { inventory: Inventory::Fleet { machines, zones }, models: Models::quiet(), ..Config::default() }
}

impl VirtualCloud {
    pub(crate) async fn open(config: Config) -> Self {
        Self::open_on(config, Store::memory()).await
    }

    pub(crate) async fn open_on(config: Config, store: Store) -> Self {
        let clock = Arc::new(VirtualClock::at(START_UNIX_NANOS));
        let sim = Sim::open(config, store, clock.clone()).await.expect("a good start");
        Self { clock, sim }
    }

    pub(crate) async fn stop(self) {
        self.sim.stop(Duration::ZERO).await;
    }

    pub(crate) async fn pass(&self, secs: u64) {
        pass(&self.clock, Duration::from_secs(secs)).await;
    }

    pub(crate) fn fault(&self, line: &str) -> u64 {
        self.sim.control().add_fault(&line.parse().expect(line)).expect("the board has room")
    }

    pub(crate) fn lift(&self, id: u64) {
        self.sim.control().lift_fault(id).expect("it is on");
    }

    pub(crate) fn get(&self, id: &str) -> Arc<Machine> {
        self.sim.handle().get(id).expect("it exists")
    }

    pub(crate) fn state(&self, id: &str) -> MachineState {
        MachineState::from_wire(self.get(id).state).expect("a state")
    }

    /// The ids of all machines like this.
    pub(crate) fn ids(&self, wanted: impl Fn(&Machine) -> bool) -> Vec<String> {
        self.sim.handle().machines().iter().filter(|m| wanted(m)).map(|m| m.id.clone()).collect()
    }

    /// Free slots of this kind.
    pub(crate) fn slots(&self, capacity: CapacityType) -> Vec<String> {
        self.ids(|m| m.capacity_type == capacity.to_wire() && m.state == MachineState::Speculative.to_wire())
    }

    pub(crate) async fn create(&self, id: &str) -> Result<TransitionAck, Status> {
        let request = CreateRequest { machine_id: id.into(), ..CreateRequest::default() };
        self.sim.service().create(Request::new(request)).await.map(Response::into_inner)
    }

    pub(crate) async fn configure(&self, id: &str) -> Result<TransitionAck, Status> {
        let (machine_id, cluster_id) = (id.into(), "c".into());
        let request = ConfigureRequest { machine_id, cluster_id, ..ConfigureRequest::default() };
        self.sim.service().configure(Request::new(request)).await.map(Response::into_inner)
    }

    pub(crate) async fn drain(&self, id: &str, grace_secs: i64) -> Result<TransitionAck, Status> {
        let request = DrainRequest {
            machine_id: id.into(),
            grace_period_seconds: grace_secs,
            ..DrainRequest::default()
        };
        self.sim.service().drain(Request::new(request)).await.map(Response::into_inner)
    }

    pub(crate) async fn delete(&self, id: &str) -> Result<TransitionAck, Status> {
        let request = DeleteRequest { machine_id: id.into(), ..DeleteRequest::default() };
        self.sim.service().delete(Request::new(request)).await.map(Response::into_inner)
    }

    pub(crate) async fn list(&self) -> Vec<Machine> {
        let answer = self.sim.service().list(Request::new(ListFilter::default())).await;
        answer.expect("listing works").into_inner().machines
    }

    /// Takes a slot all the way to Configured.
    pub(crate) async fn configured(&self, id: &str) {
        if self.state(id) == MachineState::Speculative {
            self.create(id).await.expect("it is free");
            self.pass(3600).await;
        }
        self.configure(id).await.expect("it is idle");
        self.pass(600).await;
        assert_eq!(self.state(id), MachineState::Configured);
    }

    pub(crate) fn events(&self, event: &str) -> usize {
        self.sim.log().events().iter().filter(|seen| seen.event == event).count()
    }
}

pub(crate) fn code<T>(answer: Result<T, Status>) -> Code {
    answer.map_or_else(|status| status.code(), |_| Code::Ok)
}
