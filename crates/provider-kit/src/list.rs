//! List: everything, or what changed since a revision.
//!
//! A capped listing starts where the last one stopped and goes round. A caller that takes the first free
//! machine of a short list thus gets another one each time, and no machine is out of sight for ever.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::{ListFilter, Machine, MachineList};

use crate::fleet::{Fleet, Row};
use crate::operation::state_of;
use crate::shared::Shared;

/// How many records are copied before others get a turn on the thread.
const COPIED_AT_ONCE: usize = 4096;

/// Answers a listing.
pub(crate) async fn list(shared: &Shared, filter: &ListFilter) -> MachineList {
    let (records, revision) = select(shared, filter);
    let mut machines = Vec::with_capacity(records.len());
    for chunk in records.chunks(COPIED_AT_ONCE) {
        machines.extend(chunk.iter().map(|machine| Machine::clone(machine)));
        tokio::task::yield_now().await;
    }
    MachineList { machines, revision: revision.to_string().into_bytes() }
}

/// Picks records under the lock; they are copied after it.
fn select(shared: &Shared, filter: &ListFilter) -> (Vec<Arc<Machine>>, u64) {
    let fleet = shared.fleet();
    // Gathered first: a caller may name a state a million times, which must cost nothing per machine.
    let mut states = [filter.states.is_empty(); 9];
    for state in filter.states.iter().filter_map(|number| MachineState::from_wire(*number)) {
        states[state as usize] = true;
    }
    let wanted = |row: &Row| states[state_of(&row.machine) as usize];
    let cap = usize::try_from(filter.max_results).ok().filter(|cap| *cap > 0).unwrap_or(usize::MAX);
    let records = match since(&fleet, &filter.since_revision) {
        Some(revision) => fleet
            .rows_since(revision)
            .filter(|row| wanted(row))
            .take(cap)
            .map(|row| row.machine.clone())
            .collect(),
        None => everything(shared, &fleet, wanted, cap),
    };
    (records, fleet.revision())
}

fn everything(
    shared: &Shared,
    fleet: &Fleet,
    wanted: impl Fn(&Row) -> bool,
    cap: usize,
) -> Vec<Arc<Machine>> {
    let start = shared.rotation.load(Ordering::Relaxed);
    let mut next = start.wrapping_add(1);
    let mut records = Vec::new();
    for (slot, row) in fleet.rows_from(start) {
        if records.len() == cap {
            break;
        }
        if wanted(row) {
            records.push(row.machine.clone());
            next = slot + 1;
        }
    }
    shared.rotation.store(next % fleet.len().max(1), Ordering::Relaxed);
    records
}

/// The revision a cursor stands for. Bytes that are not one of ours mean everything: never an error.
fn since(fleet: &Fleet, cursor: &[u8]) -> Option<u64> {
    let longest = u64::MAX.to_string().len();
    if cursor.is_empty() || cursor.len() > longest || !cursor.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let revision: u64 = std::str::from_utf8(cursor).ok()?.parse().ok()?;
    (revision <= fleet.revision()).then_some(revision)
}

/// How many machines are in each state.
pub(crate) fn census(fleet: &Fleet) -> impl Iterator<Item = (MachineState, u64)> + '_ {
    MachineState::ALL.into_iter().map(|state| (state, fleet.count(state)))
}
