//! 26: a listing that loses most machines takes none away until enough of them agree on which.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_shard::GuardConfig;

use super::{Invariant, Moment};

pub(super) struct ListingsAgree {
    guard: GuardConfig,
    seen: BTreeMap<(usize, usize), Seen>,
}

#[derive(Default)]
struct Seen {
    /// Machines the shard knew after the last listing.
    known: BTreeSet<String>,
    /// What the last suspicious listing missed.
    missing: BTreeSet<String>,
    /// How many in a row agree.
    agree: u32,
}

impl ListingsAgree {
    pub(super) fn new(guard: GuardConfig) -> Self {
        Self { guard, seen: BTreeMap::new() }
    }
}

impl Invariant for ListingsAgree {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        if let Moment::Started { host, .. } = moment {
            self.seen.retain(|(of, _), _| of != host);
        }
        let Moment::Heard { host, provider, shard, machines, full, .. } = moment else { return None };
        let mine = shard.machines_from(0).filter(|view| usize::from(view.provider.0) == *provider);
        let known: BTreeSet<String> = mine.map(|view| view.machine.id.to_string()).collect();
        let listed: BTreeSet<&str> = machines.iter().map(|machine| machine.id.as_str()).collect();
        let seen = self.seen.entry((*host, *provider)).or_default();
        let before = std::mem::replace(&mut seen.known, known);
        if !full {
            return None;
        }
        let missing: BTreeSet<String> =
            before.iter().filter(|id| !listed.contains(id.as_str())).cloned().collect();
        let drop = self.guard.supply_drop;
        // Those that are back in this very listing are known again.
        let of = before.len() + listed.iter().filter(|id| !before.contains(**id)).count();
        let is_much = |count: usize| of >= self.guard.supply_floor && count as f64 > drop * of as f64;
        if !is_much(missing.len()) {
            (seen.agree, seen.missing) = (0, BTreeSet::new());
            return None;
        }
        let differ = missing.symmetric_difference(&seen.missing).count();
        let agrees = differ as f64 <= drop * missing.len().max(seen.missing.len()) as f64;
        seen.agree = if agrees { seen.agree + 1 } else { 1 };
        seen.missing = missing;
        let lost = before.difference(&seen.known).count();
        (is_much(lost) && seen.agree < self.guard.confirmations).then(|| {
            let agree = seen.agree;
            format!("{lost} of {of} machines are lost to a listing that {agree} agree on")
        })
    }
}
