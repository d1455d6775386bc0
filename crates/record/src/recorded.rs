//! A cycle as it is read back: everything a [`CycleRecord`] says, in values that stand on their own.
//!
//! An action of the engine points into the engine's tables. On disk, and for whoever reads it years later, the need it
//! is for has a name instead.

use std::sync::Arc;

use bigfleet_engine::{Action, ActionExplanation, ActionKind, Decision, Demand, EDITION, Options};
use bigfleet_model::need::NeedKey;
use bigfleet_model::resource::ResourceVec;
use bigfleet_shard::{Around, CycleRecord, Fate, Input, MachineFacts, Ordered, Reasons};

/// One cycle, read back.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its number, counted over all lives of the shard.
    pub cycle: u64,
    /// The life it ran in.
    pub epoch: i64,
    /// The edition of the rules it was decided under. Builds of the first edition did not write it down.
    pub edition: u32,
    /// When it ran.
    pub now_unix_nanos: i64,
    /// Why it ran.
    pub reasons: Reasons,
    /// The whole input of the engine; `inputs` are then empty.
    pub full: Option<Vec<Input>>,
    /// What changed since the record before.
    pub inputs: Vec<Input>,
    /// The options it ran with.
    pub options: Options,
    /// What it decided, in order; of the actions there was no room for only the first.
    pub decided: Vec<Decided>,
    /// How many actions it decided, listed or not.
    pub decided_in_all: u32,
    /// The digest of all of them.
    pub digest: u64,
    /// The price of all hardware there was, an hour.
    pub usd_per_hour: f64,
    /// How many needs were short after it.
    pub short_needs: u32,
    /// What changed around the engine; `None` if the build that wrote it did not record that.
    pub around: Option<Around>,
}

impl Recorded {
    /// The edition of the rules it was decided under, if it is not this build's.
    pub fn other_edition(&self) -> Option<u32> {
        (self.edition != EDITION).then_some(self.edition)
    }
}

/// An action that was decided, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// What to do.
    pub kind: ActionKind,
    /// To which machine.
    pub machine: Box<str>,
    /// The cluster that gets the machine, or loses it.
    pub cluster: Option<Arc<str>>,
    /// The need it is for.
    pub need: Option<NeedName>,
    /// How long the cluster has to drain it.
    pub grace_secs: Option<u32>,
    /// What became of it.
    pub fate: Fate,
    /// The rule and the runner-up, if they were worked out then; replay works out the others.
    pub why: Option<ActionExplanation>,
    /// What the machine was then; builds before the fourth version of records did not write it down.
    pub facts: Option<MachineFacts>,
    /// What the runner-up was then.
    pub runner_up: Option<MachineFacts>,
    /// Who approved it, if somebody had to.
    pub approved_by: Option<Box<str>>,
}

/// Which need exactly: folded gangs may share an identity and differ in their size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeedName {
    /// Cluster, fingerprint and gang.
    pub key: NeedKey,
    /// Whether it stands for gangs that fit one machine each.
    pub folded: bool,
    /// The smallest machine it can use.
    pub min_unit: ResourceVec,
}

impl NeedName {
    /// The name of a need of the engine.
    pub fn of(demand: &Demand) -> Self {
        Self { key: demand.need.key(), folded: demand.folded, min_unit: demand.need.min_unit.clone() }
    }
}

impl Decided {
    /// An action as data that stands on its own.
    pub fn new(action: &Action, fate: Fate, why: Option<ActionExplanation>) -> Self {
        Self {
            kind: action.kind,
            machine: action.machine.clone(),
            cluster: action.cluster.clone(),
            need: action.need.as_deref().map(NeedName::of),
            grace_secs: action.grace_secs,
            fate,
            why,
            facts: None,
            runner_up: None,
            approved_by: None,
        }
    }

    /// Whether two say the same decision, whatever became of it afterwards.
    pub fn same_decision(&self, other: &Self) -> bool {
        let decision =
            |d: &Self| (d.kind, d.machine.clone(), d.cluster.clone(), d.need.clone(), d.grace_secs);
        decision(self) == decision(other)
    }

    /// The actions of a decision, as if all of them had been begun.
    pub fn all_of(decision: &Decision) -> Vec<Self> {
        decision.actions.iter().map(|action| Self::new(action, Fate::Begun, None)).collect()
    }
}

impl From<&Ordered> for Decided {
    fn from(ordered: &Ordered) -> Self {
        Self {
            facts: ordered.machine.as_deref().map(MachineFacts::from),
            runner_up: ordered.runner_up.as_deref().cloned(),
            approved_by: ordered.approved_by.clone(),
            ..Self::new(&ordered.action, ordered.fate, ordered.why.clone())
        }
    }
}

impl From<&CycleRecord> for Recorded {
    fn from(record: &CycleRecord) -> Self {
        Self {
            cycle: record.cycle,
            epoch: record.epoch,
            edition: record.edition,
            now_unix_nanos: record.now_unix_nanos,
            reasons: record.reasons,
            full: record.full.as_deref().cloned(),
            inputs: record.inputs.clone(),
            options: record.options.clone(),
            decided: record.actions.iter().map(Decided::from).collect(),
            decided_in_all: record.decided,
            digest: record.digest,
            usd_per_hour: record.usd_per_hour,
            short_needs: record.short_needs,
            around: record.around.clone(),
        }
    }
}
