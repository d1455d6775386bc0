//! Backoff: how long to wait before something that failed is tried again. Waits double up to a limit.
//!
//! No chance is in it, so a run can be repeated. Programs that fail together with others and should not come back together
//! shorten the wait by a number of their own (`bigfleet_net::Backoff`).

/// Waits that double. In nanoseconds, or in whatever unit both fields share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure.
    pub first: i64,
    /// The longest wait.
    pub limit: i64,
}

impl Backoff {
    /// The wait after this many failures in a row; none counts as one.
    pub fn after(self, failures: u32) -> i64 {
        // Past 62 doublings nothing but 0 is below the limit of the type.
        let doublings = failures.saturating_sub(1).min(62);
        self.first.saturating_mul(1 << doublings).min(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_limit() {
        let backoff = Backoff { first: 3, limit: 20 };
        let waits = [0, 1, 2, 3, 4, 5, u32::MAX].map(|failures| backoff.after(failures));
        assert_eq!(waits, [3, 3, 6, 12, 20, 20, 20]);
        assert_eq!(Backoff { first: i64::MAX / 2, limit: i64::MAX }.after(40), i64::MAX, "nothing wraps");
    }
}
