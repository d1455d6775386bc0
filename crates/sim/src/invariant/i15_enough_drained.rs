//! 15: a deficit never drains more than it needs, counting what is already on its way out for it.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_engine::ActionKind;
use bigfleet_model::machine::MachineState;
use bigfleet_model::need::NeedKey;
use bigfleet_shard::Fate;

use super::{Invariant, Moment};

#[derive(Default)]
pub(super) struct EnoughDrained {
    /// Machines preempted for a need that have not come free.
    under_way: BTreeMap<NeedKey, BTreeSet<Box<str>>>,
}

impl Invariant for EnoughDrained {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            // A shard that was lied to may think that nothing drains.
            Moment::Forgotten { .. } | Moment::Heard { clean: false, .. } => {
                self.under_way.clear();
                None
            }
            Moment::Changed { machine, before: Some(_) } => {
                let drains = [MachineState::Configured.to_wire(), MachineState::Draining.to_wire()];
                if !drains.contains(&machine.state) {
                    for ids in self.under_way.values_mut() {
                        ids.remove(machine.id.as_str());
                    }
                }
                None
            }
            Moment::Decided { superseded: false, record, mirror, .. } => {
                let mut victims: BTreeMap<NeedKey, Vec<&str>> = BTreeMap::new();
                for ordered in record.actions.iter().filter(|o| o.fate == Fate::Begun) {
                    if let (ActionKind::Preempt, Some(demand)) = (ordered.action.kind, &ordered.action.need) {
                        victims.entry(demand.need.key()).or_default().push(&ordered.action.machine);
                    }
                }
                let mut wrong = None;
                for outcome in mirror.fleet.outcomes() {
                    let need = &outcome.demand.need;
                    let key = need.key();
                    let Some(new) = victims.get(&key) else { continue };
                    let drained =
                        |id: &str| mirror.machines.get(id).map(|machine| machine.provides().clone());
                    let before = self.under_way.entry(key.clone()).or_default();
                    // An order that never reached its provider drains nothing.
                    before.retain(|id| {
                        mirror.machines.get(id).is_some_and(|m| m.state == MachineState::Draining)
                    });
                    // For a gang, what drains in another domain does not help.
                    if need.profile.same().is_none() {
                        let rest = before.iter().filter_map(|id| drained(id));
                        let rest =
                            rest.fold(outcome.deficit.clone(), |left, more| left.saturating_sub(&more));
                        if rest.is_zero() && !before.is_empty() {
                            let (had, got) = (before.len(), new.len());
                            wrong = Some(format!(
                                "{key:?}: {had} machines drain for it, enough, and {got} more now"
                            ));
                        }
                    }
                    before.extend(new.iter().map(|id| Box::from(*id)));
                }
                wrong
            }
            _ => None,
        }
    }
}
