//! Phase 2: machines of strictly lower priority for what phase 1 left missing.
//!
//! A preemption frees a machine for the next cycle; nothing is reserved. What already drains for a need is
//! subtracted before new victims are picked, so that one deficit does not drain the fleet while it waits. Machines no
//! need claims go first: they would be reclaimed anyway.

use bigfleet_model::cost::{drain_grace_secs, priority_gap};

use crate::amounts::{contributes, is_zero, subtract};
use crate::bits::Bits;
use crate::intern::{Map, NONE};
use crate::lots::Lots;
use crate::needs::Demand;
use crate::options::Options;
use crate::vocab::Amounts;

use super::Short;
use super::choice::reaches;
use super::credit::Credit;
use super::market::Market;
use super::prices::victim_cost;
use super::sources::Sources;
use super::spread::Spread;
use super::totals::DomainTotals;
use super::trim::trim;
use super::victims::{VictimQueue, Victims};

/// The priority of the need that claims each bound machine. Kept from cycle to cycle once it is needed.
#[derive(Clone, Default)]
pub(crate) struct Claimants {
    priority: Vec<i64>,
    active: bool,
}

impl Claimants {
    /// Stands for no claim: below every priority.
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
        (0..credit.rows.len() as u32).for_each(|row| self.enter_row(credit, row));
    }

    /// Enters the claims of one need.
    pub(crate) fn enter_row(&mut self, credit: &Credit, row: u32) {
        let priority = i64::from(credit.rows[row as usize].priority());
        for machine in credit.claims_of(row as usize) {
            let at = *machine as usize;
            if self.priority.len() <= at {
                self.priority.resize(at + 1, Self::UNCLAIMED);
            }
            self.priority[at] = priority;
        }
    }

    /// Forgets the claims of one need.
    pub(crate) fn leave_row(&mut self, credit: &Credit, row: u32) {
        let claims = credit.claims_of(row as usize);
        claims.iter().for_each(|machine| self.priority[*machine as usize] = Self::UNCLAIMED);
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

/// What phase 2 reads besides the fleet.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    pub(crate) options: &'a Options,
    pub(crate) claimants: &'a Claimants,
    /// By cluster, whether it has reported: the machines of one that has not rank as claimed.
    pub(crate) ready: &'a [bool],
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
    lanes: Map<(u32, usize), Vec<Lane>>,
}

/// The victims in one domain, best first.
struct Lane {
    value: u32,
    /// Each with its place among all victims.
    victims: Vec<(u32, u32)>,
    /// Those before are taken.
    first: usize,
    /// Where the need that picks now stands.
    at: usize,
}

