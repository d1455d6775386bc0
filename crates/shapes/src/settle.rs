//! Settling: the amounts of plain asks, so that the bound machines are just what the demand calls for.
//!
//! A cycle credits a cluster's machines to its needs in demand order, each need taking the cheapest it may
//! use, whatever they were bound for. So the amounts are found by walking the same way: a gang takes the
//! machines of its rack, a pack takes until it is covered, and a plain ask takes as many machines as it was
//! dealt; its amount is then a number of pieces that needs the last of them. Machines left over at the end
//! make the last plain ask that may use them larger, and the walk is repeated, at most [`WALKS`] times.
//! What is still left over then has no demand behind it and would be reclaimed: a small remainder.
//!
//! Last, some of the plain asks (see [`Size::growing`]) grow by 10 % to 50 %: the demand the first cycle has to acquire for.

use std::cmp::Reverse;

use bigfleet_scenario::seed::Seed;

use crate::amount::Amount;
use crate::ask::{Ask, Form};
use crate::deal::NOBODY;
use crate::floor::RACK_SLOTS;
use crate::ground::Ground;
#[cfg(doc)]
use crate::shape::Size;

/// How often a cluster's walk is repeated at most.
const WALKS: usize = 4;

/// Sets the amounts of all plain asks.
pub(crate) fn settle(
    asks: &mut [Ask],
    holders: &[u32],
    ids: &[u64],
    ground: &Ground,
    growing: f64,
    mut seed: Seed,
) {
    let clusters = asks.iter().map(|ask| ask.cluster + 1).max().unwrap_or(0) as usize;
    let mut members = vec![Cluster::default(); clusters];
    for (number, ask) in asks.iter().enumerate() {
        members[ask.cluster as usize].asks.push(number as u32);
    }
    for (slot, holder) in holders.iter().enumerate().filter(|(_, holder)| **holder != NOBODY) {
        let ask = &asks[*holder as usize];
        members[ask.cluster as usize].machines.push(Held {
            slot: slot as u32,
            offer: ground.floor.slots[slot].offer,
            holder: *holder,
            price_usd_per_hour: ground.offer(slot).price_usd_per_hour,
            reclamation_usd: ask.profile.reclamation().upper_bound_dollars(),
        });
    }
    for mut cluster in members {
        cluster.sort(asks, ids);
        cluster.settle(asks, ground, &mut seed);
        cluster.grow(asks, growing, &mut seed);
    }
}

#[derive(Clone, Copy)]
struct Held {
    slot: u32,
    offer: u16,
    holder: u32,
    price_usd_per_hour: f64,
    reclamation_usd: f64,
}

#[derive(Clone, Default)]
struct Cluster {
    asks: Vec<u32>,
    machines: Vec<Held>,
}

impl Cluster {
    /// Asks into demand order, machines into keep order.
    fn sort(&mut self, asks: &[Ask], ids: &[u64]) {
        self.asks.sort_by_cached_key(|number| {
            let ask = &asks[*number as usize];
            let fingerprint: Box<str> = ask.served_as.fingerprint().into();
            let group = if ask.form == Form::Gang { ask.group(0) } else { "".into() };
            (Reverse(ask.profile.priority()), ask.first_seen_unix_nanos, fingerprint, group)
        });
        self.machines.sort_by(|a, b| {
            a.price_usd_per_hour
                .total_cmp(&b.price_usd_per_hour)
                .then(b.reclamation_usd.total_cmp(&a.reclamation_usd))
                .then(ids[a.slot as usize].cmp(&ids[b.slot as usize]))
        });
    }

