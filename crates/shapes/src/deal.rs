//! The deal: every Configured machine goes to an ask it matches.
//!
//! Gangs choose first and take the machines of one rack, the first from a random start on that holds enough.
//! Then packs of small gangs take random machines until they are covered. Then every plain ask takes one
//! machine, and the rest goes to plain asks at random, by weight. A machine that no plain ask may use stays
//! Idle, and an Idle one that some ask may use is bound instead, so that the counts stay exact.

use bigfleet_model::machine::MachineState;
use bigfleet_scenario::seed::Seed;

use crate::amount::Amount;
use crate::ask::{Ask, Form};
use crate::catalogue::{FAMILIES, SIZES};
use crate::floor::RACK_SLOTS;
use crate::ground::Ground;
use crate::offer::OFFERS;
use crate::place::{REGIONS, ZONES_PER_REGION};
use crate::sets::Sets;

/// Marks a slot nobody holds.
pub(crate) const NOBODY: u32 = u32::MAX;

/// Deals the Configured slots of the floor; returns for every slot the ask that holds it.
pub(crate) fn deal(ground: &mut Ground, asks: &[Ask], mut seed: Seed) -> Vec<u32> {
    let holders = vec![NOBODY; ground.floor.slots.len()];
    let mut deal = Deal { ground, asks, holders };
    deal.gangs(&mut seed);
    let mut free = deal.free(MachineState::Configured, &mut seed);
    deal.packs(&mut free, &mut seed);
    deal.one_each(&mut free, &mut seed);
    deal.rest(free, &mut seed);
    deal.holders
}

struct Deal<'a> {
    ground: &'a mut Ground,
    asks: &'a [Ask],
    holders: Vec<u32>,
}

/// Slots by offer, in random order.
type FreeSlots = Vec<Vec<u32>>;

