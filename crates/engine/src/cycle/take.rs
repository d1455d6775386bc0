//! Taking machines for one need, from free supply or from victims, freely or under a strict spread.

use std::collections::BTreeMap;

use crate::amounts::{contributes, subtract};
use crate::bits::Bits;
use crate::intern::NONE;
use crate::lots::{Domain, Lots};
use crate::merge::Merge;
use crate::vocab::Amounts;

use super::credit::Sources;
use super::heads::{Heads, Order, Stream};

/// Where machines are taken from, and who may not be taken.
pub(crate) struct Stock<'a> {
    pub(crate) sources: Sources<'a>,
    pub(crate) lots: &'a Lots,
    /// Taken in this cycle, by whomever.
    pub(crate) taken: &'a mut Bits,
}

impl Stock<'_> {
    /// The order machines are taken in, as things stand.
    pub(crate) fn order<'b, C>(
        &'b self,
        cost: C,
        eligible: &'b impl Fn(u32) -> bool,
    ) -> Order<'b, C, impl Fn(u32) -> bool + 'b> {
        let skip = |machine| self.taken.contains(machine) || !eligible(machine);
        Order { lots: self.lots, inventory: self.sources.inventory, cost, skip }
    }

    /// Takes from a stream of classes until nothing is missing.
    pub(crate) fn take_classes(
        &mut self,
        stream: &mut Stream,
        heads: &mut Heads,
        missing: &mut Amounts,
        cost: impl Fn(u32) -> Option<u64>,
        eligible: impl Fn(u32) -> bool,
    ) -> Vec<u32> {
        let classes = self.sources.classes;
        let mut picked = Vec::new();
        loop {
            let Some(best) = stream.best(heads, &self.order(&cost, &eligible)) else { break };
            let provides = classes.provides(best.class);
            if !contributes(provides, missing) {
                // All machines of a class provide the same: none of them will help this need any more.
                stream.set_aside();
                continue;
            }
            self.taken.insert(best.machine);
            picked.push(best.machine);
            if subtract(missing, provides) {
                break;
            }
        }
        stream.restore();
        picked
    }

    /// Takes from a merge of one domain's cells until nothing is missing.
    pub(crate) fn take_cells(
        &mut self,
        domain: usize,
        merge: &mut Merge,
        missing: &mut Amounts,
        eligible: impl Fn(u32) -> bool,
    ) -> Vec<u32> {
        let cells = &self.lots.domains[domain];
        let machines = |cell: u32| cells.machines(cell);
        let mut picked = Vec::new();
        loop {
            let taken = &*self.taken;
            let skip = |machine| taken.contains(machine) || !eligible(machine);
            let Some(best) = merge.best(machines, skip, self.sources.inventory) else { break };
            let provides = self.sources.classes.provides(best.class);
            if !contributes(provides, missing) {
                // All machines of a list provide the same: none of them will help this need any more.
                merge.set_aside();
                continue;
            }
            self.taken.insert(best.machine);
            picked.push(best.machine);
            if subtract(missing, provides) {
                break;
            }
        }
        merge.restore();
        picked
    }

    /// Takes under a strict spread until nothing is missing or no permitted domain has anything left.
    pub(crate) fn take_spread(
        &mut self,
        spread: Spread,
        lanes: &mut [Lane],
        missing: &mut Amounts,
        eligible: impl Fn(u32) -> bool,
    ) -> Vec<u32> {
        let Spread { domain, headroom, mut counts } = spread;
        let Sources { inventory, classes, .. } = self.sources;
        let cells: &Domain = &self.lots.domains[domain];
        let machines = |cell: u32| cells.machines(cell);
        let mut picked = Vec::new();
        for lane in lanes.iter_mut() {
            let skip = |machine| self.taken.contains(machine) || !eligible(machine);
            if lane.merge.best(machines, skip, inventory).is_some() {
                counts.entry(lane.value).or_default();
            }
        }
        loop {
            let taken = &*self.taken;
            let skip = |machine| taken.contains(machine) || !eligible(machine);
            let limit = counts.values().min().copied().unwrap_or(0) + headroom;
            let permitted =
                lanes.iter_mut().filter(|lane| counts.get(&lane.value).is_some_and(|n| *n <= limit));
            let next = permitted.filter_map(|lane| {
                loop {
                    let best = lane.merge.best(machines, skip, inventory)?;
                    if contributes(classes.provides(best.class), missing) {
                        return Some((best.cost, inventory.row(best.machine).order, best, lane.value));
                    }
                    lane.merge.set_aside();
                }
            });
            let Some((_, _, best, value)) = next.min_by_key(|(cost, order, ..)| (*cost, *order)) else {
                break;
            };
            self.taken.insert(best.machine);
            *counts.entry(value).or_default() += 1;
            picked.push(best.machine);
            if subtract(missing, classes.provides(best.class)) {
                break;
            }
        }
        for lane in lanes {
            lane.merge.restore();
        }
        picked
    }
}

/// The state of a strict spread when a need's turn comes.
pub(crate) struct Spread {
    pub(crate) domain: usize,
    pub(crate) headroom: u64,
    /// How many machines the need has in each domain.
    counts: BTreeMap<u32, u64>,
}

impl Spread {
    /// A spread over a domain key, counting the machines the need already has.
    pub(crate) fn new(
        sources: Sources<'_>,
        domain: usize,
        headroom: u64,
        held: impl Iterator<Item = u32>,
    ) -> Self {
        let mut counts = BTreeMap::new();
        for machine in held {
            let value = sources.classes.domain_of_kind(domain, sources.inventory.row(machine).kind);
            if value != NONE {
                *counts.entry(value).or_default() += 1;
            }
        }
        Self { domain, headroom, counts }
    }
}

/// The candidates of one domain, in order.
pub(crate) struct Lane {
    value: u32,
    merge: Merge,
}

/// The candidates of some classes by domain; `cost` gives a lot's place in the order, `None` leaves it out.
pub(crate) fn lanes_of(
    sources: Sources<'_>,
    lots: &Lots,
    domain: usize,
    classes: &[u32],
    cost: impl Fn(u32) -> Option<u64>,
) -> Vec<Lane> {
    let cells = &lots.domains[domain];
    let mut by_value: BTreeMap<u32, Vec<(u64, u32)>> = BTreeMap::new();
    for number in classes.iter().flat_map(|class| lots.cells_of_class(domain, *class)) {
        let cell = &cells.cells[number as usize];
        if let (Some(cost), false) =
            (cost(lots.lots[cell.lot as usize].rank), cells.machines(number).is_empty())
        {
            by_value.entry(cell.value).or_default().push((cost, number));
        }
    }
    let lane = |(value, members): (u32, Vec<(u64, u32)>)| {
        let lists = members.into_iter().map(|(cost, number)| {
            let class = lots.class_of(&cells.cells[number as usize]);
            (cost, number, class, cells.machines(number))
        });
        Lane { value, merge: Merge::new(lists, sources.inventory) }
    };
    by_value.into_iter().map(lane).collect()
}
