//! Randomness without state: every draw is a function of the seed, a purpose and a key.
//!
//! A generator that is shared hands its numbers out in the order in which it is asked, so one more machine
//! would change the fate of all others. Here a machine's fate depends on the seed, on its name and on the
//! moment alone; that also holds after a restart, with nothing to remember.

use bigfleet_model::splitmix::mix;

/// Where all draws of a run come from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dice {
    seed: u64,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed: mix(seed) }
    }

    /// 64 random bits for this purpose, key and number.
    pub(crate) fn bits(self, purpose: &str, key: &str, number: u64) -> u64 {
        let fold = |hash, text: &str| text.bytes().fold(hash, |hash, byte| mix(hash ^ u64::from(byte)));
        let hash = mix(fold(self.seed, purpose) ^ 0x1f);
        mix(fold(hash, key) ^ mix(number))
    }

    /// Evenly between 0 and 1, never 0 and never 1.
    pub(crate) fn unit(self, purpose: &str, key: &str, number: u64) -> f64 {
        unit(self.bits(purpose, key, number))
    }

    /// From the normal distribution with mean 0 and deviation 1.
    pub(crate) fn normal(self, purpose: &str, key: &str, number: u64) -> f64 {
        let first = self.bits(purpose, key, number);
        let angle = 2.0 * std::f64::consts::PI * unit(mix(first));
        (-2.0 * unit(first).ln()).sqrt() * angle.cos()
    }

    /// Whether something of this probability happens.
    pub(crate) fn happens(self, probability: f64, purpose: &str, key: &str, number: u64) -> bool {
        probability >= 1.0 || (probability > 0.0 && self.unit(purpose, key, number) < probability)
    }

    /// Puts a list into an order that depends on the number.
    pub(crate) fn shuffle<T>(self, list: &mut [T], purpose: &str, number: u64) {
        for last in (1..list.len()).rev() {
            let other = self.bits(purpose, "", number.wrapping_add(last as u64)) % (last as u64 + 1);
            list.swap(last, other as usize);
        }
    }
}

fn unit(bits: u64) -> f64 {
    ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 20_000;

    #[test]
    fn the_same_question_has_the_same_answer_and_others_have_others() {
        let dice = Dice::new(7);
        assert_eq!(dice.bits("a", "b", 1), Dice::new(7).bits("a", "b", 1));
        let others = [
            dice.bits("a", "b", 2),
            dice.bits("a", "c", 1),
            dice.bits("ab", "", 1),
            Dice::new(8).bits("a", "b", 1),
        ];
        assert!(others.iter().all(|other| *other != dice.bits("a", "b", 1)), "{others:?}");
    }

    #[test]
    fn units_are_even() {
        let dice = Dice::new(1);
        let mean = (0..DRAWS).map(|n| dice.unit("u", "", n)).sum::<f64>() / DRAWS as f64;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        let low = (0..DRAWS).filter(|n| dice.happens(0.1, "u", "", *n)).count();
        assert!((1850..2150).contains(&low), "{low}");
    }

    #[test]
    fn normals_have_mean_0_and_deviation_1() {
        let dice = Dice::new(2);
        let draws: Vec<f64> = (0..DRAWS).map(|n| dice.normal("n", "k", n)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }

    #[test]
    fn certain_and_impossible_things_ask_nobody() {
        let dice = Dice::new(3);
        assert!(
            dice.happens(1.0, "", "", 0) && !dice.happens(0.0, "", "", 0) && !dice.happens(-1.0, "", "", 0)
        );
    }

    #[test]
    fn a_shuffle_keeps_everything() {
        let mut list: Vec<u32> = (0..100).collect();
        Dice::new(4).shuffle(&mut list, "s", 9);
        assert_ne!(list, (0..100).collect::<Vec<_>>());
        list.sort_unstable();
        assert_eq!(list, (0..100).collect::<Vec<_>>());
    }
}
