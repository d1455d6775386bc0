//! 8: nothing is reclaimed from a cluster before it has reported in this life of the shard.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_engine::ActionKind;
use bigfleet_shard::{Fate, Reception};

use super::{Invariant, Moment};

#[derive(Default)]
pub(super) struct FirstReport {
    /// Who has reported to which host.
    reported: BTreeMap<usize, BTreeSet<String>>,
}

impl Invariant for FirstReport {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Started { host, .. } => {
                self.reported.remove(host);
                None
            }
            Moment::Received { host, cluster, reception, .. } => {
                if !matches!(reception, Reception::Refused { .. }) {
                    self.reported.entry(*host).or_default().insert((*cluster).into());
                }
                None
            }
            Moment::Cycle { host, record, .. } => {
                let reported = self.reported.entry(*host).or_default();
                let begun = record.actions.iter().filter(|ordered| ordered.fate == Fate::Begun);
                let mut reclaims =
                    begun.map(|o| &o.action).filter(|action| action.kind == ActionKind::Reclaim);
                let early =
                    reclaims.find(|a| a.cluster.as_deref().is_none_or(|name| !reported.contains(name)))?;
                Some(format!("machine {} reclaimed from {:?}", early.machine, early.cluster))
            }
            _ => None,
        }
    }
}
