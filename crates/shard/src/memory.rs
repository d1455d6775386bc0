//! What a shard remembers over a crash: little, but nothing of it may be lost.
//!
//! Providers keep the machines and their stamps; operators report demand every few seconds. Kept here is what neither
//! can tell a shard that starts again: since when needs wait, what was accepted and what is held, since when machines
//! idle, what was under way and for whom, who paused what, what may be done without asking, and what waits for a yes.
//!
//! A [`Fact`] is the newest value of one such thing; [`Memory`] is all of them. Losing a memory is safe: nothing is
//! reclaimed before a cluster has reported again, nothing is released before it has idled anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_engine::ActionKind;
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::stamp::Assignment;

use crate::confirmation::Confirmation;
use crate::losses::Loss;
use crate::modes::{ModeOrder, Proposal};
use crate::owned::{Domain, Named};
use crate::quota::Quota;

/// The newest value of one remembered thing; `None` forgets it.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// How many cycles were run, over all lives.
    Cycle(u64),
    /// A cluster's accepted demand, rows stamped with when they were first seen.
    Demand(Arc<str>, Option<Arc<[Need]>>),
    /// A roll-up of a cluster that waits to be confirmed.
    Held(Arc<str>, Option<HeldRollup>),
    /// When and how many machines of a cluster were reclaimed lately.
    Reclaims(Arc<str>, Option<Vec<(i64, u32)>>),
    /// What a machine is about, beyond what its provider keeps.
    Machine(Box<str>, Option<MachineMemo>),
    /// Since when a need is short.
    Shortfall(NeedKey, Option<ShortSince>),
    /// A pause.
    Pause(u64, Option<Pause>),
    /// An order about a mode.
    Mode(PauseScope, Option<ModeOrder>),
    /// What was proposed about a machine.
    Proposal(Box<str>, Option<Proposal>),
    /// A machine that a cluster lost to a listing that is not believed yet.
    Loss(Box<str>, Option<LossMemo>),
    /// When and how many replacements of such machines were bought for a cluster lately.
    Bought(Arc<str>, Option<Vec<(i64, u32)>>),
    /// The highest term in which a coordinator was heard.
    Term(i64),
    /// Whether a coordinator has given this domain to the shard.
    Domain(Box<str>, Box<str>, bool),
    /// What a coordinator has said of a machine by its name.
    Named(Box<str>, Option<Named>),
    /// How many machines of each kind the shard may hold.
    Quotas(Arc<[Quota]>),
}

/// A roll-up that waits to be confirmed.
pub type HeldRollup = Confirmation;

/// Who lost a machine, by whose word.
#[derive(Clone, Debug, PartialEq)]
pub struct LossMemo {
    /// The cluster it was bound to.
    pub cluster: Arc<str>,
    /// The provider that said so, by name: places in the configuration may change between two lives.
    pub provider: Arc<str>,
    /// What was lost with it.
    pub loss: Loss,
}

/// What a shard knows of a machine and its provider does not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineMemo {
    /// Since when it idles, in Unix nanoseconds.
    pub idle_since: Option<i64>,
    /// The need it is being created for.
    pub creating_for: Option<Assignment>,
    /// The need it is being drained for, if it was preempted.
    pub draining_for: Option<NeedKey>,
    /// A drain that waits for its cluster: the instruction and when its grace ends.
    pub letting_go: Option<LettingGo>,
    /// How often it was asked about since it failed.
    pub failed_tries: u32,
    /// When it entered the state it is in, for watchdogs.
    pub since: Option<i64>,
}

impl MachineMemo {
    /// Whether there is nothing worth keeping.
    pub fn is_empty(&self) -> bool {
        *self == Self { since: self.since, ..Self::default() }
    }
}

/// A drain that has been announced to its cluster and not yet ordered from the provider.
#[derive(Clone, Debug, PartialEq)]
pub struct LettingGo {
    /// Preempt or Reclaim.
    pub kind: ActionKind,
    /// The instruction's number on the wire.
    pub instruction: u64,
    /// When the grace is over.
    pub until_unix_nanos: i64,
    /// The priority it yields to.
    pub preemptor_priority: i32,
}

