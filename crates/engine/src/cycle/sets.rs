//! Supply sets: the classes that count for a need.
//!
//! Many requirement sets and minimum units admit the same classes, because machines come in few sizes. The
//! sets are told apart by what they admit, so that needs with different wording share one candidate order.

use crate::bits::Bits;
use crate::classes::{Classes, RequirementSets};
use crate::intern::Map;
use crate::needs::Demand;
use crate::vocab::Amounts;

/// So many wordings are kept without a second thought.
const WORDINGS_FLOOR: usize = 1 << 14;

/// The classes that count for some needs.
#[derive(Clone)]
pub(crate) struct SupplySet {
    pub(crate) members: Bits,
    pub(crate) classes: Vec<u32>,
}

/// All supply sets asked for while the classes stay as they are.
#[derive(Clone, Default)]
pub(crate) struct SupplySets {
    sets: Vec<SupplySet>,
    by_members: Map<Bits, u32>,
    by_wording: Map<(u32, Amounts), u32>,
    classes: usize,
    generation: u64,
}

impl SupplySets {
    /// Forgets everything if the classes changed, or if most wordings seem to be of needs long gone.
    pub(crate) fn refresh(&mut self, classes: &Classes, generation: u64, needs: usize) {
        let outgrown = self.by_wording.len() > WORDINGS_FLOOR + 2 * needs;
        if outgrown || (self.classes, self.generation) != (classes.len(), generation) {
            *self = Self { classes: classes.len(), generation, ..Self::default() };
        }
    }

    /// The number of the set of a need.
    pub(crate) fn number(&mut self, demand: &Demand, classes: &Classes, sets: &RequirementSets) -> u32 {
        let wording = (demand.requirements, Amounts::from_slice(&demand.min_unit));
        if let Some(number) = self.by_wording.get(&wording) {
            return *number;
        }
        let admitted = sets.admits(demand.requirements);
        let counting: Vec<u32> =
            admitted.iter().filter(|class| classes.covers(*class, &demand.min_unit)).collect();
        let members: Bits = counting.iter().copied().collect();
        let next = self.sets.len() as u32;
        let number = *self.by_members.entry(members.clone()).or_insert(next);
        if number == next {
            self.sets.push(SupplySet { members, classes: counting });
        }
        self.by_wording.insert(wording, number);
        number
    }

    pub(crate) fn get(&self, number: u32) -> &SupplySet {
        &self.sets[number as usize]
    }
}
