//! What machines cost a need, per lot instead of per machine.

use bigfleet_model::cost::{effective_cost, priority_gap, victim_score};
use bigfleet_model::penalty::PenaltyBucket;

use crate::index::split_free_rank;
use crate::merge::{cost_key, score_key};
use crate::options::Options;
use crate::vocab::{Vocabulary, Worth};

/// The place of a free rank in the order of acquisition: Idle machines by price, then Speculative ones by
/// their effective cost for the need's penalty bucket.
pub(crate) fn free_cost(rank: u32, bucket: PenaltyBucket, vocab: &Vocabulary) -> u64 {
    let (terms, speculative) = split_free_rank(rank);
    let (price, probability) = vocab.price_and_probability(terms);
    let cost = if speculative { effective_cost(price, probability, bucket) } else { price };
    cost_key(cost, speculative)
}

/// The place of a bound machine in the order of victims for a preemptor; `None` if it is no victim.
pub(crate) fn victim_cost(worth: Worth, preemptor: i32, options: &Options) -> Option<u64> {
    (worth.priority < preemptor).then(|| {
        let gap = priority_gap(preemptor, worth.priority);
        let drain_secs = options.estimated_drain_nanos as f64 / 1e9;
        let (interruption, reclamation) = (worth.interruption_usd, worth.reclamation_usd);
        score_key(victim_score(&options.weights, gap, drain_secs, interruption, reclamation))
    })
}