/// Since when a need is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortSince {
    /// When it was first short without a break.
    pub unix_nanos: i64,
    /// The cycle it was first short in.
    pub cycle: u64,
}

/// What a pause or a mode covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PauseScope {
    /// Only this cluster; all if none.
    pub cluster: Option<Arc<str>>,
    /// Only this kind of action; all if none.
    pub kind: Option<ActionKind>,
}

impl PauseScope {
    /// Whether an action falls under it. A Delete belongs to no cluster, so only a pause of everything stops it.
    pub fn covers(&self, kind: ActionKind, cluster: Option<&str>) -> bool {
        self.kind.is_none_or(|only| only == kind)
            && self.cluster.as_deref().is_none_or(|only| cluster == Some(only))
    }
}

/// Somebody's order to hold still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// What it covers.
    pub scope: PauseScope,
    /// Count what would have been done as a rehearsal rather than as held back.
    pub dry_run: bool,
    /// Why.
    pub reason: Box<str>,
    /// Who.
    pub author: Box<str>,
    /// Since when.
    pub since_unix_nanos: i64,
    /// Until when; for good if none.
    pub until_unix_nanos: Option<i64>,
}

/// Everything remembered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// Cycles run, over all lives.
    pub cycle: u64,
    /// Accepted demand by cluster.
    pub demand: BTreeMap<Arc<str>, Arc<[Need]>>,
    /// Held roll-ups by cluster.
    pub held: BTreeMap<Arc<str>, HeldRollup>,
    /// Recent reclaims by cluster.
    pub reclaims: BTreeMap<Arc<str>, Vec<(i64, u32)>>,
    /// Memos by machine.
    pub machines: BTreeMap<Box<str>, MachineMemo>,
    /// Ages of shortfalls.
    pub shortfalls: BTreeMap<NeedKey, ShortSince>,
    /// Pauses by number.
    pub pauses: BTreeMap<u64, Pause>,
    /// Orders about modes by scope.
    pub modes: BTreeMap<PauseScope, ModeOrder>,
    /// Proposals by machine.
    pub proposals: BTreeMap<Box<str>, Proposal>,
    /// Losses that are not believed yet, by machine.
    pub losses: BTreeMap<Box<str>, LossMemo>,
    /// Recent purchases that replace them, by cluster.
    pub bought: BTreeMap<Arc<str>, Vec<(i64, u32)>>,
    /// The highest term in which a coordinator was heard.
    pub term: i64,
    /// Domains that a coordinator has given to the shard.
    pub domains: BTreeSet<Domain>,
    /// What it has said of machines by their names.
    pub named: BTreeMap<Box<str>, Named>,
    /// How many machines of each kind the shard may hold.
    pub quotas: Arc<[Quota]>,
}

impl Memory {
    /// Takes in a fact.
    pub fn learn(&mut self, fact: Fact) {
        fn set<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
            match value {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
        }
        match fact {
            Fact::Cycle(cycle) => self.cycle = cycle,
            Fact::Demand(cluster, rows) => set(&mut self.demand, cluster, rows),
            Fact::Held(cluster, held) => set(&mut self.held, cluster, held),
            Fact::Reclaims(cluster, times) => set(&mut self.reclaims, cluster, times),
            Fact::Machine(id, memo) => set(&mut self.machines, id, memo),
            Fact::Shortfall(key, since) => set(&mut self.shortfalls, key, since),
            Fact::Pause(number, pause) => set(&mut self.pauses, number, pause),
            Fact::Mode(scope, order) => set(&mut self.modes, scope, order),
            Fact::Proposal(id, proposal) => set(&mut self.proposals, id, proposal),
            Fact::Loss(id, loss) => set(&mut self.losses, id, loss),
            Fact::Bought(cluster, times) => set(&mut self.bought, cluster, times),
            Fact::Term(term) => self.term = term,
            Fact::Domain(key, value, true) => drop(self.domains.insert((key, value))),
            Fact::Domain(key, value, false) => drop(self.domains.remove(&(key, value))),
            Fact::Named(id, named) => set(&mut self.named, id, named),
            Fact::Quotas(quotas) => self.quotas = quotas,
        }
    }
}
