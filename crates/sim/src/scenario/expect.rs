//! What must come of a scenario: exact counts, at the end or at a moment, over a span or over all of it.

use std::fmt;

use bigfleet_provider_sim::Span;
use serde::{Deserialize, Serialize};

/// One number that must be as stated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Which number.
    pub measure: Measure,
    /// Only of this cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// For `missing`: of which resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Of something that happens: from this moment on. Of something that is: at this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Span>,
    /// Of something that happens: before this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// Exactly this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is: Option<u64>,
    /// No less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<u64>,
    /// No more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u64>,
}

/// The numbers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Happens: Idle machines bound.
    Bootstraps,
    /// Happens: bought machines bound on arrival, as the second half of their Provision.
    CarriedOn,
    /// Happens: machines bought.
    Provisions,
    /// Happens: machines taken from lower priority.
    Preempts,
    /// Happens: machines taken back.
    Reclaims,
    /// Happens: machines given back.
    Deletes,
    /// Happens: any of these.
    Actions,
    /// Happens: pods that lost their machine.
    PodsLost,
    /// Happens: machines that failed.
    MachinesFailed,
    /// Happens: roll-ups that were held.
    Held,
    /// Happens: roll-ups that were refused.
    Refused,
    /// Happens: calls refused because a newer shard drives the machine.
    Fenced,
    /// Happens: starts of a shard, the first included.
    Starts,
    /// Happens: notices that somebody should be woken for.
    Alarms,
    /// Is: machines in this state, by the provider's word.
    Configured,
    /// Is.
    Idle,
    /// Is.
    Speculative,
    /// Is.
    Failed,
    /// Is: machines on their way between two states.
    Moving,
    /// Is: pods on machines.
    PodsBound,
    /// Is: pods that wait.
    PodsPending,
    /// Is: pods wanted.
    PodsWanted,
    /// Is: rows of demand.
    Needs,
    /// Is: needs the shard states as short.
    Shortfalls,
    /// Is: how much of a resource they are short of, in the units of the model (thousandths of a cpu).
    Missing,
}

impl Measure {
    /// Whether it counts what happens, rather than what is.
    pub fn is_count(self) -> bool {
        self <= Self::Alarms
    }
}

impl Expect {
    /// Whether a number is as stated.
    pub fn holds(&self, number: u64) -> bool {
        self.is.is_none_or(|is| number == is)
            && self.at_least.is_none_or(|least| number >= least)
            && self.at_most.is_none_or(|most| number <= most)
    }
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = serde_json::to_value(self.measure).expect("a measure is a word");
        write!(f, "{}", name.as_str().unwrap_or_default())?;
        if let Some(cluster) = &self.cluster {
            write!(f, " of {cluster}")?;
        }
        if let Some(from) = self.from {
            write!(f, " {} {from}", if self.measure.is_count() { "from" } else { "at" })?;
        }
        if let Some(until) = self.until {
            write!(f, " until {until}")?;
        }
        let bounds = [("is", self.is), ("at least", self.at_least), ("at most", self.at_most)];
        for (word, bound) in bounds {
            if let Some(bound) = bound {
                write!(f, " {word} {bound}")?;
            }
        }
        Ok(())
    }
}
