//! One need as it might be: what a cycle would do for it.
//!
//! A trial is a fork, an edit and a cycle: the engine itself decides, and what is kept from the last cycle makes most
//! trials cheap. They run beside the fleet and never change it.

use std::sync::Arc;

use bigfleet_model::need::{Need, NeedKey};

use crate::amounts::is_zero;
use crate::fleet::Fleet;
use crate::lots::Lots;
use crate::needs::Demand;
use crate::options::Options;

use super::{Contest, Witness};

/// What a cycle would do for a need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Whether it would be served, now or as soon as its victims have drained.
    pub satisfied: bool,
    /// How many free machines it would get.
    pub acquires: usize,
    /// How many machines would be preempted for it.
    pub preempts: usize,
}

/// A fleet to try changes of needs on, as the last cycle saw it.
pub struct Trials<'a> {
    base: Fleet,
    options: &'a Options,
    now_unix_nanos: i64,
}

impl Fleet {
    /// Prepares to try changes of needs. `options` are those of the last cycle.
    pub fn trials<'a>(&self, options: &'a Options, now_unix_nanos: i64) -> Trials<'a> {
        let mut base = self.fork();
        // What was observed since the last cycle is not part of the question.
        base.inventory.undo_changes();
        base.index.ensure_bound(&base.inventory);
        base.index.bound.iter_mut().for_each(|bound| Lots::follow(bound, &base.inventory));
        Trials { base, options, now_unix_nanos }
    }
}

impl Trials<'_> {
    /// How the domain of a gang is chosen; `None` if there is nothing to choose, because its own machines settle it.
    pub(crate) fn contest(&self, gang: &Arc<Demand>) -> Option<Contest> {
        let mut fleet = self.base.fork();
        fleet.cache.forget_last();
        let mut witness = Witness { gang: gang.clone(), seen: None };
        fleet.cycle_watched(self.options, self.now_unix_nanos, Some(&mut witness), &mut |_| {});
        witness.seen
    }

    /// What a cycle would do for a need if its cluster reported these rows instead. `None` if there is no such need
    /// among them, or they are refused.
    pub fn decide(&self, cluster: &str, rows: Vec<Need>, key: &NeedKey) -> Option<Tried> {
        let mut fleet = self.base.fork();
        fleet.replace(cluster, rows, self.now_unix_nanos).ok()?;
        fleet.cycle(self.options, self.now_unix_nanos);
        let seen = fleet.seen(key)?;
        let Some(short) = seen.short else {
            return Some(Tried { satisfied: true, acquires: 0, preempts: 0 });
        };
        Some(Tried {
            satisfied: is_zero(&short.missing) || !short.demand.need.parked && short.unresolved.is_none(),
            acquires: short.acquired.len(),
            preempts: short.victims.len(),
        })
    }
}
