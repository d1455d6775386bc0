//! Bargain order: free machines by what a share of the demand costs, judged anew after each pick.
//!
//! What counts is the cheapest *set* that covers a need, not the cheapest machines. A machine is worth the share of the
//! demand it adds; as less is missing, shares only fall and costs per share only rise, so ranks only rise, and a heap
//! that looks again at its best entry before believing it is exact.
//!
//! Machines of one shape add the same share, so only the best of each shape need be ranked. A *line* holds the
//! lists (runs of lots, or cells) of one shape, best first. Thousands of lots become a few dozen lines.
//!
//! One trap: two prices that differ in their last bits may cost the same *per share* once divided and rounded, and then
//! the smaller id wins, not the smaller price. Prices that close are put into different lines (see [`Book`]), where
//! the whole rank is compared.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use bigfleet_model::penalty::PenaltyBucket;
use smallvec::SmallVec;

use crate::amounts::{contributes, subtract};
use crate::bits::Bits;
use crate::classes::Classes;
use crate::index::split_free_rank;
use crate::intern::{Map, NONE};
use crate::inventory::Inventory;
use crate::lots::{Domain, Lots};
use crate::needs::Demand;
use crate::vocab::{Amounts, Dim, Vocabulary};

use super::prices::{Asking, Tier};

/// Prices this many last places apart, or fewer, may be equal once divided by a share.
const CLOSE: u64 = 8;

/// Marks a Speculative machine in [`Head::order`]: after every Idle one of the same price.
pub(crate) const SPECULATIVE: u64 = 1 << 63;

/// The free machines as needs of one penalty bucket see them: what they ask, and the lots of each class in that order.
/// Kept from cycle to cycle.
#[derive(Clone, Default)]
pub(crate) struct Book {
    /// By free rank, its [`Asking::key`] and the colour that keeps close prices apart.
    keys: Vec<(u64, u32)>,
    terms: usize,
    /// The lots of one class and colour each, cheapest first.
    runs: Vec<Run>,
    /// By class, how many lots its runs know, and which runs those are.
    of_class: Vec<(u32, SmallVec<[u32; 2]>)>,
    generation: u64,
}

/// The lots of one class, none of them close in price, cheapest first.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) colour: u32,
    /// Price key and lot. A lot may stand empty.
    pub(crate) lots: Vec<(u64, u32)>,
}

impl Book {
    /// Learns what all terms there are ask of needs of a bucket.
    pub(crate) fn refresh(&mut self, bucket: PenaltyBucket, vocab: &Vocabulary, generation: u64) {
        if self.terms == vocab.terms_count() && self.generation == generation {
            return;
        }
        // New terms may bring new close prices, and then colours change; new lots have new numbers.
        (self.terms, self.generation) = (vocab.terms_count(), generation);
        self.runs.clear();
        self.of_class.clear();
        let ranks = 0..(self.terms as u32) << 2;
        self.keys = ranks.map(|rank| (Asking::of(rank, bucket, vocab).key(), 0)).collect();
        let mut order: Vec<u64> = self.keys.iter().map(|(key, _)| *key).collect();
        order.sort_unstable();
        order.dedup();
        let mut close: Map<u64, u32> = Map::default();
        for pair in order.windows(2) {
            if pair[1] - pair[0] <= CLOSE {
                let colour = close.get(&pair[0]).copied().unwrap_or(0) + 1;
                close.insert(pair[1], colour);
            }
        }
        if !close.is_empty() {
            for (key, colour) in &mut self.keys {
                *colour = close.get(key).copied().unwrap_or(0);
            }
        }
    }

    pub(crate) fn of(&self, rank: u32) -> (u64, u32) {
        self.keys[rank as usize]
    }

    pub(crate) fn run(&self, number: u32) -> &Run {
        &self.runs[number as usize]
    }

    pub(crate) fn run_count(&self) -> usize {
        self.runs.len()
    }

