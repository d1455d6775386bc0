//! What the engine wants done, as data.

use std::fmt;
use std::sync::Arc;

use crate::needs::Demand;

/// The five things a cycle may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ActionKind {
    /// Bind an Idle machine to a cluster.
    Bootstrap,
    /// Buy a Speculative machine and bind it.
    Provision,
    /// Drain a machine because a higher priority needs what it holds.
    Preempt,
    /// Drain a machine its cluster no longer needs.
    Reclaim,
    /// Give an idle rented machine back.
    Delete,
}

impl ActionKind {
    /// The name people see and files use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bootstrap => "Bootstrap",
            Self::Provision => "Provision",
            Self::Preempt => "Preempt",
            Self::Reclaim => "Reclaim",
            Self::Delete => "Delete",
        }
    }
}

impl fmt::Display for ActionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One thing to do. There is at most one per machine and cycle.
#[derive(Clone, Debug)]
pub struct Action {
    /// What to do.
    pub kind: ActionKind,
    /// To which machine.
    pub machine: Box<str>,
    /// The cluster that gets the machine (Bootstrap, Provision) or loses it (Preempt, Reclaim).
    pub cluster: Option<Arc<str>>,
    /// The need it is for (Bootstrap, Provision, Preempt).
    pub need: Option<Arc<Demand>>,
    /// How long the cluster has to drain it (Preempt, Reclaim).
    pub grace_secs: Option<u32>,
}
