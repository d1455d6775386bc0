//! Supply quotas: how many machines of a kind this shard may hold. Slots beyond that are no supply for it.
//!
//! Held is what is not a slot any more, on its way or not. As many slots as there is room for are shown to the engine, the
//! first ones in the order in which they were met, so that using one of them does not change which others are shown. Nothing
//! is ever taken away by a quota: one that was lowered below what is held shows no slot.
//!
//! Settled again before a cycle, and only if something that counts changed since; a shard without quotas does nothing here.

use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::{Machine, MachineState};

use crate::effect::Step;
use crate::memory::Fact;
use crate::planted::Bug;
use crate::shard::Shard;
use crate::table::Slot;

/// How many machines of a kind may be held. What is empty means all together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quota {
    /// At which provider.
    pub provider: Box<str>,
    /// Of which instance type.
    pub instance_type: Box<str>,
    /// In which zone.
    pub zone: Box<str>,
    /// Of which capacity type.
    pub capacity_type: Option<CapacityType>,
    /// How many.
    pub machines: u32,
}

impl Quota {
    fn covers(&self, provider: &str, machine: &Machine) -> bool {
        let is = |wanted: &str, there: &str| wanted.is_empty() || wanted == there;
        *self.provider == *provider
            && is(&self.instance_type, &machine.instance_type)
            && is(&self.zone, &machine.zone)
            && self.capacity_type.is_none_or(|kind| kind == machine.capacity_type)
    }
}

/// Quotas, and whether the slots that are shown must be settled again.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    pub(crate) all: Arc<[Quota]>,
    pub(crate) is_due: bool,
}

impl Quotas {
    pub(crate) fn recall(quotas: Arc<[Quota]>) -> Self {
        Self { is_due: !quotas.is_empty(), all: quotas }
    }
}

impl Shard {
    /// The quotas that are kept to.
    pub fn quotas(&self) -> &[Quota] {
        &self.quotas.all
    }

    /// Keeps to these quotas from now on, and in lives to come.
    pub fn set_quotas(&mut self, mut quotas: Vec<Quota>, step: &mut Step) {
        quotas.sort();
        if *self.quotas.all != *quotas {
            self.quotas.all = quotas.into();
            self.quotas.is_due = true;
            self.news.supply = true;
            step.facts.push(Fact::Quotas(self.quotas.all.clone()));
        }
    }

    /// A machine became a slot, or ceased to be one, or is new or gone.
    pub(crate) fn note_for_quotas(&mut self) {
        self.quotas.is_due |= !self.quotas.all.is_empty();
    }

    /// Shows as many slots as there is room for.
    pub(crate) fn settle_quotas(&mut self) {
        if !std::mem::take(&mut self.quotas.is_due) || self.config.has(Bug::QuotaForgotten) {
            return;
        }
        let all = self.quotas.all.clone();
        let mut room: Vec<u32> = all.iter().map(|quota| quota.machines).collect();
        let covering = |shard: &Self, slot: Slot| -> Vec<usize> {
            let row = shard.table.row(slot);
            let provider = &shard.providers[usize::from(row.provider.0)].name;
            (0..all.len()).filter(|place| all[*place].covers(provider, &row.machine)).collect()
        };
        let is_slot = |slot: &Slot| self.table.row(*slot).machine.state == MachineState::Speculative;
        let (slots, held): (Vec<Slot>, Vec<Slot>) =
            self.table.iter().map(|(slot, _)| slot).partition(is_slot);
        for slot in held {
            for quota in covering(self, slot) {
                room[quota] = room[quota].saturating_sub(1);
            }
            self.set_beyond(slot, false);
        }
        for slot in slots {
            let quotas = covering(self, slot);
            let has_room = quotas.iter().all(|quota| room[*quota] > 0);
            if has_room {
                for quota in quotas {
                    room[quota] -= 1;
                }
            }
            self.set_beyond(slot, !has_room);
        }
    }

    fn set_beyond(&mut self, slot: Slot, is_beyond: bool) {
        let row = self.table.row_mut(slot);
        if row.is_beyond_quota != is_beyond {
            row.is_beyond_quota = is_beyond;
            self.show(slot);
        }
    }
}
