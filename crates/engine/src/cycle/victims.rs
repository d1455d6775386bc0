//! Victims in order, for all needs of one priority: unclaimed before claimed, then by score, then by id.
//!
//! Score and eligibility are the same for all needs of a priority, so each lot keeps one place for all of them, and
//! a need's victims are a heap of the lots it admits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::amounts::{contributes, subtract};
use crate::bits::Bits;
use crate::intern::Map;
use crate::lots::{Lots, Shelved};
use crate::vocab::Amounts;

use super::bargain::Head;
use super::claimants::Rules;
use super::sources::Sources;

/// Unclaimed victims, then claimed ones.
pub(crate) const ROUNDS: [bool; 2] = [false, true];

/// Which machines are victims at all.
#[derive(Clone, Copy)]
pub(crate) struct Eligible<'a> {
    pub(crate) sources: Sources<'a>,
    pub(crate) rules: Rules<'a>,
    pub(crate) preemptor: i32,
}

impl Eligible<'_> {
    /// Whether a machine comes up in a round.
    fn is_up(self, machine: u32, round: bool, taken: &Bits) -> bool {
        !taken.contains(machine)
            && self.rules.is_claimed(machine, self.sources.inventory, self.preemptor) == Some(round)
    }
}

/// Lists of victims that cost the same each, best first, in one round.
pub(crate) struct VictimHeap {
    heap: BinaryHeap<Reverse<Head>>,
    aside: Vec<Reverse<Head>>,
}

impl VictimHeap {
    pub(crate) fn new(heads: Vec<Reverse<Head>>) -> Self {
        Self { heap: heads.into(), aside: Vec::new() }
    }

    /// The head of a list that has not been looked at.
    pub(crate) fn unknown(list: u32, cost: u64) -> Head {
        Head { cost, order: 0, list, at: u32::MAX, machine: 0 }
    }

    /// The best victim. `done` tells of each list how many of its first machines are no victims any more.
    pub(crate) fn peek<'l>(
        &mut self,
        round: bool,
        done: &mut [u32],
        machines: impl Fn(u32) -> &'l [Shelved],
        taken: &Bits,
        eligible: Eligible<'_>,
    ) -> Option<Head> {
        loop {
            let mut top = self.heap.peek_mut()?;
            let Head { list, at, machine, .. } = top.0;
            let place = &mut done[list as usize];
            if *place == at && eligible.is_up(machine, round, taken) {
                return Some(top.0);
            }
            let rest = &machines(list)[*place as usize..];
            let ahead = rest.iter().position(|one| eligible.is_up(one.machine, round, taken));
            *place += ahead.unwrap_or(rest.len()) as u32;
            match ahead {
                None => {
                    PeekMut::pop(top);
                }
                Some(ahead) => {
                    let Shelved { order, machine } = rest[ahead];
                    top.0 = Head { at: *place, machine, order, ..top.0 };
                }
            }
        }
    }

    /// Leaves the list of the best victim out until [`Self::put_back`].
    pub(crate) fn set_aside(&mut self) {
        self.aside.extend(self.heap.pop());
    }

    pub(crate) fn put_back(&mut self) {
        self.heap.extend(self.aside.drain(..));
    }
}

/// How far each lot is used up, in each round.
pub(crate) struct Victims {
    done: [Vec<u32>; 2],
    /// The lots victims were given back to.
    returns: Vec<u32>,
}

/// The victims of needs that admit the same classes, best first, in each round.
pub(crate) struct VictimQueue {
    rounds: [VictimHeap; 2],
    heard: usize,
    costs: Map<u32, u64>,
}

impl VictimQueue {
    /// All lots of some classes that may be touched. Where each of them stands is found out when it comes up.
    pub(crate) fn new(bound: &Lots, classes: &[u32], costs: &[Option<u64>], unclaimed: &Bits) -> Self {
        let lots = classes.iter().flat_map(|class| bound.of_class(*class)).copied();
        let touchable = lots.filter_map(|lot| Some((lot, costs[bound.lots[lot as usize].rank as usize]?)));
        let costs: Map<u32, u64> = touchable.collect();
        let heads = |wanted: &dyn Fn(u32) -> bool| {
            let lots = costs.iter().filter(|(lot, _)| wanted(**lot));
            VictimHeap::new(lots.map(|(lot, cost)| Reverse(VictimHeap::unknown(*lot, *cost))).collect())
        };
        Self { rounds: [heads(&|lot| unclaimed.contains(lot)), heads(&|_| true)], heard: 0, costs }
    }
}

impl Victims {
    pub(crate) fn new(lots: usize) -> Self {
        Self { done: [vec![0; lots], vec![0; lots]], returns: Vec::new() }
    }

    /// Picks victims until nothing is missing or none is left.
    pub(crate) fn pick(
        &mut self,
        queue: &mut VictimQueue,
        bound: &Lots,
        eligible: Eligible<'_>,
        taken: &mut Bits,
        missing: &mut Amounts,
    ) -> Vec<u32> {
        for lot in &self.returns[queue.heard..] {
            if let Some(cost) = queue.costs.get(lot) {
                let head = VictimHeap::unknown(*lot, *cost);
                queue.rounds.iter_mut().for_each(|round| round.heap.push(Reverse(head)));
            }
        }
        queue.heard = self.returns.len();
        let mut picked = Vec::new();
        let machines = |lot: u32| bound.machines(lot);
        for round in ROUNDS {
            let done = &mut self.done[usize::from(round)];
            let heap = &mut queue.rounds[usize::from(round)];
            let mut covered = false;
            while !covered {
                let Some(head) = heap.peek(round, done, machines, taken, eligible) else { break };
                let provides = eligible.sources.classes.provides(bound.lots[head.list as usize].class);
                if contributes(provides, missing) {
                    taken.insert(head.machine);
                    picked.push(head.machine);
                    covered = subtract(missing, provides);
                } else {
                    // All machines of a lot provide the same: none of them will help this need any more.
                    heap.set_aside();
                }
            }
            heap.put_back();
            if covered {
                break;
            }
        }
        picked
    }

    /// A victim that is spared after all is there for whoever comes next.
    pub(crate) fn give_back(&mut self, machine: u32, bound: &Lots, sources: Sources<'_>) {
        let row = sources.inventory.row(machine);
        let lot = bound.find(sources.class_of(machine), row.worth).expect("a victim lies in a lot");
        let machines = bound.machines(lot);
        let at = machines.partition_point(|one| one.order < row.order) as u32;
        for done in &mut self.done {
            let done = &mut done[lot as usize];
            *done = (*done).min(at);
        }
        self.returns.push(lot);
    }
}
