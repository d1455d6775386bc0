//! Supply sets: the classes that count for a need.
//!
//! Many requirement sets and minimum units admit the same classes, because machines come in few sizes. The
//! sets are told apart by what they admit, so that needs with different wording share one candidate order.

use crate::bits::Bits;
use crate::classes::{Classes, RequirementSets};
use crate::intern::{Map, NONE};
use crate::needs::Demand;
use crate::vocab::Amounts;

/// So many wordings are kept without a second thought.
const WORDINGS_FLOOR: usize = 1 << 14;

/// The classes that count for some needs.
#[derive(Clone)]
pub(crate) struct SupplySet {
    pub(crate) members: Bits,
    /// Shape by shape.
    pub(crate) classes: Vec<u32>,
    /// Their shapes, in order.
    pub(crate) shapes: Vec<ShapeOfSet>,
}

/// The classes of a set that have one shape.
#[derive(Clone, Copy)]
pub(crate) struct ShapeOfSet {
    shape: u32,
    /// One of them.
    pub(crate) class: u32,
    start: u32,
    end: u32,
}

impl SupplySet {
    /// A set of these classes, which stand shape by shape.
    fn new(members: Bits, classes: Vec<u32>, all: &Classes) -> Self {
        let mut shapes = Vec::new();
        let mut start = 0;
        for alike in classes.chunk_by(|a, b| all.shape(*a) == all.shape(*b)) {
            let end = start + alike.len() as u32;
            shapes.push(ShapeOfSet { shape: all.shape(alike[0]), class: alike[0], start, end });
            start = end;
        }
        Self { members, classes, shapes }
    }

    /// The classes of the shape at a place.
    pub(crate) fn of_shape(&self, place: usize) -> &[u32] {
        let ShapeOfSet { start, end, .. } = self.shapes[place];
        &self.classes[start as usize..end as usize]
    }

    /// The place of a shape the set has.
    pub(crate) fn place_of_shape(&self, shape: u32) -> usize {
        self.shapes
            .binary_search_by_key(&shape, |one| one.shape)
            .expect("a member's shape is among the shapes")
    }
}

/// All supply sets asked for while the classes stay as they are.
#[derive(Clone, Default)]
pub(crate) struct SupplySets {
    sets: Vec<SupplySet>,
    by_members: Map<Bits, u32>,
    by_wording: Map<(u32, Amounts), u32>,
    /// All classes, shape by shape.
    by_shape: Vec<u32>,
    classes: usize,
    generation: u64,
    /// Grows whenever sets are numbered anew.
    stamp: u64,
}

impl SupplySets {
    /// Forgets everything if the classes changed, or if most wordings seem to be of needs long gone.
    pub(crate) fn refresh(&mut self, classes: &Classes, generation: u64, needs: usize) {
        let outgrown = self.by_wording.len() > WORDINGS_FLOOR + 2 * needs;
        if outgrown || (self.classes, self.generation) != (classes.len(), generation) {
            let stamp = self.stamp + 1;
            *self = Self { classes: classes.len(), generation, stamp, ..Self::default() };
        }
    }

    /// Which numbering of sets this is.
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// The number of the set of a need.
    pub(crate) fn number(&mut self, demand: &Demand, classes: &Classes, sets: &RequirementSets) -> u32 {
        let wording = (demand.requirements, Amounts::from_slice(&demand.min_unit));
        if let Some(number) = self.by_wording.get(&wording) {
            return *number;
        }
        let admitted = sets.admits(demand.requirements);
        if self.by_shape.len() != classes.len() {
            self.by_shape = classes.by_shape();
        }
        let (mut counting, mut members) = (Vec::new(), Bits::with_bound(classes.len()));
        // Whether a machine is large enough depends on its shape.
        let (mut shape, mut is_large_enough) = (NONE, false);
        for class in self.by_shape.iter().copied().filter(|class| admitted.contains(*class)) {
            if classes.shape(class) != shape {
                (shape, is_large_enough) = (classes.shape(class), classes.covers(class, &demand.min_unit));
            }
            if is_large_enough {
                members.insert(class);
                counting.push(class);
            }
        }
        let next = self.sets.len() as u32;
        let number = *self.by_members.entry(members.clone()).or_insert(next);
        if number == next {
            self.sets.push(SupplySet::new(members, counting, classes));
        }
        self.by_wording.insert(wording, number);
        number
    }

    pub(crate) fn get(&self, number: u32) -> &SupplySet {
        &self.sets[number as usize]
    }
}
