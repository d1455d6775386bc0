//! Gangs preempt in one domain, and only where that completes them.

use crate::amounts::{contributes, is_zero, subtract};
use crate::cycle::Short;
use crate::cycle::choice::reaches;
use crate::cycle::totals::DomainTotals;
use crate::cycle::trim::trim;
use crate::intern::NONE;
use crate::needs::Demand;
use crate::vocab::Amounts;

use super::Preempt;

impl Preempt<'_, '_> {
    /// The place of a machine among victims: unclaimed ones first, then by score, then by id. `None` if it is none.
    fn place(&self, machine: u32) -> Option<(bool, u64, u64)> {
        let now = self.now.as_ref().expect("a priority is being served");
        let row = self.sources.inventory.row(machine);
        let cost = now.costs[row.worth as usize]?;
        if self.taken.contains(machine) {
            return None;
        }
        let claimed = self.rules.is_claimed(machine, self.sources.inventory, now.preemptor)?;
        Some((claimed, cost, row.order))
    }

    /// The victims of some cells, best first.
    fn victims_in(&self, domain: usize, cells: impl Iterator<Item = u32>, set: u32) -> Vec<u32> {
        let members = &self.market.sets.get(set).members;
        let of_domain = &self.bound.domains[domain];
        let cells = cells.filter(|cell| {
            members.contains(self.bound.lots[of_domain.cells[*cell as usize].lot as usize].class)
        });
        let machines = cells.flat_map(|cell| of_domain.machines(cell)).map(|one| one.machine);
        let mut placed: Vec<_> =
            machines.filter_map(|machine| Some((self.place(machine)?, machine))).collect();
        placed.sort_unstable();
        placed.into_iter().map(|(_, machine)| machine).collect()
    }

    /// A gang preempts in one domain, and only where that completes it.
    pub(super) fn serve_gang(&mut self, short: &mut Short, demand: &Demand, claims: &[u32]) {
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
                    let eligible =
                        cells.machines(cell).iter().filter(|one| self.place(one.machine).is_some()).count();
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
