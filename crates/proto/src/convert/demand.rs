//! Roll-ups: one cluster's whole demand, taken or refused as a whole.
//!
//! A roll-up replaces what the cluster said before. Taking half of one would withdraw the other half, so one
//! bad row refuses them all, and the caller keeps the demand it had.

use std::sync::Arc;

use bigfleet_model::limits::{self, OverLimit};
use bigfleet_model::need::Need;
use bigfleet_model::penalty::{PenaltyBucket, PenaltyError};
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::{Operator, Requirement, RequirementError};
use bigfleet_model::resource::ResourceError;
use bigfleet_model::spread::{SpreadError, TopologySpread, WhenUnsatisfiable};
use bigfleet_model::text::Quoted;
use thiserror::Error;

use super::resources;
use crate::v1alpha1::{self, CapacityNeed, ClusterCapacityNeeds, NodeSelectorRequirement};

/// One cluster's whole demand, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollup {
    /// The cluster that asks.
    pub cluster: Arc<str>,
    /// When the cluster took stock, in Unix nanoseconds, by its own clock.
    pub taken_unix_nanos: i64,
    /// One need per row, in the order of the message, not merged and not stamped with a first-seen time.
    pub needs: Vec<Need>,
}

/// Why a roll-up was refused. The cluster's last good demand stays.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RollupError {
    /// More than is taken of a whole roll-up.
    #[error("roll-up of cluster {}: {problem}; nothing of it was taken", Quoted(.cluster))]
    OverLimit {
        /// Whose roll-up.
        cluster: String,
        /// Which bound.
        problem: OverLimit,
    },
    /// It does not say whose demand it is.
    #[error("a roll-up names no cluster; set cluster_id")]
    NoCluster,
    /// A row could not be read.
    #[error("roll-up of cluster {}, row {row}: {problem}; nothing of it was taken", Quoted(.cluster))]
    Row {
        /// Whose roll-up.
        cluster: String,
        /// Which row, counted from 0.
        row: usize,
        /// What is wrong with it.
        problem: RowError,
    },
}

