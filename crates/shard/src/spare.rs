//! What this shard can spare for one that is short. The donor picks, because only it can tell.
//!
//! Nothing is given that a need of ours keeps, and nothing at all while a need of ours that is as important is short itself:
//! then the machine would be missed here as much as there. Machines in use are given for strictly higher priority alone, by
//! preempting whom they serve: they are *promised* at first. Their cluster gets its grace, they are drained, and nobody here
//! gets them meanwhile. The order to hand one over waits until it idles. If the order does not come, or the drain fails, the
//! promise lapses and the machine is ours as before.

use std::collections::BTreeMap;

use bigfleet_engine::{Action, ActionKind};
use bigfleet_model::cost::{drain_grace_secs, priority_gap};
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::requirement::Requirement;
use bigfleet_model::resource::ResourceVec;

use crate::config::SECOND;
use crate::effect::Step;
use crate::planted::Bug;
use crate::shard::Shard;
use crate::table::{Care, Slot};
use crate::timers::Timer;

/// At most so many machines are given at once.
const MOST_GIVEN: usize = 80;
/// How long the order to hand over a machine that idles is waited for.
const PROMISED: i64 = 600 * SECOND;

/// What is asked for, in the order of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Machines that idle.
    Idle,
    /// Slots that are not used.
    Slots,
    /// Machines that serve needs of strictly lower priority.
    InUse,
}

/// What another shard is short of.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// What is asked for.
    pub source: Source,
    /// What a machine must be.
    pub requirements: Vec<Requirement>,
    /// How much is missing.
    pub deficit: ResourceVec,
    /// How important it is.
    pub priority: i32,
}

/// A machine that can be spared, and its domain of ours; empty if it is in none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spared {
    /// Which.
    pub machine: Box<str>,
    /// The value of its domain.
    pub domain: Box<str>,
}

impl Shard {
    /// Picks what can be spared, as much as is missing, nothing if we are short ourselves. Of what nobody has the dearest to
    /// hold first; of what is in use that of the least important.
    pub fn spare(&self, wanted: &Wanted, now: i64) -> Vec<Spared> {
        let is_short = self.ledger.iter().any(|(_, short)| short.demand.priority() >= wanted.priority);
        if self.last_cycle.is_none() || is_short && !self.config.has(Bug::GivesWhileShort) {
            return Vec::new();
        }
        let state = match wanted.source {
            Source::Idle => MachineState::Idle,
            Source::Slots => MachineState::Speculative,
            Source::InUse => MachineState::Configured,
        };
        let fits = |machine: &Machine| {
            machine.state == state
                && wanted.requirements.iter().all(|requirement| requirement.matches(machine.facts()))
                && wanted.deficit.iter().any(|(name, _)| machine.provides().get(name) > 0)
        };
        let able = self.table.iter().filter_map(|(slot, row)| {
            let is_fine = row.care == Care::Fine && row.shown && fits(&row.machine);
            if !is_fine || self.owned.leaving.contains(&slot) || self.owned.promised.contains_key(&slot) {
                return None;
            }
            let priority = match wanted.source {
                Source::InUse => self.preempted(slot, wanted.priority, now)?.1,
                Source::Idle | Source::Slots => self.may_give(slot).then_some(0)?,
            };
            Some((priority, &*row.machine))
        });
        let mut able: Vec<(i32, &Machine)> = able.collect();
        // Cheap ones are worth more to those who stay: what costs more is given first.
        able.sort_by(|(a_priority, a), (b_priority, b)| {
            let price = || b.price_usd_per_hour.total_cmp(&a.price_usd_per_hour);
            a_priority.cmp(b_priority).then_with(price).then_with(|| a.id.cmp(&b.id))
        });
        let (mut missing, mut given) = (wanted.deficit.clone(), Vec::new());
        for (_, machine) in able {
            if missing.is_zero() || given.len() == MOST_GIVEN {
                break;
            }
            missing = missing.saturating_sub(machine.provides());
            let domain = self.owned.domain_of(machine).map(|(_, value)| value).unwrap_or_default();
            given.push(Spared { machine: machine.id.clone(), domain });
        }
        given
    }

