//! Phase 3: what no need claims goes back, and idle rented machines are given up when their hold is over.
//!
//! There is no supply arithmetic here: what credit left unclaimed is the excess, already in order.

use std::sync::Arc;

use bigfleet_model::cost::RECLAIM_GRACE_SECS;

use crate::action::{Action, ActionKind};
use crate::bits::Bits;
use crate::holdings::RELEASED;
use crate::index::Index;
use crate::options::Options;

use super::{Cache, Decision, Sources};

/// Phase 3, reclaim: Configured machines no need claims, of clusters that have reported.
pub(crate) fn reclaims(
    decision: &mut Decision,
    cache: &Cache,
    sources: Sources<'_>,
    options: &Options,
    preempted: &Bits,
) {
    for cluster in cache.by_name.iter().filter(|cluster| cache.kinds.excess.contains(**cluster)) {
        let plan = cache.plan(*cluster);
        let name = sources.vocab.cluster_name(*cluster);
        if !options.ready.contains(name) {
            continue;
        }
        let name: Arc<str> = name.into();
        let excess = plan.credit.excess.iter().filter(|machine| !preempted.contains(**machine));
        decision.actions.extend(excess.map(|machine| Action {
            kind: ActionKind::Reclaim,
            machine: sources.inventory.id(*machine).into(),
            cluster: Some(name.clone()),
            need: None,
            grace_secs: Some(RECLAIM_GRACE_SECS),
        }));
    }
}

/// The latest idle stamp that is due, per released capacity type; `None` if that type is never released.
fn due_limits(options: &Options, now_unix_nanos: i64) -> [Option<i64>; 2] {
    RELEASED.map(|capacity| {
        let hold = i64::try_from(options.release.hold_nanos(capacity)?).unwrap_or(i64::MAX);
        now_unix_nanos.checked_sub(hold)
    })
}

/// Phase 3, release: idle rented machines whose hold is over and that nobody took, by id.
pub(crate) fn due_machines(
    sources: Sources<'_>,
    options: &Options,
    now_unix_nanos: i64,
    taken: &Bits,
) -> Vec<u32> {
    let mut due = Vec::new();
    for (list, limit) in due_limits(options, now_unix_nanos).into_iter().enumerate() {
        let Some(limit) = limit else { continue };
        let stamped = sources.index.holdings.due(list).range(..=(limit, u32::MAX));
        due.extend(stamped.map(|(_, machine)| *machine).filter(|machine| !taken.contains(*machine)));
    }
    due.sort_unstable_by_key(|machine| sources.inventory.row(*machine).order);
    due
}

/// The first instant after `now` at which another idle machine falls due.
pub(crate) fn next_due(index: &Index, options: &Options, now_unix_nanos: i64) -> i64 {
    let mut next = i64::MAX;
    for (list, limit) in due_limits(options, now_unix_nanos).into_iter().enumerate() {
        let Some(limit) = limit else { continue };
        if let Some((stamp, _)) =
            index.holdings.due(list).range((limit, u32::MAX)..).find(|(stamp, _)| *stamp > limit)
        {
            next = next.min(stamp.saturating_add(now_unix_nanos - limit));
        }
    }
    next
}
