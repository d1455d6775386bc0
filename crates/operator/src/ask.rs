//! One request as its author wrote it, checked into what the demand adds up.
//!
//! Whatever stands in a request was written by somebody who may mean no good. It is bounded in count and in bytes before
//! anything is built from it, and refused with the field and the bound. A refused request concerns nobody but its author:
//! the rest of the cluster's demand goes on.

use std::fmt::Write as _;
use std::sync::Arc;

use bigfleet_model::penalty::{PenaltyBucket, PenaltyError};
use bigfleet_model::profile::{Profile, ProfileError};
use bigfleet_model::quantity::{Quantity, QuantityError};
use bigfleet_model::requirement::{Operator, Requirement};
use bigfleet_model::resource::{ResourceError, ResourceVec};
use bigfleet_model::spread::{TopologySpread, WhenUnsatisfiable};
use bigfleet_model::text::Quoted;
use thiserror::Error;

/// The most of each thing a request may list.
pub const MOST_REQUIREMENTS: usize = 64;
/// The most values one requirement or selector expression may list.
pub const MOST_VALUES: usize = 256;
/// The most resources.
pub const MOST_RESOURCES: usize = 32;
/// The most spread constraints.
pub const MOST_SPREADS: usize = 16;
/// The most parts of a selector.
pub const MOST_SELECTOR_PARTS: usize = 32;
/// The longest key, value or quantity; the longest label key Kubernetes allows has 317 bytes.
pub const LONGEST_TEXT_BYTES: usize = 317;
/// All keys and values of a request together.
pub const MOST_BYTES: usize = 32 << 10;

/// A request as it was read, not checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Where it lives; gangs of two namespaces are two gangs.
    pub namespace: String,
    /// What machines must be like: key, operator, values.
    pub requirements: Vec<Expression>,
    /// How much: resource and quantity.
    pub resources: Vec<(String, String)>,
    /// Higher goes first.
    pub priority: i32,
    /// Dollars.
    pub interruption_penalty: Option<String>,
    /// Dollars.
    pub reclamation_penalty: Option<String>,
    /// Key, skew, and what to do when it is not to be had.
    pub spread: Vec<(String, i32, String)>,
    /// Its gang.
    pub co_location: Option<CoLocation>,
}

/// A condition on a label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expression {
    /// The label.
    pub key: String,
    /// What is asked of it.
    pub operator: String,
    /// Which values.
    pub values: Vec<String>,
}

/// Pods that must lie in one domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoLocation {
    /// The label whose values are the domains.
    pub topology_key: String,
    /// The pods: equal labels.
    pub match_labels: Vec<(String, String)>,
    /// The pods: conditions on labels.
    pub match_expressions: Vec<Expression>,
}

/// A request that may be added up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Which machines, how urgently, at which price of disturbance.
    pub profile: Profile,
    /// The gang; empty for none.
    pub group: Arc<str>,
    /// How much, on one machine.
    pub unit: ResourceVec,
}