impl<'a, 'm> Preempt<'a, 'm> {
    pub(crate) fn new(bound: &'m Lots, market: &'m mut Market<'a>, rules: Rules<'m>) -> Self {
        let sources = market.sources;
        let (taken, counted) = (Bits::default(), Bits::default());
        Self { sources, bound, market, rules, taken, moves: Vec::new(), counted, now: None }
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
        let queue = now.queues.entry(number).or_insert_with(|| VictimQueue::new(bound, classes, &now.costs));
        let wanted = missing.clone();
        let mut picked =
            now.victims.pick(queue, bound, sources, rules, now.preemptor, &mut self.taken, missing);
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

    /// The place of a machine among victims: unclaimed ones first, then by score, then by id. `None` if it is none.
    fn place(&self, machine: u32) -> Option<(bool, u64, u64)> {
        let now = self.now.as_ref().expect("a priority is being served");
        let row = self.sources.inventory.row(machine);
        let cost = now.costs[row.worth as usize]?;
        if self.taken.contains(machine) {
            return None;
        }
        let claimed = self.rules.is_claimed(machine, row.cluster, now.preemptor)?;
        Some((claimed, cost, row.order))
    }

    /// The victims of some cells, best first.
    fn victims_in(&self, domain: usize, cells: impl Iterator<Item = u32>, set: u32) -> Vec<u32> {
        let members = &self.market.sets.get(set).members;
        let of_domain = &self.bound.domains[domain];
        let cells = cells.filter(|cell| {
            members.contains(self.bound.lots[of_domain.cells[*cell as usize].lot as usize].class)
        });
        let machines = cells.flat_map(|cell| of_domain.machines(cell)).copied();
        let mut placed: Vec<_> =
            machines.filter_map(|machine| Some((self.place(machine)?, machine))).collect();
        placed.sort_unstable();
        placed.into_iter().map(|(_, machine)| machine).collect()
    }

    /// The victims of a set by domain, each domain's in order.
    fn lanes(&self, number: u32, domain: usize) -> Vec<Lane> {
        let set = self.market.sets.get(number);
        let cells = set.classes.iter().flat_map(|class| self.bound.cells_of_class(domain, *class));
        let victims = self.victims_in(domain, cells, number);
        let mut lanes: Vec<Lane> = Vec::new();
        let mut lane_of: Map<u32, usize> = Map::default();
        for (place, machine) in (0..).zip(victims) {
            let value = self.sources.domain_of(domain, machine);
            let lane = *lane_of.entry(value).or_insert(lanes.len());
            if lane == lanes.len() {
                lanes.push(Lane { value, victims: Vec::new(), first: 0, at: 0 });
            }
            lanes[lane].victims.push((place, machine));
        }
        lanes
    }

    /// Picks victims under a strict spread.
    fn pick_spread(&mut self, demand: &Demand, mut spread: Spread, missing: &mut Amounts) -> Vec<u32> {
        let number = self.market.set(demand);
        let sources = self.sources;
        let (classes, domain) = (sources.classes, spread.domain);
        let key = (number, domain);
        if !self.now.as_ref().expect("a priority is being served").lanes.contains_key(&key) {
            let lanes = self.lanes(number, domain);
            self.now.as_mut().expect("it is there").lanes.insert(key, lanes);
        }
        let mut lanes = {
            let now = self.now.as_mut().expect("a priority is being served");
            now.lanes.remove(&key).expect("they were just made")
        };
        for lane in &mut lanes {
            // What was taken by needs before this one is gone for all.
            while lane.victims.get(lane.first).is_some_and(|(_, machine)| self.taken.contains(*machine)) {
                lane.first += 1;
            }
            lane.at = lane.first;
            let rest = &lane.victims[lane.first..];
            if rest.iter().any(|(_, machine)| !self.taken.contains(*machine)) {
                spread.open(lane.value);
            }
        }
        for value in self.market.free_domains(demand, domain) {
            spread.open(value);
        }
        let mut picked = Vec::new();
        while !is_zero(missing) {
            let limit = spread.limit();
            let permitted =
                lanes.iter_mut().enumerate().filter(|(_, lane)| spread.permits(lane.value, limit));
            let next = permitted.filter_map(|(at, lane)| {
                // What adds nothing now never will: less and less is missing.
                while let Some((place, machine)) = lane.victims.get(lane.at) {
                    let provides = classes.provides(sources.class_of(*machine));
                    if !self.taken.contains(*machine) && contributes(provides, missing) {
                        return Some((*place, *machine, at));
                    }
                    lane.at += 1;
                }
                None
            });
            let Some((_, machine, at)) = next.min() else { break };
            spread.add(lanes[at].value);
            self.taken.insert(machine);
            self.moves.push(machine);
            picked.push(machine);
            subtract(missing, classes.provides(sources.class_of(machine)));
        }
        self.now.as_mut().expect("a priority is being served").lanes.insert(key, lanes);
        picked
    }

    /// A gang preempts in one domain, and only where that completes it.
    fn serve_gang(&mut self, short: &mut Short, demand: &Demand, claims: &[u32]) {
        let home = short.domain.map(|chosen| chosen.value);
        let domain = self.sources.classes.domain(demand.same.expect("only gangs have a domain"));
        let number = self.market.set(demand);
        let draining = self.sources.draining_for(demand);
        self.catch_up(number, domain);
        let found =
            home.and_then(|value| self.complete_in(value, domain, number, demand, short, claims, &draining));
        let (value, victims) = if let (Some(value), Some(victims)) = (home, found) {
            (value, victims)
        } else {
            let mut values: Vec<u32> = self.victim_totals(number, domain).values().collect();
            values.extend(self.market.free_domains(demand, domain));
            values.extend(draining.iter().map(|machine| self.sources.domain_of(domain, *machine)));
            values.sort_unstable();
            values.dedup();
            let text = |value: u32| self.sources.vocab.text(self.sources.classes.domain_value(domain, value));
            let mut best: Option<(usize, u32, Vec<u32>)> = None;
            let largest = self.largest(number);
            for value in values.into_iter().filter(|value| Some(*value) != home && *value != NONE) {
                // Most domains need not be looked at closely: even of the largest machines it takes so many.
                let least = self.least_victims(value, domain, demand, short, claims, &draining, &largest);
                let hopeless = best.as_ref().is_some_and(|(fewest, other, _)| {
                    least.cmp(&(*fewest as u64)).then_with(|| text(value).cmp(text(*other))).is_gt()
                });
                if hopeless {
                    continue;
                }
                let Some(victims) = self.complete_in(value, domain, number, demand, short, claims, &draining)
                else {
                    continue;
                };
                let better = best.as_ref().is_none_or(|(fewest, other, _)| {
                    victims.len().cmp(fewest).then_with(|| text(value).cmp(text(*other))).is_lt()
                });
                if better {
                    best = Some((victims.len(), value, victims));
                }
            }
            let Some((_, value, victims)) = best else {
                short.unresolved = Some(Amounts::from_slice(&short.missing));
                return;
            };
            (value, victims)
        };
        let mut missing = self.left_of_claims(value, domain, demand, short, claims);
        let here = draining.iter().copied().filter(|m| self.sources.domain_of(domain, *m) == value);
        short.in_flight = self.subtract_in_flight(here.collect::<Vec<_>>().into_iter(), &mut missing);
        for machine in &victims {
            self.taken.insert(*machine);
            self.moves.push(*machine);
        }
        self.note(short, &victims);
    }

    /// What a gang misses in a domain besides what it claims there.
    fn left_of_claims(
        &self,
        value: u32,
        domain: usize,
        demand: &Demand,
        short: &Short,
        claims: &[u32],
    ) -> Amounts {
        let mut missing = Amounts::from_slice(&demand.aggregate);
        for machine in claims.iter().chain(&short.acquired) {
            if self.sources.domain_of(domain, *machine) == value {
                subtract(&mut missing, self.sources.classes.provides(self.sources.class_of(*machine)));
            }
        }
        missing
    }

    /// What victims must cover in a domain: the demand less what the gang claims, what is in flight and what is free there.
    fn left_for_victims(
        &mut self,
        value: u32,
        domain: usize,
        demand: &Demand,
        short: &Short,
        claims: &[u32],
        draining: &[u32],
    ) -> Amounts {
        let sources = self.sources;
        let mut missing = self.left_of_claims(value, domain, demand, short, claims);
        for machine in draining.iter().filter(|machine| !self.counted.contains(**machine)) {
            if sources.domain_of(domain, *machine) == value {
                subtract(&mut missing, sources.classes.provides(sources.class_of(*machine)));
            }
        }
        let (_, free) = self.market.free_in(demand, domain, value);
        missing.iter_mut().zip(&free).for_each(|((_, left), free)| *left = left.saturating_sub(*free));
        missing
    }

    /// The most any class of a set provides of each resource.
    fn largest(&self, number: u32) -> Vec<u64> {
        let mut largest = vec![0; self.sources.vocab.dim_count()];
        for class in &self.market.sets.get(number).classes {
            let provides = self.sources.classes.provides(*class);
            largest.iter_mut().zip(provides).for_each(|(most, one)| *most = (*most).max(*one));
        }
        largest
    }

    /// So many victims at least a gang would need in a domain.
    #[expect(clippy::too_many_arguments, reason = "a gang's situation, put together once a domain")]
    fn least_victims(
        &mut self,
        value: u32,
        domain: usize,
        demand: &Demand,
        short: &Short,
        claims: &[u32],
        draining: &[u32],
        largest: &[u64],
    ) -> u64 {
        let missing = self.left_for_victims(value, domain, demand, short, claims, draining);
        let counts = missing.iter().map(|(dim, left)| match largest[*dim as usize] {
            0 => u64::from(*left > 0) * u64::MAX,
            most => left.div_ceil(most),
        });
        counts.max().unwrap_or(0)
    }

    /// The victims a gang would need in a domain, after all that is there for it already; `None` if even all victims
    /// there would not complete it.
    #[expect(clippy::too_many_arguments, reason = "a gang's situation, put together once a domain")]
    fn complete_in(
        &mut self,
        value: u32,
        domain: usize,
        number: u32,
        demand: &Demand,
        short: &Short,
        claims: &[u32],
        draining: &[u32],
    ) -> Option<Vec<u32>> {
        let sources = self.sources;
        let mut missing = self.left_for_victims(value, domain, demand, short, claims, draining);
        let (_, victims) = self.victim_totals(number, domain).of(value, demand);
        if !reaches(&victims, &missing) {
            return None;
        }
        let cells: Vec<u32> = self.bound.domains[domain].of_value(value).to_vec();
        let wanted = missing.clone();
        let mut picked = Vec::new();
        for machine in self.victims_in(domain, cells.into_iter(), number) {
            if is_zero(&missing) {
                break;
            }
            let provides = sources.classes.provides(sources.class_of(machine));
            if contributes(provides, &missing) {
                picked.push(machine);
                subtract(&mut missing, provides);
            }
        }
        debug_assert!(is_zero(&missing), "what all victims cover, those that contribute cover");
        trim(&mut picked, &wanted, |m| sources.classes.provides(sources.class_of(m)), |_| {});
        Some(picked)
    }

    fn victim_totals(&self, number: u32, domain: usize) -> &DomainTotals {
        &self.now.as_ref().expect("a priority is being served").totals[&(number, domain)]
    }

    /// Brings the totals of a set's victims up to the present, making them if there are none.
    fn catch_up(&mut self, number: u32, domain: usize) {
        let sources = self.sources;
        let classes = sources.classes;
        let now = self.now.as_ref().expect("a priority is being served");
        if !now.totals.contains_key(&(number, domain)) {
            let mut table =
                DomainTotals::new(classes.domain_len(domain), sources.vocab.dim_count(), self.moves.len());
            for class in &self.market.sets.get(number).classes {
                for cell in self.bound.cells_of_class(domain, *class) {
                    let cells = &self.bound.domains[domain];
                    let eligible = cells.machines(cell).iter().filter(|m| self.place(**m).is_some()).count();
                    if eligible > 0 {
                        let value = cells.cells[cell as usize].value;
                        table.add(value, eligible as u32, classes.provides(*class));
                    }
                }
            }
            self.now.as_mut().expect("it is there").totals.insert((number, domain), table);
        }
        let now = self.now.as_mut().expect("a priority is being served");
        let members = &self.market.sets.get(number).members;
        let table = now.totals.get_mut(&(number, domain)).expect("it was just made");
        for machine in &self.moves[table.heard..] {
            let class = sources.class_of(*machine);
            let value = sources.domain_of(domain, *machine);
            if value != NONE && members.contains(class) {
                table.take(value, classes.provides(class));
            }
        }
        table.heard = self.moves.len();
    }
}

impl Rules<'_> {
    /// Whether a machine a need of this priority may take counts as claimed; `None` if it may not take it.
    pub(crate) fn is_claimed(&self, machine: u32, cluster: u32, preemptor: i32) -> Option<bool> {
        let claim = self.claimants.of(machine);
        let claimed = claim != Claimants::UNCLAIMED;
        (!claimed || claim < i64::from(preemptor)).then(|| claimed || !self.ready[cluster as usize])
    }
}
