//! Victims under a strict spread: domain by domain, best first.

use std::cmp::Reverse;

use crate::amounts::{contributes, is_zero, subtract};
use crate::cycle::spread::Spread;
use crate::cycle::victims::{Eligible, ROUNDS, VictimHeap};
use crate::intern::Map;
use crate::needs::Demand;
use crate::vocab::Amounts;

use super::Preempt;

/// The victims of one set in one domain.
pub(super) struct Lane {
    value: u32,
    rounds: [VictimHeap; 2],
}

/// The victims of all sets under one domain key, as far as they have been looked at.
pub(super) struct Lanes {
    /// By round and cell, how many of its first machines are no victims any more.
    done: [Vec<u32>; 2],
    of_set: Map<u32, Vec<Lane>>,
}

impl Preempt<'_, '_> {
    /// The lanes of a set. Where each cell stands is found out when it comes up.
    fn lanes(&self, number: u32, domain: usize) -> Vec<Lane> {
        let now = self.now.as_ref().expect("a priority is being served");
        let cells = &self.bound.domains[domain].cells;
        let mut heads: Map<u32, [Vec<_>; 2]> = Map::default();
        for class in &self.market.sets.get(number).classes {
            for number in self.bound.cells_of_class(domain, *class) {
                let cell = &cells[number as usize];
                let Some(cost) = now.costs[self.bound.lots[cell.lot as usize].rank as usize] else {
                    continue;
                };
                let head = Reverse(VictimHeap::unknown(number, cost));
                let [unclaimed, claimed] = heads.entry(cell.value).or_default();
                if self.unclaimed.contains(cell.lot) {
                    unclaimed.push(head);
                }
                claimed.push(head);
            }
        }
        let lane = |(value, rounds): (u32, [Vec<_>; 2])| Lane { value, rounds: rounds.map(VictimHeap::new) };
        let mut lanes: Vec<Lane> = heads.into_iter().map(lane).collect();
        lanes.sort_unstable_by_key(|lane| lane.value);
        lanes
    }

    /// Picks victims under a strict spread.
    pub(super) fn pick_spread(
        &mut self,
        demand: &Demand,
        mut spread: Spread,
        missing: &mut Amounts,
    ) -> Vec<u32> {
        let number = self.market.set(demand);
        let sources = self.sources;
        let (classes, domain) = (sources.classes, spread.domain);
        let of_domain = &self.bound.domains[domain];
        let mut all = self.now.as_mut().and_then(|now| now.lanes.remove(&domain)).unwrap_or_else(|| {
            let none = vec![0; of_domain.cells.len()];
            Lanes { done: [none.clone(), none], of_set: Map::default() }
        });
        let mut lanes = all.of_set.remove(&number).unwrap_or_else(|| self.lanes(number, domain));
        for value in self.market.free_domains(demand, domain) {
            spread.open(value);
        }
        let now = self.now.as_ref().expect("a priority is being served");
        let eligible = Eligible { sources, rules: self.rules, preemptor: now.preemptor };
        let machines = |cell: u32| of_domain.machines(cell);
        let class = |cell: u32| self.bound.lots[of_domain.cells[cell as usize].lot as usize].class;
        for lane in &mut lanes {
            let mut is_any = |round: bool| {
                let at = usize::from(round);
                lane.rounds[at].peek(round, &mut all.done[at], machines, &self.taken, eligible).is_some()
            };
            if ROUNDS.into_iter().any(&mut is_any) {
                spread.open(lane.value);
            }
        }
        let mut picked = Vec::new();
        while !is_zero(missing) {
            let limit = spread.limit();
            let mut best = None;
            for (at, lane) in
                lanes.iter_mut().enumerate().filter(|(_, lane)| spread.permits(lane.value, limit))
            {
                for round in ROUNDS {
                    let heap = &mut lane.rounds[usize::from(round)];
                    let done = &mut all.done[usize::from(round)];
                    let head = loop {
                        let Some(head) = heap.peek(round, done, machines, &self.taken, eligible) else {
                            break None;
                        };
                        if contributes(classes.provides(class(head.list)), missing) {
                            break Some(head);
                        }
                        // What adds nothing now never will: less and less is missing.
                        heap.set_aside();
                    };
                    if let Some(head) = head {
                        let place = (round, head.cost, head.order, head.machine, class(head.list), at);
                        best = Some(
                            best.map_or(place, |best: (bool, u64, u64, u32, u32, usize)| best.min(place)),
                        );
                        break;
                    }
                }
            }
            let Some((_, _, _, machine, class, at)) = best else { break };
            spread.add(lanes[at].value);
            self.taken.insert(machine);
            self.moves.push(machine);
            picked.push(machine);
            subtract(missing, classes.provides(class));
        }
        lanes.iter_mut().flat_map(|lane| &mut lane.rounds).for_each(VictimHeap::put_back);
        all.of_set.insert(number, lanes);
        self.now.as_mut().expect("a priority is being served").lanes.insert(domain, all);
        picked
    }
}
