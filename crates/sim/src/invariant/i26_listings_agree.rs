//! 26: a listing that loses most machines takes none away that not enough listings in a row have missed.

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
    /// How many full listings in a row have missed each of those that the last one missed.
    missed: BTreeMap<String, u32>,
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
        let count = |id: &String| (id.clone(), seen.missed.get(id).map_or(1, |count| count + 1));
        seen.missed = before.iter().filter(|id| !listed.contains(id.as_str())).map(count).collect();
        // Those that are back in this very listing are known again.
        let of = before.len() + listed.iter().filter(|id| !before.contains(**id)).count();
        let lost = before.difference(&seen.known);
        let missed = lost.filter_map(|id| seen.missed.get(id));
        let early = missed.filter(|count| **count < self.guard.confirmations).count();
        let is_much = of >= self.guard.supply_floor && early as f64 > self.guard.supply_drop * of as f64;
        is_much.then(|| {
            let confirmations = self.guard.confirmations;
            format!("{early} of {of} machines are lost that fewer than {confirmations} listings in a row have missed")
        })
    }
}
