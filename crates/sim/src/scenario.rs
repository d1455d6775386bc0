//! A scenario: a fleet, the load on it, what goes wrong and what must come of it, in a file.
//!
//! ```
//! let scenario = bigfleet_sim::Scenario::from_json(r#"{
//!     "name": "one-pool", "lasts": "10m",
//!     "fleet": [{ "name": "metal", "count": 4, "resources": { "cpu": "16" } }],
//!     "clusters": [{ "name": "shop", "work": [{ "name": "web", "pods": 20, "unit": { "cpu": "2" } }] }],
//!     "expect": [{ "measure": "pods_bound", "is": 20 }, { "measure": "configured", "is": 3 }]
//! }"#).unwrap();
//! assert_eq!(scenario.clusters[0].work[0].priority, 1000);
//! ```
//!
//! `docs/simulator.md` describes every field. A file is checked as a whole; every problem has a code that never changes.

mod check;
mod council;
mod demand;
mod expect;
mod fault;
mod supply;

use bigfleet_provider_sim::Span;
use serde::{Deserialize, Serialize};

pub use check::{CODES, Problem, Problems};
pub use council::{Council, CouncilFault, CouncilOrder, Ordered, Wrong};
pub use demand::{Cluster, Curve, Pods, Point, Requirement, Spread, Work};
pub use expect::{Expect, Measure};
pub use fault::{Call, Fault, Lie, Trust, What};
pub use supply::{Dwell, Machines, RACK, StartState};

/// Everything a run is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is called.
    pub name: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Decides every random choice.
    #[serde(default = "one")]
    pub seed: u64,
    /// How long it is.
    pub lasts: Span,
    /// When it is over, lift all faults and let the world come to rest: it must, in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settle: bool,
    /// How the shard is set up.
    #[serde(default)]
    pub shard: ShardSetup,
    /// How long machines take for their moves.
    #[serde(default)]
    pub dwell: Dwell,
    /// How long a message takes one way.
    #[serde(default = "latency")]
    pub latency: Span,
    /// How much longer a listing may take than other answers: each takes another part of it.
    #[serde(default, skip_serializing_if = "is_none")]
    pub listing: Span,
    /// The machines.
    pub fleet: Vec<Machines>,
    /// Who wants them.
    pub clusters: Vec<Cluster>,
    /// What goes wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// What must come of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<Expect>,
}

/// How the shard is set up; what is left out is as the shard has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShardSetup {
    /// A cycle at least this often.
    pub tick: Span,
    /// Never two cycles closer than this.
    pub min_spacing: Span,
    /// How often providers are listed.
    pub list_every: Span,
    /// How often they are listed in full.
    pub full_list_every: Span,
    /// The reclaim cap.
    pub reclaim_fraction: f64,
    /// Its window.
    pub reclaim_window: Span,
    /// Hold of idle on-demand machines.
    pub on_demand_hold: Span,
    /// Hold of idle spot machines.
    pub spot_hold: Span,
    /// At most so many actions in one cycle; 0 for no bound.
    pub max_actions: usize,
    /// Nothing is executed.
    pub dry_run: bool,
    /// Moves under way at once; 0 for as many as the shard has.
    #[serde(skip_serializing_if = "is_zero")]
    pub max_moves: usize,
    /// How long a machine may be on its way before it stops counting; 0s for as long as the shard has.
    #[serde(skip_serializing_if = "is_none")]
    pub watchdog: Span,
    /// How many shards share the providers. Each owns the zones named after it: see [`ShardSetup::zones`].
    pub shards: usize,
    /// For several shards: the zones of each, in turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<Vec<String>>,
    /// A coordinator, which says whose the zones are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub council: Option<Council>,
}

impl Default for ShardSetup {
    fn default() -> Self {
        Self {
            tick: Span::from_secs(10),
            min_spacing: Span::from_millis(100),
            list_every: Span::from_secs(10),
            full_list_every: Span::from_secs(600),
            reclaim_fraction: 0.05,
            reclaim_window: Span::from_secs(30),
            on_demand_hold: Span::from_secs(600),
            spot_hold: Span::from_secs(60),
            max_actions: 0,
            dry_run: false,
            max_moves: 0,
            watchdog: Span::from_secs(0),
            shards: 1,
            zones: Vec::new(),
            council: None,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn is_none(span: &Span) -> bool {
    span.nanos() == 0
}

fn one() -> u64 {
    1
}

fn latency() -> Span {
    Span::from_millis(20)
}

impl Scenario {
    /// Reads a file, or reports its problems.
    pub fn from_json(text: &str) -> Result<Self, Problems> {
        check::read(text)
    }

    /// The file.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a scenario is plain data") + "\n"
    }

    /// The names of the providers, in the order in which the fleet names them.
    pub fn providers(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for pool in &self.fleet {
            if !names.contains(&pool.provider) {
                names.push(pool.provider.clone());
            }
        }
        names
    }
}
