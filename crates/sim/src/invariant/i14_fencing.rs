//! 14: a superseded shard changes nothing that its successor has touched, and orders are told apart by their numbers.

use std::collections::BTreeMap;

use bigfleet_shard::{CallErrorKind, Effect, Request};

use super::{Invariant, Moment};

#[derive(Default)]
pub(super) struct Fencing {
    /// The newest life of each shard that a machine has obeyed.
    obeyed: BTreeMap<(usize, String), i64>,
    /// The number of the last order of each host's life.
    numbers: BTreeMap<usize, i64>,
}

impl Fencing {
    /// Orders are numbered, so that a provider can tell an old one that arrives late.
    fn number(&mut self, host: usize, effect: &Effect) -> Option<String> {
        let Effect::Call { request, sequence, .. } = effect else { return None };
        if matches!(request, Request::Get { .. }) {
            return None;
        }
        let last = self.numbers.insert(host, *sequence).unwrap_or(i64::MIN);
        (*sequence <= last).then(|| format!("order number {sequence} follows number {last}"))
    }
}

impl Invariant for Fencing {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Started { host, .. } => {
                self.numbers.remove(host);
            }
            Moment::Step { host, step, .. } => {
                return step.effects.iter().find_map(|effect| self.number(*host, effect));
            }
            _ => {}
        }
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
