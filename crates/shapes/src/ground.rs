//! What a fleet is made on: the offers, the requirement sets and the floor.

use crate::floor::Floor;
use crate::offer::Offer;
use crate::sets::{RequirementSet, Sets};

/// The first three things drawn, on which all else stands.
pub(crate) struct Ground {
    pub(crate) offers: Vec<Offer>,
    pub(crate) sets: Sets,
    pub(crate) floor: Floor,
}

impl Ground {
    /// The offer of a slot.
    pub(crate) fn offer(&self, slot: usize) -> &Offer {
        &self.offers[self.floor.slots[slot].offer as usize]
    }

    /// The requirement set with this number.
    pub(crate) fn set(&self, number: u32) -> &RequirementSet {
        &self.sets.all[number as usize]
    }
}
