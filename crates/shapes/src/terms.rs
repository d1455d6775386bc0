//! Terms: what one requirement set asks for, in words a workload owner would use.
//!
//! Lists of instance types overlap on purpose: each is one to three families of the archetype and a run of
//! neighbouring sizes. The first terms of an archetype are wide, so that every machine has somebody to serve.

use bigfleet_model::label::{INSTANCE_TYPE, ZONE};
use bigfleet_model::requirement::{Operator, Requirement};
use bigfleet_model::spread::{TopologySpread, WhenUnsatisfiable};
use bigfleet_scenario::seed::Seed;

use crate::amount::Amount;
use crate::archetype::Archetype;
use crate::catalogue::{FAMILIES, INFER, SIZES, TRAIN, type_name};
use crate::offer::pool_name;
use crate::place::{ACCELERATOR, ARCH, POOL, PURCHASE, REGION, REGIONS, ZONES_PER_REGION, zone_name};

/// Which machines, as far as their hardware goes.
#[derive(Clone, Debug)]
enum Hardware {
    /// `In` a list of instance types.
    Types(Vec<usize>),
    /// With a gpu: `Exists`.
    Accelerated,
    /// Without a gpu: `DoesNotExist`.
    Unaccelerated,
    /// `In` the pools of these kinds, whatever way they are paid for.
    Pools(&'static [&'static str]),
}

/// Which ways of paying.
#[derive(Clone, Copy, Debug)]
enum Payment {
    Any,
    /// `NotIn` spot.
    NoSpot,
    /// `In` owned and reserved.
    Fixed,
}

/// What one requirement set asks for, in whichever region it is used.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) archetype: Archetype,
    hardware: Hardware,
    arch: Option<&'static str>,
    payment: Payment,
    /// Numbers of zones within the region; empty for all of them.
    zones: Vec<usize>,
    /// Whether any region will do.
    pub(crate) anywhere: bool,
    spread: Option<(i32, WhenUnsatisfiable)>,
    pub(crate) priority: i32,
    pub(crate) unit: Amount,
}

impl Terms {
    /// Terms number `rank` of an archetype; low ranks are used most.
    pub(crate) fn draw(archetype: Archetype, rank: usize, seed: &mut Seed) -> Self {
        let mut families: Vec<usize> = match archetype {
            Archetype::GpuTraining => vec![TRAIN],
            Archetype::GpuInference if seed.chance(0.2) => vec![INFER, TRAIN],
            Archetype::GpuInference => vec![INFER],
            Archetype::CpuBatch => (0..INFER).collect(),
            Archetype::CpuService => (0..6).collect(),
            Archetype::MemoryDb => vec![6, 7],
            Archetype::Critical => (0..3).collect(),
        };
        if families.len() > 2 {
            let keep = 1 + seed.below(3) as usize;
            while families.len() > keep {
                families.remove(seed.below(families.len() as u64) as usize);
            }
        }
        let shortest = if archetype.is_gang() { 2 } else { 3 };
        let run = shortest + seed.below((SIZES - shortest + 1) as u64) as usize;
        // Gangs sit on the large end; everybody else anywhere.
        let first =
            if archetype.is_gang() { SIZES - run } else { seed.below((SIZES - run + 1) as u64) as usize };
        let types: Vec<usize> = families
            .iter()
            .flat_map(|family| (first..first + run).map(move |size| family * SIZES + size))
            .collect();
        let smallest = types[0];

        let style = if rank == 0 { 0.0 } else { seed.unit() };
        let hardware = match archetype {
            Archetype::GpuInference if style < 0.1 => Hardware::Accelerated,
            Archetype::CpuBatch if style < 0.15 => Hardware::Unaccelerated,
            Archetype::CpuBatch if style < 0.3 => Hardware::Pools(&["general", "compute", "memory"]),
            Archetype::CpuService if style < 0.15 => Hardware::Pools(&["general", "compute"]),
            Archetype::MemoryDb if style < 0.1 => Hardware::Pools(&["memory"]),
            Archetype::Critical if style < 0.1 => Hardware::Pools(&["general"]),
            _ => Hardware::Types(types),
        };
        let listed = matches!(hardware, Hardware::Types(_));
        let offline = matches!(hardware, Hardware::Accelerated) || families.contains(&TRAIN);
        let payment = match archetype {
            Archetype::GpuTraining if seed.chance(0.5) => Payment::NoSpot,
            Archetype::GpuInference if rank > 0 && seed.chance(0.3) => Payment::NoSpot,
            Archetype::CpuService if rank > 0 && seed.chance(0.4) => Payment::NoSpot,
            Archetype::Critical if seed.chance(0.6) => Payment::Fixed,
            Archetype::MemoryDb | Archetype::Critical => Payment::NoSpot,
            _ => Payment::Any,
        };
        let zones = if rank > 0 && seed.chance(0.3) { zone_list(seed) } else { Vec::new() };
        let spread = match archetype {
            Archetype::CpuService if rank > 0 && seed.chance(0.25) => Some(strict(seed)),
            Archetype::CpuService if seed.chance(0.2) => Some((1, WhenUnsatisfiable::ScheduleAnyway)),
            Archetype::Critical if seed.chance(0.5) => Some(strict(seed)),
            _ => None,
        };
        Self {
            archetype,
            arch: (!listed && rank > 0 && seed.chance(0.5)).then_some("amd64"),
            anywhere: archetype == Archetype::CpuBatch && zones.is_empty() && seed.chance(0.5),
            priority: match archetype {
                Archetype::CpuBatch => 100,
                Archetype::GpuInference if offline => 100,
                Archetype::Critical => 1_000_000,
                _ => 1_000,
            },
            unit: unit_for(archetype, if listed { smallest } else { 0 }, listed, seed),
            hardware,
            payment,
            zones,
            spread,
        }
    }

