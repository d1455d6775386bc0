//! The free machines wherever they are, as needs of one penalty bucket see them.
//!
//! Machines of one class and colour are a *slot*; its lots lie in order of price. A need ranks the best machine of every
//! shape: for each set of classes a *stream* remembers it, shape by shape, so that a need looks at dozens of machines
//! and not at thousands of lots.
//!
//! All of it is kept from cycle to cycle. What got worse (a machine was taken, or is gone) is found out when it is looked
//! at; what may have got better is told: every lot that changed is [`touched`](Stock::touch), its slot is noted, and streams
//! catch up with what was noted before they are used again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bigfleet_model::penalty::PenaltyBucket;
use smallvec::SmallVec;

use crate::amounts::{contributes, subtract};
use crate::bits::Bits;
use crate::classes::Classes;
use crate::index::split_free_rank;
use crate::intern::{Map, NONE};
use crate::lots::Shelved;
use crate::needs::Demand;
use crate::vocab::Amounts;

use super::bargain::{Estimate, Pick, Rank, SPECULATIVE};
use super::book::Book;
use super::prices::Asking;
use super::sets::{SupplySet, SupplySets};
use super::sources::Sources;

/// The bound of a slot that has no machine left: above every [`Asking::key`].
const NOTHING: u64 = u64::MAX;

/// So many notes are worth reading one by one; who is behind by more looks at everything again.
const NOTES: usize = 4096;

/// So many notes are kept.
const NOTES_KEPT: usize = 4 * NOTES;

/// The lots of free machines that changed, for whoever keeps something about them.
#[derive(Clone, Default)]
pub(crate) struct Touched {
    /// Grows when too much changed to be listed.
    epoch: u64,
    lots: Vec<u32>,
}

impl Touched {
    /// Takes note of some lots.
    pub(crate) fn note(&mut self, lots: impl ExactSizeIterator<Item = u32>) {
        if self.lots.len() + lots.len() > NOTES_KEPT {
            self.note_all();
        } else {
            self.lots.extend(lots);
        }
    }

    /// Takes note that any lot may have changed.
    pub(crate) fn note_all(&mut self) {
        self.epoch += 1;
        self.lots.clear();
    }

    /// Whether so many lots are better not noted one by one.
    pub(crate) fn is_too_much(lots: usize) -> bool {
        lots > NOTES
    }
}

/// The best machine left of a slot or a shape. Orders by price, Idle first, then id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Best {
    cost: u64,
    /// The machine's place in the order of ids, with [`SPECULATIVE`].
    order: u64,
    /// [`NONE`] if it must be looked for; then nothing is cheaper than `cost`.
    machine: u32,
}

const UNKNOWN: Best = Best::at_least(0);

/// Nothing is left of a shape, until something is heard of it.
const EMPTY: Best = Best::at_least(NOTHING);

impl Best {
    /// What must be looked for, and will not be cheaper than this.
    const fn at_least(cost: u64) -> Self {
        Self { cost, order: 0, machine: NONE }
    }
}

/// The lots of one class and colour.
#[derive(Clone)]
struct Slot {
    class: u32,
    shape: u32,
    colour: u32,
    /// Price key and lot, cheapest first; made when first looked at. A lot may stand empty.
    lots: Vec<(u64, u32)>,
    /// How many lots of the class it has seen.
    seen: u32,
    /// How many of its first lots are used up.
    used: u32,
    best: Best,
}

/// The best machines for one set of classes.
#[derive(Clone)]
struct Stream {
    /// By shape of the set, then by slot of another colour.
    best: Vec<Best>,
    /// The slots of other colours that belong to the set.
    extras: Vec<u32>,
    known_extras: usize,
    era: u64,
    heard: usize,
}

/// What a stock was made from.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Origin {
    generation: u64,
    classes: usize,
    numbering: u64,
}

impl Slot {
    fn new(class: u32, colour: u32, classes: &Classes) -> Self {
        let shape = classes.shape(class);
        Self { class, shape, colour, lots: Vec::new(), seen: 0, used: 0, best: UNKNOWN }
    }
}

/// The free machines as needs of one penalty bucket see them.
#[derive(Clone, Default)]
pub(crate) struct Stock {
    pub(crate) book: Book,
    /// By class for colour 0, then those of other colours.
    slots: Vec<Slot>,
    /// By slot: nothing in it is cheaper.
    bounds: Vec<u64>,
    extras: Map<(u32, u32), u32>,
    streams: Map<u32, Stream>,
    /// The slots that may have got better, in turn.
    improved: Vec<u32>,
    /// Grows when all streams must look at everything again.
    era: u64,
    origin: Origin,
    /// Which numbering of sets the streams know.
    sets: u64,
    epoch: u64,
    heard: usize,
}

