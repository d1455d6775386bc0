//! Three regions of four zones, and the label keys machines carry.

/// The key whose values are racks: the domain of every gang.
pub const RACK: &str = "topology.bigfleet/rack";
/// The key whose values are regions.
pub const REGION: &str = "topology.kubernetes.io/region";
/// The key of the processor architecture.
pub const ARCH: &str = "kubernetes.io/arch";
/// The key of the pool: kind of family and way of paying, for example `general-spot`.
pub const POOL: &str = "node.bigfleet/pool";
/// The key of the way of paying: `owned`, `reserved`, `hourly` or `spot`.
pub const PURCHASE: &str = "node.bigfleet/purchase";
/// The key of the gpu model, on machines with gpus only: `small` or `large`.
pub const ACCELERATOR: &str = "node.bigfleet/accelerator";

/// Regions and what the same machine costs there, relative to the first.
pub(crate) const REGIONS: [(&str, f64); 3] = [("north-1", 1.0), ("west-1", 1.06), ("south-1", 1.14)];
/// Zones of one region.
pub(crate) const ZONES_PER_REGION: usize = 4;
/// All zones; zone `z` is number `z % 4` of region `z / 4`.
pub(crate) const ZONES: usize = REGIONS.len() * ZONES_PER_REGION;

/// The name of a zone: its region and a letter.
pub(crate) fn zone_name(zone: usize) -> String {
    let letter = ["a", "b", "c", "d"][zone % ZONES_PER_REGION];
    format!("{}{letter}", REGIONS[zone / ZONES_PER_REGION].0)
}