/// Why a request is left out of the roll-up.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum BadRequest {
    /// Too many of something.
    #[error("spec.{field} has {count} entries; at most {most} are taken")]
    TooMany {
        /// Of what.
        field: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// A text that no label or quantity can be.
    #[error("spec.{field} holds a text of {bytes} bytes; at most {LONGEST_TEXT_BYTES} are taken")]
    TooLong {
        /// Where.
        field: &'static str,
        /// Its length.
        bytes: usize,
    },
    /// All of it together.
    #[error("spec holds {0} bytes of text; at most {MOST_BYTES} are taken")]
    TooLarge(usize),
    /// An operator the wire does not carry.
    #[error("spec.{field}: operator {} on {} is not carried; use In, NotIn, Exists or DoesNotExist", Quoted(.operator), Quoted(.key))]
    Operator {
        /// Where.
        field: &'static str,
        /// Which.
        operator: String,
        /// On which label.
        key: String,
    },
    /// Values that do not go with the operator.
    #[error("spec.{field}: {operator} on {} {problem}", Quoted(.key))]
    Values {
        /// Where.
        field: &'static str,
        /// Which operator.
        operator: &'static str,
        /// On which label.
        key: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// Something the profile may not hold.
    #[error("spec: {0}")]
    Profile(#[from] ProfileError),
    /// An amount.
    #[error("spec.resources: {0}")]
    Resource(#[from] ResourceError),
    /// A penalty that is no number of dollars.
    #[error("spec.{field}: {problem}")]
    Penalty {
        /// Which of the two.
        field: &'static str,
        /// What is wrong.
        problem: PenaltyProblem,
    },
    /// A spread whose strictness nobody knows.
    #[error("spec.topologySpread: whenUnsatisfiable {} is unknown; use DoNotSchedule or ScheduleAnyway", Quoted(.0))]
    Spread(String),
    /// A gang without a domain.
    #[error("spec.coLocation.topologyKey is empty; name the label whose values are the domains")]
    NoDomain,
}

/// What is wrong with a penalty.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PenaltyProblem {
    /// Not a quantity.
    #[error("{0}")]
    Quantity(#[from] QuantityError),
    /// Not dollars.
    #[error("{0}")]
    Dollars(#[from] PenaltyError),
}

impl BadRequest {
    /// The field a person must look at.
    pub fn field(&self) -> &'static str {
        match self {
            Self::TooMany { field, .. }
            | Self::TooLong { field, .. }
            | Self::Operator { field, .. }
            | Self::Values { field, .. }
            | Self::Penalty { field, .. } => field,
            Self::TooLarge(_) | Self::Profile(_) => "spec",
            Self::Resource(_) => "resources",
            Self::Spread(_) => "topologySpread",
            Self::NoDomain => "coLocation",
        }
    }
}

impl Asked {
    /// Checks the request.
    pub fn check(&self) -> Result<Ask, BadRequest> {
        self.check_bounds()?;
        let mut requirements = Vec::with_capacity(self.requirements.len() + 1);
        for expression in &self.requirements {
            let operator = expression.operator("requirements")?;
            requirements.push(Requirement::new(
                &*expression.key,
                operator,
                expression.values.iter().map(|value| &**value),
            ));
        }
        let mut group: Arc<str> = Arc::from("");
        if let Some(gang) = &self.co_location {
            if gang.topology_key.is_empty() {
                return Err(BadRequest::NoDomain);
            }
            for expression in &gang.match_expressions {
                expression.operator("coLocation")?;
            }
            requirements.push(Requirement::same(&*gang.topology_key));
            group = gang.name(&self.namespace).into();
        }
        let mut spread = Vec::with_capacity(self.spread.len());
        for (key, skew, when) in &self.spread {
            let when = match when.as_str() {
                "DoNotSchedule" => WhenUnsatisfiable::DoNotSchedule,
                "ScheduleAnyway" => WhenUnsatisfiable::ScheduleAnyway,
                _ => return Err(BadRequest::Spread(when.clone())),
            };
            spread.push(TopologySpread::new(&**key, *skew, when));
        }
        let interruption = penalty("interruptionPenalty", self.interruption_penalty.as_deref())?;
        let reclamation = penalty("reclamationPenalty", self.reclamation_penalty.as_deref())?;
        let profile = Profile::new(requirements, spread, self.priority, interruption, reclamation);
        profile.validate()?;
        let unit = ResourceVec::parse(self.resources.iter().map(|(name, amount)| (name, amount)))?;
        Ok(Ask { profile, group, unit })
    }

    /// Counts and lengths, before anything is built.
    fn check_bounds(&self) -> Result<(), BadRequest> {
        let few = |field, count, most| {
            if count > most { Err(BadRequest::TooMany { field, count, most }) } else { Ok(()) }
        };
        few("requirements", self.requirements.len(), MOST_REQUIREMENTS)?;
        few("resources", self.resources.len(), MOST_RESOURCES)?;
        few("topologySpread", self.spread.len(), MOST_SPREADS)?;
        let mut bytes = 0;
        let mut short = |field, text: &str| {
            bytes += text.len();
            if text.len() > LONGEST_TEXT_BYTES {
                return Err(BadRequest::TooLong { field, bytes: text.len() });
            }
            Ok(())
        };
        let mut expressions = |field, list: &[Expression]| {
            list.iter().try_for_each(|expression| {
                few(field, expression.values.len(), MOST_VALUES)?;
                short(field, &expression.key)?;
                expression.values.iter().try_for_each(|value| short(field, value))
            })
        };
        expressions("requirements", &self.requirements)?;
        if let Some(gang) = &self.co_location {
            few("coLocation", gang.match_labels.len() + gang.match_expressions.len(), MOST_SELECTOR_PARTS)?;
            expressions("coLocation", &gang.match_expressions)?;
            short("coLocation", &gang.topology_key)?;
            gang.match_labels.iter().try_for_each(|(key, value)| {
                short("coLocation", key)?;
                short("coLocation", value)
            })?;
        }
        self.resources.iter().try_for_each(|(name, amount)| {
            short("resources", name)?;
            short("resources", amount)
        })?;
        self.spread.iter().try_for_each(|(key, ..)| short("topologySpread", key))?;
        for (field, text) in [
            ("interruptionPenalty", &self.interruption_penalty),
            ("reclamationPenalty", &self.reclamation_penalty),
        ] {
            text.iter().try_for_each(|text| short(field, text))?;
        }
        if bytes > MOST_BYTES { Err(BadRequest::TooLarge(bytes)) } else { Ok(()) }
    }
}

impl Expression {
    fn operator(&self, field: &'static str) -> Result<Operator, BadRequest> {
        let operator = match self.operator.as_str() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            // Never printed whole: it may be a megabyte.
            other => {
                let operator = other.chars().take(32).collect();
                return Err(BadRequest::Operator { field, operator, key: self.key.clone() });
            }
        };
        let problem = match (operator, self.values.is_empty()) {
            (Operator::In | Operator::NotIn, true) => "lists no values, which no label can match",
            (Operator::Exists | Operator::DoesNotExist, false) => "lists values, which it does not look at",
            _ => return Ok(operator),
        };
        Err(BadRequest::Values { field, operator: operator.name(), key: self.key.clone(), problem })
    }
}

impl CoLocation {
    /// The gang's name on the wire: the topology key, NUL, the selector in canonical form, and behind another NUL the
    /// namespace its selector looks in. Compared for equality and for nothing else.
    pub fn name(&self, namespace: &str) -> String {
        let mut labels: Vec<&(String, String)> = self.match_labels.iter().collect();
        labels.sort_unstable();
        let mut expressions: Vec<(&str, &str, Vec<&str>)> = self
            .match_expressions
            .iter()
            .map(|expression| {
                let mut values: Vec<&str> = expression.values.iter().map(String::as_str).collect();
                values.sort_unstable();
                (&*expression.key, &*expression.operator, values)
            })
            .collect();
        expressions.sort_unstable();
        let mut name = format!("{}\0", self.topology_key);
        for (key, value) in labels {
            // Writing to a string does not fail.
            let _ = write!(name, "{key}={value},");
        }
        name.push(';');
        for (key, operator, values) in expressions {
            let _ = write!(name, "{key} {operator} {};", values.join(","));
        }
        let _ = write!(name, "\0{namespace}");
        name
    }
}

fn penalty(field: &'static str, text: Option<&str>) -> Result<PenaltyBucket, BadRequest> {
    let Some(text) = text else { return Ok(PenaltyBucket::UNSPECIFIED) };
    let read = || Ok(PenaltyBucket::for_dollars(Quantity::parse(text)?.to_f64())?);
    read().map_err(|problem| BadRequest::Penalty { field, problem })
}

#[cfg(test)]
mod tests;
