//! Offerings: the slots a provider starts out with.

use std::collections::BTreeMap;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::{HostRef, Machine, Resources};

use crate::record::{self, RecordError};

/// One slot for a machine: what it would be, and what it would cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Offering {
    /// Names the slot for ever.
    pub id: String,
    /// The kind of machine.
    pub instance_type: String,
    /// Where it is.
    pub zone: String,
    /// How it is paid for.
    pub capacity_type: CapacityType,
    /// What it costs.
    pub price_usd_per_hour: f64,
    /// The chance of losing it within an hour; above 0 for spot.
    pub interruption_probability: f64,
    /// Its size, as Kubernetes quantities.
    pub resources: BTreeMap<String, String>,
    /// What workloads may use of that, where it is known.
    pub allocatable: Option<BTreeMap<String, String>>,
    /// What else is to be said about it.
    pub labels: BTreeMap<String, String>,
    /// The hardware, where it exists already: such a slot starts Idle, not Speculative.
    pub host: Option<String>,
}

impl Offering {
    /// An on-demand slot without labels, to be filled in further.
    pub fn new(id: impl Into<String>, instance_type: impl Into<String>, zone: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            instance_type: instance_type.into(),
            zone: zone.into(),
            capacity_type: CapacityType::OnDemand,
            price_usd_per_hour: 0.0,
            interruption_probability: 0.0,
            resources: BTreeMap::new(),
            allocatable: None,
            labels: BTreeMap::new(),
            host: None,
        }
    }

    /// The same slot with this much of a resource.
    #[must_use]
    pub fn with_resource(mut self, name: impl Into<String>, quantity: impl Into<String>) -> Self {
        self.resources.insert(name.into(), quantity.into());
        self
    }

    /// The same slot at this price.
    #[must_use]
    pub fn at_price(mut self, usd_per_hour: f64) -> Self {
        self.price_usd_per_hour = usd_per_hour;
        self
    }

    /// The same slot as spot capacity.
    #[must_use]
    pub fn as_spot(mut self, interruption_probability: f64) -> Self {
        self.capacity_type = CapacityType::Spot;
        self.interruption_probability = interruption_probability;
        self
    }

    /// The same slot with a label.
    #[must_use]
    pub fn with_label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// Whether the kit would take it, and a shard its record; if not, why.
    pub fn check(&self) -> Result<(), RecordError> {
        record::check(&self.clone().into_machine(""))
    }

    /// The record of the slot before anything has happened to it.
    pub(crate) fn into_machine(self, provider: &str) -> Machine {
        let state = if self.host.is_some() { MachineState::Idle } else { MachineState::Speculative };
        Machine {
            id: self.id,
            state: state.to_wire(),
            host: self.host.map(|reference| HostRef { provider: provider.into(), r#ref: reference }),
            instance_type: self.instance_type,
            zone: self.zone,
            capacity_type: self.capacity_type.to_wire(),
            price_per_hour: self.price_usd_per_hour,
            interruption_probability: self.interruption_probability,
            resources: Some(Resources { resources: self.resources }),
            labels: self.labels,
            last_error: String::new(),
            allocatable: self.allocatable.map(|resources| Resources { resources }),
            cluster: String::new(),
            shard_metadata: BTreeMap::new(),
        }
    }
}

/// The stored record with what an offering says anew; state, host and binding stay.
pub(crate) fn refreshed(stored: &Machine, offered: &Machine) -> Machine {
    Machine {
        id: stored.id.clone(),
        state: stored.state,
        host: stored.host.clone(),
        last_error: stored.last_error.clone(),
        cluster: stored.cluster.clone(),
        shard_metadata: stored.shard_metadata.clone(),
        ..offered.clone()
    }
}
