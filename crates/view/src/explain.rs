//! Explanations: what the engine and the shard know about one thing, put together as data.

mod cluster;
mod decision;
mod machine;
mod need;
mod preemption;

use bigfleet_engine::Options;
use bigfleet_model::cost::{drain_grace_secs, priority_gap, victim_score};
use bigfleet_model::stamp::Assignment;

use crate::v1;

/// The parts of the score a victim bound like this has for a preemptor of this priority.
pub(crate) fn victim_parts(
    options: &Options,
    preemptor_priority: i32,
    bound: &Assignment,
) -> v1::VictimScore {
    let weights = &options.weights;
    let gap = priority_gap(preemptor_priority, bound.priority);
    let drain_secs = options.estimated_drain_nanos as f64 / 1e9;
    let (interruption, reclamation) = (bound.interruption_penalty_usd, bound.reclamation_penalty_usd);
    v1::VictimScore {
        preemptor_priority,
        victim_priority: bound.priority,
        gap,
        gap_part: gap as f64 * weights.priority,
        drain_part: (1.0 / drain_secs.max(1.0)) * weights.drain_speed,
        interruption_part: (1.0 / interruption.max(0.01)) * weights.interruption,
        reclamation_part: (1.0 / reclamation.max(0.01)) * weights.reclamation,
        total: victim_score(weights, gap, drain_secs, interruption, reclamation),
        interruption_penalty_usd: interruption,
        reclamation_penalty_usd: reclamation,
        grace_secs: drain_grace_secs(gap),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_score_add_up_to_it() {
        let bound = Assignment { priority: 100, interruption_penalty_usd: 0.5, ..Assignment::default() };
        let score = victim_parts(&Options::default(), 200_200, &bound);
        assert_eq!(
            score.gap_part + score.drain_part + score.interruption_part + score.reclamation_part,
            score.total
        );
        assert_eq!((score.gap, score.grace_secs, score.interruption_part), (200_100, 120, 0.2));
    }
}
