//! Resource amounts: quantities as text on the wire, integers in the model.

use std::collections::BTreeMap;

use bigfleet_model::limits::{self, OverLimit};
use bigfleet_model::quantity::Quantity;
use bigfleet_model::resource::{ResourceError, ResourceName, ResourceVec};

use crate::v1alpha1::Resources;

/// Refuses more amounts than `most`, and names or amounts that are too long.
pub(super) fn check_map(
    field: &'static str,
    quantities: &BTreeMap<String, String>,
    most: usize,
) -> Result<(), OverLimit> {
    limits::count(field, "resource names", quantities.len(), most)?;
    quantities.iter().try_for_each(|(name, amount)| {
        limits::text(field, name, limits::RESOURCE_NAME_BYTES)?;
        limits::text(field, amount, limits::QUANTITY_BYTES)
    })
}

/// Reads quantities by resource name. One that does not parse refuses them all.
pub fn from_map(quantities: &BTreeMap<String, String>) -> Result<ResourceVec, ResourceError> {
    ResourceVec::parse(quantities)
}

/// Prints amounts as canonical Kubernetes quantities: `cpu` as `1500m` or `2`, everything else in whole units.
pub fn to_map(amounts: &ResourceVec) -> BTreeMap<String, String> {
    amounts.iter().map(|(name, amount)| (name.to_string(), quantity(name, amount).to_string())).collect()
}

fn quantity(name: &ResourceName, amount: u64) -> Quantity {
    if *name == ResourceName::CPU { Quantity::from_milli(amount) } else { Quantity::from_units(amount) }
}

impl TryFrom<&Resources> for ResourceVec {
    type Error = ResourceError;

    fn try_from(message: &Resources) -> Result<Self, ResourceError> {
        from_map(&message.resources)
    }
}

impl From<&ResourceVec> for Resources {
    fn from(amounts: &ResourceVec) -> Self {
        Self { resources: to_map(amounts) }
    }
}
