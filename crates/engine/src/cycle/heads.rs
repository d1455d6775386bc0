//! The best machine left in each class, shared by everybody who takes in the same order.
//!
//! Thousands of needs take machines in the same order (all by price, or all by the victim score of one
//! priority) and differ only in the classes they admit. So each class keeps its own place in that order, moved
//! forward once for all, and a need's candidates are a heap of classes instead of a merge of all their lots.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use smallvec::SmallVec;

use crate::intern::NONE;
use crate::inventory::Inventory;
use crate::lots::Lots;

/// A machine and its place in an order: by cost, then id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Head {
    pub(crate) cost: u64,
    pub(crate) order: u64,
    pub(crate) machine: u32,
    pub(crate) class: u32,
}

/// The lots of one class in one order.
#[derive(Clone)]
struct Run {
    /// Cost, lot, and how many of its machines are done with; in order of cost.
    lots: SmallVec<[(u64, u32, u32); 4]>,
    /// The first lot that may have something left.
    first: usize,
    head: Option<Head>,
}

/// The best machine left in each class, for one order.
#[derive(Clone, Default)]
pub(crate) struct Heads {
    runs: Vec<Run>,
    /// Where the run of each class is, or [`NONE`]: most orders are asked about few classes.
    of_class: Vec<u32>,
}

/// What an order is made of: the lots, what each rank costs (`None` leaves it out), and who is left out.
pub(crate) struct Order<'a, C, S> {
    pub(crate) lots: &'a Lots,
    pub(crate) inventory: &'a Inventory,
    pub(crate) cost: C,
    pub(crate) skip: S,
}

impl Heads {
    /// The best machine left in a class.
    fn head<C, S>(&mut self, class: u32, order: &Order<'_, C, S>) -> Option<Head>
    where
        C: Fn(u32) -> Option<u64>,
        S: Fn(u32) -> bool,
    {
        if self.of_class.len() <= class as usize {
            self.of_class.resize(class as usize + 1, NONE);
        }
        let place = &mut self.of_class[class as usize];
        if *place == NONE {
            *place = self.runs.len() as u32;
            self.runs.push(Run::new(class, order));
        }
        let run = &mut self.runs[*place as usize];
        match run.head {
            Some(head) if (order.skip)(head.machine) => run.advance(class, order),
            head => head,
        }
    }
}

impl Run {
    fn new<C, S>(class: u32, order: &Order<'_, C, S>) -> Self
    where
        C: Fn(u32) -> Option<u64>,
        S: Fn(u32) -> bool,
    {
        let lots = order.lots.of_class(class).iter().filter_map(|number| {
            let lot = &order.lots.lots[*number as usize];
            if lot.machines.is_empty() { None } else { Some(((order.cost)(lot.rank)?, *number, 0)) }
        });
        let mut lots: SmallVec<_> = lots.collect();
        lots.sort_unstable();
        let mut run = Self { lots, first: 0, head: None };
        run.advance(class, order);
        run
    }

    /// Moves on to the best machine that is not skipped. Skipped machines stay skipped.
    fn advance<C, S>(&mut self, class: u32, order: &Order<'_, C, S>) -> Option<Head>
    where
        S: Fn(u32) -> bool,
    {
        self.head = None;
        while self.head.is_none() && self.first < self.lots.len() {
            let cost = self.lots[self.first].0;
            // Lots of equal cost are taken by id across them.
            let equal = self.lots[self.first..].iter_mut().take_while(|(other, ..)| *other == cost);
            let mut count = 0;
            for (_, lot, done) in equal {
                count += 1;
                let rest = &order.lots.lots[*lot as usize].machines[*done as usize..];
                let ahead = rest.iter().position(|machine| !(order.skip)(*machine)).unwrap_or(rest.len());
                *done += ahead as u32;
                let Some(machine) = rest.get(ahead).copied() else { continue };
                let head = Head { cost, order: order.inventory.row(machine).order, machine, class };
                self.head = Some(self.head.map_or(head, |best| best.min(head)));
            }
            if self.head.is_none() {
                self.first += count;
            }
        }
        self.head
    }
}

/// The candidates of needs that admit the same classes: the classes, best first.
#[derive(Clone)]
pub(crate) struct Stream {
    heap: BinaryHeap<Reverse<Head>>,
    aside: Vec<Reverse<Head>>,
}

impl Stream {
    pub(crate) fn new<C, S>(
        classes: impl Iterator<Item = u32>,
        heads: &mut Heads,
        order: &Order<'_, C, S>,
    ) -> Self
    where
        C: Fn(u32) -> Option<u64>,
        S: Fn(u32) -> bool,
    {
        let heap: Vec<_> = classes.filter_map(|class| heads.head(class, order)).map(Reverse).collect();
        Self { heap: heap.into(), aside: Vec::new() }
    }

    /// The best machine left. It stays the best until it is skipped or its class is set aside.
    pub(crate) fn best<C, S>(&mut self, heads: &mut Heads, order: &Order<'_, C, S>) -> Option<Head>
    where
        C: Fn(u32) -> Option<u64>,
        S: Fn(u32) -> bool,
    {
        loop {
            let mut top = self.heap.peek_mut()?;
            match heads.head(top.0.class, order) {
                None => {
                    PeekMut::pop(top);
                }
                Some(head) if head == top.0 => return Some(head),
                Some(head) => top.0 = head,
            }
        }
    }

    /// Leaves the best machine's class out until [`Self::restore`]: its machines add nothing right now.
    pub(crate) fn set_aside(&mut self) {
        self.aside.extend(self.heap.pop());
    }

    /// Takes the classes set aside back in.
    pub(crate) fn restore(&mut self) {
        self.heap.extend(self.aside.drain(..));
    }
}
