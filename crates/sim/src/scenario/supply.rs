//! The supply side of a scenario: pools of like machines, and how long their moves take.

use std::collections::BTreeMap;

use bigfleet_model::capacity::CapacityType;
use bigfleet_provider_sim::Span;
use serde::{Deserialize, Serialize};

/// So many like machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machines {
    /// The pool's name; machines are `name-0000` and so on.
    pub name: String,
    /// How many.
    pub count: usize,
    /// Whose they are.
    #[serde(default = "cloud")]
    pub provider: String,
    /// The instance type; the pool's name if left out.
    #[serde(default, rename = "type", skip_serializing_if = "String::is_empty")]
    pub instance_type: String,
    /// The zones, dealt out in turn.
    #[serde(default = "zone_a")]
    pub zones: Vec<String>,
    /// How many machines stand in one rack; 0 for no rack label. Racks lie in one zone.
    #[serde(default)]
    pub rack_size: usize,
    /// How they are paid for: `bare-metal`, `reserved`, `on-demand` or `spot`.
    #[serde(default = "bare_metal")]
    pub capacity: String,
    /// What each is at the start.
    #[serde(default)]
    pub state: StartState,
    /// For `configured`: whose they are.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// Price per hour.
    #[serde(default)]
    pub price: f64,
    /// The chance of losing one within an hour; losses happen by it.
    #[serde(default)]
    pub interruption: f64,
    /// The size of each.
    pub resources: BTreeMap<String, String>,
    /// Labels of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// What a machine is at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartState {
    /// Hardware, unbound.
    #[default]
    Idle,
    /// Quota.
    Speculative,
    /// Bound.
    Configured,
}

/// The key of rack labels.
pub const RACK: &str = "example.org/rack";

fn cloud() -> String {
    "cloud".into()
}

fn zone_a() -> Vec<String> {
    vec!["zone-a".into()]
}

fn bare_metal() -> String {
    "bare-metal".into()
}

impl Machines {
    /// How they are paid for, if the word is known.
    pub fn capacity_type(&self) -> Option<CapacityType> {
        match self.capacity.as_str() {
            "bare-metal" => Some(CapacityType::BareMetal),
            "reserved" => Some(CapacityType::Reserved),
            "on-demand" => Some(CapacityType::OnDemand),
            "spot" => Some(CapacityType::Spot),
            _ => None,
        }
    }

    /// The id of the machine with this number.
    pub fn id(&self, number: usize) -> String {
        format!("{}-{number:04}", self.name)
    }

    /// Its zone.
    pub fn zone(&self, number: usize) -> &str {
        let row = number.checked_div(self.rack_size).unwrap_or(number);
        &self.zones[row % self.zones.len()]
    }

    /// Its rack.
    pub fn rack(&self, number: usize) -> Option<String> {
        (self.rack_size > 0).then(|| format!("{}-r{:03}", self.name, number / self.rack_size))
    }
}

/// How long moves take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Dwell {
    /// From quota to hardware.
    pub create: Span,
    /// From hardware to a node that is Ready.
    pub configure: Span,
    /// Out of the cluster, once the provider is told.
    pub drain: Span,
    /// Back to quota.
    pub delete: Span,
    /// How far a move may take longer, as a share.
    pub jitter: f64,
    /// How long until what failed is there again; `0s` for never.
    pub repair: Span,
}

impl Default for Dwell {
    fn default() -> Self {
        Self {
            create: Span::from_secs(60),
            configure: Span::from_secs(30),
            drain: Span::from_secs(10),
            delete: Span::from_secs(20),
            jitter: 0.0,
            repair: Span::from_secs(0),
        }
    }
}
