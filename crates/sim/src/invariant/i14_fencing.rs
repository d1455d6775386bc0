//! 14: a superseded shard changes nothing that its successor has touched.

use std::collections::BTreeMap;

use bigfleet_shard::{CallErrorKind, Request};

use super::{Invariant, Moment};

#[derive(Default)]
pub(super) struct Fencing {
    /// The newest life of each shard that a machine has obeyed.
    obeyed: BTreeMap<(usize, String), i64>,
}

impl Invariant for Fencing {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        let Moment::Called { request, moved, epoch, shard, answer } = moment else { return None };
        if matches!(request, Request::Get { .. }) {
            return None;
        }
        let fenced = answer.as_ref().is_err_and(|error| error.kind == CallErrorKind::Fenced);
        let newest = self.obeyed.entry((*shard, request.machine().to_string())).or_insert(*epoch);
        if *epoch < *newest && (*moved || !fenced) {
            let (name, machine) = (request.name(), request.machine());
            return Some(format!(
                "{name} of machine {machine} by epoch {epoch} was obeyed after epoch {newest}"
            ));
        }
        if !fenced {
            *newest = (*newest).max(*epoch);
        }
        None
    }
}
