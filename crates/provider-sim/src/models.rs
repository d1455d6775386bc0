//! The models of the simulated cloud: what is imitated, and with which figures.
//!
//! Every model has a switch or a rate, every figure a default, and all of them are printed at the start and by
//! `--print-defaults`. They are set by name, `--set spot.on=false`, or from a JSON file of the same shape.

mod describe;
mod latency;
mod pool;
mod price;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::span::Span;

pub use describe::{HELP, describe};
pub use latency::Latency;
pub use pool::Pools;
pub(crate) use pool::{PoolBook, Taken};
pub use price::Prices;
pub(crate) use price::rounded;

/// All models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Models {
    /// How long moves take.
    pub latency: Latencies,
    /// Spot prices.
    pub prices: Prices,
    /// How much of each type there is in each zone.
    pub pools: Pools,
    /// Spot machines are taken back.
    pub spot: Spot,
    /// Hosts die.
    pub host_loss: HostLoss,
    /// Broken slots become usable again.
    pub repair: Repair,
    /// The provider refuses calls that come too fast.
    pub throttle: Throttle,
    /// How often the world looks for losses, repairs and price changes.
    pub tick: Span,
}

/// How long each move takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Latencies {
    /// A Create of a virtual machine.
    pub create: Latency,
    /// A Create of a whole host.
    pub create_metal: Latency,
    /// A Configure, up to the node being Ready.
    pub configure: Latency,
    /// A Drain; cut off at its grace.
    pub drain: Latency,
    /// A Delete.
    pub delete: Latency,
}

/// Spot machines are taken back at the rate of the catalogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spot {
    /// Whether they are at all.
    pub on: bool,
    /// How long before it happens it is announced.
    pub notice: Span,
    /// Multiplies the catalogue's rates.
    pub factor: f64,
}

/// Hosts die without a word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostLoss {
    /// Whether they do.
    pub on: bool,
    /// How many hosts a machine loses in a year.
    pub per_machine_year: f64,
}

/// Broken slots become usable again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Repair {
    /// Whether they do; otherwise Failed is for ever.
    pub on: bool,
    /// How long that takes.
    pub after: Span,
}

/// The provider refuses calls that come too fast.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Throttle {
    /// Whether it does.
    pub on: bool,
    /// Moves a second it takes in the long run.
    pub moves_per_sec: f64,
    /// Moves it takes at once after a pause.
    pub burst: f64,
    /// When a refused caller should come back.
    pub retry_after: Span,
}

impl Default for Models {
    fn default() -> Self {
        Self {
            latency: Latencies::default(),
            prices: Prices::default(),
            pools: Pools::default(),
            spot: Spot::default(),
            host_loss: HostLoss::default(),
            repair: Repair::default(),
            throttle: Throttle::default(),
            tick: Span::from_secs(15),
        }
    }
}

impl Default for Latencies {
    fn default() -> Self {
        let secs = |median, p99| Latency {
            median: Span::from_secs(median),
            p99: Span::from_secs(p99),
            least: Span::from_secs(1),
        };
        Self {
            create: secs(45, 180),
            create_metal: secs(600, 1200),
            configure: secs(20, 60),
            drain: secs(15, 120),
            delete: secs(30, 90),
        }
    }
}

impl Default for Spot {
    fn default() -> Self {
        Self { on: true, notice: Span::from_secs(120), factor: 1.0 }
    }
}

impl Default for HostLoss {
    fn default() -> Self {
        Self { on: true, per_machine_year: 1.0 }
    }
}

impl Default for Repair {
    fn default() -> Self {
        Self { on: true, after: Span::from_secs(600) }
    }
}

impl Default for Throttle {
    fn default() -> Self {
        Self { on: true, moves_per_sec: 100.0, burst: 500.0, retry_after: Span::from_secs(5) }
    }
}

/// Why a setting was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingError {
    /// Not `name=value`.
    #[error("{0:?} is no setting; write NAME=VALUE, such as spot.on=false")]
    Shape(String),
    /// No such name.
    #[error("no model has a setting {name:?}{}; see --print-defaults", crate::suggest::perhaps(.suggestion.as_deref()))]
    Unknown {
        /// What was written.
        name: String,
        /// What was perhaps meant.
        suggestion: Option<String>,
    },
    /// A value of the wrong kind or out of range.
    #[error("{name} cannot be {value:?}: {reason}")]
    Value {
        /// Which setting.
        name: String,
        /// What was written.
        value: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that is no set of models.
    #[error("the models cannot be read: {0}")]
    File(String),
}

impl Models {
    /// Short transitions and no surprises: what a test suite needs.
    ///
    /// Moves take 40 to 100 ms and are still asynchronous. Prices stand still, nothing breaks by itself, pools
    /// are without end, and a failed machine stays failed.
    pub fn for_test_suites() -> Self {
        let quick = Latency {
            median: Span::from_millis(60),
            p99: Span::from_millis(100),
            least: Span::from_millis(40),
        };
        let quiet = Self::quiet();
        let latency =
            Latencies { create: quick, create_metal: quick, configure: quick, drain: quick, delete: quick };
        Self { latency, ..quiet }
    }

    /// The usual latencies, and every model that surprises switched off.
    pub fn quiet() -> Self {
        let mut models = Self::default();
        models.prices.on = false;
        models.pools.on = false;
        models.spot.on = false;
        models.host_loss.on = false;
        models.repair.on = false;
        models.throttle.on = false;
        models
    }

