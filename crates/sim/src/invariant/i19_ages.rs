//! 19: ages only grow while a need is unmet, and survive restarts.

use std::collections::BTreeMap;

use bigfleet_model::need::NeedKey;
use bigfleet_shard::{Fact, ShortSince};

use super::{Invariant, Moment};

#[derive(Default)]
pub(super) struct Ages {
    short: BTreeMap<(usize, NeedKey), ShortSince>,
}

impl Invariant for Ages {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Forgotten { host } => {
                self.short.retain(|(other, _), _| other != host);
                None
            }
            Moment::Step { host, memory, step, .. } => step.facts.iter().find_map(|fact| {
                let Fact::Shortfall(key, since) = fact else { return None };
                let place = (*host, key.clone());
                let before = self.short.get(&place).copied();
                match since {
                    None => self.short.remove(&place),
                    Some(since) => self.short.insert(place, *since),
                };
                let (before, after) = (before?, (*since)?);
                let younger = after.unix_nanos > before.unix_nanos || after.cycle > before.cycle;
                let kept = memory.shortfalls.get(key) == Some(&after);
                (younger || !kept)
                    .then(|| format!("{key:?} was short since {before:?} and is now since {after:?}"))
            }),
            _ => None,
        }
    }
}
