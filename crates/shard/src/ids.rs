//! Numbers that must not repeat, from the seed and the epoch.

/// A stream of 64-bit numbers: `SplitMix64`, whose outputs do not repeat within its period.
#[derive(Clone, Debug)]
pub(crate) struct Ids(u64);

impl Ids {
    /// A stream of its own for every life of the shard.
    pub(crate) fn new(seed: u64, epoch: i64) -> Self {
        Self(seed ^ (epoch as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_do_not_share_numbers() {
        let mut first = Ids::new(7, 1);
        let mut second = Ids::new(7, 2);
        let of = |ids: &mut Ids| (0..100).map(|_| ids.next()).collect::<Vec<_>>();
        let (first, second) = (of(&mut first), of(&mut second));
        assert!(first.iter().all(|id| !second.contains(id)));
        assert_eq!(of(&mut Ids::new(7, 1)), first, "the same seed gives the same numbers");
    }
}
