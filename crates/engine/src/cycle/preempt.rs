//! Phase 2: machines of strictly lower priority for what phase 1 left missing.
//!
//! A preemption frees a machine for the next cycle; nothing is reserved. What already drains for a need is
//! subtracted before new victims are picked, so that one deficit does not drain the fleet while it waits.

use bigfleet_model::cost::{drain_grace_secs, priority_gap};

use crate::amounts::{contributes, is_zero, subtract};
use crate::bits::Bits;
use crate::intern::Map;
use crate::lots::Lots;
use crate::merge::Merge;
use crate::options::Options;
use crate::vocab::Amounts;

use super::Short;
use super::credit::{Credit, Sources};
use super::heads::{Heads, Stream};
use super::prices::victim_cost;
use super::sets::SupplySets;
use super::take::{Lane, Spread, Stock, lanes_of};

/// The priority of the need that claims each bound machine. Kept from cycle to cycle once it is needed.
#[derive(Clone, Default)]
pub(crate) struct Claimants {
    priority: Vec<i64>,
    active: bool,
}

impl Claimants {
    /// No need claims the machine: lower than any priority.
    pub(crate) const UNCLAIMED: i64 = i64::MIN;

    /// Whether claims are being followed.
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// Starts following claims.
    pub(crate) fn activate(&mut self, machines: usize, credits: impl Iterator<Item = impl AsRef<Credit>>) {
        self.active = true;
        self.priority = vec![Self::UNCLAIMED; machines];
        credits.for_each(|credit| self.enter(credit.as_ref()));
    }

    /// Forgets all claims, when machines changed their numbers or everything was built anew.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn enter(&mut self, credit: &Credit) {
        for (row, machine) in credit.claims() {
            let at = machine as usize;
            if self.priority.len() <= at {
                self.priority.resize(at + 1, Self::UNCLAIMED);
            }
            self.priority[at] = i64::from(credit.rows[row].priority());
        }
    }

    pub(crate) fn leave(&mut self, credit: &Credit) {
        credit.claims().for_each(|(_, machine)| self.priority[machine as usize] = Self::UNCLAIMED);
    }

    /// The priority of the need that claims a machine; the least there is for none.
    pub(crate) fn of(&self, machine: u32) -> i64 {
        self.priority.get(machine as usize).copied().unwrap_or(Self::UNCLAIMED)
    }
}

/// A victim and the grace it gets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Victim {
    pub(crate) machine: u32,
    pub(crate) grace_secs: u32,
}

/// Preemption in progress.
pub(crate) struct Preempt<'a> {
    sources: Sources<'a>,
    bound: &'a Lots,
    sets: &'a mut SupplySets,
    options: &'a Options,
    claimants: &'a Claimants,
    /// Machines preempted so far.
    pub(crate) taken: Bits,
    /// Draining machines already counted for a need.
    counted: Bits,
    /// Victims in order, per preemptor, and the candidates of each supply set among them.
    heads: Map<i32, Heads>,
    streams: Map<(u32, i32), Stream>,
    /// Victims by domain, per supply set, domain key and preemptor.
    lanes: Map<(u32, usize, i32), Vec<Lane>>,
    /// By preemptor, the place of every worth in the order of victims.
    costs: Map<i32, VictimCosts>,
}

/// The place of every worth in the order of victims of one preemptor; `None` for those it may not touch.
struct VictimCosts {
    by_worth: Vec<Option<u64>>,
    any: bool,
}

impl<'a> Preempt<'a> {
    pub(crate) fn new(
        sources: Sources<'a>,
        bound: &'a Lots,
        sets: &'a mut SupplySets,
        options: &'a Options,
        claimants: &'a Claimants,
    ) -> Self {
        let (taken, counted) = (Bits::default(), Bits::default());
        Self {
            sources,
            bound,
            sets,
            options,
            claimants,
            taken,
            counted,
            heads: Map::default(),
            streams: Map::default(),
            lanes: Map::default(),
            costs: Map::default(),
        }
    }

