//! The five cycles a benchmark runs on a shape.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// What a measured cycle has to deal with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cycle {
    /// The first one: nothing cached, all machines and needs new. Input: [`generate`](crate::generate).
    Cold,
    /// Every cluster's roll-up changed. Input: [`storm`](crate::storm()).
    Storm,
    /// A thousandth of the machines and needs changed. Input: [`churn`](crate::churn()).
    Churn,
    /// Nothing changed.
    Quiet,
    /// The first one of a fleet with twice as much demand as supply. Input: [`scarce`](crate::scarce()).
    Scarce,
}

/// A name that is no cycle.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no cycle {0:?}; the cycles are cold, storm, churn, quiet and scarce")]
pub struct UnknownCycle(String);

impl Cycle {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Cold, Self::Storm, Self::Churn, Self::Quiet, Self::Scarce];

    /// The name used on command lines and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Storm => "storm",
            Self::Churn => "churn",
            Self::Quiet => "quiet",
            Self::Scarce => "scarce",
        }
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Cycle {
    type Err = UnknownCycle;

    fn from_str(text: &str) -> Result<Self, UnknownCycle> {
        Self::ALL.into_iter().find(|cycle| cycle.name() == text).ok_or_else(|| UnknownCycle(text.into()))
    }
}
