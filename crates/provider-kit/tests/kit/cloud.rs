//! A cloud for tests: does at once what it is asked, unless it is told to hold, fail, panic or never be Ready.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::capacity_provider_server::CapacityProvider;
use bigfleet_proto::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, MachineList, MachineRef,
    TransitionAck,
};
use bigfleet_provider_kit::{
    Backend, Failure, Machine, Offering, OperationKind, Options, Provider, Recovery, Store, VirtualClock,
};
use tokio::sync::watch;
use tonic::{Code, Request, Status};

#[derive(Clone)]
pub(crate) struct Cloud {
    pub(crate) slots: usize,
    pub(crate) can_delete: bool,
    pub(crate) recovers_while_serving: bool,
    pub(crate) settings: Arc<Mutex<Mood>>,
    hold: watch::Sender<bool>,
    /// Ends only the calls that are to fail.
    pub(crate) fail_now: Arc<tokio::sync::Notify>,
}

/// What goes wrong, by call and machine, such as `Create m-1`.
#[derive(Default)]
pub(crate) struct Mood {
    pub(crate) failures: BTreeMap<String, String>,
    pub(crate) panics: bool,
    pub(crate) not_ready: bool,
    pub(crate) calls: Vec<String>,
    pub(crate) recoveries: BTreeMap<String, Recovery>,
}

impl Cloud {
    pub(crate) fn of(slots: usize) -> Self {
        Self {
            slots,
            can_delete: true,
            recovers_while_serving: false,
            settings: Arc::default(),
            hold: watch::Sender::new(false),
            fail_now: Arc::default(),
        }
    }

    /// Nothing ends until [`Self::release`].
    pub(crate) fn hold(&self) {
        self.hold.send_replace(true);
    }

    pub(crate) fn release(&self) {
        self.hold.send_replace(false);
    }

    pub(crate) fn mood(&self) -> std::sync::MutexGuard<'_, Mood> {
        self.settings.lock().expect("no test panics while it holds this")
    }

    async fn act(&self, kind: OperationKind, machine: &Machine) -> Result<(), Failure> {
        let call = format!("{kind} {}", machine.id);
        let (failure, panics) = {
            let mut mood = self.mood();
            mood.calls.push(call.clone());
            (mood.failures.get(&call).cloned(), mood.panics)
        };
        let mut held = self.hold.subscribe();
        tokio::select! {
            _ = held.wait_for(|held| !held) => {}
            () = self.fail_now.notified(), if failure.is_some() => {}
        }
        assert!(!panics, "the mood is to panic");
        failure.map_or(Ok(()), |reason| Err(reason.into()))
    }
}

impl Backend for Cloud {
    fn name(&self) -> &'static str {
        "cloud"
    }

    async fn offerings(&self) -> Result<Vec<Offering>, Failure> {
        let slot = |index| {
            Offering::new(format!("m-{index}"), "big", "zone-a").with_resource("cpu", "4").at_price(0.5)
        };
        Ok((0..self.slots).map(slot).collect())
    }

    async fn create(&self, machine: &Machine) -> Result<String, Failure> {
        self.act(OperationKind::Create, machine).await?;
        Ok(format!("host-of-{}", machine.id))
    }

    async fn configure(&self, machine: &Machine, bootstrap: &[u8]) -> Result<(), Failure> {
        assert_ne!(bootstrap, b"refuse");
        self.act(OperationKind::Configure, machine).await
    }

    async fn confirm_ready(&self, _: &Machine) -> Result<bool, Failure> {
        Ok(!self.mood().not_ready)
    }

    async fn drain(&self, machine: &Machine, _: Duration) -> Result<(), Failure> {
        self.act(OperationKind::Drain, machine).await
    }

    fn supports_delete(&self) -> bool {
        self.can_delete
    }

    async fn delete(&self, machine: &Machine) -> Result<(), Failure> {
        self.act(OperationKind::Delete, machine).await
    }

    fn recovers_while_serving(&self) -> bool {
        self.recovers_while_serving
    }

    async fn recover(&self, machine: &Machine, _: OperationKind) -> Recovery {
        if self.recovers_while_serving {
            let _ = self.hold.subscribe().wait_for(|held| !held).await;
        }
        let recovery = self.mood().recoveries.get(&machine.id).cloned();
        recovery.unwrap_or_else(|| Recovery::Failed("cut short".into()))
    }
}

