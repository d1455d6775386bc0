//! What may happen to a host behind our back, and how it is told: the machine is Failed, and its error opens
//! with a word for what happened, followed by the evidence.

use std::fmt;

use bigfleet_provider_kit::{Handle, Machine, MachineState};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Nothing answers where it was.
    Vanished,
    /// Its controller says it is off, and nothing answers.
    PoweredOff,
    /// Its controller says its health is critical.
    Unhealthy,
    /// It was started anew and is not what it was before.
    Rebooted,
    /// It was installed anew.
    Reimaged,
    /// It shows another host key.
    OtherKey,
    /// It does not let us in, or does not do what it is asked.
    LockedOut,
    /// It is not in the inventory any more.
    Left,
}

impl Event {
    const ALL: [Self; 8] = [
        Self::Vanished,
        Self::PoweredOff,
        Self::Unhealthy,
        Self::Rebooted,
        Self::Reimaged,
        Self::OtherKey,
        Self::LockedOut,
        Self::Left,
    ];

    /// The word an error opens with.
    fn word(self) -> &'static str {
        match self {
            Self::Vanished => "vanished",
            Self::PoweredOff => "powered-off",
            Self::Unhealthy => "unhealthy",
            Self::Rebooted => "rebooted",
            Self::Reimaged => "reimaged",
            Self::OtherKey => "other-host-key",
            Self::LockedOut => "locked-out",
            Self::Left => "left-inventory",
        }
    }

    /// What an error says happened, if it is one of ours.
    pub(crate) fn of(last_error: &str) -> Option<Self> {
        let word = last_error.split_once(": ")?.0;
        Self::ALL.into_iter().find(|event| event.word() == word)
    }

    /// Whether a host comes back by itself once it is there again and clean. What somebody must have done on
    /// purpose waits for somebody.
    pub(crate) fn passes(self) -> bool {
        match self {
            Self::Vanished
            | Self::PoweredOff
            | Self::Unhealthy
            | Self::Rebooted
            | Self::LockedOut
            | Self::Left => true,
            Self::Reimaged | Self::OtherKey => false,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The state of a record; the kit keeps no other.
pub(crate) fn state_of(machine: &Machine) -> MachineState {
    MachineState::from_wire(machine.state).expect("the kit checks its records")
}

/// Reports a machine Failed, unless it has moved on since it was `seen`.
pub(crate) async fn report(handle: &Handle, seen: &Machine, event: Event, evidence: &str) {
    let error = format!("{event}: {evidence}");
    tracing::warn!(host = seen.id, was = ?state_of(seen), cluster = seen.cluster, "{error}");
    let change = |machine: &mut Machine| {
        if machine.state == seen.state && machine.cluster == seen.cluster {
            machine.state = MachineState::Failed.to_wire();
            machine.last_error = error;
        }
    };
    if let Err(error) = handle.update(&seen.id, change).await {
        tracing::error!(host = seen.id, %error, "what happened to a host could not be written down");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_known_by_the_word_its_error_opens_with() {
        for event in Event::ALL {
            assert_eq!(Event::of(&format!("{event}: since Tuesday")), Some(event));
        }
        for other in ["", "vanished", "the join failed: vanished: x", "Create took longer than 3 s"] {
            assert_eq!(Event::of(other), None, "{other}");
        }
    }
}
