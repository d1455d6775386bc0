//! Capacity types: how a machine is paid for, and so whether it may ever be given back.
//!
//! On-demand and spot machines are rented and may be released when idle. Everything else is fixed capacity,
//! also what nobody described: [`crate::release`] has no words for deleting it.

use std::fmt;

/// How a machine is owned or rented. The discriminants are the wire numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum CapacityType {
    /// The provider did not say. Treated as fixed: never released.
    #[default]
    Unspecified = 0,
    /// Hardware that is ours.
    BareMetal = 1,
    /// Paid for in advance.
    Reserved = 2,
    /// Rented by the hour, kept until given back.
    OnDemand = 3,
    /// Rented cheaply, may be taken away by the provider.
    Spot = 4,
}

impl CapacityType {
    /// All of them, in wire order.
    pub const ALL: [Self; 5] =
        [Self::Unspecified, Self::BareMetal, Self::Reserved, Self::OnDemand, Self::Spot];

    /// The type with this wire number, if there is one.
    pub fn from_wire(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as i32 == number)
    }

    /// The wire number.
    pub fn to_wire(self) -> i32 {
        self as i32
    }

    /// Whether it is rented by the hour and may be given back. Everything else is *fixed*: paid for anyway.
    pub fn is_elastic(self) -> bool {
        matches!(self, Self::OnDemand | Self::Spot)
    }

    /// The name people see and files use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "Unspecified",
            Self::BareMetal => "BareMetal",
            Self::Reserved => "Reserved",
            Self::OnDemand => "OnDemand",
            Self::Spot => "Spot",
        }
    }
}

impl fmt::Display for CapacityType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::CapacityType::{self, BareMetal, OnDemand, Reserved, Spot, Unspecified};

    #[test]
    fn wire_numbers_are_0_to_4_and_nothing_else() {
        for (number, kind) in (0..).zip([Unspecified, BareMetal, Reserved, OnDemand, Spot]) {
            assert_eq!(kind.to_wire(), number);
            assert_eq!(CapacityType::from_wire(number), Some(kind));
            assert_eq!(kind.to_string(), format!("{kind:?}"), "people and files see the name");
        }
        for number in [i32::MIN, -1, 5, 256, i32::MAX] {
            assert_eq!(CapacityType::from_wire(number), None, "{number}");
        }
    }

    #[test]
    fn what_nobody_described_is_unspecified() {
        assert_eq!(CapacityType::default(), Unspecified);
    }
}
