//! Release policy: how long an idle machine is held before it is given back.
//!
//! Owned hardware must never be deleted by a slip in a configuration file. So the policy has a place for the
//! hold of on-demand machines and one for spot machines, and no place for anything else.
//!
//! ```
//! use bigfleet_model::{capacity::CapacityType, release::ReleasePolicy};
//!
//! let (policy, idle_since) = (ReleasePolicy::default(), 1_780_000_000_000_000_000);
//! assert_eq!(policy.due_unix_nanos(CapacityType::Spot, idle_since), Some(idle_since + 60_000_000_000));
//! assert_eq!(policy.due_unix_nanos(CapacityType::Reserved, idle_since), None);
//! ```

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

    /// The first instant at which a machine idle since `idle_since_unix_nanos` may be released; `None` if
    /// that instant never comes.
    pub fn due_unix_nanos(&self, capacity: CapacityType, idle_since_unix_nanos: i64) -> Option<i64> {
        // A due time past the end of the clock never comes.
        idle_since_unix_nanos.checked_add_unsigned(self.hold_nanos(capacity)?)
    }
}

/// Ten minutes for on-demand, one for spot.
impl Default for ReleasePolicy {
    fn default() -> Self {
        Self::from_nanos(10 * MINUTE_NANOS, MINUTE_NANOS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CapacityType::{BareMetal, OnDemand, Reserved, Spot, Unspecified};

    #[test]
    fn rented_machines_are_held_ten_minutes_and_one() {
        let policy = ReleasePolicy::default();
        let holds = [Unspecified, BareMetal, Reserved, OnDemand, Spot].map(|kind| policy.hold_nanos(kind));
        assert_eq!(holds, [None, None, None, Some(600_000_000_000), Some(60_000_000_000)]);
    }

    #[test]
    fn zero_switches_release_off_for_one_kind() {
        assert_eq!(ReleasePolicy::from_nanos(0, 0), ReleasePolicy::NEVER);
        let spot_only = ReleasePolicy::from_nanos(0, 5);
        assert_eq!((spot_only.hold_nanos(OnDemand), spot_only.hold_nanos(Spot)), (None, Some(5)));
        let on_demand_only = ReleasePolicy::from_nanos(5, 0);
        assert_eq!((on_demand_only.hold_nanos(OnDemand), on_demand_only.hold_nanos(Spot)), (Some(5), None));
    }

    #[test]
    fn the_due_time_is_exact_or_never_comes() {
        let due = |hold, since| ReleasePolicy::from_nanos(0, hold).due_unix_nanos(Spot, since);
        for (hold, since, expected) in [
            (1, 0, Some(1)),
            (60, 100, Some(160)),
            (60, -100, Some(-40)),
            (1, i64::MAX, None),
            (1, i64::MAX - 1, Some(i64::MAX)),
            (u64::MAX, i64::MIN, Some(i64::MAX)),
            (u64::MAX, i64::MIN + 1, None),
            (1 << 63, -1, Some(i64::MAX)),
            (1 << 63, 0, None),
        ] {
            assert_eq!(due(hold, since), expected, "hold {hold} since {since}");
        }
    }
}