    /// The runs of a class, brought up to the lots it has now.
    pub(crate) fn runs_of(&mut self, class: u32, lots: &Lots) -> SmallVec<[u32; 2]> {
        if self.of_class.len() <= class as usize {
            self.of_class.resize_with(class as usize + 1, || (0, SmallVec::new()));
        }
        let members = lots.of_class(class);
        let (known, runs) = &mut self.of_class[class as usize];
        for lot in &members[*known as usize..] {
            let (cost, colour) = self.keys[lots.lots[*lot as usize].rank as usize];
            let run = runs.iter().copied().find(|run| self.runs[*run as usize].colour == colour);
            let run = run.unwrap_or_else(|| {
                self.runs.push(Run { colour, lots: Vec::new() });
                runs.push(self.runs.len() as u32 - 1);
                self.runs.len() as u32 - 1
            });
            self.runs[run as usize].lots.push((cost, *lot));
        }
        if *known as usize != members.len() {
            *known = members.len() as u32;
            for run in runs.iter() {
                self.runs[*run as usize].lots.sort_unstable();
            }
        }
        runs.clone()
    }
}

/// The best machine left in a list: a run or a cell. Orders by price, Idle first, then id.
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

/// Where lists stand.
pub(crate) trait Shelf {
    /// The best machine left in the list of a head, which is that one or a later one.
    fn current(&mut self, head: Head) -> Option<Head>;
    /// Takes the machine of a head off the shelf, and tells the next one of its list.
    fn take(&mut self, head: Head) -> Option<Head>;
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
}

impl Line {
    /// The best machine of the line as things stand, and its rank for a need; `None` if it adds nothing.
    fn rank(
        &mut self,
        shelf: &mut impl Shelf,
        demand: &Demand,
        missing: &[(Dim, u64)],
        classes: &Classes,
    ) -> Option<Rank> {
        let provides = classes.provides(self.class);
        if !contributes(provides, missing) {
            return None;
        }
        let head = self.head(shelf)?;
        let (tier, asking) = Asking::of_key(head.cost);
        let speculative = head.order & SPECULATIVE != 0;
        Rank::of((tier, asking, speculative), provides, demand, missing, head.order & !SPECULATIVE)
    }

    /// The best machine left in the line.
    fn head(&mut self, shelf: &mut impl Shelf) -> Option<Head> {
        loop {
            let mut top = self.heap.peek_mut()?;
            match shelf.current(top.0) {
                None => {
                    PeekMut::pop(top);
                }
                Some(head) if head == top.0 => return Some(head),
                Some(head) => top.0 = head,
            }
        }
    }

    /// Takes the best machine of the line, as [`Self::head`] last told it.
    fn take(&mut self, shelf: &mut impl Shelf) -> Pick {
        let mut top = self.heap.peek_mut().expect("a ranked line has a machine");
        let head = top.0;
        match shelf.take(head) {
            Some(next) => top.0 = next,
            None => {
                PeekMut::pop(top);
            }
        }
        Pick { machine: head.machine, class: self.class, cost: head.cost }
    }
}

/// Picking for one need, line by line.
pub(crate) struct Bargain<'a, S> {
    pub(crate) lines: &'a mut [Line],
    pub(crate) shelf: &'a mut S,
    pub(crate) demand: &'a Demand,
    pub(crate) classes: &'a Classes,
    heap: BinaryHeap<Reverse<(Rank, u32)>>,
    aside: Vec<Reverse<(Rank, u32)>>,
}

impl<'a, S: Shelf> Bargain<'a, S> {
    /// Ranks all lines for what is missing.
    pub(crate) fn new(
        lines: &'a mut [Line],
        shelf: &'a mut S,
        demand: &'a Demand,
        missing: &[(Dim, u64)],
        classes: &'a Classes,
    ) -> Self {
        let mut ranked = Vec::with_capacity(lines.len());
        for (number, line) in (0..).zip(lines.iter_mut()) {
            if let Some(rank) = line.rank(shelf, demand, missing, classes) {
                ranked.push(Reverse((rank, number)));
            }
        }
        Self { lines, shelf, demand, classes, heap: ranked.into(), aside: Vec::new() }
    }

