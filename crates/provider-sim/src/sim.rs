//! The simulated cloud as a whole: opened on a store and a clock, called in process or put on a socket.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bigfleet_model::machine::MachineState;
use bigfleet_provider_kit::{
    CapacityType, Clock, Handle, Meddled, Options, Provider, StartError, Store, Timeouts,
};
use thiserror::Error;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::cloud::Cloud;
use crate::event::EventLog;
use crate::fault::{Board, BoardError, Entry, Fault, KeptError, KeptFaults, Line};
use crate::faults_last::FaultsLast;
use crate::inventory::{Inventory, is_owned};
use crate::lies::Lies;
use crate::models::{Models, PoolBook};
use crate::random::Dice;
use crate::scenario::Scenario;
use crate::shared::{Shared, state_of};
use crate::world::World;

/// What to simulate.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The provider's name, in host references and machine ids.
    pub name: String,
    /// Decides every random choice.
    pub seed: u64,
    /// The slots.
    pub inventory: Inventory,
    /// The models.
    pub models: Models,
    /// Faults from the start on.
    pub faults: Vec<Line>,
    /// A file in which faults that are added while it runs outlive it.
    pub kept_faults: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: "sim".into(),
            seed: 1,
            inventory: Inventory::default(),
            models: Models::default(),
            faults: Vec::new(),
            kept_faults: None,
        }
    }
}

impl Config {
    /// So many machines for a test suite: quick moves, no surprises.
    pub fn for_test_suites(name: impl Into<String>, machines: usize) -> Self {
        Self {
            name: name.into(),
            inventory: Inventory::TestMachines(machines),
            models: Models::for_test_suites(),
            ..Self::default()
        }
    }
}

