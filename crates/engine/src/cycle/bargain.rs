//! Bargain order: free machines by what a share of the demand costs, judged anew after each pick.
//!
//! What counts is the cheapest *set* that covers a need, not the cheapest machines. A machine is worth the share of the
//! demand it adds; as less is missing, shares only fall and costs per share only rise, so ranks only rise, and a heap
//! that looks again at its best entry before believing it is exact.
//!
//! Machines of one shape add the same share, so only the best of each shape need be ranked. What is free anywhere lies
//! in a [stock](super::stock). Where domains matter, a *line* holds the cells of one shape in one domain, best first;
//! prices so close that their order may depend on ids lie in different lines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use smallvec::SmallVec;

use crate::amounts::{contributes, subtract};
use crate::bits::Bits;
use crate::classes::Classes;
use crate::intern::Map;
use crate::lots::{Domain, Shelved};
use crate::needs::Demand;
use crate::vocab::{Amounts, Dim};

use super::prices::{Asking, Tier};

/// Marks a Speculative machine in [`Head::order`]: after every Idle one of the same price.
pub(crate) const SPECULATIVE: u64 = 1 << 63;

/// The best machine left in a list. Orders by price, Idle first, then id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Head {
    pub(crate) cost: u64,
    /// The machine's place in the order of ids, with [`SPECULATIVE`].
    pub(crate) order: u64,
    pub(crate) list: u32,
    pub(crate) at: u32,
    pub(crate) machine: u32,
}

/// The lists of one shape, in one domain or wherever they are.
#[derive(Clone)]
pub(crate) struct Line {
    /// A class of the shape.
    pub(crate) class: u32,
    /// The domain, where it matters.
    pub(crate) value: u32,
    heap: BinaryHeap<Reverse<Head>>,
}

/// Lines by shape, colour and domain.
#[derive(Clone, Default)]
pub(crate) struct Lines {
    pub(crate) lines: Vec<Line>,
    by_key: Map<(u32, u32, u32), u32>,
}

impl Lines {
    /// Adds a list.
    pub(crate) fn enter(&mut self, class: u32, colour: u32, value: u32, head: Head, classes: &Classes) {
        let next = self.lines.len() as u32;
        let line = *self.by_key.entry((classes.shape(class), colour, value)).or_insert(next);
        if line == next {
            self.lines.push(Line { class, value, heap: BinaryHeap::new() });
        }
        self.lines[line as usize].heap.push(Reverse(head));
    }
}

/// A pick: the machine, its class, and its price.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    pub(crate) machine: u32,
    pub(crate) class: u32,
    pub(crate) cost: u64,
}

/// The share of a demand that a machine adds to what is missing of it.
pub(crate) fn share(provides: &[u64], demanded: &[(Dim, u64)], missing: &[(Dim, u64)]) -> f64 {
    let mut sum = 0.0;
    for ((dim, amount), (_, left)) in demanded.iter().zip(missing) {
        if *left > 0 {
            sum += provides[*dim as usize].min(*left) as f64 / *amount as f64;
        }
    }
    sum
}

/// The size of a machine, in shares of a demand.
fn size(provides: &[u64], demanded: &[(Dim, u64)]) -> f64 {
    demanded.iter().fold(0.0, |sum, (dim, amount)| sum + provides[*dim as usize] as f64 / *amount as f64)
}

/// The place of a machine in bargain order. Shares and prices are not negative, so their bits order like they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    tier: Tier,
    per_share: u64,
    speculative: bool,
    share: Reverse<u64>,
    size: u64,
    order: u64,
}

impl Rank {
    /// The rank of a machine that asks this much, provides this much and has this place in the order of ids. `None` if
    /// it adds nothing to what is missing.
    pub(crate) fn of(
        (tier, asking, speculative): (Tier, f64, bool),
        provides: &[u64],
        demand: &Demand,
        missing: &[(Dim, u64)],
        order: u64,
    ) -> Option<Self> {
        let share = share(provides, &demand.aggregate, missing);
        (share > 0.0).then(|| Self {
            tier,
            per_share: (asking / share).to_bits(),
            speculative,
            share: Reverse(share.to_bits()),
            size: size(provides, &demand.aggregate).to_bits(),
            order,
        })
    }

