//! Machines as providers report them.
//!
//! A record that breaks an invariant is refused and the last good one stays, so the checks are those of
//! [`Machine::check`] and no stricter. The stamp inside `shard_metadata` is ours, but passed through other
//! hands: each key is read alone, and one that is damaged is reported beside the machine, not instead of it.

use std::collections::BTreeMap;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::cost::canonical;
use bigfleet_model::label::{LabelError, Labels};
use bigfleet_model::limits::{self, OverLimit};
use bigfleet_model::machine::{HostRef, Machine, MachineError, MachineState};
use bigfleet_model::resource::{ResourceError, ResourceVec};
use bigfleet_model::stamp::{Assignment, StampProblem};
use bigfleet_model::text::Quoted;
use thiserror::Error;

use super::resources::check_map;
use crate::v1alpha1;

/// A machine as a provider reported it, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The machine.
    pub machine: Machine,
    /// Stamps that could not be read and were left out; worth a log line.
    pub stamp_problems: Vec<StampProblem>,
}

/// Why a provider's record was refused. The last good record stays.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum MachineWireError {
    /// No state, or one nobody defined.
    #[error("machine {} is in state {number}, which is not one of 1 to 8; the provider must correct its record", Quoted(.id))]
    State {
        /// Which machine.
        id: String,
        /// The number it came with.
        number: i32,
    },
    /// A capacity type nobody defined.
    #[error("machine {} has capacity type {number}; this build knows 0 to 4, so the provider may be newer", Quoted(.id))]
    CapacityType {
        /// Which machine.
        id: String,
        /// The number it came with.
        number: i32,
    },
    /// A label we cannot hold.
    #[error("machine {}: {problem}", Quoted(.id))]
    Label {
        /// Which machine.
        id: String,
        /// What is wrong.
        problem: LabelError,
    },
    /// An amount that is no quantity.
    #[error("machine {}: {field}: {problem}", Quoted(.id))]
    Amount {
        /// Which machine.
        id: String,
        /// `resources` or `allocatable`.
        field: &'static str,
        /// What is wrong.
        problem: ResourceError,
    },
    /// More than is taken of one machine.
    #[error("machine {}: {problem}", Quoted(.id))]
    OverLimit {
        /// Which machine.
        id: String,
        /// Which bound.
        problem: OverLimit,
    },
    /// An invariant of machine records is broken.
    #[error("{0}")]
    Record(#[from] MachineError),
}

impl MachineWireError {
    /// A stable short name, fit for a metric label.
    pub fn code(&self) -> &'static str {
        match self {
            Self::State { .. } => "state",
            Self::CapacityType { .. } => "capacity_type",
            Self::Label { .. } => "label",
            Self::Amount { .. } => "amount",
            Self::OverLimit { .. } => "over_limit",
            Self::Record(error) => error.problem.code(),
        }
    }
}

impl TryFrom<&v1alpha1::Machine> for Received {
    type Error = MachineWireError;

    fn try_from(message: &v1alpha1::Machine) -> Result<Self, MachineWireError> {
        let id = || message.id.clone();
        check(message).map_err(|problem| MachineWireError::OverLimit { id: id(), problem })?;
        let state = MachineState::from_wire(message.state)
            .ok_or_else(|| MachineWireError::State { id: id(), number: message.state })?;
        let capacity_type = CapacityType::from_wire(message.capacity_type)
            .ok_or_else(|| MachineWireError::CapacityType { id: id(), number: message.capacity_type })?;
        let amounts = |field, message: &Option<v1alpha1::Resources>| {
            let read = message.as_ref().map_or(Ok(ResourceVec::ZERO), ResourceVec::try_from);
            read.map_err(|problem| MachineWireError::Amount { id: id(), field, problem })
        };
        let labels = Labels::new(message.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())))
            .map_err(|problem| MachineWireError::Label { id: id(), problem })?;
        let (assigned, stamp_problems) = assignment(message, state);

        let mut machine = Machine::new(message.id.as_str(), state);
        machine.host = message.host.as_ref().and_then(host);
        machine.cluster = message.cluster.as_str().into();
        machine.instance_type = message.instance_type.as_str().into();
        machine.zone = message.zone.as_str().into();
        machine.capacity_type = capacity_type;
        machine.labels = labels;
        machine.resources = amounts("resources", &message.resources)?;
        machine.allocatable = amounts("allocatable", &message.allocatable)?;
        machine.price_usd_per_hour = canonical(message.price_per_hour);
        machine.interruption_probability = canonical(message.interruption_probability);
        machine.assigned = assigned;
        machine.last_error = limits::cut(&message.last_error, limits::MACHINE_ERROR_BYTES).into();
        machine.check()?;
        Ok(Self { machine, stamp_problems })
    }
}

