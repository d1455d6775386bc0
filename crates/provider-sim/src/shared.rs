//! What all parts of the simulated cloud share: its clock, its dice, its board of faults, its pools and nodes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bigfleet_model::machine::MachineState;
use bigfleet_provider_kit::{Clock, Machine};
use tokio::sync::Notify;

use crate::event::EventLog;
use crate::fault::{Board, Fault, KeptFaults, Kind};
use crate::inventory::Inventory;
use crate::models::{Models, PoolBook};
use crate::random::Dice;

pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) seed: u64,
    pub(crate) dice: Dice,
    pub(crate) inventory: Inventory,
    pub(crate) models: Models,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) started_unix_nanos: i64,
    pub(crate) log: Arc<EventLog>,
    /// Wakes the world when the board has changed.
    pub(crate) changed: Notify,
    pub(crate) board: Mutex<Board>,
    /// Where faults outlive a restart, if anywhere.
    pub(crate) kept: Option<KeptFaults>,
    pub(crate) pools: Mutex<PoolBook>,
    /// The nodes that are really there: machine and cluster.
    pub(crate) nodes: Mutex<BTreeMap<String, String>>,
}

impl Shared {
    pub(crate) fn now(&self) -> i64 {
        self.clock.now_unix_nanos()
    }

    pub(crate) fn event(&self, event: &'static str, about: &str, detail: impl Into<String>) {
        self.log.push(self.now(), event, about, detail);
    }

    pub(crate) fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().expect("no holder panics")
    }

    /// Writes down the faults that outlive a restart.
    pub(crate) fn keep(&self, board: &Board) -> std::io::Result<()> {
        self.kept.as_ref().map_or(Ok(()), |kept| kept.write(board.entries(), self.now()))
    }

    pub(crate) fn pools(&self) -> MutexGuard<'_, PoolBook> {
        self.pools.lock().expect("no holder panics")
    }

    pub(crate) fn nodes(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.nodes.lock().expect("no holder panics")
    }

    /// The faults of a kind that are on, with their numbers.
    pub(crate) fn active(&self, kind: Kind) -> Vec<(u64, Fault)> {
        let now = self.now();
        self.board().active(kind, now).map(|entry| (entry.id, entry.fault.clone())).collect()
    }

    /// The first fault of a kind that is on and suits, and hits this time by its chance.
    pub(crate) fn hit(&self, kind: Kind, key: &str, suits: impl Fn(&Fault) -> bool) -> Option<Fault> {
        let now = self.now();
        let purpose = kind.info().name;
        let mut active = self.active(kind).into_iter().filter(|(_, fault)| suits(fault));
        active
            .find(|(_, fault)| self.dice.happens(fault.number("p"), purpose, key, now.cast_unsigned()))
            .map(|(_, fault)| fault)
    }

    /// A moment as the provider would tell it, with its clock being wrong.
    pub(crate) fn told(&self, unix_nanos: i64) -> i64 {
        let skew_secs: f64 = self.active(Kind::ClockSkew).iter().map(|(_, fault)| fault.number("secs")).sum();
        unix_nanos.saturating_add((skew_secs * 1e9) as i64)
    }
}

/// The state of a record; the kit holds none without.
pub(crate) fn state_of(machine: &Machine) -> MachineState {
    MachineState::from_wire(machine.state).expect("the kit checks records")
}

/// The provider's name for a machine's hardware, if it has some.
pub(crate) fn host_of(machine: &Machine) -> Option<&str> {
    machine.host.as_ref().map(|host| host.r#ref.as_str())
}
