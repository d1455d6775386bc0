//! Seeded generators of the fleets the benchmarks run on.
//!
//! [`generate`] makes the fleet of a [`Shape`]; [`scarce`](scarce()) makes one that is short of everything;
//! [`churn`](churn()), [`reports`] and [`storm`](storm()) say what changes between two cycles; [`settled`] carries decided
//! actions out. [`cloud_demand`] makes something else: a catalogue at cloud prices and one demand on it, to measure
//! decisions in dollars. The same shape and seed give the same scenario on every machine, digit for digit ([`digest()`]).
//! The example `census` prints what is in a fleet, the example `export` writes it as JSON for other engines.
//!
//! The rest of this page says in words how a fleet is made. Every draw comes from the scenario crate's
//! generator; each of the five steps has a fork of its own.
//!
//! # 1. What can be had
//!
//! Sixty instance types: ten families of six sizes each. General, compute and memory families (4, 2 and 8 GiB per
//! cpu) have 2 to 64 cpus; one gpu family for inference has 1 to 8 small gpus, one for training 1 to 8 large
//! ones. Workloads get 99 % of the cpus less 60 thousandths of one, 94 % of the memory less 256 MiB, and all
//! gpus. Twelve zones in three regions; the second and third region cost 6 % and 14 % more. Four ways of
//! paying: owned (bare metal, 45 % of the hourly price), reserved (62 %), hourly (on demand) and spot (25 % to
//! 60 %, drawn per type and zone, and taken away with a chance of 1 % to 20 % an hour, drawn likewise). Nothing else
//! is ever taken away. That makes 2,880 classes of machines at most; machines of a class differ in their rack
//! only.
//!
//! Every machine carries the labels in [`place`]: rack, region, arch, pool (kind and way of paying), purchase
//! (way of paying) and, if it has gpus, accelerator.
//!
//! # 2. Racks
//!
//! Racks of 40 slots go round the zones in turn. A rack holds one family, drawn by weight (general 39 of 100,
//! compute 32, memory 14, gpu 15), and two neighbouring sizes of it: 30 slots of the main size, which is
//! drawn with a preference for the middle (memory and training: for the large end), and 10 of the next smaller one.
//!
//! A quarter of the hardware is owned and stands in racks of its own, whose slots are all Configured or Idle. In the
//! other racks Configured, Idle and Speculative slots are mixed at random; hardware there is 45 % reserved,
//! 35 % hourly, 20 % spot, and Speculative slots are 45 % hourly, 55 % spot. Idle rented machines exist in
//! every second family only, so that new demand meets Idle machines in one place and Speculative slots in another.
//! The numbers of machines by state are exact: drawn without replacement.
//!
//! Ids are hexadecimal and say nothing about place. Idle machines carry the instant they became idle: rented
//! ones within their hold (ten minutes; spot one minute) but for 2 in 100, owned and reserved ones within a week;
//! 1 in 100 has no stamp.
//!
//! # 3. Demand
//!
//! Six archetypes by weight: gpu-training 5 (gangs), gpu-inference 15, cpu-batch 35, cpu-service 30,
//! memory-db 10 (gangs), critical 5. Priorities are 100 for batch and for inference that may use training
//! machines, 1,000,000 for critical, 1,000 for the others. Penalties come from a short list per archetype: 13
//! interruption buckets in all, from undeclared to pinned.
//!
//! Each archetype draws from 12 to 110 sets of terms, the first ones most often (the square of an even draw picks
//! the place in the list). Terms are an overlapping `In` list of instance types (one to three families, a run
//! of neighbouring sizes), or a list of pools, or accelerator `Exists` or `DoesNotExist`; the region, or
//! (3 in 10) one to three of its zones; sometimes an arch; purchase `NotIn` spot for databases and part of the
//! services, `In` owned and reserved for most critical needs; and a piece size that fits the smallest listed type.
//! Half of the batch terms without zones allow any region. A quarter of the service terms and half of the
//! critical ones carry a strict spread over zones.
//!
//! Clusters belong to one region each, in turn. Cluster i gets rows in proportion to 1 / √(i + 10). No
//! cluster has a profile twice.
//!
//! Gangs ask for `Same` rack and carry a group. Half of the training gangs and four in ten database gangs
//! want 2 to 8 (in the smaller shapes 2 or 3) times the largest machine they may use; the others fit one
//! machine and come in packs of one to six that are alike, which a cycle folds into one need. In the shape
//! `5k` gangs are not left to these two archetypes: 2,418 of the 2,600 rows are gangs, taken from all archetypes in
//! proportion; 5 in 100 of the additional ones are larger than a machine.
//!
//! # 4. Who holds what
//!
//! Configured machines are dealt: each large gang takes machines of one rack until it is covered, each pack takes
//! machines until it is covered, each plain row takes one, and what is left goes to plain rows that may use
//! it, by heavy-tailed weights. 6 % of the gangs are new and get nothing. A machine is stamped with the need it
//! was dealt to; machines of packs carry the stamp of the folded need, as a shard would write it.
//!
//! Then every plain row gets its amount. A cycle credits a cluster's machines in its own order, not by stamp,
//! so the generator walks a cluster's rows in demand order and its machines in keep order as a cycle does, lets each
//! row take as many machines as it was dealt, and gives it a number of pieces that needs just those. Hardly
//! anything is left to reclaim. Last, a share of the plain rows ([`shape::Size::growing`]) grows by 10 % to 50 %.
//!
//! With seed 1 a first cycle finds 90 % to 95 % of the demanded cpus credited and acquires some 800, 15,000
//! and 40,000 machines in the three shapes. It takes more machines than that share of the fleet, because the
//! cheapest come first and are small.
//!
//! # 5. Scarcity
//!
//! In a scarce fleet 97 machines in 100 are Configured, 1 Idle and 2 Speculative, whatever the shape's own mix: a
//! fleet that has been short for a while has nothing left to give. Every fifth cluster is a production
//! cluster, whose needs stand at 1,000 (critical: 1,000,000); all others stand at 100. Plain rows of
//! production clusters want 40 % more than they hold; those of the others want so much more that the whole
//! demand is twice the supply, in cpus. 30 % of the gangs are new.

mod amount;
mod archetype;
mod ask;
mod catalogue;
pub mod census;
pub mod change;
mod churn;
mod cloud;
pub mod cycle;
mod deal;
mod demand;
mod digest;
mod fleet;
mod floor;
mod ground;
mod offer;
pub mod place;
mod scarce;
mod sets;
mod settle;
pub mod settled;
pub mod shape;
mod storm;
mod terms;

use bigfleet_scenario::Scenario;

pub use census::{Census, census};
pub use change::{Change, apply_changes};
pub use churn::{churn, reports};
pub use cloud::{CloudDemand, CloudOffer, FAMILY, cloud_demand};
pub use cycle::Cycle;
pub use digest::digest;
pub use shape::Shape;
pub use storm::storm;

/// The instant of every generated scenario.
pub const NOW_UNIX_NANOS: i64 = 1_800_000_000_000_000_000;

/// Which fleet of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    Cold,
    Scarce,
}

/// The fleet of a shape, with nine tenths and more of the demand already served.
pub fn generate(shape: Shape, seed: u64) -> Scenario {
    fleet::make(shape, seed, Variant::Cold)
}

/// The fleet of a shape with twice as much demand as supply; a fifth of the needs may preempt.
pub fn scarce(shape: Shape, seed: u64) -> Scenario {
    fleet::make(shape, seed, Variant::Scarce)
}