/// What is left of the free machines in the present turn.
pub(crate) struct Shelf<'s, 'a> {
    pub(crate) sources: Sources<'a>,
    pub(crate) taken: &'s mut Bits,
    /// By lot, how many of its first machines are taken.
    pub(crate) done: &'s mut [u32],
}

impl Shelf<'_, '_> {
    /// The first machine left of a lot.
    fn first(&mut self, lot: u32) -> Option<Shelved> {
        let done = &mut self.done[lot as usize];
        let rest = &self.sources.index.free.machines(lot)[*done as usize..];
        let ahead = rest.iter().position(|one| !self.taken.contains(one.machine));
        *done += ahead.unwrap_or(rest.len()) as u32;
        ahead.map(|ahead| rest[ahead])
    }
}

/// Room for what one need ranks, used again for the next: shapes that have a rank, and what those that have none ask at least.
#[derive(Default)]
pub(crate) struct Ranks {
    ranked: Vec<Reverse<Ranked>>,
    waiting: Vec<Reverse<(u64, u32)>>,
}

/// A rank, of which shape, and how many machines had been picked when it was worked out.
type Ranked = (Rank, u32, u32);

impl Stock {
    /// Catches up with the fleet and with what changed since it was last opened.
    pub(crate) fn open(
        &mut self,
        bucket: PenaltyBucket,
        sources: Sources<'_>,
        sets: &SupplySets,
        touched: &Touched,
    ) {
        let recoloured = self.book.refresh(bucket, sources.vocab);
        let (generation, classes) = (sources.index.generation, sources.classes.len());
        let origin = Origin { generation, classes, numbering: sources.inventory.numbering() };
        if recoloured || self.origin != origin {
            self.origin = origin;
            self.slots = (0..classes as u32).map(|class| Slot::new(class, 0, sources.classes)).collect();
            self.extras.clear();
            self.streams.clear();
            self.look_again(sources);
        } else if self.epoch != touched.epoch || touched.lots.len() - self.heard > NOTES {
            self.look_again(sources);
        } else {
            for lot in &touched.lots[self.heard..] {
                self.touch(*lot, sources);
            }
        }
        if self.sets != sets.stamp() {
            self.streams.clear();
        }
        (self.sets, self.epoch, self.heard) = (sets.stamp(), touched.epoch, touched.lots.len());
        if self.improved.len() > NOTES_KEPT {
            self.start_era();
        }
    }

    fn start_era(&mut self) {
        self.era += 1;
        self.improved.clear();
    }

    /// Forgets what is left of every slot.
    fn look_again(&mut self, sources: Sources<'_>) {
        self.start_era();
        for slot in &mut self.slots {
            (slot.used, slot.best) = (0, UNKNOWN);
        }
        self.bounds.clear();
        self.bounds.resize(self.slots.len(), NOTHING);
        for (number, lot) in (0..).zip(&sources.index.free.lots) {
            if !sources.index.free.machines(number).is_empty() {
                let (cost, colour) = self.book.of(lot.rank);
                let slot = self.slot(lot.class, colour, sources.classes) as usize;
                self.bounds[slot] = self.bounds[slot].min(cost);
            }
        }
    }

    /// The slot of a class and colour, made if there is none.
    fn slot(&mut self, class: u32, colour: u32, classes: &Classes) -> u32 {
        if colour == 0 {
            return class;
        }
        let next = self.slots.len() as u32;
        let slot = *self.extras.entry((class, colour)).or_insert(next);
        if slot == next {
            self.slots.push(Slot::new(class, colour, classes));
            self.bounds.push(NOTHING);
        }
        slot
    }

    /// Takes note that the machines of a lot changed.
    pub(crate) fn touch(&mut self, lot: u32, sources: Sources<'_>) {
        let one = &sources.index.free.lots[lot as usize];
        let (cost, colour) = self.book.of(one.rank);
        let number = self.slot(one.class, colour, sources.classes);
        let slot = &mut self.slots[number as usize];
        (slot.used, slot.best) = (0, UNKNOWN);
        self.bounds[number as usize] = self.bounds[number as usize].min(cost);
        self.improved.push(number);
    }