    /// The same rank for a machine with this place in the order of ids.
    pub(crate) fn with_order(self, order: u64) -> Self {
        Self { order, ..self }
    }

    /// The share of the demand it adds.
    pub(crate) fn share(&self) -> f64 {
        f64::from_bits(self.share.0)
    }

    /// The first parts of it, tier and price of a share, as a number that orders alike.
    pub(crate) fn key(&self) -> u64 {
        let Self { tier, per_share, speculative, .. } = *self;
        Asking { tier, usd_per_hour: f64::from_bits(per_share), speculative }.key()
    }
}

/// Tells, for a fraction of what ranking costs, that a machine cannot come before some place in bargain order. Of dozens of shapes
/// a need is offered few are worth a rank.
pub(crate) struct Estimate {
    /// The dimensions of the demand, and one over the amount.
    inverse: SmallVec<[(Dim, f64); 4]>,
}

impl Estimate {
    pub(crate) fn new(demand: &Demand) -> Self {
        let inverse = |amount: u64| if amount == 0 { 0.0 } else { 1.0 / amount as f64 };
        Self { inverse: demand.aggregate.iter().map(|(dim, amount)| (*dim, inverse(*amount))).collect() }
    }

    /// A number not above the [`Rank::key`] of machines that provide this and ask no less than `cost` says; `None` if they add
    /// nothing to what is missing.
    pub(crate) fn key(&self, provides: &[u64], missing: &[(Dim, u64)], cost: u64) -> Option<u64> {
        // Sums of millions of rounded numbers are closer to each other than this.
        const SLACK: f64 = 1e-9;
        let mut share = 0.0;
        for ((dim, inverse), (_, left)) in self.inverse.iter().zip(missing) {
            // No amount is above 2^63-1, and signed numbers are converted faster.
            share += provides[*dim as usize].min(*left).cast_signed() as f64 * inverse;
        }
        if share <= 0.0 {
            return None;
        }
        let (tier, asking) = Asking::of_key(cost);
        if !asking.is_finite() {
            return Some(cost);
        }
        let per_share = asking / share * (1.0 - SLACK);
        // The smallest numbers are rounded coarsely, and the largest turn into infinity.
        let per_share = if per_share < 1e-280 { 0.0 } else { per_share.min(f64::MAX / 2.0) };
        Some(Asking { tier, usd_per_hour: per_share, speculative: false }.key())
    }
}

impl Line {
    /// The rank of its best machine for a need as things stand; `None` if it adds nothing.
    fn rank(&self, demand: &Demand, missing: &[(Dim, u64)], classes: &Classes) -> Option<Rank> {
        let provides = classes.provides(self.class);
        if !contributes(provides, missing) {
            return None;
        }
        let Reverse(head) = self.heap.peek()?;
        let (tier, asking) = Asking::of_key(head.cost);
        let speculative = head.order & SPECULATIVE != 0;
        Rank::of((tier, asking, speculative), provides, demand, missing, head.order & !SPECULATIVE)
    }

    /// Takes its best machine.
    fn take(&mut self, shelf: &CellShelf<'_>) -> Pick {
        let mut top = self.heap.peek_mut().expect("a ranked line has a machine");
        let head = top.0;
        match shelf.from(head, head.at + 1) {
            Some(next) => top.0 = next,
            None => {
                PeekMut::pop(top);
            }
        }
        Pick { machine: head.machine, class: self.class, cost: head.cost }
    }
}

/// Picking for one need, line by line.
pub(crate) struct Bargain<'a> {
    lines: &'a mut [Line],
    shelf: CellShelf<'a>,
    demand: &'a Demand,
    classes: &'a Classes,
    heap: BinaryHeap<Reverse<(Rank, u32)>>,
    /// What lines without a rank ask at least.
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
    aside: Vec<Reverse<(Rank, u32)>>,
}

