//! Settings of a provider, with defaults that suit a cloud.

use std::sync::Arc;
use std::time::Duration;

use crate::operation::OperationKind;
use bigfleet_net::{Clock, SystemClock};

/// How long each move may take before the machine is Failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a Create.
    pub create: Duration,
    /// For a Configure, up to the node being Ready.
    pub configure: Duration,
    /// For a Drain, on top of its grace period.
    pub drain: Duration,
    /// For a Delete.
    pub delete: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        Self { create: minutes(15), configure: minutes(15), drain: minutes(15), delete: minutes(15) }
    }
}

impl Timeouts {
    /// The same for all moves.
    pub fn all(span: Duration) -> Self {
        Self { create: span, configure: span, drain: span, delete: span }
    }

    pub(crate) fn of(&self, kind: OperationKind) -> Duration {
        match kind {
            OperationKind::Create => self.create,
            OperationKind::Configure => self.configure,
            OperationKind::Drain => self.drain,
            OperationKind::Delete => self.delete,
        }
    }
}

/// Settings of a provider.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long moves may take.
    pub timeouts: Timeouts,
    /// How often a joining machine is asked whether it is Ready.
    pub ready_poll: Duration,
    /// How many moves may be under way; a call above that is refused with `RESOURCE_EXHAUSTED`.
    pub max_transitions: usize,
    /// Decides where the first listing starts and how operation ids look. Equal seeds, equal runs.
    pub seed: u64,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    /// Real time, and a seed taken from it.
    fn default() -> Self {
        let clock = SystemClock::start();
        let seed = clock.now_unix_nanos().unsigned_abs();
        Self::new(Arc::new(clock), seed)
    }
}

impl Options {
    /// The default settings on this clock and seed.
    pub fn new(clock: Arc<dyn Clock>, seed: u64) -> Self {
        Self {
            timeouts: Timeouts::default(),
            ready_poll: Duration::from_secs(2),
            max_transitions: 65_536,
            seed,
            clock,
        }
    }
}
