//! A coordinator beside the shards: its replicas, what people order, and what goes wrong with it.

use bigfleet_provider_sim::Span;
use serde::{Deserialize, Serialize};

/// A coordinator. With one, shards own what it assigns and nothing before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Council {
    /// How many replicas.
    #[serde(default = "two")]
    pub replicas: usize,
    /// How often shards report to it.
    #[serde(default = "thirty_seconds")]
    pub report_every: Span,
    /// How long a leader that says nothing stays leader.
    #[serde(default = "ten_seconds")]
    pub lease: Span,
    /// Shards help each other.
    #[serde(default = "yes")]
    pub helps: bool,
    /// What people order.
    #[serde(default)]
    pub orders: Vec<CouncilOrder>,
    /// What goes wrong with it.
    #[serde(default)]
    pub faults: Vec<CouncilFault>,
}

/// Something people order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CouncilOrder {
    /// When.
    pub at: Span,
    /// What.
    pub what: Ordered,
}

/// What people order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Ordered {
    /// A zone is this shard's.
    Assign {
        /// Which.
        zone: String,
        /// Whose.
        shard: usize,
    },
    /// A zone is nobody's any more.
    Unassign {
        /// Which.
        zone: String,
    },
    /// A shard may hold so many machines of a provider; any number if left out.
    Quota {
        /// Which.
        shard: usize,
        /// At which provider.
        provider: String,
        /// How many.
        machines: Option<u32>,
    },
}

/// Something that goes wrong with a coordinator for a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CouncilFault {
    /// When.
    pub at: Span,
    /// For how long.
    #[serde(rename = "for")]
    pub lasts: Span,
    /// What.
    pub what: Wrong,
}

/// What goes wrong with a coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Wrong {
    /// A replica stands still, and then goes on as if nothing had been.
    Paused {
        /// Which.
        replica: usize,
    },
    /// A replica is killed, and then started again.
    Killed {
        /// Which.
        replica: usize,
    },
    /// The store has no majority.
    StoreDown,
    /// What shards and replicas say to one another is lost.
    Lost {
        /// How likely.
        p: f64,
    },
}

fn two() -> usize {
    2
}

fn yes() -> bool {
    true
}

fn thirty_seconds() -> Span {
    Span::from_secs(30)
}

fn ten_seconds() -> Span {
    Span::from_secs(10)
}
