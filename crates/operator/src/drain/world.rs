//! The cluster as drains need to see it.

use super::Mark;

/// Whoever knows the nodes and pods of the cluster.
pub trait World {
    /// The node of a machine: by provider id, or by what its `UpcomingNode` says.
    fn node_of(&self, machine: &str) -> Option<Node>;
    /// The pods on a node that have not ended, in a fixed order.
    fn pods_on(&self, node: &str) -> Vec<Pod>;
    /// Whether its pods should stay for a moment: they have no other place, and the shard may leave the machine here.
    fn is_held(&self, machine: &str) -> bool;
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// No new pods.
    pub is_cordoned: bool,
    /// Our mark on it.
    pub mark: Option<Mark>,
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Where it lives.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Which one of that name.
    pub uid: String,
    /// Whether it can be evicted.
    pub carried: Carried,
    /// It has been told to end.
    pub is_terminating: bool,
    /// How long it may take to end.
    pub grace_secs: i64,
}

/// Who brought a pod to its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// The scheduler: it may go elsewhere.
    ByItself,
    /// A `DaemonSet`: it would come back at once.
    ByDaemonSet,
    /// The node's own files: only the node can end it.
    ByNode,
}