/// Why a cloud could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The provider could not start.
    #[error("{0}")]
    Start(#[from] StartError),
    /// Faults of before could not be read.
    #[error("{0}")]
    Kept(#[from] KeptError),
}

/// The gRPC service: the kit's provider, with lies in front of it.
pub type Service = Meddled<FaultsLast<Provider<Cloud>>, Lies>;

/// A running simulated cloud. It ends when this is dropped.
pub struct Sim {
    shared: Arc<Shared>,
    provider: Provider<Cloud>,
    lies: Lies,
    world: AbortHandle,
}

impl Sim {
    /// Opens the cloud. In virtual time, whoever holds the clock moves it on.
    pub async fn open(config: Config, store: Store, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        Self::open_with(config, store, clock, Arc::default()).await
    }

    /// Opens the cloud with an event log of the caller's.
    pub async fn open_with(
        config: Config,
        store: Store,
        clock: Arc<dyn Clock>,
        log: Arc<EventLog>,
    ) -> Result<Self, OpenError> {
        let dice = Dice::new(config.seed);
        let now = clock.now_unix_nanos();
        let mut board = Board::default();
        let kept = config.kept_faults.clone().map(KeptFaults);
        if let Some(kept) = &kept {
            board.restore(kept.read(now)?);
        }
        for line in &config.faults {
            board.add(line, now).expect("fewer faults are configured than a board holds");
        }
        let options = options(&config, clock.clone(), now);
        let shared = Arc::new(Shared {
            name: config.name,
            seed: config.seed,
            dice,
            inventory: config.inventory,
            pools: Mutex::new(PoolBook::new(config.models.pools.clone(), dice)),
            models: config.models,
            clock,
            started_unix_nanos: now,
            log,
            changed: Notify::new(),
            board: Mutex::new(board),
            kept,
            nodes: Mutex::default(),
        });
        let provider = Provider::open(Cloud(shared.clone()), store, options).await?;
        let handle = provider.handle();
        *shared.nodes() = nodes_of(&handle);
        count_out(&shared, &handle);
        let world = tokio::spawn(World::new(shared.clone(), handle.clone()).run()).abort_handle();
        let lies = Lies::new(shared.clone(), handle);
        Ok(Self { shared, provider, lies, world })
    }

    /// The service, to be called directly or put on a socket. All are the same cloud.
    pub fn service(&self) -> Service {
        Meddled::new(FaultsLast(self.provider.clone()), self.lies.clone())
    }

    /// The honest records, and the way to change them.
    pub fn handle(&self) -> Handle {
        self.provider.handle()
    }

    /// What happened so far.
    pub fn log(&self) -> &EventLog {
        &self.shared.log
    }

    /// The nodes that are really there, whatever the provider says: machine and cluster.
    pub fn nodes(&self) -> BTreeMap<String, String> {
        self.shared.nodes().clone()
    }

    /// The admin side: faults, status and export. Clones are the same cloud.
    pub fn control(&self) -> Control {
        Control(self.shared.clone())
    }

    /// Takes no more moves, waits for those under way for as long as `grace`, and lets go of the store.
    pub async fn stop(self, grace: Duration) {
        self.world.abort();
        self.handle().stop(grace).await;
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.world.abort();
    }
}

fn options(config: &Config, clock: Arc<dyn Clock>, now: i64) -> Options {
    let minutes = |count: u64| Duration::from_secs(60 * count);
    let timeouts =
        Timeouts { create: minutes(45), configure: minutes(10), drain: minutes(10), delete: minutes(15) };
    let ready_poll = config.models.latency.configure.least.duration().max(Duration::from_millis(20));
    Options { timeouts, ready_poll, ..Options::new(clock, config.seed ^ now.unsigned_abs()) }
}

fn nodes_of(handle: &Handle) -> BTreeMap<String, String> {
    let bound = handle
        .machines()
        .into_iter()
        .filter(|machine| matches!(state_of(machine), MachineState::Configured | MachineState::Draining));
    bound.map(|machine| (machine.id.clone(), machine.cluster.clone())).collect()
}

/// Tells the pools what was taken out of them before a restart.
fn count_out(shared: &Shared, handle: &Handle) {
    let mut out: BTreeMap<(String, String), usize> = BTreeMap::new();
    for machine in handle.machines() {
        if machine.host.is_some() && !CapacityType::from_wire(machine.capacity_type).is_some_and(is_owned) {
            *out.entry((machine.instance_type.clone(), machine.zone.clone())).or_default() += 1;
        }
    }
    for ((instance_type, zone), machines) in out {
        shared.pools().are_out(&instance_type, &zone, machines, shared.started_unix_nanos);
    }
}

/// Faults, status and export of a running cloud.
#[derive(Clone)]
pub struct Control(pub(crate) Arc<Shared>);

impl Control {
    /// Adds a fault and returns its number.
    pub fn add_fault(&self, line: &Line) -> Result<u64, BoardError> {
        self.check_place(line)?;
        let id = {
            let mut board = self.0.board();
            let id = board.add(line, self.0.now())?;
            board.keep(id);
            if let Err(error) = self.0.keep(&board) {
                board.forget(id);
                return Err(BoardError::NotKept(error.to_string()));
            }
            id
        };
        self.0.event("fault", &id.to_string(), format!("added: {line}"));
        self.0.changed.notify_one();
        Ok(id)
    }

    /// Refuses a fault of a zone or type the cloud does not have: it would do nothing, and nobody would notice.
    fn check_place(&self, line: &Line) -> Result<(), BoardError> {
        for (what, known) in [("zone", self.0.inventory.zones()), ("type", self.0.inventory.types())] {
            let Some(name) = line.fault.text(what).filter(|name| *name != "*") else { continue };
            if !known.is_empty() && !known.contains(name) {
                let known = known.into_iter().collect::<Vec<_>>().join(", ");
                return Err(BoardError::Nowhere { what, name: name.to_owned(), known });
            }
        }
        Ok(())
    }

    /// Ends a fault now.
    pub fn lift_fault(&self, id: u64) -> Result<Fault, BoardError> {
        let fault = {
            let mut board = self.0.board();
            let fault = board.lift(id, self.0.now())?;
            if let Err(error) = self.0.keep(&board) {
                // It is lifted here and now, which is what counts; only a restart would bring it back.
                tracing::error!(%error, fault = id, "a lifted fault could not be written down");
            }
            fault
        };
        self.0.event("fault", &id.to_string(), format!("lifted: {fault}"));
        self.0.changed.notify_one();
        Ok(fault)
    }

    /// All faults on the board, in the order in which they were added.
    pub fn faults(&self) -> Vec<Entry> {
        self.0.board().entries().to_vec()
    }

    /// Puts a scenario's faults on the board, counted from now.
    pub fn play(&self, scenario: &Scenario) -> Result<Vec<u64>, BoardError> {
        scenario.faults.iter().map(|line| self.add_fault(line)).collect()
    }

    /// Everything that went wrong since the start, as a scenario.
    pub fn export(&self, name: impl Into<String>) -> Scenario {
        let start = self.0.started_unix_nanos;
        let lasts = crate::span::Span::from_nanos(self.0.now().saturating_sub(start));
        let faults = self.faults().iter().map(|entry| entry.line_since(start)).collect();
        Scenario::of_incident(name, self.0.seed, lasts, faults)
    }

    /// Now, on the cloud's clock.
    pub fn now_unix_nanos(&self) -> i64 {
        self.0.now()
    }
}
