//! Offers: every (type, zone, way of paying), what it costs and how likely it is taken away.
//!
//! All machines of one offer are alike but for their rack, so an offer is what a requirement set is
//! evaluated against. There are 60 × 12 × 4 = 2,880 of them.
//!
//! The hourly price is the type's price times the region's factor. Owned hardware costs 45 % of that,
//! reserved 62 %; spot costs between 25 % and 60 %, drawn once per (type, zone). Only spot is ever taken
//! away: with a chance between 1 % and 20 % an hour, drawn once per (type, zone).

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::label::{Facts, Labels};
use bigfleet_scenario::seed::Seed;

use crate::amount::Amount;
use crate::catalogue::{TYPES, allocatable, family, size, type_name};
use crate::place::{
    ACCELERATOR, ARCH, POOL, PURCHASE, RACK, REGION, REGIONS, ZONES, ZONES_PER_REGION, zone_name,
};

/// The ways of paying, in the order of offer numbers.
pub(crate) const CAPACITIES: [(CapacityType, &str); 4] = [
    (CapacityType::BareMetal, "owned"),
    (CapacityType::Reserved, "reserved"),
    (CapacityType::OnDemand, "hourly"),
    (CapacityType::Spot, "spot"),
];
/// How many offers there are.
pub(crate) const OFFERS: usize = TYPES * ZONES * CAPACITIES.len();

/// One (type, zone, way of paying).
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    pub(crate) kind: usize,
    pub(crate) zone: usize,
    pub(crate) capacity: CapacityType,
    pub(crate) type_name: String,
    pub(crate) zone_name: String,
    labels: Vec<(&'static str, String)>,
    /// The labels of a machine in some rack, to match requirements against.
    probe: Labels,
    pub(crate) price_usd_per_hour: f64,
    pub(crate) interruption_probability: f64,
    pub(crate) allocatable: Amount,
}

impl Offer {
    /// The labels of a machine of this offer in this rack.
    pub(crate) fn labels_in(&self, rack: &str) -> Labels {
        labels_with(&self.labels, rack)
    }

    /// What requirements look at.
    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts { instance_type: &self.type_name, zone: &self.zone_name, labels: &self.probe }
    }

    pub(crate) fn region(&self) -> usize {
        self.zone / ZONES_PER_REGION
    }
}

/// The number of an offer.
pub(crate) fn offer_number(kind: usize, zone: usize, capacity: usize) -> u16 {
    ((kind * ZONES + zone) * CAPACITIES.len() + capacity) as u16
}

/// The pool label of a family's machines paid for in this way.
pub(crate) fn pool_name(kind: &str, purchase: &str) -> String {
    format!("{kind}-{purchase}")
}

/// All offers, by number.
pub(crate) fn offers(seed: &mut Seed) -> Vec<Offer> {
    let mut offers = Vec::with_capacity(OFFERS);
    for kind in 0..TYPES {
        for zone in 0..ZONES {
            let (region, factor) = REGIONS[zone / ZONES_PER_REGION];
            let hourly = size(kind).usd_per_hour * factor;
            let spot_share = 0.25 + 0.35 * seed.unit();
            let spot_chance = 0.01 + 0.19 * seed.unit();
            for (capacity, purchase) in CAPACITIES {
                let (share, chance) = match capacity {
                    CapacityType::BareMetal => (0.45, 0.0),
                    CapacityType::Reserved => (0.62, 0.0),
                    CapacityType::Spot => (spot_share, spot_chance),
                    CapacityType::OnDemand | CapacityType::Unspecified => (1.0, 0.0),
                };
                let family = family(kind);
                let mut labels = vec![
                    (ARCH, family.arch.to_string()),
                    (POOL, pool_name(family.kind.name(), purchase)),
                    (PURCHASE, purchase.to_string()),
                    (REGION, region.to_string()),
                ];
                if !family.accelerator.is_empty() {
                    labels.push((ACCELERATOR, family.accelerator.to_string()));
                }
                offers.push(Offer {
                    kind,
                    zone,
                    capacity,
                    type_name: type_name(kind),
                    zone_name: zone_name(zone),
                    probe: labels_with(&labels, "some rack"),
                    labels,
                    price_usd_per_hour: rounded(hourly * share, 1e4),
                    interruption_probability: rounded(chance, 1e3),
                    allocatable: allocatable(kind),
                });
            }
        }
    }
    offers
}

fn labels_with(own: &[(&'static str, String)], rack: &str) -> Labels {
    let own = own.iter().map(|(key, value)| (*key, value.as_str()));
    Labels::new(own.chain([(RACK, rack)])).expect("label keys differ")
}

/// Prices have four decimals and chances three, as price lists do.
fn rounded(value: f64, scale: f64) -> f64 {
    (value * scale).round() / scale
}