/// What can be wrong with a row of a roll-up.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RowError {
    /// More than is taken of one row.
    #[error("{0}")]
    OverLimit(#[from] OverLimit),
    /// A requirement nobody could evaluate.
    #[error("{0}")]
    Requirement(#[from] RequirementError),
    /// A spread over nothing, or over a key no label may have.
    #[error("{0}")]
    Spread(#[from] SpreadError),
    /// A penalty bucket nobody defined.
    #[error("{field}: {problem}")]
    Penalty {
        /// Which of the two penalties.
        field: &'static str,
        /// What is wrong with it.
        problem: PenaltyError,
    },
    /// An amount that is no quantity.
    #[error("{field}: {problem}")]
    Amount {
        /// Which of the two maps.
        field: &'static str,
        /// What is wrong with it.
        problem: ResourceError,
    },
}

impl TryFrom<&ClusterCapacityNeeds> for Rollup {
    type Error = RollupError;

    fn try_from(message: &ClusterCapacityNeeds) -> Result<Self, RollupError> {
        if message.cluster_id.is_empty() {
            return Err(RollupError::NoCluster);
        }
        let over = |problem| RollupError::OverLimit { cluster: message.cluster_id.clone(), problem };
        check_whole(message).map_err(over)?;
        let cluster: Arc<str> = message.cluster_id.as_str().into();
        let read = |(row, message)| {
            need(&cluster, message).map_err(|problem| RollupError::Row {
                cluster: cluster.to_string(),
                row,
                problem,
            })
        };
        let needs = message.needs.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(Self { cluster, taken_unix_nanos: message.timestamp_unix_nanos, needs })
    }
}

/// Bounds what a roll-up may ask of anybody as a whole, before any of it is read.
fn check_whole(message: &ClusterCapacityNeeds) -> Result<(), OverLimit> {
    limits::text("cluster_id", &message.cluster_id, limits::CLUSTER_NAME_BYTES)?;
    limits::count("needs", "rows", message.needs.len(), limits::ROLLUP_ROWS)?;
    let (mut requirements, mut values, mut amounts) = (0, 0, 0);
    for row in &message.needs {
        requirements += row.requirements.len();
        values += row.requirements.iter().map(|requirement| requirement.values.len()).sum::<usize>();
        amounts += row.aggregate_resources.len() + row.min_unit.len();
    }
    limits::count("needs", "requirements in all", requirements, limits::ROLLUP_REQUIREMENTS)?;
    limits::count("needs", "values in all", values, limits::ROLLUP_VALUES)?;
    limits::count("needs", "amounts in all", amounts, limits::ROLLUP_AMOUNTS)
}

/// Bounds one row, before any of it is read.
fn check_row(message: &CapacityNeed) -> Result<(), OverLimit> {
    limits::count("requirements", "requirements", message.requirements.len(), limits::ROW_REQUIREMENTS)?;
    for requirement in &message.requirements {
        limits::text("requirements.key", &requirement.key, limits::KEY_BYTES)?;
        let values = &requirement.values;
        limits::count("requirements.values", "values", values.len(), limits::REQUIREMENT_VALUES)?;
        let long = |value| limits::text("requirements.values", value, limits::VALUE_BYTES);
        values.iter().map(String::as_str).try_for_each(long)?;
    }
    limits::count("spread", "constraints", message.spread.len(), limits::ROW_SPREADS)?;
    for spread in &message.spread {
        limits::text("spread.topology_key", &spread.topology_key, limits::KEY_BYTES)?;
    }
    limits::text("group", &message.group, limits::GROUP_BYTES)?;
    resources::check_map("aggregate_resources", &message.aggregate_resources, limits::ROW_RESOURCES)?;
    resources::check_map("min_unit", &message.min_unit, limits::ROW_RESOURCES)
}

impl From<&Rollup> for ClusterCapacityNeeds {
    fn from(rollup: &Rollup) -> Self {
        Self {
            cluster_id: rollup.cluster.to_string(),
            timestamp_unix_nanos: rollup.taken_unix_nanos,
            needs: rollup.needs.iter().map(CapacityNeed::from).collect(),
        }
    }
}

/// One row as a need of `cluster`, without a first-seen time.
pub fn need(cluster: &Arc<str>, message: &CapacityNeed) -> Result<Need, RowError> {
    check_row(message)?;
    let requirements = message.requirements.iter().map(Requirement::try_from).collect::<Result<_, _>>()?;
    let bucket = |field, number| {
        PenaltyBucket::from_wire(number).map_err(|problem| RowError::Penalty { field, problem })
    };
    let amounts =
        |field, map| resources::from_map(map).map_err(|problem| RowError::Amount { field, problem });
    let profile = Profile::new(
        requirements,
        message.spread.iter().map(Into::into).collect(),
        message.priority,
        bucket("interruption_penalty_bucket", message.interruption_penalty_bucket)?,
        bucket("reclamation_penalty_bucket", message.reclamation_penalty_bucket)?,
    );
    limits::text("fingerprint of requirements and spread", profile.fingerprint(), limits::FINGERPRINT_BYTES)?;
    profile.spread().iter().try_for_each(TopologySpread::validate)?;
    Ok(Need {
        cluster: cluster.clone(),
        profile: profile.into(),
        group: message.group.as_str().into(),
        aggregate: amounts("aggregate_resources", &message.aggregate_resources)?,
        min_unit: amounts("min_unit", &message.min_unit)?,
        first_seen_unix_nanos: 0,
        parked: false,
    })
}

/// The row that asks for this need; first-seen time and parking do not travel.
impl From<&Need> for CapacityNeed {
    fn from(need: &Need) -> Self {
        let profile = &need.profile;
        Self {
            requirements: profile.requirements().iter().map(Into::into).collect(),
            aggregate_resources: resources::to_map(&need.aggregate),
            priority: profile.priority(),
            spread: profile.spread().iter().map(Into::into).collect(),
            interruption_penalty_bucket: profile.interruption().to_wire(),
            reclamation_penalty_bucket: profile.reclamation().to_wire(),
            min_unit: resources::to_map(&need.min_unit),
            group: need.group.to_string(),
        }
    }
}

/// Refuses an operator number nobody defined, and what [`Requirement::validate`] refuses. Operator 0 passes:
/// it is a requirement that nothing meets.
impl TryFrom<&NodeSelectorRequirement> for Requirement {
    type Error = RequirementError;

    fn try_from(message: &NodeSelectorRequirement) -> Result<Self, RequirementError> {
        let operator = Operator::from_wire(message.operator)?;
        let requirement =
            Self::new(message.key.as_str(), operator, message.values.iter().map(String::as_str));
        requirement.validate()?;
        Ok(requirement)
    }
}

impl From<&Requirement> for NodeSelectorRequirement {
    fn from(requirement: &Requirement) -> Self {
        Self {
            key: requirement.key().into(),
            operator: requirement.operator().to_wire(),
            values: requirement.values().iter().map(ToString::to_string).collect(),
        }
    }
}

/// Never fails: an unknown mode is read as unspecified, the one lenient value on the wire.
impl From<&v1alpha1::TopologySpread> for TopologySpread {
    fn from(message: &v1alpha1::TopologySpread) -> Self {
        let when = WhenUnsatisfiable::from_wire(message.when_unsatisfiable);
        Self::new(message.topology_key.as_str(), message.max_skew, when)
    }
}

impl From<&TopologySpread> for v1alpha1::TopologySpread {
    fn from(spread: &TopologySpread) -> Self {
        Self {
            topology_key: spread.key.to_string(),
            max_skew: spread.max_skew,
            when_unsatisfiable: spread.when.to_wire(),
        }
    }
}