    /// Takes the first machine in bargain order of those whose domain is permitted.
    pub(crate) fn next(&mut self, missing: &[(Dim, u64)], permits: impl Fn(u32) -> bool) -> Option<Pick> {
        let pick = loop {
            let Some(Reverse((known, number))) = self.heap.pop() else { break None };
            let line = &mut self.lines[number as usize];
            let Some(rank) = line.rank(self.shelf, self.demand, missing, self.classes) else { continue };
            debug_assert!(rank >= known, "ranks only rise as less is missing");
            if rank != known {
                self.heap.push(Reverse((rank, number)));
            } else if permits(line.value) {
                let pick = line.take(self.shelf);
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
pub(crate) struct CellShelf<'a> {
    pub(crate) cells: &'a Domain,
    pub(crate) inventory: &'a Inventory,
    pub(crate) taken: &'a Bits,
}

impl CellShelf<'_> {
    fn from(&self, head: Head, at: u32) -> Option<Head> {
        let rest = &self.cells.machines(head.list)[at as usize..];
        let ahead = rest.iter().position(|machine| !self.taken.contains(*machine))?;
        let (machine, at) = (rest[ahead], at + ahead as u32);
        let order = self.inventory.row(machine).order | head.order & SPECULATIVE;
        Some(Head { order, at, machine, ..head })
    }

    /// The first machine left of a cell.
    pub(crate) fn first(&self, list: u32, cost: u64, speculative: bool) -> Option<Head> {
        let order = if speculative { SPECULATIVE } else { 0 };
        self.from(Head { cost, order, list, at: 0, machine: 0 }, 0)
    }
}

impl Shelf for CellShelf<'_> {
    fn current(&mut self, head: Head) -> Option<Head> {
        // Nobody else takes anything while this one picks.
        Some(head)
    }

    fn take(&mut self, head: Head) -> Option<Head> {
        self.from(head, head.at + 1)
    }
}

/// All lots of free machines, as they stand in the present turn: one place per lot for everybody, and one per run for
/// all needs of a bucket.
pub(crate) struct RunShelf<'a> {
    pub(crate) book: &'a Book,
    pub(crate) lots: &'a Lots,
    pub(crate) inventory: &'a Inventory,
    pub(crate) taken: &'a mut Bits,
    /// By lot, how many of its first machines are taken.
    pub(crate) done: &'a mut [u32],
    /// By run, how many of its first lots are used up.
    pub(crate) used: &'a mut Vec<u32>,
}

impl RunShelf<'_> {
    /// A head of a run that is not known yet: it is looked for when the run comes up. Nothing in the run is cheaper.
    pub(crate) fn unknown(&self, run: u32) -> Option<Head> {
        let used = self.used.get(run as usize).copied().unwrap_or(0);
        let (cost, _) = *self.book.run(run).lots.get(used as usize)?;
        Some(Head { cost, order: 0, list: run, at: 0, machine: NONE })
    }

    /// The first machine left of a lot.
    fn first(&mut self, lot: u32) -> Option<u32> {
        let done = &mut self.done[lot as usize];
        let rest = &self.lots.lots[lot as usize].machines[*done as usize..];
        let ahead = rest.iter().position(|machine| !self.taken.contains(*machine));
        *done += ahead.unwrap_or(rest.len()) as u32;
        ahead.map(|ahead| rest[ahead])
    }

    /// The best machine left of a run.
    fn best(&mut self, run: u32) -> Option<Head> {
        if self.used.len() <= run as usize {
            self.used.resize(self.book.run_count(), 0);
        }
        let lots = &self.book.run(run).lots;
        loop {
            let used = self.used[run as usize] as usize;
            let (cost, _) = *lots.get(used)?;
            // Lots of equal price are taken Idle first, then by id across them.
            let equal = lots[used..].iter().take_while(|(other, _)| *other == cost);
            let (mut head, mut count) = (None::<Head>, 0);
            for (_, lot) in equal {
                count += 1;
                let Some(machine) = self.first(*lot) else { continue };
                let speculative = split_free_rank(self.lots.lots[*lot as usize].rank).speculative;
                let order = self.inventory.row(machine).order | if speculative { SPECULATIVE } else { 0 };
                let one = Head { cost, order, list: run, at: 0, machine };
                head = Some(head.map_or(one, |best| best.min(one)));
            }
            if head.is_some() {
                return head;
            }
            self.used[run as usize] += count;
        }
    }
}

impl Shelf for RunShelf<'_> {
    fn current(&mut self, head: Head) -> Option<Head> {
        if head.machine != NONE && !self.taken.contains(head.machine) {
            return Some(head);
        }
        self.best(head.list)
    }

    fn take(&mut self, head: Head) -> Option<Head> {
        self.taken.insert(head.machine);
        // Found when the run comes up again; until then nothing in it is better than this.
        Some(Head { machine: NONE, ..head })
    }
}
