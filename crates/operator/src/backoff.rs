//! How long to wait before trying again: longer each time, never at the same moment as everybody else, and short again
//! after something worked.

/// Waits that double up to a limit, each shortened by chance by up to half.
#[derive(Clone, Debug)]
pub struct Backoff {
    first_nanos: i64,
    longest_nanos: i64,
    failures: u32,
}

impl Backoff {
    /// Waits from `first_nanos` up to `longest_nanos`.
    pub fn new(first_nanos: i64, longest_nanos: i64) -> Self {
        Self { first_nanos, longest_nanos, failures: 0 }
    }

    /// It failed. How long to wait; `chance` is any number, the randomness of this wait.
    pub fn failed(&mut self, chance: u64) -> i64 {
        let doubled = 1_i64.checked_shl(self.failures.min(62)).unwrap_or(i64::MAX);
        let full = self.first_nanos.saturating_mul(doubled).clamp(1, self.longest_nanos.max(1));
        self.failures = self.failures.saturating_add(1);
        let cut = u128::from(chance) * (full as u128 / 2) >> 64;
        full - cut as i64
    }

    /// It worked.
    pub fn worked(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_begin_again_after_success() {
        let mut backoff = Backoff::new(100, 1_000);
        let waits: Vec<i64> = (0..6).map(|_| backoff.failed(0)).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_000, 1_000]);
        backoff.worked();
        assert_eq!(backoff.failed(0), 100);
        for _ in 0..100 {
            backoff.failed(0);
        }
        assert_eq!(backoff.failed(0), 1_000);
    }

    #[test]
    fn chance_shortens_by_up_to_half() {
        let mut backoff = Backoff::new(1_000, 1_000);
        assert_eq!(backoff.failed(u64::MAX), 501);
        assert_eq!(backoff.failed(u64::MAX / 2), 751);
    }
}
