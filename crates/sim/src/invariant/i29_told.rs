//! 29: a cluster knows what became of its machines.

use super::{Invariant, Moment};

pub(super) struct ClustersTold;

impl Invariant for ClustersTold {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        let Moment::Settled { untold, .. } = moment else { return None };
        (!untold.is_empty()).then(|| (*untold).to_string())
    }
}