/// Bounds a record, before any of it is read.
fn check(message: &v1alpha1::Machine) -> Result<(), OverLimit> {
    limits::text("id", &message.id, limits::MACHINE_ID_BYTES)?;
    limits::text("cluster", &message.cluster, limits::CLUSTER_NAME_BYTES)?;
    let text = |field, text: &str| limits::text(field, text, limits::MACHINE_TEXT_BYTES);
    text("instance_type", &message.instance_type)?;
    text("zone", &message.zone)?;
    if let Some(host) = &message.host {
        text("host.provider", &host.provider)?;
        text("host.ref", &host.r#ref)?;
    }
    limits::count("labels", "labels", message.labels.len(), limits::MACHINE_LABELS)?;
    for (key, value) in &message.labels {
        text("labels", key)?;
        text("labels", value)?;
    }
    for (field, amounts) in [("resources", &message.resources), ("allocatable", &message.allocatable)] {
        if let Some(amounts) = amounts {
            check_map(field, &amounts.resources, limits::MACHINE_RESOURCES)?;
        }
    }
    let metadata = message.shard_metadata.iter().map(|(key, value)| key.len() + value.len()).sum();
    limits::count("shard_metadata", "bytes", metadata, limits::MACHINE_METADATA_BYTES)
}

/// Both names empty is the same as no host.
fn host(message: &v1alpha1::HostRef) -> Option<HostRef> {
    let is_host = !(message.provider.is_empty() && message.r#ref.is_empty());
    is_host.then(|| HostRef {
        provider: message.provider.as_str().into(),
        reference: message.r#ref.as_str().into(),
    })
}

/// What the machine was bound for. An unbound machine has no assignment, whatever metadata is left on it.
fn assignment(message: &v1alpha1::Machine, state: MachineState) -> (Assignment, Vec<StampProblem>) {
    let mut assigned = Assignment::default();
    if !state.is_bound() {
        return (assigned, Vec::new());
    }
    assigned.cluster = message.cluster.as_str().into();
    let metadata = message.shard_metadata.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let problems = assigned.decode(metadata);
    (assigned, problems)
}

/// The record of a provider that knows what the model knows. Idle and preemption times do not travel.
impl From<&Machine> for v1alpha1::Machine {
    fn from(machine: &Machine) -> Self {
        let amounts = |amounts: &ResourceVec| (!amounts.is_zero()).then(|| amounts.into());
        let shard_metadata =
            if machine.state.is_bound() { machine.assigned.encode() } else { BTreeMap::new() };
        Self {
            id: machine.id.to_string(),
            state: machine.state.to_wire(),
            host: machine.host.as_ref().map(|host| v1alpha1::HostRef {
                provider: host.provider.to_string(),
                r#ref: host.reference.to_string(),
            }),
            instance_type: machine.instance_type.to_string(),
            zone: machine.zone.to_string(),
            capacity_type: machine.capacity_type.to_wire(),
            price_per_hour: machine.price_usd_per_hour,
            interruption_probability: machine.interruption_probability,
            resources: amounts(&machine.resources),
            labels: machine.labels.iter().map(|(key, value)| (key.into(), value.into())).collect(),
            last_error: machine.last_error.to_string(),
            allocatable: amounts(&machine.allocatable),
            cluster: machine.cluster.to_string(),
            shard_metadata,
        }
    }
}