    /// The best machine left of a slot; its bound is exact afterwards.
    fn best_of_slot(&mut self, number: u32, shelf: &mut Shelf<'_, '_>) -> Option<Best> {
        let Self { book, slots, bounds, .. } = self;
        let slot = &mut slots[number as usize];
        if slot.best.machine != NONE && !shelf.taken.contains(slot.best.machine) {
            debug_assert_eq!(slot.best.cost, bounds[number as usize], "who is known sets the bound");
            return Some(slot.best);
        }
        let lots = &*shelf.sources.index.free;
        let of_class = lots.of_class(slot.class);
        if (slot.seen as usize) < of_class.len() {
            let new = of_class[slot.seen as usize..].iter().copied();
            let new = new.map(|lot| (book.of(lots.lots[lot as usize].rank), lot));
            slot.lots.extend(
                new.filter(|((_, colour), _)| *colour == slot.colour).map(|((key, _), lot)| (key, lot)),
            );
            slot.lots.sort_unstable();
            (slot.seen, slot.used) = (of_class.len() as u32, 0);
        }
        loop {
            let used = slot.used as usize;
            let Some((cost, _)) = slot.lots.get(used).copied() else {
                (slot.best, bounds[number as usize]) = (UNKNOWN, NOTHING);
                return None;
            };
            // Lots of equal price are taken Idle first, then by id across them.
            let equal = slot.lots[used..].iter().take_while(|(other, _)| *other == cost);
            let (mut best, mut count) = (None::<Best>, 0);
            for (_, lot) in equal {
                count += 1;
                let Some(Shelved { order, machine }) = shelf.first(*lot) else { continue };
                let speculative = split_free_rank(lots.lots[*lot as usize].rank).speculative;
                let order = order | if speculative { SPECULATIVE } else { 0 };
                let one = Best { cost, order, machine };
                best = Some(best.map_or(one, |best| best.min(one)));
            }
            if let Some(best) = best {
                (slot.best, bounds[number as usize]) = (best, cost);
                return Some(best);
            }
            slot.used += count;
        }
    }

    /// The best machine left of some slots.
    fn best_of(&mut self, slots: &[u32], shelf: &mut Shelf<'_, '_>) -> Option<Best> {
        loop {
            // The slots that nothing is cheaper than, in one pass. Many slots are dearer, few are equal.
            let (mut least, mut cheapest) = (NOTHING, SmallVec::<[u32; 16]>::new());
            for slot in slots.iter().copied() {
                let bound = self.bounds[slot as usize];
                if bound > least || bound == NOTHING {
                    continue;
                }
                if bound < least {
                    least = bound;
                    cheapest.clear();
                }
                cheapest.push(slot);
            }
            if least == NOTHING {
                return None;
            }
            let found = cheapest.iter().filter_map(|slot| self.best_of_slot(*slot, shelf)).min();
            // Where the bound was too low it is exact now.
            if let Some(best) = found.filter(|best| best.cost == least) {
                return Some(best);
            }
        }
    }

    /// Brings the stream of a set up to the present, making it if there is none.
    fn stream(&mut self, number: u32, set: &SupplySet) -> Stream {
        let mut stream = self.streams.remove(&number).unwrap_or_else(|| Stream {
            best: vec![UNKNOWN; set.shapes.len()],
            extras: Vec::new(),
            known_extras: 0,
            era: self.era,
            heard: self.improved.len(),
        });
        if stream.era == self.era && self.improved.len() - stream.heard <= NOTES {
            for slot in &self.improved[stream.heard..] {
                let one = &self.slots[*slot as usize];
                let at = if one.colour != 0 {
                    let extra = stream.extras.iter().position(|extra| extra == slot);
                    extra.map(|extra| set.shapes.len() + extra)
                } else {
                    set.members.contains(one.class).then(|| set.place_of_shape(one.shape))
                };
                if let Some(at) = at {
                    let best = &mut stream.best[at];
                    *best = Best::at_least(best.cost.min(self.bounds[*slot as usize]));
                }
            }
        } else {
            stream.best.fill(UNKNOWN);
        }
        (stream.era, stream.heard) = (self.era, self.improved.len());
        let extras = self.slots.len() - self.origin.classes;
        if stream.known_extras < extras {
            let first = self.origin.classes + stream.known_extras;
            for (slot, one) in (first as u32..).zip(&self.slots[first..]) {
                if set.members.contains(one.class) {
                    stream.extras.push(slot);
                    stream.best.push(UNKNOWN);
                }
            }
            stream.known_extras = extras;
        }
        stream
    }

