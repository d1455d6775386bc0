//! Who claims which machine, and whether a preemptor may touch it.

use crate::inventory::Inventory;
use crate::options::Options;

use super::credit::Credit;

/// The priority of the need that claims each bound machine. Kept from cycle to cycle once it is needed.
#[derive(Clone, Default)]
pub(crate) struct Claimants {
    priority: Vec<i64>,
    active: bool,
}

impl Claimants {
    /// Stands for no claim: below every priority.
    pub(crate) const UNCLAIMED: i64 = i64::MIN;

    /// Whether claims are being followed.
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// Starts following claims.
    pub(crate) fn activate(&mut self, machines: usize, credits: impl Iterator<Item = impl AsRef<Credit>>) {
        self.active = true;
        self.priority = vec![Self::UNCLAIMED; machines];
        credits.for_each(|credit| self.enter(credit.as_ref()));
    }

    /// Forgets all claims, when machines changed their numbers or everything was built anew.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn enter(&mut self, credit: &Credit) {
        (0..credit.rows.len() as u32).for_each(|row| self.enter_row(credit, row));
    }

    /// Enters the claims of one need.
    pub(crate) fn enter_row(&mut self, credit: &Credit, row: u32) {
        let priority = i64::from(credit.rows[row as usize].priority());
        for machine in credit.claims_of(row as usize) {
            let at = *machine as usize;
            if self.priority.len() <= at {
                self.priority.resize(at + 1, Self::UNCLAIMED);
            }
            self.priority[at] = priority;
        }
    }

    /// Forgets the claims of one need.
    pub(crate) fn leave_row(&mut self, credit: &Credit, row: u32) {
        for machine in credit.claims_of(row as usize) {
            self.priority[*machine as usize] = Self::UNCLAIMED;
        }
    }

    pub(crate) fn leave(&mut self, credit: &Credit) {
        credit.claims().for_each(|(_, machine)| self.priority[machine as usize] = Self::UNCLAIMED);
    }

    /// The priority of the need that claims a machine; the least there is for none.
    pub(crate) fn of(&self, machine: u32) -> i64 {
        self.priority.get(machine as usize).copied().unwrap_or(Self::UNCLAIMED)
    }
}

/// What phase 2 reads besides the fleet.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    pub(crate) options: &'a Options,
    pub(crate) claimants: &'a Claimants,
    /// By cluster, whether it has reported: the machines of one that has not rank as claimed.
    pub(crate) ready: &'a [bool],
}

impl Rules<'_> {
    /// Whether a machine a need of this priority may take counts as claimed; `None` if it may not take it.
    #[inline]
    pub(crate) fn is_claimed(&self, machine: u32, inventory: &Inventory, preemptor: i32) -> Option<bool> {
        match self.claimants.of(machine) {
            Claimants::UNCLAIMED => Some(!self.ready[inventory.row(machine).cluster as usize]),
            claim => (claim < i64::from(preemptor)).then_some(true),
        }
    }
}
