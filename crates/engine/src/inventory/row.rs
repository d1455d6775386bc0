//! A machine as one row of numbers.

use std::cmp::Ordering;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::{Machine, MachineState};

use crate::intern::NONE;
use crate::vocab::{Vocabulary, Worth};

/// Everything the decisions read of one machine: one cache line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Row {
    /// Orders machines by id; see [`Inventory::number_new_ids`].
    pub(crate) order: u64,
    pub(crate) price: f64,
    pub(crate) reclamation_usd: f64,
    /// Since when it is Idle, if `stamped`.
    pub(crate) idle_since: i64,
    pub(crate) kind: u32,
    /// The cluster it is bound to, or [`NONE`].
    pub(crate) cluster: u32,
    /// The identity of the need it was bound or is being created for, or [`NONE`].
    pub(crate) key: u32,
    pub(crate) worth: u32,
    pub(crate) terms: u32,
    /// The identity of the need it is draining for, or [`NONE`].
    pub(crate) draining_for: u32,
    /// `None`: no machine of this id is known any more.
    pub(crate) state: Option<MachineState>,
    pub(crate) capacity: CapacityType,
    pub(crate) stamped: bool,
}

impl Default for Row {
    fn default() -> Self {
        Self {
            order: 0,
            price: 0.0,
            reclamation_usd: 0.0,
            idle_since: 0,
            kind: 0,
            cluster: NONE,
            key: NONE,
            worth: 0,
            terms: 0,
            draining_for: NONE,
            state: None,
            capacity: CapacityType::Unspecified,
            stamped: false,
        }
    }
}

impl Row {
    /// Keep order: price up, reclamation penalty down, id up.
    #[inline]
    pub(crate) fn cmp_keep(&self, other: &Self) -> Ordering {
        self.price
            .total_cmp(&other.price)
            .then_with(|| other.reclamation_usd.total_cmp(&self.reclamation_usd))
            .then_with(|| self.order.cmp(&other.order))
    }

    /// The row of a machine, without its place in the order of ids.
    pub(crate) fn of(vocab: &mut Vocabulary, machine: &Machine) -> Self {
        let worth = worth_of(machine);
        let idle_since = idle_since(machine);
        Self {
            order: 0,
            price: machine.price_usd_per_hour,
            reclamation_usd: worth.reclamation_usd,
            idle_since: idle_since.unwrap_or_default(),
            kind: vocab.kind(machine),
            cluster: cluster_of(machine).map_or(NONE, |name| vocab.cluster(name)),
            key: key_of(vocab, stamped_for(machine)),
            worth: vocab.worth(worth),
            terms: vocab.terms(machine.price_usd_per_hour, machine.interruption_probability),
            draining_for: key_of(vocab, draining_for(machine)),
            state: Some(machine.state),
            capacity: machine.capacity_type,
            stamped: idle_since.is_some(),
        }
    }

    /// Whether this is the row of a machine, down to the last digit. Words are compared where they lie:
    /// most of what providers say is what they said before, and looking every word up would cost more.
    pub(crate) fn is_of(&self, vocab: &Vocabulary, machine: &Machine) -> bool {
        self.state == Some(machine.state)
            && self.capacity == machine.capacity_type
            && self.stamped.then_some(self.idle_since) == idle_since(machine)
            && vocab.is_terms(self.terms, machine.price_usd_per_hour, machine.interruption_probability)
            && vocab.is_worth(self.worth, worth_of(machine))
            && vocab.is_cluster(self.cluster, cluster_of(machine))
            && vocab.is_key(self.key, stamped_for(machine))
            && vocab.is_key(self.draining_for, draining_for(machine))
            && vocab.is_kind(self.kind, machine)
    }
}

/// Since when a machine is idle, if it is and that is known.
fn idle_since(machine: &Machine) -> Option<i64> {
    machine.idle_since_unix_nanos.filter(|_| machine.state == MachineState::Idle)
}

/// The cluster a machine is bound to.
fn cluster_of(machine: &Machine) -> Option<&str> {
    (machine.state.is_bound() && !machine.cluster.is_empty()).then_some(&*machine.cluster)
}

/// The identity of the need a machine was bound or is being created for: cluster, fingerprint, group.
fn stamped_for(machine: &Machine) -> Option<[&str; 3]> {
    let stamp = &machine.assigned;
    let cluster = cluster_of(machine).unwrap_or(&stamp.cluster);
    (!stamp.fingerprint.is_empty()).then_some([cluster, &stamp.fingerprint, &stamp.group])
}

/// The identity of the need a machine drains for.
fn draining_for(machine: &Machine) -> Option<[&str; 3]> {
    let need = machine.draining_for.as_ref().filter(|_| machine.state == MachineState::Draining)?;
    Some([&need.cluster, &need.fingerprint, &need.group])
}

/// What a machine was worth when it was bound.
fn worth_of(machine: &Machine) -> Worth {
    let stamp = &machine.assigned;
    Worth {
        priority: stamp.priority,
        interruption_usd: stamp.interruption_penalty_usd,
        reclamation_usd: stamp.reclamation_penalty_usd,
    }
}

/// The number of an identity, or [`NONE`].
fn key_of(vocab: &mut Vocabulary, parts: Option<[&str; 3]>) -> u32 {
    parts.map_or(NONE, |[cluster, fingerprint, group]| vocab.key(cluster, fingerprint, group))
}
