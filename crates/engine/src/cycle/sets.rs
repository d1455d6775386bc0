//! Supply sets: the classes that count for a need.
//!
//! Many requirement sets and minimum units admit the same classes, because machines come in few sizes. The
//! sets are told apart by what they admit, so that needs with different wording share one candidate order.

use crate::bits::Bits;
use crate::classes::{Classes, RequirementSets};
use crate::intern::Map;
use crate::needs::Demand;
use crate::vocab::{Amounts, Dim};

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

/// The shapes of all classes.
#[derive(Clone, Default)]
struct Shapes {
    /// Shape by shape in order, one of its classes.
    classes: Vec<u32>,
    /// By class, the place of its shape.
    of_class: Vec<u32>,
}

impl Shapes {
    fn new(classes: &Classes) -> Self {
        let mut shapes = Self { classes: Vec::new(), of_class: vec![0; classes.len()] };
        for class in classes.by_shape() {
            if shapes.classes.last().is_none_or(|last| classes.shape(*last) != classes.shape(class)) {
                shapes.classes.push(class);
            }
            shapes.of_class[class as usize] = shapes.classes.len() as u32 - 1;
        }
        shapes
    }

    fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// The classes of those admitted that hold a smallest unit, shape by shape, and the same as a set.
    fn counting(&self, admitted: &Bits, min_unit: &[(Dim, u64)], all: &Classes) -> (Vec<u32>, Bits) {
        // Whether a machine is large enough depends on its shape.
        let is_large = |class: &u32| all.covers(*class, min_unit);
        let large: Vec<bool> = self.classes.iter().map(is_large).collect();
        let mut ends = vec![0; self.classes.len() + 1];
        let mut members = Bits::with_bound(all.len());
        let shape_of = |class: u32| self.of_class[class as usize] as usize;
        for class in admitted.iter().filter(|class| large[shape_of(*class)]) {
            members.insert(class);
            ends[shape_of(class) + 1] += 1;
        }
        for shape in 1..ends.len() {
            ends[shape] += ends[shape - 1];
        }
        let mut counting = vec![0; ends[self.classes.len()]];
        for class in members.iter() {
            let next = &mut ends[shape_of(class)];
            counting[*next] = class;
            *next += 1;
        }
        (counting, members)
    }
}

/// All supply sets asked for while the classes stay as they are.
#[derive(Clone, Default)]
pub(crate) struct SupplySets {
    sets: Vec<SupplySet>,
    by_members: Map<Bits, u32>,
    by_wording: Map<(u32, Amounts), u32>,
    shapes: Shapes,
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
        if self.shapes.is_empty() {
            self.shapes = Shapes::new(classes);
        }
        let (counting, members) = self.shapes.counting(admitted, &demand.min_unit, classes);
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
