//! Release policy: how long an idle machine is held before it is given back.
//!
//! Owned hardware must never be deleted by a slip in a configuration file. So the policy has a place for the
//! hold of on-demand machines and one for spot machines, and no place for anything else.

use std::num::NonZeroU64;

use crate::capacity::CapacityType;

const MINUTE_NANOS: u64 = 60_000_000_000;

/// How long idle rented machines are held. `None` holds them for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReleasePolicy {
    /// Hold of idle on-demand machines.
    pub on_demand_hold_nanos: Option<NonZeroU64>,
    /// Hold of idle spot machines.
    pub spot_hold_nanos: Option<NonZeroU64>,
}

impl ReleasePolicy {
    /// Nothing is ever released.
    pub const NEVER: Self = Self { on_demand_hold_nanos: None, spot_hold_nanos: None };

    /// A policy from nanoseconds, where 0 switches release off for that kind.
    pub fn from_nanos(on_demand_hold_nanos: u64, spot_hold_nanos: u64) -> Self {
        Self {
            on_demand_hold_nanos: NonZeroU64::new(on_demand_hold_nanos),
            spot_hold_nanos: NonZeroU64::new(spot_hold_nanos),
        }
    }

    /// The hold for a capacity type; `None` means for ever, which is the only answer for fixed capacity.
    pub fn hold_nanos(&self, capacity: CapacityType) -> Option<u64> {
        match capacity {
            CapacityType::OnDemand => self.on_demand_hold_nanos.map(NonZeroU64::get),
            CapacityType::Spot => self.spot_hold_nanos.map(NonZeroU64::get),
            CapacityType::BareMetal | CapacityType::Reserved | CapacityType::Unspecified => None,
        }
    }

    /// The first instant at which a machine idle since `idle_since_unix_nanos` may be released, if ever.
    pub fn due_unix_nanos(&self, capacity: CapacityType, idle_since_unix_nanos: i64) -> Option<i64> {
        let hold = i64::try_from(self.hold_nanos(capacity)?).unwrap_or(i64::MAX);
        idle_since_unix_nanos.checked_add(hold)
    }
}

/// Ten minutes for on-demand, one for spot.
impl Default for ReleasePolicy {
    fn default() -> Self {
        Self::from_nanos(10 * MINUTE_NANOS, MINUTE_NANOS)
    }
}