    fn settle(&self, asks: &mut [Ask], ground: &Ground, seed: &mut Seed) {
        let mut wanted: Vec<usize> =
            self.asks.iter().map(|ask| self.machines.iter().filter(|m| m.holder == *ask).count()).collect();
        let mut claims = self.walk(&wanted, asks, ground);
        for _ in 1..WALKS {
            let left: Vec<&Held> = self
                .machines
                .iter()
                .zip(&claims)
                .filter(|(_, c)| **c == usize::MAX)
                .map(|(m, _)| m)
                .collect();
            if left.is_empty() {
                break;
            }
            for machine in left {
                let last = self.asks.iter().rposition(|ask| {
                    let ask = &asks[*ask as usize];
                    ask.form == Form::Plain && ground.set(ask.set).has(machine.offer)
                });
                if let Some(last) = last {
                    wanted[last] += 1;
                }
            }
            claims = self.walk(&wanted, asks, ground);
        }
        for (order, number) in self.asks.iter().enumerate() {
            let ask = &mut asks[*number as usize];
            if ask.form != Form::Plain {
                continue;
            }
            let claimed = self.machines.iter().zip(&claims).filter(|(_, claim)| **claim == order);
            let amounts = claimed.map(|(machine, _)| ground.offers[machine.offer as usize].allocatable);
            ask.count = pieces(ask.unit, amounts, seed).unwrap_or_else(|| 1 + seed.below(8));
        }
    }

    fn grow(&self, asks: &mut [Ask], growing: f64, seed: &mut Seed) {
        for number in &self.asks {
            let ask = &mut asks[*number as usize];
            if ask.form == Form::Plain && seed.chance(growing) {
                ask.count += (ask.count as f64 * (0.1 + 0.4 * seed.unit())).ceil() as u64;
            }
        }
    }

    /// For every machine, the place in demand order of the ask that claims it.
    fn walk(&self, wanted: &[usize], asks: &[Ask], ground: &Ground) -> Vec<usize> {
        let mut claims = vec![usize::MAX; self.machines.len()];
        for (order, number) in self.asks.iter().enumerate() {
            let ask = &asks[*number as usize];
            let set = ground.set(ask.set);
            let rack_of = |machine: &Held| machine.slot as usize / RACK_SLOTS;
            let home = self.machines.iter().find(|m| m.holder == *number).map(rack_of);
            let (piece, total) = (ask.piece(), ask.total());
            let mut held = Amount::default();
            let mut taken = 0;
            for (claim, machine) in claims.iter_mut().zip(&self.machines) {
                let enough = match ask.form {
                    Form::Plain => taken == wanted[order],
                    Form::Folded | Form::Gang => held.covers(total),
                };
                if enough {
                    break;
                }
                let offer = &ground.offers[machine.offer as usize];
                let in_reach = ask.form != Form::Gang || home == Some(rack_of(machine));
                if *claim == usize::MAX
                    && in_reach
                    && set.has(machine.offer)
                    && offer.allocatable.covers(piece)
                {
                    *claim = order;
                    held = held.plus(offer.allocatable);
                    taken += 1;
                }
            }
        }
        claims
    }
}

/// A number of pieces that these machines cover and all but the last of them do not.
fn pieces(unit: Amount, machines: impl Iterator<Item = Amount>, seed: &mut Seed) -> Option<u64> {
    let (mut held, mut last) = (Amount::default(), Amount::default());
    for machine in machines {
        held = held.plus(machine);
        last = machine;
    }
    let (most, too_few) = (held.units(unit), held.less(last).units(unit));
    (most > too_few).then(|| most - seed.below(most - too_few) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_needs_the_last_machine_and_no_further_one() {
        let unit = Amount::new(1_000, 4, 0);
        let machines = [Amount::new(3_900, 64, 0), Amount::new(7_900, 64, 0), Amount::new(15_800, 64, 0)];
        let mut seed = Seed::new(1);
        for _ in 0..100 {
            let count = pieces(unit, machines.into_iter(), &mut seed).unwrap();
            assert!((12..=27).contains(&count), "{count}");
        }
        assert_eq!(pieces(unit, [].into_iter(), &mut seed), None);
    }
}
