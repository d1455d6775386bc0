//! Pods find their places, as a cluster's scheduler would: largest first, each where it fits best.

use bigfleet_model::resource::{ResourceName, ResourceVec};

/// Cpu and memory.
pub(crate) type Amounts = [u64; 2];

pub(crate) fn amounts(vector: &ResourceVec) -> Amounts {
    assert!(vector.len() <= 2, "only cpu and memory: {vector}");
    [vector.get(&ResourceName::CPU), vector.get(&ResourceName::MEMORY)]
}

pub(crate) fn vector(amounts: Amounts) -> ResourceVec {
    let names = [ResourceName::CPU, ResourceName::MEMORY];
    ResourceVec::new(names.into_iter().zip(amounts)).expect("two names that differ")
}

pub(crate) fn covers(have: Amounts, wanted: Amounts) -> bool {
    have[0] >= wanted[0] && have[1] >= wanted[1]
}

pub(crate) fn less(from: Amounts, what: Amounts) -> Amounts {
    [from[0].saturating_sub(what[0]), from[1].saturating_sub(what[1])]
}

pub(crate) fn plus(a: Amounts, b: Amounts) -> Amounts {
    [a[0] + b[0], a[1] + b[1]]
}

/// How large something is, as shares of a whole.
fn share(of: Amounts, whole: Amounts) -> f64 {
    of[0] as f64 / whole[0] as f64 + of[1] as f64 / whole[1] as f64
}

/// The pods without a place, and the room left on each machine.
pub(crate) struct Cluster {
    whole: Amounts,
    room: Vec<Amounts>,
    waiting: Vec<Amounts>,
}

impl Cluster {
    /// A cluster without machines.
    pub(crate) fn new(pods: &[ResourceVec]) -> Self {
        let mut waiting: Vec<Amounts> = pods.iter().map(amounts).collect();
        let whole = waiting.iter().copied().fold([0; 2], plus);
        waiting.sort_by(|a, b| share(*b, whole).total_cmp(&share(*a, whole)));
        Self { whole, room: Vec::new(), waiting }
    }

    /// Machines join and pods are placed; returns what is asked for by those that found no place, `None` if all did.
    pub(crate) fn join(&mut self, machines: impl IntoIterator<Item = Amounts>) -> Option<Amounts> {
        self.room.extend(machines);
        let Self { whole, room, waiting } = self;
        waiting.retain(|pod| {
            let fitting = room.iter_mut().filter(|room| covers(**room, *pod));
            let best = fitting.min_by(|a, b| share(**a, *whole).total_cmp(&share(**b, *whole)));
            let Some(best) = best else { return true };
            *best = less(*best, *pod);
            false
        });
        (!waiting.is_empty()).then(|| waiting.iter().copied().fold([0; 2], plus))
    }
}
