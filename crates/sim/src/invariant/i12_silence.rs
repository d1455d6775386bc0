//! 12: at steady demand nothing moves, and everything wanted is there or stated as missing.

use super::{Invariant, Moment};

pub(super) struct Silence;

impl Invariant for Silence {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        let Moment::Settled { quiet_since, last_action, waiting, .. } = moment else { return None };
        if last_action > quiet_since {
            let secs = (last_action - quiet_since) / 1_000_000_000;
            return Some(format!("{secs} s after it should have come to rest something is still being done"));
        }
        (!waiting.is_empty())
            .then(|| format!("pods wait and nobody says that anything is missing: {waiting}"))
    }
}
