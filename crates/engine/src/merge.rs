//! Taking machines in order of cost, then id, from several sorted lists at once.
//!
//! Lists are lots or cells: all their machines cost the same and provide the same, and they are in id order.
//! The merge keeps one head per list in a heap and moves it forward past machines that are taken, so a
//! merge can be kept while others take machines from the same lists.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::inventory::Inventory;

/// Where a list stands: its next machine and what it costs. Orders by cost, then id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    cost: u64,
    order: u64,
    list: u32,
    at: u32,
    class: u32,
}

/// A merge of lists.
#[derive(Clone, Default)]
pub(crate) struct Merge {
    heap: BinaryHeap<Reverse<Head>>,
    aside: Vec<Reverse<Head>>,
}

impl Merge {
    /// Starts a merge of lists given as cost, number, class and machines. Empty lists are left out.
    pub(crate) fn new<'a>(
        lists: impl Iterator<Item = (u64, u32, u32, &'a [u32])>,
        inventory: &Inventory,
    ) -> Self {
        let heads = lists.filter_map(|(cost, list, class, machines)| {
            let order = inventory.row(*machines.first()?).order;
            Some(Reverse(Head { cost, order, list, at: 0, class }))
        });
        Self { heap: heads.collect::<Vec<_>>().into(), aside: Vec::new() }
    }

    /// The best machine that is not to be skipped, with its class and cost. It stays the best until it is
    /// skipped or its list is set aside.
    pub(crate) fn best<'a>(
        &mut self,
        machines: impl Fn(u32) -> &'a [u32],
        skip: impl Fn(u32) -> bool,
        inventory: &Inventory,
    ) -> Option<Best> {
        loop {
            let mut top = self.heap.peek_mut()?;
            let Head { cost, list, at, class, .. } = top.0;
            let rest = &machines(list)[at as usize..];
            match rest.iter().position(|machine| !skip(*machine)) {
                None => {
                    PeekMut::pop(top);
                }
                Some(0) => return Some(Best { machine: rest[0], class, cost }),
                Some(ahead) => {
                    top.0.at += ahead as u32;
                    top.0.order = inventory.row(rest[ahead]).order;
                }
            }
        }
    }

    /// Leaves the best machine's list out until [`Self::restore`]: its machines add nothing right now.
    pub(crate) fn set_aside(&mut self) {
        self.aside.extend(self.heap.pop());
    }

    /// Takes the lists set aside back in.
    pub(crate) fn restore(&mut self) {
        self.heap.extend(self.aside.drain(..));
    }
}

/// The machine a merge would take next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Best {
    pub(crate) machine: u32,
    pub(crate) class: u32,
    pub(crate) cost: u64,
}

/// A non-negative cost as a number that orders alike; `later` puts it behind every cost that is not.
pub(crate) fn cost_key(cost: f64, later: bool) -> u64 {
    debug_assert!(cost >= 0.0, "costs are not negative");
    // A negative zero is not below zero, and in the total order it comes first.
    let bits = if cost.is_sign_negative() { 0 } else { cost.to_bits() + 1 };
    bits | u64::from(later) << 63
}

/// A score, where higher is better, as a number that orders best first.
pub(crate) fn score_key(score: f64) -> u64 {
    let bits = score.to_bits();
    if bits >> 63 == 1 { bits } else { !(bits | 1 << 63) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_like_the_numbers_behind_them() {
        let costs = [-0.0, 0.0, 1e-300, 0.5, 1.0, 2.0, 1e300, f64::INFINITY];
        assert!(costs.windows(2).all(|pair| cost_key(pair[0], false) < cost_key(pair[1], false)));
        assert!(cost_key(f64::INFINITY, false) < cost_key(0.0, true));
        let scores = [f64::NEG_INFINITY, -3.0, -0.1, 0.0, 0.1, 20.0, f64::INFINITY];
        assert!(scores.windows(2).all(|pair| score_key(pair[0]) > score_key(pair[1])));
    }
}
