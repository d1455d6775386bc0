//! The one source of chance: a small generator that is made from the seed and passed on.

use bigfleet_model::splitmix::{self, finalise};

/// A stream of numbers that depends on its seed alone.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(finalise(seed ^ 0x5eed))
    }

    /// A stream of its own for a purpose, so that what one part of a run draws does not shift the others.
    #[must_use]
    pub fn fork(&self, purpose: &str) -> Self {
        Self(purpose.bytes().fold(self.0, |hash, byte| finalise(hash.wrapping_add(u64::from(byte) + 1))))
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        splitmix::next(&mut self.0)
    }

    /// Below `end`, which must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// At least 0, below 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Whether something of this probability happens.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// One of a list, which must not be empty.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }

    /// Puts a list into a random order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_its_seed_and_purpose_alone() {
        let draw = |mut random: Random| [random.bits(), random.bits()];
        assert_eq!(draw(Random::new(7)), draw(Random::new(7)));
        assert_ne!(draw(Random::new(7)), draw(Random::new(8)));
        let mut used = Random::new(7);
        let fork = draw(used.fork("a"));
        assert_eq!(fork, draw(Random::new(7).fork("a")));
        assert_ne!(fork, draw(used.fork("b")));
        used.bits();
        assert_ne!(fork, draw(used.fork("a")), "a fork continues from where its parent is");
    }

    #[test]
    fn draws_keep_their_bounds() {
        let mut random = Random::new(1);
        for _ in 0..1000 {
            assert!((3..=5).contains(&random.between(3, 5)));
            assert!((0.0..1.0).contains(&random.unit()));
        }
        let heads = (0..10_000).filter(|_| random.happens(0.25)).count();
        assert!((2300..2700).contains(&heads), "{heads}");
        let mut list: Vec<u32> = (0..50).collect();
        random.shuffle(&mut list);
        assert_ne!(list, (0..50).collect::<Vec<_>>());
        list.sort_unstable();
        assert_eq!(list, (0..50).collect::<Vec<_>>());
    }
}
