//! 9: a held roll-up changes nothing, one that erases most of the demand is held first, and what is accepted is what
//! was reported.

use std::collections::BTreeMap;

use bigfleet_model::need::{Need, aggregate};
use bigfleet_model::resource::ResourceVec;
use bigfleet_shard::{GuardConfig, Reception};

use super::{Invariant, Moment};

pub(super) struct HeldRollups {
    guard: GuardConfig,
    clusters: BTreeMap<String, Seen>,
}

#[derive(Default)]
struct Seen {
    reported: Vec<Need>,
    accepted: Vec<Need>,
    held: u32,
    /// The last report could not be read.
    unreadable: bool,
}

impl HeldRollups {
    pub(super) fn new(guard: GuardConfig) -> Self {
        Self { guard, clusters: BTreeMap::new() }
    }

    fn erases(&self, before: &[Need], after: &[Need]) -> bool {
        let keeps = 1.0 - self.guard.demand_drop;
        let total = |rows: &[Need]| rows.iter().fold(ResourceVec::ZERO, |sum, need| sum.add(&need.aggregate));
        let (was, is) = (total(before), total(after));
        (after.len() as f64) < keeps * before.len() as f64
            || was.iter().any(|(name, amount)| (is.get(name) as f64) < keeps * amount as f64)
    }
}

/// Rows without what the shard adds to them.
fn plain(rows: &[Need]) -> Vec<Need> {
    let bare = rows.iter().map(|row| Need { first_seen_unix_nanos: 0, parked: false, ..row.clone() });
    aggregate(bare)
}

impl Invariant for HeldRollups {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Forgotten { .. } => {
                self.clusters.clear();
                None
            }
            Moment::Reported { cluster, needs } => {
                let seen = self.clusters.entry((*cluster).into()).or_default();
                seen.unreadable = needs.is_none();
                if let Some(needs) = needs {
                    seen.reported = plain(needs);
                }
                None
            }
            Moment::Received { cluster, reception, shard, .. } => {
                let demand = plain(&shard.clusters().get(*cluster)?.demand);
                let mut seen = self.clusters.remove(*cluster).unwrap_or_default();
                let wrong = match reception {
                    Reception::Refused { .. } => {
                        (demand != seen.accepted).then_some("a refused one was taken")
                    }
                    Reception::Held { .. } => {
                        seen.held += 1;
                        (demand != seen.accepted).then_some("a held one was taken")
                    }
                    Reception::Accepted => {
                        let erased = self.erases(&seen.accepted, &demand);
                        let early = erased && seen.held + 1 < self.guard.confirmations;
                        seen.held = 0;
                        if seen.unreadable {
                            Some("one that could not be read was accepted when it was repeated")
                        } else if demand == seen.reported {
                            early.then_some("one that erases most of the demand was believed at once")
                        } else {
                            Some("what was accepted is not what was reported")
                        }
                    }
                };
                if **reception == Reception::Accepted {
                    seen.accepted = demand;
                }
                self.clusters.insert((*cluster).into(), seen);
                wrong.map(|wrong| format!("roll-up of {cluster}: {wrong}"))
            }
            _ => None,
        }
    }
}
