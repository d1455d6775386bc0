//! Phase 2: machines of strictly lower priority for what phase 1 left missing.
//!
//! A preemption frees a machine for the next cycle; nothing is reserved. What already drains for a need is
//! subtracted before new victims are picked, so that one deficit does not drain the fleet while it waits. Machines no
//! need claims go first: they would be reclaimed anyway.

mod gang;
mod spread;

use bigfleet_model::cost::{drain_grace_secs, priority_gap};

use crate::amounts::{contributes, is_zero, subtract};
use crate::bits::Bits;
use crate::intern::Map;
use crate::lots::Lots;
use crate::needs::Demand;
use crate::vocab::Amounts;

use super::Short;
use super::claimants::Rules;
use super::market::Market;
use super::prices::victim_cost;
use super::sources::Sources;
use super::spread::Spread;
use super::totals::DomainTotals;
use super::trim::trim;
use super::victims::{Eligible, VictimQueue, Victims};

/// A victim and the grace it gets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Victim {
    pub(crate) machine: u32,
    pub(crate) grace_secs: u32,
}

/// Preemption in progress. Needs come in precedence order, so all of one priority come together.
pub(crate) struct Preempt<'a, 'm> {
    sources: Sources<'a>,
    bound: &'m Lots,
    market: &'m mut Market<'a>,
    rules: Rules<'m>,
    /// Machines preempted so far, and the same in turn.
    pub(crate) taken: Bits,
    moves: Vec<u32>,
    /// The lots that have machines no need claims.
    unclaimed: Bits,
    /// Draining machines already counted for a need.
    counted: Bits,
    /// What is at hand for the priority that preempts now.
    now: Option<Priority>,
}

/// What is at hand for one preempting priority.
struct Priority {
    preemptor: i32,
    /// By worth, the place in the order of victims; `None` for those it may not touch.
    costs: Vec<Option<u64>>,
    victims: Victims,
    queues: Map<u32, VictimQueue>,
    totals: Map<(u32, usize), DomainTotals>,
    lanes: Map<usize, spread::Lanes>,
}

impl<'a, 'm> Preempt<'a, 'm> {
    /// Begins. `unclaimed` are the Configured machines no need claims, of clusters that have reported.
    pub(crate) fn new(
        bound: &'m Lots,
        market: &'m mut Market<'a>,
        rules: Rules<'m>,
        unclaimed: impl Iterator<Item = u32>,
    ) -> Self {
        let sources = market.sources;
        let lot = |m: u32| bound.find(sources.class_of(m), sources.inventory.row(m).worth);
        let unclaimed = unclaimed.filter_map(lot).collect();
        let (taken, counted) = (Bits::default(), Bits::default());
        Self { sources, bound, market, rules, taken, moves: Vec::new(), unclaimed, counted, now: None }
    }

    /// Looks for victims for one need; `claims` are the bound machines it has.
    pub(crate) fn serve(&mut self, short: &mut Short, claims: &[u32]) {
        let demand = short.demand.clone();
        if demand.need.parked {
            short.unresolved = Some(Amounts::from_slice(&short.missing));
            return;
        }
        self.prepare(demand.priority());
        if demand.same.is_some() {
            self.serve_gang(short, &demand, claims);
            return;
        }
        let mut missing = Amounts::from_slice(&short.missing);
        let in_flight = self.sources.draining_for(&demand);
        short.in_flight = self.subtract_in_flight(in_flight.iter().copied(), &mut missing);
        if is_zero(&missing) {
            return;
        }
        let picked = if let Some((key, headroom)) = demand.spread {
            let domain = self.sources.classes.domain(key);
            let held = claims.iter().chain(&short.acquired).copied().chain(in_flight);
            let spread = Spread::new(self.sources, domain, headroom, held);
            self.pick_spread(&demand, spread, &mut missing)
        } else {
            self.pick_anywhere(&demand, &mut missing)
        };
        self.note(short, &picked);
        if !is_zero(&missing) {
            short.unresolved = Some(missing);
        }
    }

    /// Gets ready for needs of a priority.
    fn prepare(&mut self, preemptor: i32) {
        if self.now.as_ref().is_some_and(|now| now.preemptor == preemptor) {
            return;
        }
        let (vocab, options) = (self.sources.vocab, self.rules.options);
        let worths = 0..vocab.worth_count();
        let costs = worths.map(|worth| victim_cost(vocab.worth_of(worth), preemptor, options)).collect();
        self.now = Some(Priority {
            preemptor,
            costs,
            victims: Victims::new(self.bound.lots.len()),
            queues: Map::default(),
            totals: Map::default(),
            lanes: Map::default(),
        });
    }

    /// Takes what already drains off what is missing; returns the machines that count.
    fn subtract_in_flight(&mut self, draining: impl Iterator<Item = u32>, missing: &mut Amounts) -> Vec<u32> {
        let mut in_flight = Vec::new();
        for machine in draining {
            if is_zero(missing) {
                break;
            }
            let provides = self.sources.classes.provides(self.sources.class_of(machine));
            if contributes(provides, missing) && self.counted.insert(machine) {
                in_flight.push(machine);
                subtract(missing, provides);
            }
        }
        in_flight
    }

    fn note(&mut self, short: &mut Short, picked: &[u32]) {
        let Sources { vocab, inventory, .. } = self.sources;
        let preemptor = short.demand.priority();
        short.victims = picked
            .iter()
            .map(|machine| {
                let victim = vocab.worth_of(inventory.row(*machine).worth).priority;
                let grace_secs = drain_grace_secs(priority_gap(preemptor, victim));
                Victim { machine: *machine, grace_secs }
            })
            .collect();
    }

    /// Picks victims wherever they are until nothing is missing, best first; then spares those not needed.
    fn pick_anywhere(&mut self, demand: &Demand, missing: &mut Amounts) -> Vec<u32> {
        let number = self.market.set(demand);
        let (sources, bound, rules) = (self.sources, self.bound, self.rules);
        let now = self.now.as_mut().expect("a priority is being served");
        let classes = &self.market.sets.get(number).classes;
        let queue = now
            .queues
            .entry(number)
            .or_insert_with(|| VictimQueue::new(bound, classes, &now.costs, &self.unclaimed));
        let wanted = missing.clone();
        let eligible = Eligible { sources, rules, preemptor: now.preemptor };
        let mut picked = now.victims.pick(queue, bound, eligible, &mut self.taken, missing);
        if is_zero(missing) {
            let (taken, victims) = (&mut self.taken, &mut now.victims);
            let provides = |machine: u32| sources.classes.provides(sources.class_of(machine));
            trim(&mut picked, &wanted, provides, |machine| {
                taken.remove(machine);
                victims.give_back(machine, bound, sources);
            });
        }
        self.moves.extend_from_slice(&picked);
        picked
    }
}
