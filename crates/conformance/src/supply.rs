//! Machines for the checks: found by List, brought to the state a check wants, used by one check at a time.
//!
//! Machines bound to a cluster that is not the suite's are never touched, nor are FAILED ones and slots whose
//! label says that they are made to break.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use bigfleet_proto::v1alpha1::Machine;

use crate::clock::Patience;
use crate::context::{Context, Run};
use crate::moves::{CLUSTER, Kind, State, is_settled, state_name, state_of};
use crate::verdict::{Ended, skipped};

/// Marks a slot whose Create is meant to fail.
pub(crate) const FAULT_LABEL: &str = "conformance.fault/create";

/// How often a machine that breaks on the way is replaced by another.
const ATTEMPTS: usize = 3;

/// How often a waiting check looks whether another has given a machine back.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// All machines the suite may use.
#[derive(Default)]
pub(crate) struct Supply(Mutex<Shelf>);

#[derive(Default)]
struct Shelf {
    /// With the state they were last seen in; unspecified if a check has used them since.
    free: BTreeMap<String, State>,
    taken: BTreeSet<String>,
    /// Gone for the rest of the run: broken, somebody else's, or held by a scene.
    kept: BTreeSet<String>,
    /// The machine picked last: the next pick goes on from there, so that all are used in turn.
    last: String,
}

/// A machine that belongs to one check until it is dropped.
pub(crate) struct Lease {
    pub(crate) id: String,
    /// The record when it was taken.
    pub(crate) machine: Machine,
    run: Weak<Run>,
}

impl Lease {
    /// Keeps the machine for the rest of the run: nobody need wait for it.
    pub(crate) fn keep(mut self) -> String {
        self.give_back(None);
        self.run = Weak::new();
        self.id.clone()
    }

    /// Ends the lease. Without a state the machine leaves the supply.
    fn give_back(&self, state: Option<State>) {
        let Some(run) = self.run.upgrade() else { return };
        let mut shelf = run.supply.shelf();
        shelf.taken.remove(&self.id);
        match state {
            Some(state) => shelf.free.insert(self.id.clone(), state).is_none(),
            None => shelf.kept.insert(self.id.clone()),
        };
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.give_back(Some(State::Unspecified));
    }
}

impl Supply {
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().expect("no holder panics")
    }

    // In a function of its own, so that the lock is let go before anything is awaited.
    fn pick(&self, wanted: State, deletes: bool) -> Option<String> {
        self.shelf().pick(wanted, deletes)
    }

    /// A machine in this state. Waits for other checks to give theirs back if there is no other way.
    pub(crate) async fn take(&self, context: &Context, wanted: State) -> Result<Lease, Ended> {
        let mut patience = Patience::new(context.limits().transition, LOOK_AGAIN);
        loop {
            if let Some(lease) = self.try_take(context, wanted).await? {
                return Ok(lease);
            }
            if self.shelf().taken.is_empty() || !patience.wait().await {
                let count = self.shelf().free.len();
                return skipped(format!(
                    "needs a machine that is {0} or can be brought there; the provider has none to spare ({count} usable)",
                    state_name(wanted)
                ));
            }
        }
    }

    /// A machine in this state, if there is one now.
    pub(crate) async fn try_take(&self, context: &Context, wanted: State) -> Result<Option<Lease>, Ended> {
        self.fill(context).await?;
        let deletes = context.deletes().await?;
        let mut attempts = 0;
        while let Some(id) = self.pick(wanted, deletes) {
            let machine = context.get(&id).await?;
            let lease = Lease { id, machine, run: Arc::downgrade(&context.run) };
            match bring(context, lease, wanted, deletes).await {
                Ok(Some(lease)) => return Ok(Some(lease)),
                Ok(None) => {}
                Err(error) => {
                    attempts += 1;
                    if attempts == ATTEMPTS {
                        return Err(error);
                    }
                }
            }
        }
        Ok(None)
    }

    /// Any settled machine, wherever it stands, if one is free now.
    pub(crate) async fn try_take_as_is(&self, context: &Context) -> Result<Option<Lease>, Ended> {
        self.fill(context).await?;
        let order = [State::Idle, State::Speculative, State::Configured, State::Unspecified];
        loop {
            let id = order.into_iter().find_map(|state| self.shelf().pick_exactly(state));
            let Some(id) = id else { return Ok(None) };
            let machine = context.get(&id).await?;
            let lease = Lease { id, machine, run: Arc::downgrade(&context.run) };
            if is_usable(&lease.machine) && is_settled(state_of(&lease.machine)) {
                return Ok(Some(lease));
            }
            lease.keep();
        }
    }

    /// Puts the inventory on the shelf if it is empty.
    async fn fill(&self, context: &Context) -> Result<(), Ended> {
        if !self.shelf().free.is_empty() {
            return Ok(());
        }
        let listed = context.list_all().await?.machines;
        let mut shelf = self.shelf();
        for machine in listed {
            if is_usable(&machine) && !shelf.taken.contains(&machine.id) && !shelf.kept.contains(&machine.id)
            {
                let state = state_of(&machine);
                shelf.free.insert(machine.id, if is_settled(state) { state } else { State::Unspecified });
            }
        }
        Ok(())
    }
}

