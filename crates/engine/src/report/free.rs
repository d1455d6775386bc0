//! What is free for a need, counted by lot instead of by machine.

use std::cmp::Ordering;
use std::sync::Arc;

use bigfleet_model::need::NeedKey;

use crate::bits::Bits;
use crate::cycle::Decision;
use crate::fleet::Fleet;
use crate::index::{FreeTerms, split_free_rank};
use crate::intern::Map;
use crate::lots::Lots;
use crate::needs::Demand;

/// The free machines that count for a need and that the last cycle gave to nobody.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Available {
    /// How many are Idle.
    pub idle: usize,
    /// How many are Speculative.
    pub speculative: usize,
    /// The lowest price an hour among both, and the first machine by id that has it.
    pub cheapest: Option<(f64, Box<str>)>,
}

/// What a cycle took of the free machines.
#[derive(Clone, Default)]
pub(crate) struct Taken {
    pub(crate) machines: Bits,
    /// By class and rank, how many of a lot's machines.
    by_lot: Map<(u32, u32), usize>,
}

impl Taken {
    /// Counts what a decision took.
    pub(crate) fn of(decision: &Decision, fleet: &Fleet) -> Self {
        let mut taken = Self::default();
        for machine in decision.shorts.iter().flat_map(|short| &short.acquired) {
            let row = fleet.inventory.decided(*machine);
            taken.machines.insert(*machine);
            let lot = (fleet.index.classes.of_kind(row.kind), crate::index::free_rank(row));
            *taken.by_lot.entry(lot).or_default() += 1;
        }
        taken
    }

    /// How many machines of a lot are left.
    fn left(&self, lots: &Lots, number: u32) -> usize {
        let lot = &lots.lots[number as usize];
        lots.machines(number).len() - self.by_lot.get(&(lot.class, lot.rank)).copied().unwrap_or(0)
    }

    /// The first machine of a lot, by id, that is left.
    fn first(&self, lots: &Lots, number: u32) -> Option<u32> {
        let mut machines = lots.machines(number).iter().map(|one| one.machine);
        machines.find(|machine| !self.machines.contains(*machine))
    }
}

impl Fleet {
    /// What is free for a need: Idle and Speculative machines that meet its requirements, hold its minimum
    /// unit and were claimed by nobody in the last cycle, in any domain. `None` if the last cycle knew no
    /// such need.
    pub fn available(&self, key: &NeedKey) -> Option<Available> {
        let demand = self.seen(key)?.demand();
        let (taken, classes, free) = (self.taken()?, &self.index.classes, &self.index.free);
        let mut available = Available::default();
        let mut cheapest: Option<(f64, u64, u32)> = None;
        let admitted = self.sets.admits(demand.requirements).iter();
        let counting = admitted.filter(|class| classes.covers(*class, &demand.min_unit));
        for lot in counting.flat_map(|class| free.of_class(class)).copied() {
            let left = taken.left(free, lot);
            if left == 0 {
                continue;
            }
            let FreeTerms { terms, speculative, .. } = split_free_rank(free.lots[lot as usize].rank);
            *if speculative { &mut available.speculative } else { &mut available.idle } += left;
            let price = self.vocab.price_and_probability(terms).0;
            if cheapest.is_some_and(|(best, ..)| price.total_cmp(&best).is_gt()) {
                continue;
            }
            let machine = taken.first(free, lot).expect("a lot with machines left has a first one");
            let order = self.inventory.decided(machine).order;
            let is_better = |(best, best_order, _)| by_price(price, order, best, best_order).is_lt();
            if cheapest.is_none_or(is_better) {
                cheapest = Some((price, order, machine));
            }
        }
        available.cheapest = cheapest.map(|(price, _, machine)| (price, self.inventory.id(machine).into()));
        Some(available)
    }

    /// The need that claims a machine after the last cycle: why it is kept, or where it goes. `None` if none
    /// does or the machine was not known.
    pub fn claimant_of(&self, machine: &str) -> Option<NeedKey> {
        Some(self.demand_claiming(machine)?.need.key())
    }

    /// What a machine cost an hour in the last cycle; `None` if that cycle did not know it.
    pub fn price_of(&self, machine: &str) -> Option<f64> {
        Some(self.inventory.decided(self.inventory.find_decided(machine)?).price)
    }

    /// As [`Fleet::claimant_of`]: the need itself, as that cycle saw it.
    pub fn demand_claiming(&self, machine: &str) -> Option<&Arc<Demand>> {
        self.claimant(self.inventory.find_decided(machine)?)
    }
}

fn by_price(price: f64, order: u64, other: f64, other_order: u64) -> Ordering {
    price.total_cmp(&other).then(order.cmp(&other_order))
}
