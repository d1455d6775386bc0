//! Numbers from a seed: the same seed gives the same fleet on every machine, for ever.

use bigfleet_model::splitmix;

/// A small generator (`SplitMix64`): fast, no state beyond one word, and its sequence is part of our formats.
#[derive(Clone, Debug)]
pub struct Seed(u64);

impl Seed {
    /// A generator that starts at this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        splitmix::next(&mut self.0)
    }

    /// A number below `bound`; `bound` must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a number below 0 was asked for");
        // The high half of a product: a bias below 2⁻³², and no division.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from 0 up to but not including 1.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with this chance.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// One of the items; there must be at least one.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// An independent generator, so that one part of a fleet can grow without changing the others.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(self.next_u64())
    }
}
