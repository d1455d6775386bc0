//! The bound machines of a cluster that their owners do not keep: what else a need may be credited with.
//!
//! Most machines are kept by the need they are stamped for and claimed by it. The few others are all that connects the needs of
//! a cluster with each other, so they are kept with its credit: when a need changes, they tell who may feel it.

use crate::holdings::Held;
use crate::intern::NONE;

/// A bound machine that nobody keeps, or nobody any more after some turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loose {
    pub(super) machine: u32,
    pub(super) class: u32,
    /// The identity it is stamped with, or [`NONE`].
    pub(super) key: u32,
    /// The row whose own it is, or [`NONE`].
    pub(super) owner: u32,
    /// The first turn in which nobody keeps it.
    pub(super) from: u32,
    /// The turn in which it was claimed, or [`NONE`].
    pub(super) claimed_in: u32,
    pub(super) configured: bool,
}

impl Loose {
    /// Whether a need may be credited with it in a turn, as far as earlier turns go.
    pub(super) fn is_left_in(&self, turn: u32) -> bool {
        self.from <= turn && self.claimed_in >= turn
    }

    /// Whether it is left when all turns are over.
    pub(super) fn is_unclaimed(&self) -> bool {
        self.claimed_in == NONE
    }
}

/// Puts machines, given with their places in a cluster's supply, where they belong among others that stand in that order.
pub(super) fn put(loose: &mut Vec<Loose>, new: &[(u32, Loose)], supply: &[Held]) {
    let (mut at, mut position) = (0, 0);
    for (place, one) in new {
        while position < *place {
            at += usize::from(
                loose.get(at).is_some_and(|other| other.machine == supply[position as usize].machine),
            );
            position += 1;
        }
        debug_assert_eq!(supply[*place as usize].machine, one.machine, "a machine stands at its place");
        loose.insert(at, *one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loose(machine: u32) -> Loose {
        Loose { machine, class: 0, key: NONE, owner: NONE, from: 0, claimed_in: NONE, configured: true }
    }

    #[test]
    fn machines_come_to_stand_in_the_order_of_the_supply() {
        let supply: Vec<Held> =
            [7, 3, 9, 1, 4].into_iter().map(|machine| Held { machine, kind: 0, key: NONE }).collect();
        let mut all = vec![loose(3), loose(1)];
        put(&mut all, &[(0, loose(7)), (2, loose(9)), (4, loose(4))], &supply);
        assert_eq!(all.iter().map(|one| one.machine).collect::<Vec<_>>(), [7, 3, 9, 1, 4]);
    }

    #[test]
    fn what_a_later_turn_claimed_is_left_in_an_earlier_one() {
        let one = Loose { from: 2, claimed_in: 5, ..loose(1) };
        let left: Vec<u32> = (0..8).filter(|turn| one.is_left_in(*turn)).collect();
        assert_eq!(left, [2, 3, 4, 5]);
        assert!(!one.is_unclaimed() && loose(1).is_unclaimed());
    }
}
