//! A scenario: a load curve and faults over time, in a file. Every incident can be written down as one.
//!
//! ```json
//! {
//!   "name": "zone-b goes out at noon",
//!   "seed": 7,
//!   "lasts": "2h",
//!   "load": [
//!     {
//!       "cluster": "prod",
//!       "unit": { "cpu": "4", "memory": "16Gi" },
//!       "points": [ { "at": "0s", "units": 100 }, { "at": "30m", "units": 300 } ]
//!     }
//!   ],
//!   "faults": [ "zone-outage zone-b --after 30m --for 10m" ]
//! }
//! ```
//!
//! A file is checked as a whole: every problem is reported, each with a code that never changes.

mod check;
mod load;

use serde::Serialize;

use crate::fault::Line;
use crate::span::Span;

pub use check::{CODES, Problem, Problems};
pub use load::{Curve, Load, Point};

/// A load curve and faults over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scenario {
    /// What it is about, in a few words.
    pub name: String,
    /// What else is to be said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Decides every random choice.
    pub seed: u64,
    /// How long it is.
    pub lasts: Span,
    /// Who wants how much, when.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub load: Vec<Load>,
    /// What goes wrong, when.
    pub faults: Vec<Line>,
}

impl Scenario {
    /// Reads a file, or reports all its problems.
    pub fn from_json(text: &str) -> Result<Self, Problems> {
        check::read(text)
    }

    /// The file.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a scenario is plain data") + "\n"
    }

    /// What went wrong in a run, without its load.
    pub(crate) fn of_incident(name: impl Into<String>, seed: u64, lasts: Span, faults: Vec<Line>) -> Self {
        let lasts = lasts.max(Span::from_secs(1));
        let note = "Written down from a running simulated cloud. Add the load that goes with it.".into();
        Self { name: name.into(), note, seed, lasts, load: Vec::new(), faults }
    }
}
