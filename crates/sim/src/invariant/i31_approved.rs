//! 31: nothing is executed that its mode does not allow: nothing while it observes, and only what somebody approved while
//! it asks first, across restarts.
//!
//! What was ordered and approved is noted when somebody says so: a shard that forgets its mode would otherwise be asked about
//! what it forgot.

use std::collections::BTreeMap;

use bigfleet_engine::ActionKind;
use bigfleet_shard::{Effect, Fact, Fate, Mode, Request};

use super::{Invariant, Moment};

#[derive(Default)]
pub(super) struct Approved {
    /// Modes in force, by cluster; the empty name is everything.
    modes: BTreeMap<String, Mode>,
    /// What somebody said yes to and was not begun, by machine.
    allowed: BTreeMap<Box<str>, ActionKind>,
    /// What was begun by such a yes, by machine.
    under_way: BTreeMap<Box<str>, ActionKind>,
}

impl Approved {
    /// The stricter of the modes of those whom an action touches; who has none of his own goes by that of everything.
    fn mode(&self, clusters: [Option<&str>; 2]) -> Mode {
        let all = self.modes.get("").copied().unwrap_or_default();
        let of = |cluster: &str| self.modes.get(cluster).copied().unwrap_or(all);
        clusters.iter().flatten().map(|cluster| of(cluster)).max().unwrap_or(all)
    }

    /// Whether an action binds a machine whose purchase was approved and is not over.
    fn is_second_half(&self, machine: &str, kind: ActionKind) -> bool {
        kind == ActionKind::Bootstrap && self.under_way.get(machine) == Some(&ActionKind::Provision)
    }
}

impl Invariant for Approved {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Forgotten { .. } => {
                *self = Self::default();
                None
            }
            Moment::Mode { cluster, mode } => {
                match mode {
                    Some(mode) => self.modes.insert((*cluster).into(), *mode),
                    None => self.modes.remove(*cluster),
                };
                None
            }
            Moment::Approved { machine, kind } => {
                self.allowed.insert((*machine).into(), *kind);
                None
            }
            Moment::Cycle { record, .. } => {
                let begun = record.actions.iter().filter(|ordered| ordered.fate == Fate::Begun);
                begun.map(|ordered| &ordered.action).find_map(|action| {
                    let gets = action.need.as_ref().map(|demand| &*demand.need.cluster);
                    let mode = self.mode([action.cluster.as_deref(), gets]);
                    // One yes is for one action.
                    let mut was_approved = self.allowed.remove(&action.machine) == Some(action.kind);
                    if was_approved {
                        self.under_way.insert(action.machine.clone(), action.kind);
                    }
                    was_approved |= self.is_second_half(&action.machine, action.kind);
                    let is_allowed = mode == Mode::Auto || (mode == Mode::Approve && was_approved);
                    (!is_allowed).then(|| {
                        format!(
                            "{} of machine {} was begun in mode {}",
                            action.kind,
                            action.machine,
                            mode.name()
                        )
                    })
                })
            }
            Moment::Step { shard, step, .. } => {
                for fact in &step.facts {
                    match fact {
                        Fact::Proposal(machine, None) => {
                            self.allowed.remove(machine);
                            self.under_way.remove(machine);
                        }
                        // What is begun may be called for in the same step, before its cycle is on record.
                        Fact::Proposal(machine, Some(proposal))
                            if proposal.begun && self.allowed.get(machine) == Some(&proposal.kind) =>
                        {
                            self.under_way.insert(machine.clone(), proposal.kind);
                        }
                        _ => {}
                    }
                }
                step.effects.iter().find_map(|effect| {
                    let Effect::Call { request, .. } = effect else { return None };
                    if matches!(request, Request::Get { .. }) {
                        return None;
                    }
                    let flight = shard.machine(request.machine()).and_then(|view| view.flight)?;
                    let gets = flight.need.as_ref().map(|demand| &*demand.need.cluster);
                    let mode = self.mode([flight.cluster.as_deref(), gets]);
                    let was_approved = self.under_way.get(request.machine()) == Some(&flight.kind)
                        || self.is_second_half(request.machine(), flight.kind);
                    // What the provider may know of already is seen through.
                    let is_allowed =
                        mode == Mode::Auto || flight.tries > 1 || (mode == Mode::Approve && was_approved);
                    (!is_allowed).then(|| {
                        format!(
                            "{} of machine {} was called in mode {}",
                            request.name(),
                            request.machine(),
                            mode.name()
                        )
                    })
                })
            }
            _ => None,
        }
    }
}
