//! Machines: the supply side.
//!
//! A machine is a slot that a provider drives through a life: from quota to hardware, into a cluster, out of
//! it again, and back to quota. [`MachineState`] names the stations. Two rules govern them, and they are
//! different rules. There is a table of moves *we may order*: [`MachineState::may_order`]. And there are the
//! states *we may be told*: any. The provider's word always wins, also when it says that a machine died or
//! left its cluster unasked. One table for both is how dead machines stay counted as supply.
//!
//! What is checked about a record, whoever wrote it, is that it makes sense in itself: [`Machine::check`].
//!
//! ```
//! use bigfleet_model::machine::{Machine, MachineState};
//!
//! let told = Machine::new("m-17", MachineState::Configured);
//! assert_eq!(
//!     told.check().unwrap_err().to_string(),
//!     r#"machine "m-17" (Configured): has no host; the provider must correct its record"#,
//! );
//! assert!(!MachineState::Configured.may_order(MachineState::Failed), "nobody orders a failure");
//! ```

use thiserror::Error;

use crate::capacity::CapacityType;
use crate::label::{Facts, Labels};
use crate::need::NeedKey;
use crate::resource::ResourceVec;
use crate::stamp::Assignment;
use crate::text::Quoted;

mod state;
#[cfg(test)]
mod tests;

pub use state::MachineState;

/// What the provider calls the hardware.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct HostRef {
    /// Which provider.
    pub provider: Box<str>,
    /// Its own name for the host.
    pub reference: Box<str>,
}

/// Everything known about one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Stable for the whole life of the slot.
    pub id: Box<str>,
    /// Where it is in its life.
    pub state: MachineState,
    /// The hardware; absent while there is none.
    pub host: Option<HostRef>,
    /// The cluster it is bound to; empty for none.
    pub cluster: Box<str>,
    /// The kind of machine; empty means no value.
    pub instance_type: Box<str>,
    /// The zone; empty means no value.
    pub zone: Box<str>,
    /// How it is paid for.
    pub capacity_type: CapacityType,
    /// What else the provider says about it.
    pub labels: Labels,
    /// Its nominal size.
    pub resources: ResourceVec,
    /// What workloads may use of it; zero means that nobody said.
    pub allocatable: ResourceVec,
    /// Its price.
    pub price_usd_per_hour: f64,
    /// The chance that the provider takes it away within an hour.
    pub interruption_probability: f64,
    /// What it was bound for, or is being created for. Means nothing on an unbound machine in another state.
    pub assigned: Assignment,
    /// The need it is being drained for, when a preemption drains it.
    pub draining_for: Option<NeedKey>,
    /// Since when it is Idle, in Unix nanoseconds, if we know.
    pub idle_since_unix_nanos: Option<i64>,
    /// Why it failed; empty in every other state.
    pub last_error: Box<str>,
}

/// Why a machine record was refused. The last good record stays.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("machine {} ({state}): {problem}; the provider must correct its record", Quoted(.id))]
pub struct MachineError {
    /// Which machine.
    pub id: String,
    /// The state it was reported in.
    pub state: MachineState,
    /// What is wrong.
    pub problem: MachineProblem,
}

/// What can be wrong with a machine record.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum MachineProblem {
    /// No id: it could never be named again.
    #[error("the id is empty")]
    EmptyId,
    /// A host before there is hardware.
    #[error("has a host although nothing was created yet")]
    UnexpectedHost,
    /// No host where there must be hardware.
    #[error("has no host")]
    MissingHost,
    /// A cluster while unbound.
    #[error("names a cluster although it is not bound to one")]
    UnexpectedCluster,
    /// No cluster while bound.
    #[error("names no cluster although it is bound")]
    MissingCluster,
    /// Failed without saying why.
    #[error("carries no error")]
    MissingError,
    /// A price below zero, infinite or not a number.
    #[error("price {0} is not a finite amount of dollars from 0 up")]
    Price(f64),
    /// A probability outside 0 to 1, or not a number.
    #[error("interruption probability {0} is not between 0 and 1")]
    Probability(f64),
    /// A penalty in the stamp below zero or not a number.
    #[error("assigned penalty {0} is not an amount of dollars")]
    Penalty(f64),
}

