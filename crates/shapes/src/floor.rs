//! The floor: racks, the slots in them, and the state each slot starts in.
//!
//! A rack has 40 slots, one zone and one family. Racks go round the zones in turn; the family is drawn by
//! its weight. Three quarters of the slots hold the rack's main size, drawn by the family's size weights;
//! the last quarter holds the next smaller size (the next larger, if the main size is the smallest).
//!
//! A quarter of the hardware is owned, in racks of its own, spread evenly: every slot there exists, as a
//! Configured or an Idle machine. The other racks mix the states slot by slot; hardware in them is 45 %
//! reserved, 35 % hourly and 20 % spot, and Speculative slots are 45 % hourly and 55 % spot. Idle rented machines
//! are found only in every second family, the first, third and so on of the catalogue: they pile up where
//! demand has fallen, and elsewhere new demand has to be met from Speculative slots.

use bigfleet_model::machine::MachineState;
use bigfleet_scenario::seed::Seed;

use crate::catalogue::{FAMILIES, SIZES};
use crate::offer::offer_number;
use crate::place::ZONES;
use crate::shape::Size;

/// Slots of a rack.
pub(crate) const RACK_SLOTS: usize = 40;
/// Slots of the rack's main size; they come first.
const MAIN_SLOTS: usize = 30;
/// The share of the hardware that is owned.
const OWNED_SHARE: f64 = 0.25;

/// Forty slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rack {
    pub(crate) zone: usize,
    pub(crate) family: usize,
    main_size: usize,
    owned: bool,
}

/// Which states the slots of a rack may be in, in the order in which racks get their share.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mix {
    Hardware,
    NoIdle,
    All,
}

impl Rack {
    fn mix(&self) -> Mix {
        match (self.owned, self.family % 2) {
            (true, _) => Mix::Hardware,
            (false, 1) => Mix::NoIdle,
            (false, _) => Mix::All,
        }
    }
}

/// Room for one machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) offer: u16,
    pub(crate) state: MachineState,
}

/// All racks and slots; slot `s` is in rack `s / RACK_SLOTS`.
#[derive(Clone, Debug)]
pub(crate) struct Floor {
    pub(crate) racks: Vec<Rack>,
    pub(crate) slots: Vec<Slot>,
}

impl Floor {
    /// The slots of a rack.
    pub(crate) fn slots_of(&self, rack: usize) -> std::ops::Range<usize> {
        let first = rack * RACK_SLOTS;
        first..(first + RACK_SLOTS).min(self.slots.len())
    }
}

/// Lays out the racks and fills their slots; the counts by state come out exact.
pub(crate) fn lay_out(size: &Size, seed: &mut Seed) -> Floor {
    let machines = size.machines as usize;
    let count = machines.div_ceil(RACK_SLOTS);
    let hardware = f64::from(size.configured + size.idle);
    let owned = (hardware * OWNED_SHARE) as usize / RACK_SLOTS;
    let racks: Vec<Rack> = (0..count)
        .map(|at| {
            let family = weighted(seed, FAMILIES.map(|f| f.rack_weight));
            let main_size = weighted(seed, FAMILIES[family].size_weights);
            // Even steps: the owned racks are those where the running share passes a whole number.
            let is_owned = (at + 1) * owned / count > at * owned / count;
            Rack { zone: at % ZONES, family, main_size, owned: is_owned }
        })
        .collect();

    let mut left = Left { configured: size.configured.into(), idle: size.idle.into(), all: machines as u64 };
    let mut states = vec![MachineState::Speculative; machines];
    for mix in [Mix::Hardware, Mix::NoIdle, Mix::All] {
        for slot in (0..machines).filter(|slot| racks[slot / RACK_SLOTS].mix() == mix) {
            states[slot] = left.draw(mix, seed);
        }
    }
    let slots = (0..machines).map(|slot| {
        let state = states[slot];
        let rack = &racks[slot / RACK_SLOTS];
        let capacity = if rack.owned { 0 } else { rented_capacity(state, seed) };
        let kind = rack.family * SIZES + size_of(slot % RACK_SLOTS, rack.main_size);
        Slot { offer: offer_number(kind, rack.zone, capacity), state }
    });
    let slots = slots.collect();
    Floor { racks, slots }
}

fn size_of(place: usize, main_size: usize) -> usize {
    match (place < MAIN_SLOTS, main_size) {
        (true, size) => size,
        (false, 0) => 1,
        (false, size) => size - 1,
    }
}

/// Which way of paying a slot that is not owned has; a number into the offers' list.
fn rented_capacity(state: MachineState, seed: &mut Seed) -> usize {
    let weights = if state == MachineState::Speculative { [0, 0, 45, 55] } else { [0, 45, 35, 20] };
    weighted(seed, weights)
}

/// What is still to be handed out.
struct Left {
    configured: u64,
    idle: u64,
    all: u64,
}

impl Left {
    /// The state of the next slot, drawn without replacement.
    fn draw(&mut self, mix: Mix, seed: &mut Seed) -> MachineState {
        let hardware = self.configured + self.idle;
        let at = seed.below(if mix == Mix::Hardware { hardware } else { self.all });
        self.all -= 1;
        if at < self.configured {
            self.configured -= 1;
            MachineState::Configured
        } else if at < hardware && mix != Mix::NoIdle {
            self.idle -= 1;
            MachineState::Idle
        } else {
            MachineState::Speculative
        }
    }
}

/// An index, drawn in proportion to its weight.
pub(crate) fn weighted<const N: usize>(seed: &mut Seed, weights: [u64; N]) -> usize {
    let mut at = seed.below(weights.iter().sum());
    weights.iter().position(|weight| at.checked_sub(*weight).map(|rest| at = rest).is_none()).unwrap_or(N - 1)
}
