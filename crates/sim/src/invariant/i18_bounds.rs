//! 18: queues stay within their bounds.

use super::{Invariant, Moment};

pub(super) struct Bounds;

/// Timers per machine: watchdogs and graces are never cancelled and live up to an hour.
const TIMERS_PER_MACHINE: usize = 400;

impl Invariant for Bounds {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        let Moment::Step { shard, .. } = moment else { return None };
        let (queues, machines) = (shard.queues(), shard.machine_count());
        let limits = shard.config().limits;
        let providers = shard.providers().len();
        let bounds = [
            ("moves at providers", queues.calling, limits.flights),
            ("moves that wait", queues.waiting, machines),
            ("calls under way", queues.open, 2 * machines + providers + limits.flights),
            ("timers", queues.timers, TIMERS_PER_MACHINE * (machines + providers) + 1000),
        ];
        let broken = bounds.into_iter().find(|(_, is, most)| is > most);
        broken.map(|(what, is, most)| format!("{is} {what}, at most {most} were promised"))
    }
}
