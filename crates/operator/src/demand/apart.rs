//! Requests of one profile that no machine for the others would hold are asked for apart.
//!
//! On the wire a row has one smallest unit, the largest of its pieces in each dimension, and only machines that hold it
//! count. So one pod that asks for more than any machine has would keep all pods of its profile waiting, and take from the
//! row the machines they run on. The shard says which machines a short row could use if its pieces were smaller; pieces
//! that fit there stay in the row, and the others move to a row of their own, by a requirement that every machine meets
//! and that makes it another profile:
//!
//! ```text
//!   row            cpu 8 at most           stays, and is served
//!   row, NotIn 1   cpu 64 at most          moved once
//!   row, NotIn 2   cpu 1000                moved twice; nothing holds it, and nobody waits with it
//! ```
//!
//! Requests only ever move upwards, so it ends: after [`MOST_LEVELS`] moves at the latest. They stay apart as long as any
//! of them is there, and rows are whole again when the last has gone. Gangs and strictly spread rows are left whole: their
//! pods are for each other.

use std::sync::Arc;

use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::{Operator, Requirement};
use bigfleet_model::resource::ResourceVec;

use super::unit::UnitId;
use super::{Demand, Entry, RowId};
use crate::ask::Ask;

/// The label that tells such rows apart. No machine has it.
pub const APART: &str = "bigfleet.lucy.sh/apart";

/// How often requests of one profile may be set apart.
const MOST_LEVELS: usize = 8;

/// The largest pieces each level takes. What none takes goes behind the last.
#[derive(Debug, Default)]
pub(super) struct Ceilings {
    by_level: Vec<ResourceVec>,
    /// Rows behind the first level: without one there is nothing to keep apart.
    rows: usize,
}

/// A profile at a level.
pub(super) fn profile(plain: Profile, level: usize) -> Profile {
    if level == 0 {
        return plain;
    }
    let mark = Requirement::new(APART, Operator::NotIn, [level.to_string().as_str()]);
    let requirements = plain.requirements().iter().cloned().chain([mark]).collect();
    let (interruption, reclamation) = (plain.interruption(), plain.reclamation());
    Profile::new(requirements, plain.spread().to_vec(), plain.priority(), interruption, reclamation)
}

impl Demand {
    /// The level a request is asked for at.
    pub(super) fn level_of(&self, ask: &Ask) -> usize {
        if self.ceilings.is_empty() || !ask.group.is_empty() {
            return 0;
        }
        self.ceilings.get(ask.profile.fingerprint()).map_or(0, |ceilings| ceilings.level(&ask.unit))
    }

    pub(super) fn row_made(&mut self, row: &super::Row) {
        if row.level > 0 {
            self.ceilings.entry(row.base.clone()).or_default().rows += 1;
        }
    }

    pub(super) fn row_gone(&mut self, base: &str, level: usize) {
        if level > 0
            && let Some(ceilings) = self.ceilings.get_mut(base)
        {
            ceilings.rows -= 1;
            if ceilings.rows == 0 {
                self.ceilings.remove(base);
            }
        }
    }

    /// Sets requests apart that are too large for these machines, if the row has others that are not. The machines that hold
    /// most of its requests decide. False if the row stays as it is.
    pub fn set_apart(&mut self, row: RowId, sizes: &[ResourceVec]) -> bool {
        let Some(held) = self.rows.get(&row) else { return false };
        let is_whole = !held.group.is_empty() || held.profile.strict_spread().is_some();
        if is_whole || held.level >= MOST_LEVELS {
            return false;
        }
        let all: u64 = held.units.values().map(|count| u64::from(*count)).sum();
        let held_by = |size: &ResourceVec| -> u64 {
            let fitting = held.units.iter().filter(|(unit, _)| size.covers(self.units.get(**unit)));
            fitting.map(|(_, count)| u64::from(*count)).sum()
        };
        // Of equals the first: the shard names larger ones before smaller ones.
        let most = sizes.iter().rev().map(|size| (held_by(size), size)).max_by_key(|(count, _)| *count);
        let Some((_, size)) = most.filter(|(count, _)| *count > 0 && *count < all) else { return false };
        let (base, level) = (held.base.clone(), held.level);
        let ceilings = self.ceilings.entry(base.clone()).or_default();
        match ceilings.by_level.get_mut(level) {
            // It only ever sinks, so that nothing moves back down.
            Some(ceiling) => *ceiling = smaller(ceiling, size),
            None => ceilings.by_level.push(size.clone()),
        }
        self.move_up(row, &base, size);
        self.revision += 1;
        true
    }

    /// Moves the requests of a row that a size does not hold.
    fn move_up(&mut self, row: RowId, base: &Arc<str>, size: &ResourceVec) {
        let plain = self.plain_profile(row);
        let is_too_large = |unit: UnitId| !size.covers(self.units.get(unit));
        let leaving: Vec<(Box<str>, UnitId, bool)> = self
            .requests
            .iter()
            .filter_map(|(name, entry)| match entry {
                Entry::Good { row: of, unit, aside } if *of == row && is_too_large(*unit) => {
                    Some((name.clone(), *unit, *aside))
                }
                _ => None,
            })
            .collect();
        for (name, unit, aside) in leaving {
            let level = self.ceilings[base].level(self.units.get(unit));
            let to = self.row(plain.clone(), Arc::from(""), level);
            self.rows.get_mut(&to).expect("just found").add(unit, aside);
            self.rows.get_mut(&row).expect("some of it stay").take(unit, aside);
            self.requests.insert(name, Entry::Good { row: to, unit, aside });
        }
    }

    /// The profile of a row without what sets it apart.
    fn plain_profile(&self, row: RowId) -> Profile {
        let profile = &self.rows[&row].profile;
        let plain = profile.requirements().iter().filter(|requirement| requirement.key() != APART).cloned();
        let (interruption, reclamation) = (profile.interruption(), profile.reclamation());
        Profile::new(
            plain.collect(),
            profile.spread().to_vec(),
            profile.priority(),
            interruption,
            reclamation,
        )
    }
}

impl Ceilings {
    fn level(&self, unit: &ResourceVec) -> usize {
        let fits = self.by_level.iter().position(|ceiling| ceiling.covers(unit));
        fits.unwrap_or(self.by_level.len())
    }
}

/// The smaller amount in each dimension.
fn smaller(a: &ResourceVec, b: &ResourceVec) -> ResourceVec {
    let amounts = a.iter().map(|(name, amount)| (name.clone(), amount.min(b.get(name))));
    ResourceVec::new(amounts).expect("each name once, none larger than before")
}

#[cfg(test)]
mod tests;
