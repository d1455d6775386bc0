//! What free machines ask of needs of one penalty bucket, by rank instead of by machine.
//!
//! One trap: two prices that differ in their last bits may cost the same *per share* once divided and rounded, and then
//! the smaller id wins, not the smaller price. Prices that close get different *colours*, and machines of different
//! colours are never put into one line, so that whole ranks are compared.

use bigfleet_model::penalty::PenaltyBucket;

use crate::intern::Map;
use crate::vocab::Vocabulary;

use super::prices::Asking;

/// Prices this many last places apart, or fewer, may be equal once divided by a share.
const CLOSE: u64 = 8;

/// What every free rank asks of needs of one bucket. Kept from cycle to cycle; new terms are added.
#[derive(Clone, Default)]
pub(crate) struct Book {
    /// By free rank, its [`Asking::key`] and the colour that keeps close prices apart.
    keys: Vec<(u64, u32)>,
    /// All keys that stand for prices, in order, each once.
    order: Vec<u64>,
    /// The colours of those that are not 0.
    colours: Map<u64, u32>,
    terms: usize,
}

impl Book {
    /// Learns what all terms there are ask. True if ranks it knew changed their colours.
    pub(crate) fn refresh(&mut self, bucket: PenaltyBucket, vocab: &Vocabulary) -> bool {
        let (known, terms) = (self.terms, vocab.terms_count());
        if known == terms {
            return false;
        }
        self.terms = terms;
        let ranks = (known as u32) << 2..(terms as u32) << 2;
        self.keys.extend(ranks.map(|rank| (Asking::of(rank, bucket, vocab).key(), 0)));
        let new = &mut self.keys[known << 2..];
        let mut keys: Vec<u64> =
            new.iter().map(|(key, _)| *key).filter(|key| Asking::is_priced(*key)).collect();
        keys.sort_unstable();
        keys.dedup();
        if self.merge(&keys) {
            self.colour();
            return true;
        }
        if !self.colours.is_empty() {
            for (key, colour) in &mut self.keys[known << 2..] {
                *colour = self.colours.get(key).copied().unwrap_or(0);
            }
        }
        false
    }

    /// Takes new keys into the order; true if one of them is close to another key.
    fn merge(&mut self, new: &[u64]) -> bool {
        let mut merged: Vec<u64> = Vec::with_capacity(self.order.len() + new.len());
        let (mut old, mut close) = (self.order.iter().copied().peekable(), false);
        for key in new.iter().copied() {
            while let Some(smaller) = old.next_if(|old| *old < key) {
                merged.push(smaller);
            }
            if old.peek() == Some(&key) {
                continue;
            }
            close |= merged.last().is_some_and(|before| key - before <= CLOSE);
            close |= old.peek().is_some_and(|after| after - key <= CLOSE);
            merged.push(key);
        }
        merged.extend(old);
        self.order = merged;
        close
    }

    /// Gives all keys their colours anew.
    fn colour(&mut self) {
        self.colours.clear();
        for pair in self.order.windows(2) {
            if pair[1] - pair[0] <= CLOSE {
                let colour = self.colours.get(&pair[0]).copied().unwrap_or(0) + 1;
                self.colours.insert(pair[1], colour);
            }
        }
        for (key, colour) in &mut self.keys {
            *colour = self.colours.get(key).copied().unwrap_or(0);
        }
    }

    /// The price key and the colour of a free rank.
    #[inline]
    pub(crate) fn of(&self, rank: u32) -> (u64, u32) {
        self.keys[rank as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_prices_are_told_apart_however_they_come() {
        let price = |ulps: u64| f64::from_bits(1.5_f64.to_bits() + ulps);
        let (mut vocab, mut book) = (Vocabulary::default(), Book::default());
        let terms = |ulps: u64, vocab: &mut Vocabulary| vocab.terms(price(ulps), 0.0) << 2 | 1;
        let (a, far) = (terms(0, &mut vocab), terms(100, &mut vocab));
        assert!(!book.refresh(PenaltyBucket::ZERO, &vocab));
        assert_eq!((book.of(a).1, book.of(far).1), (0, 0));
        let again = vocab.terms(price(100), 0.5) << 2 | 1;
        assert!(!book.refresh(PenaltyBucket::ZERO, &vocab), "an equal price is no close one");
        assert_eq!(book.of(again), book.of(far));
        let terms = |ulps: u64, vocab: &mut Vocabulary| vocab.terms(price(ulps), 0.0) << 2 | 1;
        let (b, c) = (terms(3, &mut vocab), terms(9, &mut vocab));
        assert!(book.refresh(PenaltyBucket::ZERO, &vocab));
        assert_eq!([a, b, c, far].map(|rank| book.of(rank).1), [0, 1, 2, 0]);
        let equal = vocab.terms(price(3), 0.25) << 2 | 1;
        assert!(!book.refresh(PenaltyBucket::ZERO, &vocab));
        assert_eq!(book.of(equal), book.of(b));
    }
}