    /// Reads models from JSON; what is left out has its default.
    pub fn from_json(text: &str) -> Result<Self, SettingError> {
        let models: Self =
            serde_json::from_str(text).map_err(|error| SettingError::File(error.to_string()))?;
        models.check().map_err(|(name, reason)| SettingError::File(format!("{name}: {reason}")))?;
        Ok(models)
    }

    /// Changes one setting, given as `NAME=VALUE`.
    pub fn set(&mut self, setting: &str) -> Result<(), SettingError> {
        let (name, text) = setting.split_once('=').ok_or_else(|| SettingError::Shape(setting.into()))?;
        let (name, text) = (name.trim(), text.trim());
        let mut tree = self.tree();
        let old = tree.pointer_mut(&format!("/{}", name.replace('.', "/"))).filter(|old| !old.is_object());
        let Some(old) = old else {
            let suggestion =
                crate::suggest::nearest(name, self.settings().iter().map(|(name, _)| name.as_str()));
            return Err(SettingError::Unknown { name: name.into(), suggestion });
        };
        *old = if old.is_string() {
            text.into()
        } else {
            serde_json::from_str(text).unwrap_or_else(|_| text.into())
        };
        let wrong = |reason: String| SettingError::Value { name: name.into(), value: text.into(), reason };
        let changed: Self = serde_json::from_value(tree).map_err(|error| wrong(error.to_string()))?;
        changed.check().map_err(|(_, reason)| wrong(reason))?;
        *self = changed;
        Ok(())
    }

    /// All settings by name, in a fixed order.
    pub fn settings(&self) -> Vec<(String, String)> {
        let mut settings = Vec::new();
        flatten("", &self.tree(), &mut settings);
        settings
    }

    fn tree(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("models are plain data")
    }

    /// What serde cannot see: ranges.
    fn check(&self) -> Result<(), (&'static str, String)> {
        let latency = &self.latency;
        for (name, latency) in [
            ("latency.create", latency.create),
            ("latency.create_metal", latency.create_metal),
            ("latency.configure", latency.configure),
            ("latency.drain", latency.drain),
            ("latency.delete", latency.delete),
        ] {
            if latency.median <= Span::default() || latency.p99 < latency.median {
                return Err((
                    name,
                    format!("needs 0 < median <= p99, has {} and {}", latency.median, latency.p99),
                ));
            }
        }
        for (name, value, most) in [
            ("prices.mean", self.prices.mean, 1.0),
            ("prices.spread", self.prices.spread, 1.0),
            ("pools.depth", self.pools.depth, 1e9),
            ("pools.refill_per_hour", self.pools.refill_per_hour, 1e9),
            ("spot.factor", self.spot.factor, 1e6),
            ("host_loss.per_machine_year", self.host_loss.per_machine_year, 1e9),
            ("throttle.moves_per_sec", self.throttle.moves_per_sec, 1e9),
            ("throttle.burst", self.throttle.burst, 1e9),
        ] {
            if !(0.0..=most).contains(&value) {
                return Err((name, format!("must be between 0 and {most}, is {value}")));
            }
        }
        if self.tick < Span::from_millis(100) || self.prices.every < Span::from_secs(1) {
            return Err(("tick", "tick must be at least 100ms and prices.every at least 1s".into()));
        }
        Ok(())
    }
}

fn flatten(prefix: &str, tree: &serde_json::Value, settings: &mut Vec<(String, String)>) {
    match tree {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                flatten(&name, value, settings);
            }
        }
        serde_json::Value::String(text) => settings.push((prefix.into(), text.clone())),
        other => settings.push((prefix.into(), other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_changed_by_name() {
        let mut models = Models::default();
        models.set("spot.on=false").expect("a switch");
        models.set("latency.create.median = 1m").expect("a span");
        models.set("prices.mean=0.5").expect("a number");
        assert!(!models.spot.on);
        assert_eq!(models.latency.create.median, Span::from_secs(60));
        assert_eq!(models.prices.mean, 0.5);
    }

    #[test]
    fn bad_settings_change_nothing_and_say_why() {
        let mut models = Models::default();
        for (setting, words) in [
            ("spot.onn=false", "perhaps \"spot.on\""),
            ("spot=false", "no model has a setting"),
            ("spot.on", "write NAME=VALUE"),
            ("spot.on=maybe", "spot.on cannot be"),
            ("latency.create.median=soon", "no span of time"),
            ("latency.create.median=1h", "median <= p99"),
            ("prices.mean=7", "between 0 and 1"),
            ("host_loss.per_machine_year=-1", "between 0"),
            ("tick=1ms", "at least 100ms"),
        ] {
            let error = models.set(setting).expect_err(setting).to_string();
            assert!(error.contains(words), "{setting}: {error}");
            assert_eq!(models, Models::default(), "{setting}");
        }
    }

    #[test]
    fn a_file_needs_only_what_differs() {
        let models = Models::from_json(r#"{"spot": {"on": false}, "tick": "30s"}"#).expect("a good file");
        assert!(!models.spot.on && models.tick == Span::from_secs(30) && models.repair == Repair::default());
        for text in ["{", r#"{"spott": {}}"#, r#"{"tick": "1ms"}"#] {
            assert!(Models::from_json(text).is_err(), "{text}");
        }
    }
}
