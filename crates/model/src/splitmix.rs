//! `SplitMix64`, written once: how a number is spread over all 64 bits, and the sequence that comes of it.
//!
//! There is no randomness in here: the same number gives the same number. Who wants chance starts from a seed. Formats and
//! seeded worlds depend on these sequences, so they stay as they are.

/// What the state of a sequence grows by from number to number.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads a number over all 64 bits. Every step can be undone (shifts by xor, products with odd numbers), so no two numbers
/// are sent to one; 0 stays 0.
pub fn finalise(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The first number of the sequence that starts here: as [`finalise`], and 0 does not stay 0.
pub fn mix(number: u64) -> u64 {
    finalise(number.wrapping_add(GAMMA))
}

/// The next number of the sequence with this state.
pub fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GAMMA);
    finalise(*state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        let mut state = 1_234_567;
        let drawn = [next(&mut state), next(&mut state), next(&mut state)];
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
        assert_eq!(mix(1_234_567), drawn[0]);
        assert_eq!(finalise(0), 0);
    }
}
