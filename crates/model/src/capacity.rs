//! Capacity types: how a machine is paid for, and so whether it may ever be given back.

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
