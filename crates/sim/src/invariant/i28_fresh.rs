//! 28: nothing is taken away by a listing that is too old.

use std::collections::BTreeMap;

use bigfleet_engine::ActionKind;
use bigfleet_shard::Fate;

use super::{Invariant, Moment};

pub(super) struct Fresh {
    /// How far clocks may have jumped.
    slack: i64,
    /// When a host last heard a listing of a provider, by when it was taken.
    heard: BTreeMap<(usize, usize), i64>,
}

impl Fresh {
    pub(super) fn new(slack: i64) -> Self {
        Self { slack, heard: BTreeMap::new() }
    }
}

impl Invariant for Fresh {
    fn see(&mut self, now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Started { host, .. } => {
                self.heard.retain(|(of, _), _| of != host);
                None
            }
            Moment::Heard { host, provider, taken, .. } => {
                let last = self.heard.entry((*host, *provider)).or_insert(*taken);
                *last = (*last).max(*taken);
                None
            }
            Moment::Cycle { host, shard, record, .. } => {
                let begun = record.actions.iter().filter(|ordered| ordered.fate == Fate::Begun);
                let takes = |kind| !matches!(kind, ActionKind::Bootstrap | ActionKind::Provision);
                begun.map(|ordered| &ordered.action).filter(|action| takes(action.kind)).find_map(|action| {
                    let provider = usize::from(shard.machine(&action.machine)?.provider.0);
                    let settings = &shard.config().providers[provider];
                    let age = now - self.heard.get(&(*host, provider)).copied().unwrap_or(i64::MIN / 2);
                    (age > settings.stale_after + self.slack).then(|| {
                        let secs = age / 1_000_000_000;
                        format!("{} of machine {} by a listing {secs} s old", action.kind, action.machine)
                    })
                })
            }
            _ => None,
        }
    }
}
