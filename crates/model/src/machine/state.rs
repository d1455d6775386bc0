//! The stations of a machine's life and the moves we may order between them.

use std::fmt;

/// Where a machine is in its life. The discriminants are the wire numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum MachineState {
    /// A slot of quota: nothing exists yet.
    Speculative = 1,
    /// Being made.
    Creating = 2,
    /// Hardware that belongs to no cluster.
    Idle = 3,
    /// Joining a cluster; counts as bound from here on.
    Configuring = 4,
    /// A node of a cluster.
    Configured = 5,
    /// Leaving its cluster.
    Draining = 6,
    /// Being given back.
    Deleting = 7,
    /// Broken, with an error.
    Failed = 8,
}

impl MachineState {
    /// All of them, in wire order.
    pub const ALL: [Self; 8] = [
        Self::Speculative,
        Self::Creating,
        Self::Idle,
        Self::Configuring,
        Self::Configured,
        Self::Draining,
        Self::Deleting,
        Self::Failed,
    ];

    /// The state with this wire number, if there is one.
    pub fn from_wire(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as i32 == number)
    }

    /// The wire number.
    pub fn to_wire(self) -> i32 {
        self as i32
    }

    /// The name people see and files use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Speculative => "Speculative",
            Self::Creating => "Creating",
            Self::Idle => "Idle",
            Self::Configuring => "Configuring",
            Self::Configured => "Configured",
            Self::Draining => "Draining",
            Self::Deleting => "Deleting",
            Self::Failed => "Failed",
        }
    }

    /// Whether the machine belongs to a cluster.
    pub fn is_bound(self) -> bool {
        matches!(self, Self::Configuring | Self::Configured | Self::Draining)
    }

    /// Whether the provider is at work and another state will follow.
    pub fn is_transitional(self) -> bool {
        matches!(self, Self::Creating | Self::Configuring | Self::Draining | Self::Deleting)
    }

    /// Whether we may order the move from `self` to `to`, or complete one we ordered.
    ///
    /// Says nothing about what a provider may report: that is never refused for its order.
    pub fn may_order(self, to: Self) -> bool {
        use MachineState::{
            Configured, Configuring, Creating, Deleting, Draining, Failed, Idle, Speculative,
        };
        match self {
            Speculative => matches!(to, Creating),
            Creating | Draining => matches!(to, Idle | Failed),
            Idle => matches!(to, Configuring | Deleting),
            // Back to Idle only when binding was given up before the provider was called.
            Configuring => matches!(to, Configured | Failed | Idle),
            Configured => matches!(to, Draining),
            Deleting => matches!(to, Speculative | Failed),
            // The way out of a failure is the provider's word, not our order.
            Failed => false,
        }
    }
}

impl fmt::Display for MachineState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::MachineState::{
        self, Configured, Configuring, Creating, Deleting, Draining, Failed, Idle, Speculative,
    };

    #[test]
    fn wire_numbers_are_1_to_8_and_nothing_else() {
        let states = [Speculative, Creating, Idle, Configuring, Configured, Draining, Deleting, Failed];
        assert_eq!(states, MachineState::ALL);
        for (number, state) in (1..).zip(states) {
            assert_eq!(state.to_wire(), number);
            assert_eq!(MachineState::from_wire(number), Some(state));
        }
        for number in [i32::MIN, -1, 0, 9, 257, i32::MAX] {
            assert_eq!(MachineState::from_wire(number), None, "{number}");
        }
    }

    #[test]
    fn the_table_of_moves_is_exactly_this() {
        // One row per state we are in, one column per state we might order, both in wire order.
        let table = [
            /* Speculative */ ".x......", /* Creating    */ "..x....x",
            /* Idle        */ "...x..x.", /* Configuring */ "..x.x..x",
            /* Configured  */ ".....x..", /* Draining    */ "..x....x",
            /* Deleting    */ "x......x", /* Failed      */ "........",
        ];
        for (from, row) in MachineState::ALL.into_iter().zip(table) {
            let ours: String =
                MachineState::ALL.into_iter().map(|to| if from.may_order(to) { 'x' } else { '.' }).collect();
            assert_eq!(ours, row, "from {from}");
        }
    }

    #[test]
    fn bound_and_transitional_states() {
        for (state, bound, transitional) in [
            (Speculative, false, false),
            (Creating, false, true),
            (Idle, false, false),
            (Configuring, true, true),
            (Configured, true, false),
            (Draining, true, true),
            (Deleting, false, true),
            (Failed, false, false),
        ] {
            assert_eq!((state.is_bound(), state.is_transitional()), (bound, transitional), "{state}");
            assert_eq!(state.to_string(), format!("{state:?}"), "people and files see the name");
        }
    }
}
