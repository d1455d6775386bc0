//! 22: the shard's books agree with one another.

use super::{Invariant, Moment};

pub(super) struct Books;

impl Invariant for Books {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        let Moment::Step { shard, .. } = moment else { return None };
        shard.audit().err()
    }
}