/// A provider on virtual time, called without a socket.
pub(crate) struct World {
    pub(crate) cloud: Cloud,
    pub(crate) clock: Arc<VirtualClock>,
    pub(crate) provider: Provider<Cloud>,
}

pub(crate) type Answer = Result<TransitionAck, Code>;

impl World {
    pub(crate) async fn new(slots: usize) -> Self {
        Self::with(Cloud::of(slots), Store::memory()).await
    }

    pub(crate) async fn with(cloud: Cloud, store: Store) -> Self {
        let clock = Arc::new(VirtualClock::at(1_000_000_000_000));
        let options = Options::new(clock.clone(), 42);
        let provider = Provider::open(cloud.clone(), store, options).await.expect("a good start");
        Self { cloud, clock, provider }
    }

    pub(crate) async fn create(&self, id: &str, token: (&str, i64, i64)) -> Answer {
        let (shard_id, shard_epoch, sequence_number) = (token.0.into(), token.1, token.2);
        let request = CreateRequest { machine_id: id.into(), shard_id, shard_epoch, sequence_number };
        answer(self.provider.create(Request::new(request)).await)
    }

    pub(crate) async fn configure(&self, id: &str, cluster: &str, token: (&str, i64, i64)) -> Answer {
        self.configure_with(ConfigureRequest {
            machine_id: id.into(),
            cluster_id: cluster.into(),
            shard_id: token.0.into(),
            shard_epoch: token.1,
            sequence_number: token.2,
            ..ConfigureRequest::default()
        })
        .await
    }

    pub(crate) async fn configure_with(&self, request: ConfigureRequest) -> Answer {
        answer(self.provider.configure(Request::new(request)).await)
    }

    pub(crate) async fn drain(&self, id: &str, grace_secs: i64, token: (&str, i64, i64)) -> Answer {
        let request = DrainRequest {
            machine_id: id.into(),
            grace_period_seconds: grace_secs,
            shard_id: token.0.into(),
            shard_epoch: token.1,
            sequence_number: token.2,
        };
        answer(self.provider.drain(Request::new(request)).await)
    }

    pub(crate) async fn delete(&self, id: &str, token: (&str, i64, i64)) -> Answer {
        let (shard_id, shard_epoch, sequence_number) = (token.0.into(), token.1, token.2);
        let request = DeleteRequest { machine_id: id.into(), shard_id, shard_epoch, sequence_number };
        answer(self.provider.delete(Request::new(request)).await)
    }

    pub(crate) async fn get(&self, id: &str) -> Result<Machine, Code> {
        let answer = self.provider.get(Request::new(MachineRef { id: id.into() })).await;
        answer.map(tonic::Response::into_inner).map_err(|status| status.code())
    }

    pub(crate) async fn list(&self, filter: ListFilter) -> MachineList {
        self.provider.list(Request::new(filter)).await.expect("listing never fails").into_inner()
    }

    /// Waits until a machine is in a state.
    pub(crate) async fn reach(&self, id: &str, state: MachineState) -> Arc<Machine> {
        self.provider.handle().wait_for(id, |machine| machine.state == state.to_wire()).await
    }

    /// Takes a machine to Configured for `cluster`.
    pub(crate) async fn configured(&self, id: &str, cluster: &str) {
        self.create(id, FREE).await.expect("it is speculative");
        self.reach(id, MachineState::Idle).await;
        self.configure(id, cluster, FREE).await.expect("it is idle");
        self.reach(id, MachineState::Configured).await;
    }
}

/// No token.
pub(crate) const FREE: (&str, i64, i64) = ("", 0, 0);

fn answer(answer: Result<tonic::Response<TransitionAck>, Status>) -> Answer {
    answer.map(tonic::Response::into_inner).map_err(|status| status.code())
}

pub(crate) fn state(answer: &Answer) -> MachineState {
    let machine = answer.as_ref().expect("accepted").machine.as_ref().expect("with a snapshot");
    MachineState::from_wire(machine.state).expect("a state")
}

pub(crate) fn operation(answer: &Answer) -> &str {
    &answer.as_ref().expect("accepted").operation_id
}
