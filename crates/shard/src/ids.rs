//! Numbers that must not repeat, from the seed and the epoch.

use bigfleet_model::splitmix::mix;

/// A stream of 64-bit numbers for one life of the shard.
///
/// The n-th number of epoch e is `e * 2^32 + n`, mixed: mixing never sends two numbers to one (it is `SplitMix64`'s last
/// step, which can be undone), so two lives share no number until one of them has drawn 2^32 or their epochs are a
/// multiple of 2^32 apart. An answer meant for a life before is never taken for one to this life.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    key: u64,
    next: u64,
}

impl Ids {
    pub(crate) fn new(seed: u64, epoch: i64) -> Self {
        Self { key: mix(seed), next: epoch.cast_unsigned() << 32 }
    }

    pub(crate) fn next(&mut self) -> u64 {
        let number = mix(self.next ^ self.key);
        self.next = self.next.wrapping_add(1);
        number
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn of(seed: u64, epoch: i64, count: usize) -> Vec<u64> {
        let mut ids = Ids::new(seed, epoch);
        (0..count).map(|_| ids.next()).collect()
    }

    #[test]
    fn lives_do_not_share_numbers() {
        for seed in [0, 7, u64::MAX] {
            let lives = [1, 2, 3, 4, 1_800_000_000, 1_800_000_001, 1_800_000_002];
            let all: BTreeSet<u64> = lives.iter().flat_map(|epoch| of(seed, *epoch, 2000)).collect();
            assert_eq!(all.len(), lives.len() * 2000, "seed {seed}");
        }
        assert_eq!(of(7, 1, 100), of(7, 1, 100), "the same seed gives the same numbers");
        assert_ne!(of(7, 1, 1), of(8, 1, 1));
    }
}
