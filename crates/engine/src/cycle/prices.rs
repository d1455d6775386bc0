//! What machines cost a need, per lot instead of per machine.

use bigfleet_model::cost::{asking_price, priority_gap, victim_score};
use bigfleet_model::penalty::PenaltyBucket;

use crate::index::{FreeTerms, split_free_rank};
use crate::keys::score_key;
use crate::options::Options;
use crate::vocab::{Vocabulary, Worth};

/// Which machines go first, whatever a share of them costs. The order is that of the design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    /// Fixed and Idle: paid for anyway.
    Fixed,
    /// To be paid for.
    Paid,
    /// Fixed and Idle, but at a risk the need must not take.
    FixedPinned,
    /// Any other at such a risk.
    Pinned,
}

/// What a free machine asks of a need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Asking {
    pub(crate) tier: Tier,
    pub(crate) usd_per_hour: f64,
    pub(crate) speculative: bool,
}

/// A non-negative price as a number that orders alike, below 2^63.
fn price_key(price: f64) -> u64 {
    debug_assert!(price >= 0.0, "prices are not negative");
    // A negative zero is not below zero, and in the total order it comes first.
    if price.is_sign_negative() { 0 } else { price.to_bits() }
}

const PAID: u64 = 1 << 63;
/// Above every price, and below the largest number, which stands for no machine at all.
const FIXED_PINNED: u64 = u64::MAX - 2;
const PINNED: u64 = u64::MAX - 1;

impl Asking {
    /// What machines of a free rank ask of a need of this bucket.
    pub(crate) fn of(rank: u32, bucket: PenaltyBucket, vocab: &Vocabulary) -> Self {
        let FreeTerms { terms, speculative, idle_elastic } = split_free_rank(rank);
        let (price, probability) = vocab.price_and_probability(terms);
        let usd_per_hour = asking_price(price, probability, bucket, idle_elastic);
        let fixed = !speculative && !idle_elastic;
        let tier = match (fixed, usd_per_hour.is_finite()) {
            (true, true) => Tier::Fixed,
            (false, true) => Tier::Paid,
            (true, false) => Tier::FixedPinned,
            (false, false) => Tier::Pinned,
        };
        Self { tier, usd_per_hour, speculative }
    }

    /// The place among machines that provide the same, as a number: tier, then price.
    pub(crate) fn key(self) -> u64 {
        match self.tier {
            Tier::Fixed => price_key(self.usd_per_hour),
            Tier::Paid => PAID + price_key(self.usd_per_hour),
            Tier::FixedPinned => FIXED_PINNED,
            Tier::Pinned => PINNED,
        }
    }

    /// Whether a [`Self::key`] stands for a price: machines at a risk that a need must not take have none.
    pub(crate) fn is_priced(key: u64) -> bool {
        key < FIXED_PINNED
    }

    /// The tier and price behind a [`Self::key`].
    pub(crate) fn of_key(key: u64) -> (Tier, f64) {
        match key {
            PINNED => (Tier::Pinned, f64::INFINITY),
            FIXED_PINNED => (Tier::FixedPinned, f64::INFINITY),
            key if key >= PAID => (Tier::Paid, f64::from_bits(key - PAID)),
            key => (Tier::Fixed, f64::from_bits(key)),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_by_tier_and_price_and_can_be_read_back() {
        let asking = |tier, usd_per_hour| Asking { tier, usd_per_hour, speculative: false };
        let order = [
            asking(Tier::Fixed, 0.0),
            asking(Tier::Fixed, 7.5),
            asking(Tier::Fixed, f64::MAX),
            asking(Tier::Paid, 0.0),
            asking(Tier::Paid, 1e-300),
            asking(Tier::Paid, 0.25),
            asking(Tier::Paid, f64::MAX),
            asking(Tier::FixedPinned, f64::INFINITY),
            asking(Tier::Pinned, f64::INFINITY),
        ];
        assert!(order.windows(2).all(|pair| pair[0].key() < pair[1].key()));
        for one in order {
            assert_eq!(Asking::of_key(one.key()), (one.tier, one.usd_per_hour));
        }
    }
}