    /// Takes machines for a need, best bargain first, until nothing is missing or nothing is left.
    pub(crate) fn cover(
        &mut self,
        (number, set): (u32, &SupplySet),
        demand: &Demand,
        missing: &mut Amounts,
        shelf: &mut Shelf<'_, '_>,
        ranks: &mut Ranks,
    ) -> Vec<Pick> {
        let mut stream = self.stream(number, set);
        let Ranks { ranked, waiting } = std::mem::take(ranks);
        let mut waiting = self.estimates(waiting, &mut stream, set, demand, missing, shelf);
        let mut ranked = BinaryHeap::from(ranked);
        let mut picked = Vec::new();
        loop {
            let now = picked.len() as u32;
            // Who might come before the best that is ranked is ranked first. What waits only gets dearer as less is missing.
            while let Some(Reverse((_, at))) = waiting.peek().copied().filter(|Reverse((least, _))| {
                ranked.peek().is_none_or(|Reverse((rank, ..)): &Reverse<Ranked>| *least <= rank.key())
            }) {
                waiting.pop();
                let rank = self.rank(&mut stream, at, set, demand, missing, shelf);
                ranked.extend(rank.map(|rank| Reverse((rank, at, now))));
            }
            let Some(Reverse((known, at, ranked_at))) = ranked.pop() else { break };
            if ranked_at < now {
                // It was a lower bound: less is missing now.
                let rank = self.rank(&mut stream, at, set, demand, missing, shelf);
                debug_assert!(rank.is_none_or(|rank| rank >= known), "ranks only rise as less is missing");
                ranked.extend(rank.map(|rank| Reverse((rank, at, now))));
                continue;
            }
            let Best { cost, machine, .. } = stream.best[at as usize];
            let class = self.class_of(&stream, at as usize, set);
            shelf.taken.insert(machine);
            picked.push(Pick { machine, class, cost });
            if subtract(missing, shelf.sources.classes.provides(class)) {
                break;
            }
            ranked.push(Reverse((known, at, now)));
        }
        *ranks = Ranks { ranked: ranked.into_vec(), waiting: waiting.into_vec() };
        ranks.ranked.clear();
        self.streams.insert(number, stream);
        picked
    }

    /// What machines of each shape ask at least that adds anything.
    fn estimates(
        &self,
        mut room: Vec<Reverse<(u64, u32)>>,
        stream: &mut Stream,
        set: &SupplySet,
        demand: &Demand,
        missing: &Amounts,
        shelf: &Shelf<'_, '_>,
    ) -> BinaryHeap<Reverse<(u64, u32)>> {
        let estimate = Estimate::new(demand);
        room.clear();
        for (at, best) in stream.best.iter_mut().enumerate() {
            if *best == UNKNOWN {
                let slots = match at.checked_sub(set.shapes.len()) {
                    Some(extra) => std::slice::from_ref(&stream.extras[extra]),
                    None => set.of_shape(at),
                };
                let least = slots.iter().map(|slot| self.bounds[*slot as usize]).min();
                *best = Best::at_least(least.unwrap_or(NOTHING));
            }
            if *best == EMPTY {
                continue;
            }
            let class = match at.checked_sub(set.shapes.len()) {
                Some(extra) => self.slots[stream.extras[extra] as usize].class,
                None => set.shapes[at].class,
            };
            let least = estimate.key(shelf.sources.classes.provides(class), missing, best.cost);
            room.extend(least.map(|least| Reverse((least, at as u32))));
        }
        room.into()
    }

    /// A class of the shape at a place of a stream.
    fn class_of(&self, stream: &Stream, at: usize, set: &SupplySet) -> u32 {
        match at.checked_sub(set.shapes.len()) {
            Some(extra) => self.slots[stream.extras[extra] as usize].class,
            None => set.shapes[at].class,
        }
    }

    /// The rank of the best machine of a shape as things stand; `None` if it adds nothing.
    fn rank(
        &mut self,
        stream: &mut Stream,
        at: u32,
        set: &SupplySet,
        demand: &Demand,
        missing: &Amounts,
        shelf: &mut Shelf<'_, '_>,
    ) -> Option<Rank> {
        let at = at as usize;
        let provides = shelf.sources.classes.provides(self.class_of(stream, at, set));
        if !contributes(provides, missing) {
            return None;
        }
        let mut best = stream.best[at];
        if best != EMPTY && (best.machine == NONE || shelf.taken.contains(best.machine)) {
            let found = match at.checked_sub(set.shapes.len()) {
                Some(extra) => self.best_of_slot(stream.extras[extra], shelf),
                None => self.best_of(set.of_shape(at), shelf),
            };
            best = found.unwrap_or(EMPTY);
            stream.best[at] = best;
        }
        if best == EMPTY {
            return None;
        }
        let (tier, asking) = Asking::of_key(best.cost);
        let speculative = best.order & SPECULATIVE != 0;
        Rank::of((tier, asking, speculative), provides, demand, missing, best.order & !SPECULATIVE)
    }
}
