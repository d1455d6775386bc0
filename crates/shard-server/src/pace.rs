//! How long the last cycles took, for whoever looks at the system; metrics keep the long run.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Cycles remembered.
const MOST: usize = 240;

/// The last cycles, the oldest first, in nanoseconds.
#[derive(Clone, Default)]
pub(crate) struct Pace(Arc<Mutex<VecDeque<i64>>>);

impl Pace {
    /// A cycle has ended.
    pub(crate) fn took(&self, nanos: i64) {
        let mut times = self.0.lock().expect("no holder panics");
        if times.len() == MOST {
            times.pop_front();
        }
        times.push_back(nanos.max(0));
    }

    /// Those remembered.
    pub(crate) fn times(&self) -> Vec<i64> {
        self.0.lock().expect("no holder panics").iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_are_remembered() {
        let pace = Pace::default();
        (0..250).for_each(|nanos| pace.took(nanos));
        assert_eq!(pace.times(), (250 - i64::try_from(MOST).unwrap()..250).collect::<Vec<_>>());
    }
}
