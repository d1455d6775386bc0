//! Everything a cycle answers, in the form that vectors compare.
//!
//! A `need` is always an index into [`Answer::normalized_needs`]. Amounts are in engine units (cpu in
//! thousandths, everything else whole) and list only what is above zero. The fields of every struct stand in
//! the order of their names, so the JSON of equal answers is equal byte for byte.

mod difference;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use bigfleet_model::need::Need;
use bigfleet_model::resource::ResourceVec;

pub use difference::difference;

/// Amounts above zero by resource name.
pub type Amounts = BTreeMap<String, u64>;

/// A resource vector as an answer shows it.
pub fn amounts(vector: &ResourceVec) -> Amounts {
    vector.iter().map(|(name, amount)| (name.as_str().to_owned(), amount)).collect()
}

/// Everything a cycle answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What to do, in order: phase 1 by need, then preemptions, then reclaims, then deletions.
    pub actions: Vec<Action>,
    /// What phase 1 credited and acquired: machine id to need. Machines preempted later stay listed.
    pub claims: BTreeMap<String, u32>,
    /// What phase 1 left missing, one entry for every need, before anything in flight is subtracted.
    pub deficits: Vec<Amounts>,
    /// The chosen domain of every need with `Same`, by need.
    pub domains: Vec<Domain>,
    /// The demand after folding, in demand order.
    pub normalized_needs: Vec<NormalizedNeed>,
    /// Why each need with a deficit is short, by need.
    pub reasons: Vec<Verdict>,
    /// What is missing after phase 2, in the order of phase 2.
    pub unresolved: Vec<Shortfall>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// The cluster that gets the machine, or loses it; none for deletions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The time to drain; for preemptions and reclaims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_secs: Option<u32>,
    /// What to do.
    pub kind: ActionKind,
    /// To which machine.
    pub machine: String,
    /// The need the machine is for; for bootstraps, provisions and preemptions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub need: Option<u32>,
}

/// What can be done to a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ActionKind {
    /// Bind an Idle machine to a cluster.
    Bootstrap,
    /// Create a Speculative machine for a cluster.
    Provision,
    /// Drain a Configured machine for a need of higher priority.
    Preempt,
    /// Drain a Configured machine that no need claims.
    Reclaim,
    /// Give an Idle machine back.
    Delete,
}

/// The domain of one `Same` need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    /// Whether its joint supply covers the whole demand.
    pub covers: bool,
    /// Which need.
    pub need: u32,
    /// The chosen value of the `Same` key; none if there is no machine in any domain.
    pub value: Option<String>,
}

/// One need after folding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NormalizedNeed {
    /// The sum of everything asked for.
    pub aggregate: Amounts,
    /// Who asks.
    pub cluster: String,
    /// The identity of the profile.
    pub fingerprint: String,
    /// When the shard first saw it, in Unix nanoseconds.
    pub first_seen: i64,
    /// The gang; empty for none.
    pub group: String,
    /// What every machine must hold alone.
    pub min_unit: Amounts,
    /// Whether the shard has stopped acquiring for it.
    pub parked: bool,
}

impl From<&Need> for NormalizedNeed {
    fn from(need: &Need) -> Self {
        Self {
            aggregate: amounts(&need.aggregate),
            cluster: need.cluster.to_string(),
            fingerprint: need.profile.fingerprint().to_owned(),
            first_seen: need.first_seen_unix_nanos,
            group: need.group.to_string(),
            min_unit: amounts(&need.min_unit),
            parked: need.parked,
        }
    }
}

/// Why one need is short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Which need.
    pub need: u32,
    /// The first reason that applies.
    pub reason: Reason,
}

/// Why a need is short, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The need is parked.
    Parked,
    /// What drains for it and this cycle's victims cover the deficit.
    InFlight,
    /// No machine counts for it and would contribute, apart from those it already claims.
    NoMatchingSupply,
    /// No domain holds enough for a gang, or only the spread kept a free machine out.
    TopologyUnsatisfiable,
    /// Machines in flight or victims were found, but not enough.
    PreemptionExhausted,
    /// Matching supply exists and equal or higher precedence holds it.
    PriorityStarved,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parked => "parked",
            Self::InFlight => "in_flight",
            Self::NoMatchingSupply => "no_matching_supply",
            Self::TopologyUnsatisfiable => "topology_unsatisfiable",
            Self::PreemptionExhausted => "preemption_exhausted",
            Self::PriorityStarved => "priority_starved",
        })
    }
}

/// What phase 2 could not free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortfall {
    /// What is still missing.
    pub missing: Amounts,
    /// Which need.
    pub need: u32,
    /// How many victims were picked for it all the same.
    pub victims: u32,
}
