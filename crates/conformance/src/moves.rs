//! The four moves and the tokens they carry, in the suite's own words.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};

use bigfleet_proto::v1alpha1::Machine;
pub(crate) use bigfleet_proto::v1alpha1::MachineState as State;

/// One of the four moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Create,
    Configure,
    Drain,
    Delete,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Create, Self::Configure, Self::Drain, Self::Delete];

    /// The only state it may start in.
    pub(crate) fn from(self) -> State {
        match self {
            Self::Create => State::Speculative,
            Self::Configure | Self::Delete => State::Idle,
            Self::Drain => State::Configured,
        }
    }

    /// The state while it is under way.
    pub(crate) fn during(self) -> State {
        match self {
            Self::Create => State::Creating,
            Self::Configure => State::Configuring,
            Self::Drain => State::Draining,
            Self::Delete => State::Deleting,
        }
    }

    /// The state it ends in.
    pub(crate) fn to(self) -> State {
        match self {
            Self::Create | Self::Drain => State::Idle,
            Self::Configure => State::Configured,
            Self::Delete => State::Speculative,
        }
    }

    /// The move that is under way in this state.
    pub(crate) fn under_way_in(state: State) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.during() == state)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Whether a state changes by itself.
pub(crate) fn is_settled(state: State) -> bool {
    matches!(state, State::Speculative | State::Idle | State::Configured | State::Failed)
}

/// The state of a record; a number nobody knows is shown as unspecified.
pub(crate) fn state_of(machine: &Machine) -> State {
    State::try_from(machine.state).unwrap_or(State::Unspecified)
}

/// `IDLE` for `MACHINE_STATE_IDLE`.
pub(crate) fn state_name(state: State) -> &'static str {
    state.as_str_name().trim_start_matches("MACHINE_STATE_")
}

/// A record has a host if either part of it says something.
pub(crate) fn has_host(machine: &Machine) -> bool {
    machine.host.as_ref().is_some_and(|host| !host.provider.is_empty() || !host.r#ref.is_empty())
}

/// Metadata from pairs.
pub(crate) fn metadata<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// A move with what it needs.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    Create,
    Configure { cluster: String, metadata: BTreeMap<String, String>, blob: Vec<u8> },
    Drain { grace_secs: i64 },
    Delete,
}

impl Order {
    /// The plainest move of a kind.
    pub(crate) fn plain(kind: Kind) -> Self {
        match kind {
            Kind::Create => Self::Create,
            Kind::Configure => Self::to(CLUSTER),
            Kind::Drain => Self::Drain { grace_secs: 0 },
            Kind::Delete => Self::Delete,
        }
    }

    /// A Configure to this cluster.
    pub(crate) fn to(cluster: &str) -> Self {
        Self::noted(cluster, BTreeMap::new())
    }

    /// A Configure to this cluster with these notes.
    pub(crate) fn noted(cluster: &str, metadata: BTreeMap<String, String>) -> Self {
        Self::Configure { cluster: cluster.into(), metadata, blob: b"#!/bin/sh\nexit 0\n".to_vec() }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Create => Kind::Create,
            Self::Configure { .. } => Kind::Configure,
            Self::Drain { .. } => Kind::Drain,
            Self::Delete => Kind::Delete,
        }
    }
}

/// Every cluster of the suite begins like this: machines bound to others are left alone.
pub(crate) const CLUSTER: &str = "conformance-cluster";

/// What a call shows to the fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) shard_id: String,
    pub(crate) epoch: i64,
    pub(crate) sequence: i64,
}

impl Token {
    /// No token at all: the call passes unfenced.
    pub(crate) fn none() -> Self {
        Self { shard_id: String::new(), epoch: 0, sequence: 0 }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.shard_id.is_empty() && self.epoch == 0 && self.sequence == 0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return f.write_str("no token");
        }
        write!(f, "token {:?} ({}, {})", self.shard_id, self.epoch, self.sequence)
    }
}

/// A caller of its own, with tokens that only rise.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) id: String,
    next: AtomicI64,
}

impl Shard {
    pub(crate) fn new(id: String) -> Self {
        Self { id, next: AtomicI64::new(1) }
    }

    /// A token above all before, in epoch 1.
    pub(crate) fn next(&self) -> Token {
        self.at(1, self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// This very token.
    pub(crate) fn at(&self, epoch: i64, sequence: i64) -> Token {
        Token { shard_id: self.id.clone(), epoch, sequence }
    }
}
