//! Machines: the supply side, and the two tables that govern their states.
//!
//! There is one table of moves *we may order* and another rule for states *we may be told*: any. The
//! provider's word always wins. Mixing the two is how dead machines stay counted as supply.

use std::fmt;

use thiserror::Error;

use crate::capacity::CapacityType;
use crate::label::{Facts, Labels};
use crate::need::NeedKey;
use crate::resource::ResourceVec;
use crate::stamp::Assignment;
use crate::text::Quoted;

/// Where a machine is in its life. The discriminants are the wire numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum MachineState {
    /// A slot of quota: nothing exists yet.
    Speculative = 1,
    /// Being made.
    Creating = 2,
    /// Hardware that belongs to no cluster.
    Idle = 3,
    /// Joining a cluster; counts as bound from here on.
    Configuring = 4,
    /// A node of a cluster.
    Configured = 5,
    /// Leaving its cluster.
    Draining = 6,
    /// Being given back.
    Deleting = 7,
    /// Broken, with an error.
    Failed = 8,
}

impl MachineState {
    /// All of them, in wire order.
    pub const ALL: [Self; 8] = [
        Self::Speculative,
        Self::Creating,
        Self::Idle,
        Self::Configuring,
        Self::Configured,
        Self::Draining,
        Self::Deleting,
        Self::Failed,
    ];

    /// The state with this wire number, if there is one.
    pub fn from_wire(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as i32 == number)
    }

    /// The wire number.
    pub fn to_wire(self) -> i32 {
        self as i32
    }

    /// The name people see and files use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Speculative => "Speculative",
            Self::Creating => "Creating",
            Self::Idle => "Idle",
            Self::Configuring => "Configuring",
            Self::Configured => "Configured",
            Self::Draining => "Draining",
            Self::Deleting => "Deleting",
            Self::Failed => "Failed",
        }
    }

    /// Whether the machine belongs to a cluster.
    pub fn is_bound(self) -> bool {
        matches!(self, Self::Configuring | Self::Configured | Self::Draining)
    }

    /// Whether the provider is at work and another state will follow.
    pub fn is_transitional(self) -> bool {
        matches!(self, Self::Creating | Self::Configuring | Self::Draining | Self::Deleting)
    }

    /// Whether we may order the move from `self` to `to`, or complete one we ordered.
    ///
    /// Says nothing about what a provider may report: that is never refused for its order.
    pub fn may_order(self, to: Self) -> bool {
        use MachineState::{
            Configured, Configuring, Creating, Deleting, Draining, Failed, Idle, Speculative,
        };
        matches!(
            (self, to),
            (Speculative, Creating)
                | (Creating, Idle | Failed)
                | (Idle, Configuring | Deleting)
                // Back to Idle only when binding was given up before the provider was called.
                | (Configuring, Configured | Failed | Idle)
                | (Configured, Draining)
                | (Draining, Idle | Failed)
                | (Deleting, Speculative | Failed)
        )
    }
}

impl fmt::Display for MachineState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

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
    /// What it was bound for.
    pub assigned: Assignment,
    /// The need it is being drained for, when a preemption drains it.
    pub draining_for: Option<NeedKey>,
    /// Since when it is Idle, in Unix nanoseconds, if we know.
    pub idle_since_unix_nanos: Option<i64>,
    /// Why it failed.
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
