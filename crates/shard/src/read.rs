//! Reading a shard: for people, metrics and invariants. Nothing here changes anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_engine::{Decision, Fleet};
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::NeedKey;

use crate::cluster::Cluster;
use crate::config::Config;
use crate::event::{ProviderId, SessionId};
use crate::flight::Flight;
use crate::ledger::Ledger;
use crate::money::Money;
use crate::parking::Stuck;
use crate::provider::Provider;
use crate::shard::Shard;
use crate::table::{Care, Row, Slot};
use crate::tally::Tally;
use crate::tape::CycleRecord;

/// One machine with everything a shard knows of it.
#[derive(Clone, Copy, Debug)]
pub struct MachineView<'a> {
    /// Its place, for paging: stable while the machine is known.
    pub place: u32,
    /// The machine as we see it.
    pub machine: &'a Arc<Machine>,
    /// Whose it is.
    pub provider: ProviderId,
    /// The state its provider last told.
    pub told: MachineState,
    /// Since when it is in its state.
    pub since_unix_nanos: i64,
    /// What is wrong with it, if anything.
    pub care: &'a Care,
    /// What is being done with it.
    pub flight: Option<&'a Flight>,
    /// Whether the engine counts it.
    pub shown: bool,
}

impl<'a> MachineView<'a> {
    fn of((slot, row): (Slot, &'a Row)) -> Self {
        Self {
            place: slot.place(),
            machine: &row.machine,
            provider: row.provider,
            told: row.told,
            since_unix_nanos: row.since,
            care: &row.care,
            flight: row.flight.as_deref(),
            shown: row.shown,
        }
    }
}

/// How full the queues are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Flights that wait for a place.
    pub waiting: usize,
    /// Moves at providers.
    pub calling: usize,
    /// Calls under way, listings and questions included.
    pub open: usize,
    /// Timers set.
    pub timers: usize,
    /// Changes not yet on the tape.
    pub tape: usize,
}

impl Shard {
    /// What it was told at its start.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// When this life began.
    pub fn started_unix_nanos(&self) -> i64 {
        self.started
    }

    /// The engine, as of the last cycle and what came in since.
    pub fn engine(&self) -> &Fleet {
        &self.engine
    }

    /// The number of the last cycle, over all lives.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// When the last cycle ran; `None` before the first of this life.
    pub fn last_cycle_unix_nanos(&self) -> Option<i64> {
        self.last_cycle
    }

    /// What the last cycle decided.
    pub fn decision(&self) -> Option<&Arc<Decision>> {
        self.decision.as_ref()
    }

    /// The last few hundred cycles that changed something, oldest first, without their inputs.
    pub fn recent(&self) -> impl DoubleEndedIterator<Item = &Arc<CycleRecord>> {
        self.journal.recent()
    }

    /// Asks for a record with the whole input at the next cycle.
    pub fn want_full_record(&mut self) {
        self.journal.want_whole();
    }

    /// How many machines are known.
    pub fn machine_count(&self) -> usize {
        self.table.len()
    }

    /// Machines from a place on, in the order of their places.
    pub fn machines_from(&self, place: u32) -> impl Iterator<Item = MachineView<'_>> {
        self.table.iter_from(place).map(MachineView::of)
    }

    /// One machine.
    pub fn machine(&self, id: &str) -> Option<MachineView<'_>> {
        let slot = self.table.find(id)?;
        Some(MachineView::of((slot, self.table.get(slot)?)))
    }

    /// The machines bound to a cluster.
    pub fn machines_of(&self, cluster: &str) -> impl Iterator<Item = MachineView<'_>> {
        let slots = self.clusters.get(cluster).into_iter().flat_map(|cluster| &cluster.bound);
        slots.filter_map(|slot| Some(MachineView::of((*slot, self.table.get(*slot)?))))
    }

    /// All clusters that ever reported, connected or hold machines.
    pub fn clusters(&self) -> &BTreeMap<Arc<str>, Cluster> {
        &self.clusters
    }

    /// Connections and the clusters they speak for.
    pub fn sessions(&self) -> &BTreeMap<SessionId, Arc<str>> {
        &self.sessions
    }

    /// The providers, in the order of their ids.
    pub fn providers(&self) -> &[Provider] {
        &self.providers
    }

    /// Whether a provider's listing is fresh enough to take things away by.
    pub fn is_provider_fresh(&self, provider: ProviderId, now_unix_nanos: i64) -> bool {
        self.is_fresh(provider, now_unix_nanos)
    }

    /// Who is short, and since when.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Whether a gang makes no progress, and since when.
    pub fn stuck(&self, key: &NeedKey) -> Option<&Stuck> {
        self.parking.get(key)
    }

    /// What the machines cost.
    pub fn money(&self) -> &Money {
        &self.money
    }

    /// What happened so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// How full the queues are.
    pub fn queues(&self) -> Queues {
        Queues {
            waiting: self.moves.line().count(),
            calling: self.moves.calling(),
            open: self.moves.open(),
            timers: self.timers.len(),
            tape: self.journal.noted(),
        }
    }

    /// Machines on which something is under way.
    pub fn flights(&self) -> impl Iterator<Item = MachineView<'_>> {
        self.machines_from(0).filter(|view| view.flight.is_some())
    }

    /// Whether the shard has heard all it needs to decide.
    pub fn is_deciding(&self) -> bool {
        self.last_cycle.is_some()
    }
}