impl<'a> Bargain<'a> {
    /// Gets ready to pick for what is missing.
    pub(crate) fn new(
        lines: &'a mut [Line],
        shelf: CellShelf<'a>,
        demand: &'a Demand,
        missing: &[(Dim, u64)],
        classes: &'a Classes,
    ) -> Self {
        let estimate = Estimate::new(demand);
        let waiting = (0..).zip(&*lines).filter_map(|(number, line)| {
            let Reverse(head) = line.heap.peek()?;
            let least = estimate.key(classes.provides(line.class), missing, head.cost)?;
            Some(Reverse((least, number)))
        });
        let waiting = waiting.collect::<Vec<_>>().into();
        Self { lines, shelf, demand, classes, heap: BinaryHeap::new(), waiting, aside: Vec::new() }
    }

    /// Takes the first machine in bargain order of those whose domain is permitted.
    pub(crate) fn next(&mut self, missing: &[(Dim, u64)], permits: impl Fn(u32) -> bool) -> Option<Pick> {
        let pick = loop {
            self.rank_the_first(missing);
            let Some(Reverse((known, number))) = self.heap.pop() else { break None };
            let line = &mut self.lines[number as usize];
            let Some(rank) = line.rank(self.demand, missing, self.classes) else { continue };
            debug_assert!(rank >= known, "ranks only rise as less is missing");
            if rank != known {
                self.heap.push(Reverse((rank, number)));
            } else if permits(line.value) {
                let pick = line.take(&self.shelf);
                // Its rank is a lower bound for what comes next; it is looked at again before it is believed.
                self.heap.push(Reverse((rank, number)));
                break Some(pick);
            } else {
                self.aside.push(Reverse((rank, number)));
            }
        };
        self.heap.extend(self.aside.drain(..));
        pick
    }

    /// Ranks every line that might come before the best that has a rank. What waits only gets dearer as less is missing.
    fn rank_the_first(&mut self, missing: &[(Dim, u64)]) {
        while let Some(Reverse((least, number))) = self.waiting.peek().copied() {
            if self.heap.peek().is_some_and(|Reverse((rank, _))| rank.key() < least) {
                return;
            }
            self.waiting.pop();
            let rank = self.lines[number as usize].rank(self.demand, missing, self.classes);
            self.heap.extend(rank.map(|rank| Reverse((rank, number))));
        }
    }

    /// Picks until nothing is missing or nothing is left.
    pub(crate) fn cover(&mut self, missing: &mut Amounts) -> Vec<Pick> {
        let mut picked = Vec::new();
        while let Some(pick) = self.next(missing, |_| true) {
            picked.push(pick);
            if subtract(missing, self.classes.provides(pick.class)) {
                break;
            }
        }
        picked
    }
}

/// The cells of one domain key, as they stand while somebody picks. Nothing is taken from anybody by looking.
#[derive(Clone, Copy)]
pub(crate) struct CellShelf<'a> {
    pub(crate) cells: &'a Domain,
    pub(crate) taken: &'a Bits,
}

impl CellShelf<'_> {
    fn from(&self, head: Head, at: u32) -> Option<Head> {
        let rest = &self.cells.machines(head.list)[at as usize..];
        let ahead = rest.iter().position(|one| !self.taken.contains(one.machine))?;
        let (Shelved { order, machine }, at) = (rest[ahead], at + ahead as u32);
        let order = order | head.order & SPECULATIVE;
        Some(Head { order, at, machine, ..head })
    }

    /// The first machine left of a cell.
    pub(crate) fn first(&self, list: u32, cost: u64, speculative: bool) -> Option<Head> {
        let order = if speculative { SPECULATIVE } else { 0 };
        self.from(Head { cost, order, list, at: 0, machine: 0 }, 0)
    }
}
