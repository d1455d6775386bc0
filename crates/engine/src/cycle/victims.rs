//! Victims in order, for all needs of one priority: unclaimed before claimed, then by score, then by id.
//!
//! Score and eligibility are the same for all needs of a priority, so each lot keeps one place for all of them, and
//! a need's victims are a heap of the lots it admits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::amounts::{contributes, subtract};
use crate::bits::Bits;
use crate::lots::Lots;
use crate::vocab::Amounts;

use super::bargain::Head;
use super::preempt::Rules;
use super::sources::Sources;

/// Unclaimed victims, then claimed ones.
const ROUNDS: [bool; 2] = [false, true];

/// How far each lot is used up, in each round.
pub(crate) struct Victims {
    done: [Vec<u32>; 2],
    /// The lots victims were given back to.
    returns: Vec<u32>,
}

/// The victims of needs that admit the same classes, best first, in each round.
pub(crate) struct VictimQueue {
    heaps: [BinaryHeap<Reverse<Head>>; 2],
    aside: Vec<Reverse<Head>>,
    members: Bits,
    heard: usize,
    costs: Vec<(u32, u64)>,
}

impl VictimQueue {
    /// All lots of some classes that may be touched. Where each of them stands is found out when it comes up.
    pub(crate) fn new(bound: &Lots, classes: &[u32], costs: &[Option<u64>]) -> Self {
        let lots = classes.iter().flat_map(|class| bound.of_class(*class)).copied();
        let touchable = lots.filter_map(|lot| Some((lot, costs[bound.lots[lot as usize].rank as usize]?)));
        let costs: Vec<(u32, u64)> = touchable.collect();
        let unknown = |(lot, cost): &(u32, u64)| {
            Reverse(Head { cost: *cost, order: 0, list: *lot, at: u32::MAX, machine: 0 })
        };
        let heap: BinaryHeap<_> = costs.iter().map(unknown).collect();
        let members = costs.iter().map(|(lot, _)| *lot).collect();
        Self { heaps: [heap.clone(), heap], aside: Vec::new(), members, heard: 0, costs }
    }
}

impl Victims {
    pub(crate) fn new(lots: usize) -> Self {
        Self { done: [vec![0; lots], vec![0; lots]], returns: Vec::new() }
    }

    /// Picks victims until nothing is missing or none is left.
    #[expect(clippy::too_many_arguments, reason = "all that eligibility and order depend on")]
    pub(crate) fn pick(
        &mut self,
        queue: &mut VictimQueue,
        bound: &Lots,
        sources: Sources<'_>,
        rules: Rules<'_>,
        preemptor: i32,
        taken: &mut Bits,
        missing: &mut Amounts,
    ) -> Vec<u32> {
        for lot in &self.returns[queue.heard..] {
            if queue.members.contains(*lot) {
                let cost = queue.costs.iter().find(|(known, _)| known == lot).map(|(_, cost)| *cost);
                let cost = cost.expect("a member has a cost");
                let head = Head { cost, order: 0, list: *lot, at: u32::MAX, machine: 0 };
                queue.heaps.iter_mut().for_each(|heap| heap.push(Reverse(head)));
            }
        }
        queue.heard = self.returns.len();
        let mut picked = Vec::new();
        for round in ROUNDS {
            let done = &mut self.done[usize::from(round)];
            let heap = &mut queue.heaps[usize::from(round)];
            let is_up = |machine: u32, taken: &Bits| {
                let cluster = sources.inventory.row(machine).cluster;
                !taken.contains(machine) && rules.is_claimed(machine, cluster, preemptor) == Some(round)
            };
            let mut covered = false;
            while !covered {
                let Some(mut top) = heap.peek_mut() else { break };
                let Head { list, at, machine, .. } = top.0;
                let place = &mut done[list as usize];
                if *place != at || !is_up(machine, taken) {
                    let lot = &bound.lots[list as usize];
                    let rest = &lot.machines[*place as usize..];
                    let ahead = rest.iter().position(|machine| is_up(*machine, taken));
                    *place += ahead.unwrap_or(rest.len()) as u32;
                    match ahead {
                        None => {
                            PeekMut::pop(top);
                        }
                        Some(ahead) => {
                            let machine = rest[ahead];
                            let order = sources.inventory.row(machine).order;
                            top.0 = Head { at: *place, machine, order, ..top.0 };
                        }
                    }
                    continue;
                }
                let provides = sources.classes.provides(bound.lots[list as usize].class);
                if contributes(provides, missing) {
                    taken.insert(machine);
                    picked.push(machine);
                    covered = subtract(missing, provides);
                } else {
                    // All machines of a lot provide the same: none of them will help this need any more.
                    queue.aside.push(PeekMut::pop(top));
                }
            }
            heap.extend(queue.aside.drain(..));
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
        let machines = &bound.lots[lot as usize].machines;
        let at = machines.partition_point(|m| sources.inventory.row(*m).order < row.order) as u32;
        for done in &mut self.done {
            let done = &mut done[lot as usize];
            *done = (*done).min(at);
        }
        self.returns.push(lot);
    }
}
