//! The demand side of a scenario: clusters, and the pods they want.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::{self, Operator};
use bigfleet_model::resource::{ResourceError, ResourceVec};
use bigfleet_model::spread::{TopologySpread, WhenUnsatisfiable};
use bigfleet_provider_sim::Span;
use serde::{Deserialize, Serialize};

/// One cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Which shard it talks to, where there are several.
    #[serde(default)]
    pub shard: usize,
    /// How often it reports.
    #[serde(default = "ten_seconds")]
    pub roll_up: Span,
    /// How long after a machine is Configured its node takes pods.
    #[serde(default = "ten_seconds")]
    pub join: Span,
    /// How long pods take to leave when they are asked to; never longer than the grace.
    #[serde(default = "ten_seconds")]
    pub evict: Span,
    /// A canary: reports only pods that are not bound. Such a cluster never comes to rest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unmet_only: bool,
    /// What runs in it.
    #[serde(default)]
    pub work: Vec<Work>,
}

/// Like pods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// Its name.
    pub name: String,
    /// How many pods are wanted, or gangs if `gang` is given.
    pub pods: Pods,
    /// What one pod needs.
    pub unit: BTreeMap<String, String>,
    /// Their priority.
    #[serde(default = "thousand")]
    pub priority: i32,
    /// What interrupting them costs, in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption_usd: Option<f64>,
    /// What losing the machine costs, in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclamation_usd: Option<f64>,
    /// Which machines will do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<Requirement>,
    /// The label a gang's machines must share. Needs `gang`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub same: String,
    /// Pods per gang; 0 for pods that do not belong together.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gang: usize,
    /// A strict spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// Nobody makes these pods again when they are lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bare: bool,
    /// The share of pods replaced in an hour, without a change of their number.
    #[serde(default, skip_serializing_if = "is_none_per_hour")]
    pub churn_per_hour: f64,
}

/// How many are wanted over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Pods {
    /// Always the same.
    Always(u64),
    /// By a curve.
    Curve(Curve),
}

/// A number that changes over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Curve {
    /// Holds each number until the next point.
    Steps(Vec<Point>),
    /// Up and down once a day between two numbers, looked at every so often.
    Day {
        /// At night.
        low: u64,
        /// At noon.
        high: u64,
        /// How often the number is looked at.
        every: Span,
    },
}

/// A number from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// From when on.
    pub at: Span,
    /// How many.
    pub pods: u64,
}

/// A requirement, as Kubernetes spells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// The values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// A strict spread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Over the values of this label.
    pub key: String,
    /// How uneven it may be.
    pub skew: i32,
}

fn ten_seconds() -> Span {
    Span::from_secs(10)
}

fn thousand() -> i32 {
    1000
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form serde calls")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form serde calls")]
fn is_none_per_hour(number: &f64) -> bool {
    *number == 0.0
}

impl Pods {
    /// How many are wanted at this time after the start.
    pub fn at(&self, nanos: i64) -> u64 {
        match self {
            Self::Always(pods) => *pods,
            Self::Curve(Curve::Steps(points)) => points
                .iter()
                .take_while(|point| point.at.nanos() <= nanos)
                .last()
                .map_or(0, |point| point.pods),
            Self::Curve(Curve::Day { low, high, .. }) => {
                // A triangle: no rounding of sines that another machine might do differently.
                let day = 86_400_000_000_000;
                let time = nanos.rem_euclid(day);
                let up = if time < day / 2 { time } else { day - time };
                low + ((high - low) as i128 * i128::from(up) / i128::from(day / 2)) as u64
            }
        }
    }

    /// When the number may change next after this time, if ever.
    pub fn next_change(&self, nanos: i64) -> Option<i64> {
        match self {
            Self::Always(_) => None,
            Self::Curve(Curve::Steps(points)) => points.iter().map(|p| p.at.nanos()).find(|at| *at > nanos),
            Self::Curve(Curve::Day { every, .. }) => Some(nanos + every.nanos().max(1)),
        }
    }
}

impl Cluster {
    /// A cluster that wants nothing.
    pub(crate) fn named(name: &str) -> Self {
        Self {
            name: name.into(),
            shard: 0,
            roll_up: ten_seconds(),
            join: ten_seconds(),
            evict: ten_seconds(),
            unmet_only: false,
            work: Vec::new(),
        }
    }
}

impl Work {
    /// So many pods, or gangs of so many, of which all else is said elsewhere.
    pub(crate) fn like(pods: u64, gang: usize) -> Self {
        Self {
            name: String::new(),
            pods: Pods::Always(pods),
            unit: BTreeMap::new(),
            priority: 0,
            interruption_usd: None,
            reclamation_usd: None,
            requires: Vec::new(),
            same: String::new(),
            gang,
            spread: None,
            bare: false,
            churn_per_hour: 0.0,
        }
    }

    /// The profile of its pods.
    pub fn profile(&self) -> Arc<Profile> {
        let bucket = |usd: Option<f64>| {
            usd.map_or(PenaltyBucket::UNSPECIFIED, |usd| PenaltyBucket::for_dollars(usd).unwrap_or_default())
        };
        let mut requirements: Vec<requirement::Requirement> = self
            .requires
            .iter()
            .map(|asked| {
                let values = asked.values.iter().map(|value| Box::from(value.as_str()));
                requirement::Requirement::new(
                    asked.key.as_str(),
                    operator(&asked.operator),
                    values.collect::<Vec<Box<str>>>(),
                )
            })
            .collect();
        if !self.same.is_empty() {
            requirements.push(requirement::Requirement::same(self.same.as_str()));
        }
        let spread = self.spread.iter().map(|spread| {
            TopologySpread::new(spread.key.as_str(), spread.skew, WhenUnsatisfiable::DoNotSchedule)
        });
        let spread = spread.collect();
        let (interruption, reclamation) = (bucket(self.interruption_usd), bucket(self.reclamation_usd));
        Arc::new(Profile::new(requirements, spread, self.priority, interruption, reclamation))
    }

    /// What one pod needs.
    pub fn unit(&self) -> Result<ResourceVec, ResourceError> {
        ResourceVec::parse(self.unit.iter())
    }
}

/// The operator of this name; unknown ones match nothing.
pub(super) fn operator(name: &str) -> Operator {
    Operator::ALL.into_iter().find(|operator| operator.name() == name).unwrap_or(Operator::Unspecified)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_hold_until_the_next_point() {
        let at = |secs, pods| Point { at: Span::from_secs(secs), pods };
        let pods = Pods::Curve(Curve::Steps(vec![at(10, 5), at(20, 2)]));
        let secs = |secs: i64| secs * 1_000_000_000;
        assert_eq!([0, 10, 19, 20, 99].map(|s| pods.at(secs(s))), [0, 5, 5, 2, 2]);
        assert_eq!(pods.next_change(0), Some(secs(10)));
        assert_eq!(pods.next_change(secs(10)), Some(secs(20)));
        assert_eq!(pods.next_change(secs(20)), None);
    }

    #[test]
    fn a_day_goes_up_and_down() {
        let pods = Pods::Curve(Curve::Day { low: 10, high: 110, every: Span::from_secs(60) });
        let hours = |hours: i64| hours * 3_600_000_000_000;
        assert_eq!([0, 6, 12, 18, 24, 36].map(|h| pods.at(hours(h))), [10, 60, 110, 60, 10, 110]);
    }
}