impl MachineProblem {
    /// A stable short name, fit for a metric label.
    pub fn code(self) -> &'static str {
        match self {
            Self::EmptyId => "empty_id",
            Self::UnexpectedHost => "unexpected_host",
            Self::MissingHost => "missing_host",
            Self::UnexpectedCluster => "unexpected_cluster",
            Self::MissingCluster => "missing_cluster",
            Self::MissingError => "missing_error",
            Self::Price(_) => "price",
            Self::Probability(_) => "probability",
            Self::Penalty(_) => "penalty",
        }
    }
}

impl Machine {
    /// A machine with nothing but an id and a state.
    pub fn new(id: impl Into<Box<str>>, state: MachineState) -> Self {
        Self {
            id: id.into(),
            state,
            host: None,
            cluster: "".into(),
            instance_type: "".into(),
            zone: "".into(),
            capacity_type: CapacityType::Unspecified,
            labels: Labels::EMPTY,
            resources: ResourceVec::ZERO,
            allocatable: ResourceVec::ZERO,
            price_usd_per_hour: 0.0,
            interruption_probability: 0.0,
            assigned: Assignment::default(),
            draining_for: None,
            idle_since_unix_nanos: None,
            last_error: "".into(),
        }
    }

    /// What it provides: its allocatable, or its resources if nobody said.
    pub fn provides(&self) -> &ResourceVec {
        if self.allocatable.is_zero() { &self.resources } else { &self.allocatable }
    }

    /// Where requirements look up values.
    pub fn facts(&self) -> Facts<'_> {
        Facts { instance_type: &self.instance_type, zone: &self.zone, labels: &self.labels }
    }

    /// Checks the invariants every record must meet, whoever wrote it.
    pub fn check(&self) -> Result<(), MachineError> {
        self.problem().map_or(Ok(()), |problem| {
            Err(MachineError { id: self.id.to_string(), state: self.state, problem })
        })
    }

    fn problem(&self) -> Option<MachineProblem> {
        use MachineState::{
            Configured, Configuring, Creating, Deleting, Draining, Failed, Idle, Speculative,
        };
        if self.id.is_empty() {
            return Some(MachineProblem::EmptyId);
        }
        match self.state {
            Speculative | Creating if self.host.is_some() => return Some(MachineProblem::UnexpectedHost),
            Idle | Configuring | Configured | Draining | Deleting if self.host.is_none() => {
                return Some(MachineProblem::MissingHost);
            }
            // A dead machine may still name its cluster or lack a host: refusing that record would keep the
            // last good one, and with it a dead machine as supply.
            Failed if self.last_error.is_empty() => return Some(MachineProblem::MissingError),
            _ => {}
        }
        match self.state {
            Speculative | Creating | Idle | Deleting if !self.cluster.is_empty() => {
                return Some(MachineProblem::UnexpectedCluster);
            }
            Configured | Draining if self.cluster.is_empty() => return Some(MachineProblem::MissingCluster),
            _ => {}
        }
        if !(self.price_usd_per_hour.is_finite() && self.price_usd_per_hour >= 0.0) {
            return Some(MachineProblem::Price(self.price_usd_per_hour));
        }
        if !(0.0..=1.0).contains(&self.interruption_probability) {
            return Some(MachineProblem::Probability(self.interruption_probability));
        }
        let penalties = [self.assigned.interruption_penalty_usd, self.assigned.reclamation_penalty_usd];
        penalties.into_iter().find(|p| p.is_nan() || *p < 0.0).map(MachineProblem::Penalty)
    }
}
