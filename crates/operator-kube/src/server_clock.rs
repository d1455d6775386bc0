//! The API server's clock as seen from ours. The two may differ by hours, and the server neither knows nor minds.
//!
//! What the operator measures by itself it measures by its own clock. Where it looks at a time the server wrote, or writes one
//! that the server will act on, it asks what the server would say now.

/// How long a comparison is good for: clocks drift, and are set.
const GOOD_NANOS: i64 = 60_000_000_000;

/// How far the server's clock is ahead of ours.
#[derive(Debug, Default)]
pub(crate) struct ServerClock {
    ahead_nanos: i64,
    compared_at: i64,
}

impl ServerClock {
    /// Both clocks were looked at. A server that did not answer is taken to be where it was.
    pub(crate) fn note(&mut self, server_unix_nanos: Option<i64>, now: i64) {
        self.compared_at = now;
        if let Some(server) = server_unix_nanos {
            self.ahead_nanos = server.saturating_sub(now);
        }
    }

    /// What the server would say now.
    pub(crate) fn now(&self, now: i64) -> i64 {
        now.saturating_add(self.ahead_nanos)
    }

    /// When to compare again.
    pub(crate) fn due(&self) -> i64 {
        self.compared_at.saturating_add(GOOD_NANOS)
    }

    /// It is being looked at.
    pub(crate) fn looks(&mut self, now: i64) {
        self.compared_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_answer_is_where_it_was() {
        let mut clock = ServerClock::default();
        assert_eq!(clock.now(7), 7);
        clock.note(Some(1_000), 100);
        assert_eq!((clock.now(150), clock.due()), (1_050, 100 + GOOD_NANOS));
        clock.note(None, 200);
        assert_eq!((clock.now(250), clock.due()), (1_150, 200 + GOOD_NANOS));
    }
}
