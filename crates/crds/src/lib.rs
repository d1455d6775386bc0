//! The Kubernetes custom resources of BigFleet, group `bigfleet.lucy.sh`, version `v1alpha1`.
//!
//! * [`CapacityRequest`]: what one pod asks for. Written by the pod controller or by anybody else, read by the operator.
//! * [`UpcomingNode`]: a machine on its way into the cluster, or out of it. Written by the operator.
//! * [`AvailableCapacity`]: what the fleet could still give. Written by the operator.
//!
//! The definitions that a server is given ([`definitions`]) are made from these types, so that what we read and what the
//! server checks cannot drift apart. Spec and phase are fixed by the wire; the conditions in the status are ours and may
//! be ignored.
//!
//! Absent on purpose: a client. These are values.

mod available_capacity;
mod capacity_request;
mod condition;
mod definition;
mod quantity;
mod schema;
mod upcoming_node;

pub use available_capacity::{
    Availability, AvailableCapacity, AvailableCapacitySpec, AvailableCapacityStatus,
};
pub use capacity_request::{
    CapacityRequest, CapacityRequestSpec, CapacityRequestStatus, CoLocation, RequestPhase, Requirement,
    TopologySpread,
};
pub use condition::{Condition, ConditionStatus, set_condition};
pub use definition::{ServerVersion, VersionError, definitions, yaml};
pub use quantity::Quantity;
pub use upcoming_node::{NodePhase, UpcomingNode, UpcomingNodeSpec, UpcomingNodeStatus};

/// The API group.
pub const GROUP: &str = "bigfleet.lucy.sh";

/// The one version.
pub const VERSION: &str = "v1alpha1";

/// The label that says which pod a [`CapacityRequest`] speaks for: its UID.
pub const OWNED_BY_POD: &str = "bigfleet.lucy.sh/owned-by-pod";

/// The annotation, on pods and priority classes, that says what an interruption costs, in dollars.
pub const INTERRUPTION_PENALTY: &str = "bigfleet.lucy.sh/interruption-penalty";

/// The annotation, on pods and priority classes, that says what it costs to give up a machine, in dollars.
pub const RECLAMATION_PENALTY: &str = "bigfleet.lucy.sh/reclamation-penalty";

/// Condition types of a [`CapacityRequest`].
pub mod condition_type {
    /// The shard has taken the request into account. Written by the operator.
    pub const ACCEPTED: &str = "Accepted";
    /// There are machines for the request's need. Written by the operator.
    pub const COVERED: &str = "Covered";
    /// The machines are nodes of this cluster and ready. Written by the operator.
    pub const JOINED: &str = "Joined";
    /// The request says all that the pod asks for. Written by the pod controller, and only when it does not.
    pub const CARRIED: &str = "Carried";
    /// The penalties could be read. Written by the pod controller, and only when they could not.
    pub const PENALTIES_READ: &str = "PenaltiesRead";
}
