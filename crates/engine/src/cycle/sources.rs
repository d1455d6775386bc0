//! What every step of a cycle reads, and the questions all of them ask of it.

use crate::classes::{Classes, RequirementSets};
use crate::index::Index;
use crate::inventory::Inventory;
use crate::needs::Demand;
use crate::vocab::Vocabulary;

/// What every step of a cycle reads.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) vocab: &'a Vocabulary,
    pub(crate) inventory: &'a Inventory,
    pub(crate) index: &'a Index,
    pub(crate) classes: &'a Classes,
    pub(crate) sets: &'a RequirementSets,
}

impl Sources<'_> {
    /// Whether machines of a class count for a need.
    #[inline]
    pub(crate) fn counts(&self, class: u32, demand: &Demand) -> bool {
        self.sets.admits(demand.requirements).contains(class) && self.classes.covers(class, &demand.min_unit)
    }

    /// The machines draining on behalf of a need that count for it, by id.
    pub(crate) fn draining_for(&self, demand: &Demand) -> Vec<u32> {
        if !self.index.holdings.is_any_draining() {
            return Vec::new();
        }
        let lists = demand.own_keys().flat_map(|key| self.index.holdings.draining(key)).copied();
        let counting = lists.filter(|m| self.counts(self.class_of(*m), demand));
        let mut draining: Vec<u32> = counting.collect();
        if !demand.members.is_empty() {
            draining.sort_unstable_by_key(|machine| self.inventory.row(*machine).order);
        }
        draining
    }

    #[inline]
    pub(crate) fn class_of(&self, machine: u32) -> u32 {
        self.classes.of_kind(self.inventory.row(machine).kind)
    }

    /// The domain a machine lies in, or [`NONE`].
    #[inline]
    pub(crate) fn domain_of(&self, domain: usize, machine: u32) -> u32 {
        self.classes.domain_of_kind(domain, self.inventory.row(machine).kind)
    }
}