impl Deal<'_> {
    fn gangs(&mut self, seed: &mut Seed) {
        let mut racks = vec![Vec::new(); FAMILIES.len() * REGIONS.len()];
        for (number, rack) in self.ground.floor.racks.iter().enumerate() {
            racks[rack.family * REGIONS.len() + rack.zone / ZONES_PER_REGION].push(number);
        }
        for (number, ask) in self.asks.iter().enumerate() {
            if ask.form != Form::Gang || !ask.served {
                continue;
            }
            let set = self.ground.set(ask.set);
            let Some(any) =
                (!set.offers.is_empty()).then(|| &self.ground.offers[*seed.pick(&set.offers) as usize])
            else {
                continue;
            };
            let near = &racks[any.kind / SIZES * REGIONS.len() + any.region()];
            let start = if near.is_empty() { 0 } else { seed.below(near.len() as u64) as usize };
            let taken = near[start..].iter().chain(&near[..start]).find_map(|rack| self.in_rack(*rack, ask));
            for slot in taken.into_iter().flatten() {
                self.holders[slot] = number as u32;
            }
        }
    }

    /// The slots of a rack that cover a gang, cheapest first, if there are enough.
    fn in_rack(&self, rack: usize, ask: &Ask) -> Option<Vec<usize>> {
        let set = self.ground.set(ask.set);
        let mut slots: Vec<usize> = self
            .ground
            .floor
            .slots_of(rack)
            .filter(|slot| {
                let place = &self.ground.floor.slots[*slot];
                self.holders[*slot] == NOBODY
                    && place.state == MachineState::Configured
                    && set.has(place.offer)
            })
            .collect();
        let price = |slot: &usize| self.ground.offer(*slot).price_usd_per_hour;
        slots.sort_by(|a, b| price(a).total_cmp(&price(b)).then(a.cmp(b)));
        let (mut held, mut used) = (Amount::default(), 0);
        for slot in &slots {
            if held.covers(ask.total()) {
                break;
            }
            held = held.plus(self.ground.offer(*slot).allocatable);
            used += 1;
        }
        slots.truncate(used);
        held.covers(ask.total()).then_some(slots)
    }

    /// The slots in this state that nobody holds.
    fn free(&self, state: MachineState, seed: &mut Seed) -> FreeSlots {
        let mut free = vec![Vec::new(); OFFERS];
        for (number, slot) in self.ground.floor.slots.iter().enumerate() {
            if slot.state == state && self.holders[number] == NOBODY {
                free[slot.offer as usize].push(number as u32);
            }
        }
        for slots in &mut free {
            for last in (1..slots.len()).rev() {
                slots.swap(last, seed.below(last as u64 + 1) as usize);
            }
        }
        free
    }

    /// Takes one machine for an ask, from its offers in turn after a random one.
    fn take(&mut self, ask: u32, free: &mut FreeSlots, seed: &mut Seed) -> Option<Amount> {
        let wanted = &self.asks[ask as usize];
        let list = &self.ground.set(wanted.set).offers;
        if list.is_empty() {
            return None;
        }
        let start = seed.below(list.len() as u64) as usize;
        let offer = list[start..].iter().chain(&list[..start]).find(|offer| {
            let holds = self.ground.offers[**offer as usize].allocatable.covers(wanted.piece());
            holds && !free[**offer as usize].is_empty()
        })?;
        let slot = free[*offer as usize].pop()?;
        self.holders[slot as usize] = ask;
        Some(self.ground.offers[*offer as usize].allocatable)
    }

    fn packs(&mut self, free: &mut FreeSlots, seed: &mut Seed) {
        for number in 0..self.asks.len() as u32 {
            let ask = &self.asks[number as usize];
            if ask.form != Form::Folded || !ask.served {
                continue;
            }
            let (total, mut held) = (ask.total(), Amount::default());
            while !held.covers(total) {
                let Some(more) = self.take(number, free, seed) else { break };
                held = held.plus(more);
            }
        }
    }

    fn one_each(&mut self, free: &mut FreeSlots, seed: &mut Seed) {
        for number in 0..self.asks.len() as u32 {
            if self.asks[number as usize].form == Form::Plain {
                self.take(number, free, seed);
            }
        }
    }

    fn rest(&mut self, free: FreeSlots, seed: &mut Seed) {
        let takers = Takers::new(self.asks, &self.ground.sets);
        let mut homeless = 0;
        for (offer, slots) in free.into_iter().enumerate() {
            for slot in slots {
                if let Some(ask) = takers.pick(offer as u16, seed) {
                    self.holders[slot as usize] = ask;
                } else {
                    self.ground.floor.slots[slot as usize].state = MachineState::Idle;
                    homeless += 1;
                }
            }
        }
        // Others stand in for them. Steps of one rack and a bit: not all from the same place.
        let slots = self.ground.floor.slots.len();
        for step in 0..slots {
            if homeless == 0 {
                break;
            }
            let slot = step * (RACK_SLOTS + 1) % slots;
            let place = &mut self.ground.floor.slots[slot];
            if place.state != MachineState::Idle {
                continue;
            }
            if let Some(ask) = takers.pick(place.offer, seed) {
                place.state = MachineState::Configured;
                self.holders[slot] = ask;
                homeless -= 1;
            }
        }
        assert_eq!(homeless, 0, "the idle machines make up for those that no ask may use");
    }
}

/// The plain asks that may use an offer, by weight.
struct Takers {
    /// By set: running weight and ask.
    asks: Vec<Vec<(f64, u32)>>,
    /// By offer: running weight and set.
    sets: Vec<Vec<(f64, u32)>>,
}

impl Takers {
    fn new(asks: &[Ask], sets: &Sets) -> Self {
        let mut by_set: Vec<Vec<(f64, u32)>> = vec![Vec::new(); sets.all.len()];
        for (number, ask) in asks.iter().enumerate().filter(|(_, ask)| ask.form == Form::Plain) {
            let list = &mut by_set[ask.set as usize];
            let before = list.last().map_or(0.0, |(sum, _)| *sum);
            list.push((before + ask.weight, number as u32));
        }
        let mut by_offer: Vec<Vec<(f64, u32)>> = vec![Vec::new(); OFFERS];
        for (number, list) in by_set.iter().enumerate() {
            let Some((weight, _)) = list.last() else { continue };
            for offer in &sets.all[number].offers {
                let list = &mut by_offer[*offer as usize];
                let before = list.last().map_or(0.0, |(sum, _)| *sum);
                list.push((before + weight, number as u32));
            }
        }
        Self { asks: by_set, sets: by_offer }
    }

    fn pick(&self, offer: u16, seed: &mut Seed) -> Option<u32> {
        let set = draw(&self.sets[offer as usize], seed)?;
        draw(&self.asks[set as usize], seed)
    }
}

/// An entry of a list of running weights.
fn draw(list: &[(f64, u32)], seed: &mut Seed) -> Option<u32> {
    let (all, _) = list.last()?;
    let at = seed.unit() * all;
    list.get(list.partition_point(|(sum, _)| *sum <= at)).map(|(_, entry)| *entry)
}
