//! Requirements and spread constraints.

use bigfleet_model::requirement::{Operator, Requirement, RequirementError};
use bigfleet_model::spread::{TopologySpread, WhenUnsatisfiable};

use crate::v1alpha1;

/// Refuses an operator number nobody defined, and what [`Requirement::validate`] refuses. Operator 0 passes:
/// it is a requirement that nothing meets.
impl TryFrom<&v1alpha1::NodeSelectorRequirement> for Requirement {
    type Error = RequirementError;

    fn try_from(message: &v1alpha1::NodeSelectorRequirement) -> Result<Self, RequirementError> {
        let operator = Operator::from_wire(message.operator)?;
        let requirement =
            Self::new(message.key.as_str(), operator, message.values.iter().map(String::as_str));
        requirement.validate()?;
        Ok(requirement)
    }
}

impl From<&Requirement> for v1alpha1::NodeSelectorRequirement {
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
