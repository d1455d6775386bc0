//! Whether the pods of a machine would find a place elsewhere, before anybody is evicted.
//!
//! The shard takes a machine back when sums say that it is not needed. Its pods need holes. If they have none, evicting them
//! would leave them waiting until another machine comes in its place: the fleet would have moved for nothing. So the cluster
//! looks first, and asks for the machine to be left where it is if its pods have nowhere to go.
//!
//! It places as the scheduler mostly does, each pod where most is free. That is a guess; where it is wrong a pod waits, and
//! the reserve asks for a hole as it does for any other.

use std::collections::BTreeSet;

use bigfleet_model::resource::ResourceVec;

/// A machine that stays, and what it has left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hole {
    /// What no pod has taken yet.
    pub free: ResourceVec,
    /// Whose pods are there.
    pub owners: BTreeSet<u64>,
}

/// A pod that must go somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// What it takes.
    pub request: ResourceVec,
    /// Whose it is: pods of one owner are alike.
    pub owner: u64,
    /// It does not go where its like is.
    pub keeps_apart: bool,
}

/// Places all of these pods, largest first, and takes their room; or none of them, and leaves the holes as they are.
pub fn place(holes: &mut [Hole], guests: &[Guest]) -> bool {
    let mut order: Vec<&Guest> = guests.iter().collect();
    order.sort_by_key(|guest| std::cmp::Reverse(largest(&guest.request)));
    let mut taken: Vec<(usize, Hole)> = Vec::new();
    for guest in order {
        let fits = |hole: &Hole| {
            hole.free.covers(&guest.request) && !(guest.keeps_apart && hole.owners.contains(&guest.owner))
        };
        let widest =
            (0..holes.len()).filter(|at| fits(&holes[*at])).max_by_key(|at| least(&holes[*at], guest));
        let Some(at) = widest else {
            for (at, before) in taken.into_iter().rev() {
                holes[at] = before;
            }
            return false;
        };
        taken.push((at, holes[at].clone()));
        holes[at].free = holes[at].free.saturating_sub(&guest.request);
        holes[at].owners.insert(guest.owner);
    }
    true
}

/// The largest amount, for an order among pods of one need, which mostly differ in one dimension.
fn largest(request: &ResourceVec) -> u64 {
    request.iter().map(|(_, amount)| amount).max().unwrap_or(0)
}

/// How many of this pod the hole would hold: the scarcest dimension decides.
fn least(hole: &Hole, guest: &Guest) -> u64 {
    guest.request.iter().map(|(name, amount)| hole.free.get(name) / amount.max(1)).min().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(count: u64) -> ResourceVec {
        ResourceVec::parse([("cpu", count.to_string())]).unwrap()
    }

    fn hole(free: u64) -> Hole {
        Hole { free: cpus(free), owners: BTreeSet::from([1]) }
    }

    fn guest(cpu: u64, keeps_apart: bool) -> Guest {
        Guest { request: cpus(cpu), owner: 1, keeps_apart }
    }

    #[test]
    fn all_find_a_place_or_nothing_is_taken() {
        let mut holes = [hole(4), hole(5)];
        assert!(place(&mut holes, &[guest(2, false), guest(4, false)]));
        assert_eq!(
            holes.clone().map(|hole| hole.free),
            [cpus(2), cpus(1)],
            "the large one first, where most is free"
        );
        let before = holes.clone();
        assert!(!place(&mut holes, &[guest(2, false), guest(2, false)]));
        assert_eq!(holes, before);
        assert!(place(&mut holes, &[]));
    }

    #[test]
    fn pods_that_keep_apart_look_for_machines_without_their_like() {
        let mut holes = [hole(8), Hole { owners: BTreeSet::new(), ..hole(2) }];
        assert!(place(&mut holes, &[guest(1, true)]));
        assert_eq!(holes[1].free, cpus(1));
        assert!(!place(&mut holes, &[guest(1, true)]), "its like is everywhere by now");
    }
}