    /// Whether a machine is ours to give, and nobody here counts on it.
    fn may_give(&self, slot: Slot) -> bool {
        self.is_free(slot) && self.engine.demand_claiming(&self.table.row(slot).machine.id).is_none()
    }

    /// The preemption that would free a machine for somebody of this priority elsewhere, and the priority it serves now; none if
    /// it may not be. Gangs and spreads are left alone: one machine less may cost them all.
    fn preempted(&self, slot: Slot, priority: i32, now: i64) -> Option<(Action, i32)> {
        let machine = &self.table.row(slot).machine;
        let (name, cluster) = self.clusters.get_key_value(&*machine.cluster)?;
        if !cluster.has_reported() {
            return None;
        }
        let serves = match self.engine.demand_claiming(&machine.id) {
            Some(demand) => {
                let need = &demand.need;
                let is_bound = need.profile.same().is_some() || need.profile.strict_spread().is_some();
                if !need.group.is_empty() || is_bound || need.cluster != *name {
                    return None;
                }
                demand.priority().max(machine.assigned.priority)
            }
            None => machine.assigned.priority,
        };
        let action = Action {
            kind: ActionKind::Preempt,
            machine: machine.id.clone(),
            cluster: Some(name.clone()),
            need: None,
            grace_secs: Some(drain_grace_secs(priority_gap(priority, serves))),
        };
        (serves < priority && self.holds_alone(slot, &action, now).is_none()).then_some((action, serves))
    }

    /// Promises machines that were offered in use and that another shard is to get, and preempts whom they serve. What may not be
    /// preempted any more is left as it is; the order to hand it over will be refused.
    pub fn promise(&mut self, machines: &[Box<str>], priority: i32, now: i64, step: &mut Step) {
        for machine in machines {
            let Some(slot) = self.table.find(machine) else { continue };
            let is_used = self.table.row(slot).machine.state == MachineState::Configured;
            let Some((action, _)) = self.preempted(slot, priority, now).filter(|_| is_used) else { continue };
            let before = Machine::clone(&self.table.row(slot).machine);
            self.promised(slot, now);
            self.set_off_for(slot, before, &action, priority, now, step);
        }
    }

    /// Keeps a machine from everybody here until it is handed over, or the promise lapses.
    fn promised(&mut self, slot: Slot, now: i64) {
        self.owned.promised.insert(slot, now);
    }

    /// Whether a machine that is to be handed over will be free: it was promised, or a life before did that and it is on its way
    /// out of its cluster for nobody here. If it is back in use, nothing is promised any more.
    pub(crate) fn will_be_free(&mut self, slot: Slot, now: i64) -> bool {
        let machine = &self.table.row(slot).machine;
        let is_going = machine.state == MachineState::Draining && machine.draining_for.is_none();
        if is_going {
            self.owned.promised.entry(slot).or_insert(now);
        } else {
            self.owned.promised.remove(&slot);
        }
        is_going
    }

    /// Promises that nobody asked to be kept in time, or that cannot be, lapse.
    pub(crate) fn promises_lapse(&mut self, now: i64) {
        if self.owned.promised.is_empty() {
            return;
        }
        let mut shown = Vec::new();
        let (table, timers) = (&self.table, &mut self.timers);
        self.owned.promised.retain(|slot, since| {
            let Some(row) = table.get(*slot) else { return false };
            let is_idle = row.machine.state == MachineState::Idle && row.flight.is_none();
            let from = if is_idle { row.since.max(*since) } else { now };
            let stays = match row.machine.state {
                MachineState::Draining | MachineState::Idle => now < from + PROMISED,
                _ => false,
            };
            if !stays {
                shown.push(*slot);
            } else if is_idle && !timers.has(from + PROMISED, Timer::Wake) {
                timers.set(from + PROMISED, Timer::Wake);
            }
            stays
        });
        for slot in shown {
            self.show(slot);
        }
    }
}

/// Machines that were promised to another shard, and since when.
pub(crate) type Promised = BTreeMap<Slot, i64>;