    /// Looks for victims for one need; `credited` are the machines credit gave it.
    pub(crate) fn serve(&mut self, short: &mut Short, credited: &[u32]) {
        let demand = short.demand.clone();
        let mut missing = Amounts::from_slice(&short.missing);
        if demand.need.parked || demand.same.is_some() && short.domain.is_none() {
            short.unresolved = Some(missing);
            return;
        }
        self.subtract_in_flight(short, &mut missing);
        if is_zero(&missing) {
            return;
        }
        let sources = self.sources;
        let preemptor = demand.priority();
        let number = self.sets.number(&demand, sources.classes, sources.sets);
        let set = self.sets.get(number);
        let (bound, options, claimants) = (self.bound, self.options, self.claimants);
        let costs = self.costs.entry(preemptor).or_insert_with(|| {
            let worths = 0..sources.vocab.worth_count();
            let by_worth: Vec<Option<u64>> =
                worths.map(|worth| victim_cost(sources.vocab.worth_of(worth), preemptor, options)).collect();
            VictimCosts { any: by_worth.iter().any(Option::is_some), by_worth }
        });
        if !costs.any {
            short.unresolved = Some(missing);
            return;
        }
        let cost = |worth: u32| costs.by_worth[worth as usize];
        let eligible = |machine: u32| claimants.of(machine) < i64::from(preemptor);
        let mut stock = Stock { sources, lots: bound, taken: &mut self.taken };
        let picked = if let Some(chosen) = short.domain {
            let domain = sources.classes.domain(demand.same.expect("only gangs have a domain"));
            let cells = &bound.domains[domain];
            let lists = cells.of_value(chosen.value).iter().filter_map(|number| {
                let lot = &bound.lots[cells.cells[*number as usize].lot as usize];
                let cost = set.members.contains(lot.class).then(|| cost(lot.rank))??;
                Some((cost, *number, lot.class, cells.machines(*number)))
            });
            let mut merge = Merge::new(lists, sources.inventory);
            stock.take_cells(domain, &mut merge, &mut missing, eligible)
        } else if let Some((key, headroom)) = demand.spread {
            let domain = sources.classes.domain(key);
            let held = credited.iter().chain(&short.acquired).chain(&short.in_flight).copied();
            let spread = Spread::new(sources, domain, headroom, held);
            let lanes = self.lanes.entry((number, domain, preemptor));
            let lanes = lanes.or_insert_with(|| lanes_of(sources, bound, domain, &set.classes, cost));
            stock.take_spread(spread, lanes, &mut missing, eligible)
        } else {
            let heads = self.heads.entry(preemptor).or_default();
            let stream = self.streams.entry((number, preemptor)).or_insert_with(|| {
                Stream::new(set.classes.iter().copied(), heads, &stock.order(cost, &eligible))
            });
            stock.take_classes(stream, heads, &mut missing, cost, eligible)
        };
        let grace = |machine: u32| {
            let victim = sources.vocab.worth_of(sources.inventory.row(machine).worth).priority;
            drain_grace_secs(priority_gap(preemptor, victim))
        };
        short.victims = picked.iter().map(|m| Victim { machine: *m, grace_secs: grace(*m) }).collect();
        if !is_zero(&missing) {
            short.unresolved = Some(missing);
        }
    }

    /// Gives a need what it got before, when nothing it depends on is different.
    pub(crate) fn repeat(&mut self, short: &mut Short, before: &Short) {
        short.in_flight.clone_from(&before.in_flight);
        short.victims.clone_from(&before.victims);
        short.unresolved.clone_from(&before.unresolved);
        for machine in &short.in_flight {
            self.counted.insert(*machine);
        }
        for victim in &short.victims {
            self.taken.insert(victim.machine);
        }
    }

    /// Takes what already drains on behalf of a need off its deficit.
    fn subtract_in_flight(&mut self, short: &mut Short, missing: &mut Amounts) {
        let Sources { inventory, index, classes, sets, .. } = self.sources;
        let demand = &short.demand;
        for machine in index.holdings.draining(demand.key).iter().copied() {
            let row = inventory.row(machine);
            let class = classes.of_kind(row.kind);
            let counts =
                sets.admits(demand.requirements).contains(class) && classes.covers(class, &demand.min_unit);
            let in_domain = short.domain.is_none_or(|chosen| {
                let domain = classes.domain(demand.same.expect("only gangs have a domain"));
                classes.domain_of_kind(domain, row.kind) == chosen.value
            });
            let provides = classes.provides(class);
            if counts && in_domain && contributes(provides, missing) && self.counted.insert(machine) {
                short.in_flight.push(machine);
                if subtract(missing, provides) {
                    return;
                }
            }
        }
    }
}
