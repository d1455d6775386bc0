//! What this shard can spare for one that is short. The donor picks, because only it can tell.
//!
//! Nothing is given that a need of ours keeps, and nothing at all while a need of ours that is as important is short itself:
//! then the machine would be missed here as much as there.

use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::requirement::Requirement;
use bigfleet_model::resource::ResourceVec;

use crate::planted::Bug;
use crate::shard::Shard;
use crate::table::{Care, Slot};

/// At most so many machines are given at once.
const MOST_GIVEN: usize = 80;

/// What another shard is short of.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Whether slots that are not used are asked for, instead of machines that idle.
    pub slots: bool,
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
    /// Picks what can be spared: the dearest to hold first, as much as is missing, nothing if we are short ourselves.
    pub fn spare(&self, wanted: &Wanted) -> Vec<Spared> {
        let is_short = self.ledger.iter().any(|(_, short)| short.demand.priority() >= wanted.priority);
        if self.last_cycle.is_none() || is_short && !self.config.has(Bug::GivesWhileShort) {
            return Vec::new();
        }
        let state = if wanted.slots { MachineState::Speculative } else { MachineState::Idle };
        let fits = |machine: &Machine| {
            machine.state == state
                && wanted.requirements.iter().all(|requirement| requirement.matches(machine.facts()))
                && wanted.deficit.iter().any(|(name, _)| machine.provides().get(name) > 0)
        };
        let able = self.table.iter().filter(|(slot, row)| {
            row.care == Care::Fine && row.shown && fits(&row.machine) && self.may_give(*slot)
        });
        let mut able: Vec<(Slot, &Machine)> = able.map(|(slot, row)| (slot, &*row.machine)).collect();
        // Cheap ones are worth more to those who stay: what costs more is given first.
        able.sort_by(|(_, a), (_, b)| {
            b.price_usd_per_hour.total_cmp(&a.price_usd_per_hour).then_with(|| a.id.cmp(&b.id))
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
        let machine = &self.table.row(slot).machine;
        let is_leaving = self.owned.leaving.contains(&slot);
        !is_leaving && self.is_free(slot) && self.engine.demand_claiming(&machine.id).is_none()
    }
}
