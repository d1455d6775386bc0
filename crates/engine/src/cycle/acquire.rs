//! Phase 1, acquire: free machines for what credit left missing.
//!
//! Needs are served strictly in precedence order, so a contested machine goes to the higher precedence and,
//! among equals, to the one that has waited longest. Idle machines come before Speculative ones.

use crate::amounts::is_zero;
use crate::bits::Bits;
use crate::index::split_free_rank;
use crate::intern::Map;

use super::Short;
use super::credit::Sources;
use super::domains::domain_merge;
use super::heads::{Heads, Stream};
use super::prices::free_cost;
use super::sets::SupplySets;
use super::take::{Lane, Spread, Stock, lanes_of};

/// The order of Idle machines, which is the same for all penalty buckets; others are known by the bucket.
const IDLE: usize = usize::MAX;

/// Acquisition in progress.
pub(crate) struct Acquire<'a> {
    sources: Sources<'a>,
    sets: &'a mut SupplySets,
    /// Machines acquired so far.
    pub(crate) taken: Bits,
    /// Machines in order, per order of acquisition, and the candidates of each supply set in that order.
    heads: Map<usize, Heads>,
    streams: Map<(u32, usize), Stream>,
    /// Candidates by domain, per supply set, domain key and penalty bucket.
    lanes: Map<(u32, usize, usize), Vec<Lane>>,
}

impl<'a> Acquire<'a> {
    pub(crate) fn new(sources: Sources<'a>, sets: &'a mut SupplySets) -> Self {
        let taken = Bits::with_bound(sources.inventory.bound());
        Self { sources, sets, taken, heads: Map::default(), streams: Map::default(), lanes: Map::default() }
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
            let lanes = self.lanes.entry((number, domain, bucket.ordinal()));
            let lanes = lanes.or_insert_with(|| lanes_of(sources, lots, domain, &set.classes, cost));
            stock.take_spread(spread, lanes, &mut short.missing, |_| true)
        } else {
            let mut picked = Vec::new();
            for speculative in [false, true] {
                if is_zero(&short.missing) {
                    break;
                }
                let order = if speculative { bucket.ordinal() } else { IDLE };
                let cost = |rank: u32| {
                    let wanted = split_free_rank(rank).1 == speculative;
                    wanted.then(|| free_cost(rank, bucket, sources.vocab))
                };
                let heads = self.heads.entry(order).or_default();
                let stream = self.streams.entry((number, order)).or_insert_with(|| {
                    let classes = set.members.common(sources.index.free_classes(speculative));
                    Stream::new(classes, heads, &stock.order(&cost, &|_| true))
                });
                picked.extend(stock.take_classes(stream, heads, &mut short.missing, cost, |_| true));
            }
            picked
        };
    }
}
