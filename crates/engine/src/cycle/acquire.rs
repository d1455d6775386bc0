//! Phase 1, acquire: free machines for what credit left missing.
//!
//! Needs are served strictly in precedence order, so a contested machine goes to the higher precedence and,
//! among equals, to the one that has waited longest. Idle machines come before Speculative ones.

use bigfleet_model::penalty::PenaltyBucket;

use crate::amounts::is_zero;
use crate::bits::Bits;
use crate::index::split_free_rank;
use crate::intern::Map;
use crate::merge::Merge;

use super::Short;
use super::credit::Sources;
use super::domains::domain_merge;
use super::prices::free_cost;
use super::sets::{SupplySet, SupplySets};
use super::take::{Spread, Stock, lanes};

/// Acquisition in progress.
pub(crate) struct Acquire<'a> {
    sources: Sources<'a>,
    sets: &'a mut SupplySets,
    /// Machines acquired so far.
    pub(crate) taken: Bits,
    /// Idle candidates by supply set, kept from need to need.
    idle: Map<u32, Merge>,
    /// Speculative candidates by supply set and penalty bucket.
    speculative: Map<(u32, usize), Merge>,
}

impl<'a> Acquire<'a> {
    pub(crate) fn new(sources: Sources<'a>, sets: &'a mut SupplySets) -> Self {
        let taken = Bits::with_bound(sources.inventory.bound());
        Self { sources, sets, taken, idle: Map::default(), speculative: Map::default() }
    }

    /// Serves one need; `credited` are the machines it already has.
    pub(crate) fn serve(&mut self, short: &mut Short, credited: &[u32]) {
        let demand = short.demand.clone();
        let waits = demand.need.parked || demand.same.is_some() && short.domain.is_none();
        if waits || is_zero(&short.missing) {
            return;
        }
        let sources = self.sources;
        let number = self.sets.number(&demand, sources.classes, sources.sets);
        let set = self.sets.get(number);
        let bucket = demand.need.profile.interruption();
        let lots = &*sources.index.free;
        let mut stock = Stock { sources, lots, taken: &mut self.taken };
        short.acquired = if let Some(chosen) = short.domain {
            let domain = sources.classes.domain(demand.same.expect("only gangs have a domain"));
            let mut merge = domain_merge(sources, set, &demand, domain, chosen.value);
            stock.take_cells(domain, &mut merge, &mut short.missing, |_| true)
        } else if let Some((key, headroom)) = demand.spread {
            let domain = sources.classes.domain(key);
            let spread = Spread::new(sources, domain, headroom, credited.iter().copied());
            let cost = |rank| Some(free_cost(rank, bucket, sources.vocab));
            let lanes = lanes(sources, lots, domain, &set.classes, cost);
            stock.take_spread(spread, lanes, &mut short.missing, |_| true)
        } else {
            let stream = |speculative| move || free_merge(sources, set, bucket, speculative);
            let idle = self.idle.entry(number).or_insert_with(stream(false));
            let mut taken = stock.take_lots(idle, &mut short.missing, |_| true);
            if !is_zero(&short.missing) {
                let key = (number, bucket.ordinal());
                let speculative = self.speculative.entry(key).or_insert_with(stream(true));
                taken.extend(stock.take_lots(speculative, &mut short.missing, |_| true));
            }
            taken
        };
    }
}

/// The Idle or the Speculative machines that count for a need, in the order acquisition takes them.
fn free_merge(sources: Sources<'_>, set: &SupplySet, bucket: PenaltyBucket, speculative: bool) -> Merge {
    let lots = &*sources.index.free;
    let numbers = set.classes.iter().flat_map(|class| lots.of_class(*class));
    let lists = numbers.filter_map(|number| {
        let lot = &lots.lots[*number as usize];
        if split_free_rank(lot.rank).1 != speculative {
            return None;
        }
        Some((free_cost(lot.rank, bucket, sources.vocab), *number, lot.class, lot.machines.as_slice()))
    });
    Merge::new(lists, sources.inventory)
}