impl Shelf {
    /// Takes the machine with the shortest way to the wanted state.
    fn pick(&mut self, wanted: State, deletes: bool) -> Option<String> {
        let (nearest, others) = ways_to(wanted).split_first()?;
        let others = others.iter().filter(|state| deletes || !way(**state, wanted).contains(&Kind::Delete));
        let order = [*nearest, State::Unspecified].into_iter().chain(others.copied());
        order.into_iter().find_map(|state| self.pick_exactly(state))
    }

    fn pick_exactly(&mut self, state: State) -> Option<String> {
        let id = self.after_last(state)?;
        self.free.remove(&id);
        self.taken.insert(id.clone());
        self.last.clone_from(&id);
        Some(id)
    }

    fn after_last(&self, wanted: State) -> Option<String> {
        let later = self.free.range::<str, _>((Bound::Excluded(self.last.as_str()), Bound::Unbounded));
        let mut round = later.chain(self.free.iter());
        round.find(|(_, state)| **state == wanted).map(|(id, _)| id.clone())
    }
}

/// Brings a machine to the wanted state. Nothing means that it cannot be brought there.
async fn bring(
    context: &Context,
    mut lease: Lease,
    wanted: State,
    deletes: bool,
) -> Result<Option<Lease>, Ended> {
    if !is_usable(&lease.machine) {
        lease.keep();
        return Ok(None);
    }
    if !is_settled(state_of(&lease.machine)) {
        match context.settle(&lease.id).await {
            Ok(machine) => lease.machine = machine,
            Err(error) => {
                lease.keep();
                return Err(error);
            }
        }
    }
    let state = state_of(&lease.machine);
    let way = way(state, wanted);
    if state == State::Failed {
        lease.keep();
        return Ok(None);
    }
    if way.contains(&Kind::Delete) && !deletes {
        lease.give_back(Some(state));
        lease.run = Weak::new();
        return Ok(None);
    }
    for kind in way {
        match context.step(*kind, &lease.id).await {
            Ok((_, machine)) => lease.machine = machine,
            Err(error) => {
                lease.keep();
                return Err(error);
            }
        }
    }
    Ok(Some(lease))
}

fn is_usable(machine: &Machine) -> bool {
    let ours = machine.cluster.is_empty() || machine.cluster.starts_with(CLUSTER);
    let known = !matches!(state_of(machine), State::Failed | State::Unspecified);
    ours && known && !machine.labels.contains_key(FAULT_LABEL)
}

/// States from which the wanted one can be reached, nearest first.
fn ways_to(wanted: State) -> &'static [State] {
    match wanted {
        State::Speculative => &[State::Speculative, State::Idle, State::Configured],
        State::Idle => &[State::Idle, State::Configured, State::Speculative],
        State::Configured => &[State::Configured, State::Idle, State::Speculative],
        _ => &[],
    }
}

fn way(from: State, to: State) -> &'static [Kind] {
    match (from, to) {
        (State::Speculative, State::Idle) => &[Kind::Create],
        (State::Speculative, State::Configured) => &[Kind::Create, Kind::Configure],
        (State::Idle, State::Configured) => &[Kind::Configure],
        (State::Idle, State::Speculative) => &[Kind::Delete],
        (State::Configured, State::Idle) => &[Kind::Drain],
        (State::Configured, State::Speculative) => &[Kind::Drain, Kind::Delete],
        _ => &[],
    }
}
