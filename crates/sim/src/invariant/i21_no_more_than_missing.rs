//! 21: bought or on order never exceeds what was missing by more than one machine per need: take any one of what is bought
//! away, and the demand known then is not covered.
//!
//! What is on order is known from the record and from what providers really make, whatever a shard remembers of it. A machine
//! that a shard has reason to discount is left out: one that is overdue, and any that a provider has lied about.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_engine::ActionKind;
use bigfleet_model::machine::MachineState;
use bigfleet_model::need::NeedKey;
use bigfleet_model::resource::ResourceVec;
use bigfleet_shard::{Fate, Patience};

use super::{Invariant, Moment};

pub(super) struct NoMoreThanMissing {
    patience: Patience,
    /// How far clocks may have jumped, and how long an order may take to arrive.
    slack: i64,
    /// Machines that were bought for a need and are being made, and since when.
    on_order: BTreeMap<Box<str>, (NeedKey, i64)>,
    /// Machines that were bought and are not being made yet.
    ordered: BTreeMap<Box<str>, NeedKey>,
}

/// How long an order may take to arrive, tries included.
const SLACK: i64 = 200_000_000_000;

impl NoMoreThanMissing {
    pub(super) fn new(patience: Patience, slack: i64) -> Self {
        let slack = slack + SLACK;
        Self { patience, slack, on_order: BTreeMap::new(), ordered: BTreeMap::new() }
    }
}

impl Invariant for NoMoreThanMissing {
    fn see(&mut self, now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            // A lie about supply is an excuse, and so is a lost disk.
            Moment::Forgotten { .. } | Moment::Heard { clean: false, .. } => {
                self.on_order.clear();
                self.ordered.clear();
                None
            }
            Moment::Changed { machine, before: Some(_) } => {
                let id: Box<str> = machine.id.as_str().into();
                if machine.state == MachineState::Creating.to_wire() {
                    if let Some(need) = self.ordered.remove(&id) {
                        self.on_order.insert(id, (need, now));
                    }
                } else {
                    self.on_order.remove(&id);
                    self.ordered.remove(&id);
                }
                None
            }
            Moment::Decided { superseded: false, record, mirror, .. } => {
                let mut bought: BTreeMap<NeedKey, Vec<&str>> = BTreeMap::new();
                for ordered in record.actions.iter().filter(|ordered| ordered.fate == Fate::Begun) {
                    if let (ActionKind::Provision, Some(demand)) = (ordered.action.kind, &ordered.action.need)
                    {
                        bought.entry(demand.need.key()).or_default().push(&ordered.action.machine);
                    }
                }
                let provides = |id: &str| mirror.machines.get(id).map(|machine| machine.provides().clone());
                let outcomes = mirror.fleet.outcomes();
                let credited: BTreeSet<&str> =
                    outcomes.iter().flat_map(|o| o.credited.iter()).copied().collect();
                let wrong = outcomes.iter().find_map(|outcome| {
                    let need = &outcome.demand.need;
                    let new = bought.get(&need.key())?;
                    if need.profile.same().is_some() || need.profile.strict_spread().is_some() {
                        return None;
                    }
                    // A shard counts from when it gave the order, by its own clock.
                    let overdue = now - self.patience.creating + self.slack;
                    let unknown = self.on_order.iter().filter(|(id, (key, since))| {
                        *key == need.key() && *since > overdue && !credited.contains(&***id)
                    });
                    let unknown: Vec<&str> = unknown.map(|(id, _)| &**id).collect();
                    if unknown.is_empty() {
                        return None;
                    }
                    // All slots of a pool are alike, so what is unknown brings what the like of it does.
                    let like = |id: &str| provides(id).or_else(|| new.first().and_then(|id| provides(id)));
                    let sum = |ids: &mut dyn Iterator<Item = &str>| {
                        ids.filter_map(like).fold(ResourceVec::ZERO, |sum, more| sum.add(&more))
                    };
                    let held = sum(&mut outcome.credited.iter().copied());
                    let coming = sum(&mut unknown.iter().copied());
                    let had = held.add(&coming);
                    let idle = sum(&mut outcome.acquired.iter().copied().filter(|id| !new.contains(id)));
                    new.iter().find_map(|one| {
                        let others = sum(&mut new.iter().copied().filter(|id| id != one));
                        let without = had.add(&idle).add(&others);
                        without.covers(&need.aggregate).then(|| {
                            let count = unknown.len();
                            format!(
                                "{one} is bought for {:?}, and {count} machines are on order for it, enough",
                                need.key()
                            )
                        })
                    })
                });
                for (need, ids) in bought {
                    self.ordered.extend(ids.into_iter().map(|id| (Box::from(id), need.clone())));
                }
                wrong
            }
            _ => None,
        }
    }
}