    /// The requirements in a region, without `Same`.
    pub(crate) fn requirements(&self, region: usize) -> Vec<Requirement> {
        let mut list = Vec::new();
        match &self.hardware {
            Hardware::Types(types) => {
                list.push(Requirement::is_in(INSTANCE_TYPE, types.iter().map(|t| type_name(*t))));
            }
            Hardware::Accelerated => list.push(Requirement::new(ACCELERATOR, Operator::Exists, [""; 0])),
            Hardware::Unaccelerated => {
                list.push(Requirement::new(ACCELERATOR, Operator::DoesNotExist, [""; 0]));
            }
            Hardware::Pools(kinds) => {
                let ways = ["owned", "reserved", "hourly", "spot"];
                let pools = kinds.iter().flat_map(|kind| ways.map(|way| pool_name(kind, way)));
                list.push(Requirement::is_in(POOL, pools));
            }
        }
        if let Some(arch) = self.arch {
            list.push(Requirement::is_in(ARCH, [arch]));
        }
        match self.payment {
            Payment::Any => {}
            Payment::NoSpot => list.push(Requirement::new(PURCHASE, Operator::NotIn, ["spot"])),
            Payment::Fixed => list.push(Requirement::is_in(PURCHASE, ["owned", "reserved"])),
        }
        if !self.zones.is_empty() {
            let zones = self.zones.iter().map(|zone| zone_name(region * ZONES_PER_REGION + zone));
            list.push(Requirement::is_in(ZONE, zones));
        } else if !self.anywhere {
            list.push(Requirement::is_in(REGION, [REGIONS[region].0]));
        }
        list
    }

    /// The spread, which a gang does without.
    pub(crate) fn spread(&self) -> Vec<TopologySpread> {
        self.spread.iter().map(|(skew, when)| TopologySpread::new(ZONE, *skew, *when)).collect()
    }
}

fn strict(seed: &mut Seed) -> (i32, WhenUnsatisfiable) {
    (1 + seed.below(3) as i32, WhenUnsatisfiable::DoNotSchedule)
}

/// One to three of a region's zones.
fn zone_list(seed: &mut Seed) -> Vec<usize> {
    let mut zones: Vec<usize> = (0..ZONES_PER_REGION).collect();
    let keep = 1 + seed.below(3) as usize;
    while zones.len() > keep {
        zones.remove(seed.below(zones.len() as u64) as usize);
    }
    zones
}

/// A piece that fits on the smallest listed type, or the archetype's smallest piece.
fn unit_for(archetype: Archetype, smallest: usize, listed: bool, seed: &mut Seed) -> Amount {
    let units = archetype.units();
    let room = crate::catalogue::allocatable(smallest);
    let fitting: Vec<Amount> = units.iter().copied().filter(|unit| listed && room.covers(*unit)).collect();
    if fitting.is_empty() { units[0] } else { *seed.pick(&fitting) }
}

// The terms above name families by number: the six cpu families first, then two memory, then two gpu.
const _: () = assert!(FAMILIES.len() == 10 && INFER == 8 && TRAIN == 9);
