//! List: everything, or what changed since a revision; in one answer or in chunks.
//!
//! A capped listing starts where the last one stopped and goes round. A caller that takes the first free
//! machine of a short list thus gets another one each time, and no machine is out of sight for ever.
//!
//! A [`Selection`] is what a listing names, as it was at one instant: pointers to shared records, four bytes in
//! a thousand of what goes over the wire. It is copied or encoded a piece at a time, by whoever answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::{ListFilter, Machine, MachineList};
use tonic::Status;

use crate::fleet::{Fleet, Row};
use crate::operation::state_of;
use crate::shared::Shared;

/// How many records are copied before others get a turn on the thread.
const COPIED_AT_ONCE: usize = 4096;

/// The records a listing names, and the revision they are of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// The records, in the order of the answer.
    pub machines: Vec<Arc<Machine>>,
    /// What to ask from next time.
    pub revision: Vec<u8>,
}

impl Selection {
    /// The answer to a unary List: a copy of every record.
    pub async fn into_list(self) -> MachineList {
        let mut machines = Vec::with_capacity(self.machines.len());
        for chunk in self.machines.chunks(COPIED_AT_ONCE) {
            machines.extend(chunk.iter().map(|machine| Machine::clone(machine)));
            tokio::task::yield_now().await;
        }
        MachineList { machines, revision: self.revision }
    }
}

/// A service that can say what a listing names without copying it.
pub trait Lister: Send + Sync + 'static {
    /// What a listing with this filter names now. `UNIMPLEMENTED` sends callers of the streamed List to the
    /// unary one.
    fn select(&self, filter: &ListFilter) -> impl Future<Output = Result<Selection, Status>> + Send;
}

/// Picks records under the lock; they are copied after it.
pub(crate) fn select(shared: &Shared, filter: &ListFilter) -> Selection {
    let fleet = shared.fleet();
    // Gathered first: a caller may name a state a million times, which must cost nothing per machine.
    let mut states = [filter.states.is_empty(); 9];
    for state in filter.states.iter().filter_map(|number| MachineState::from_wire(*number)) {
        states[state as usize] = true;
    }
    let wanted = |row: &Row| states[state_of(&row.machine) as usize];
    let cap = usize::try_from(filter.max_results).ok().filter(|cap| *cap > 0).unwrap_or(usize::MAX);
    let machines = match since(&fleet, &filter.since_revision) {
        Some(revision) => fleet
            .rows_since(revision)
            .filter(|row| wanted(row))
            .take(cap)
            .map(|row| row.machine.clone())
            .collect(),
        None => everything(shared, &fleet, wanted, cap),
    };
    Selection { machines, revision: fleet.revision().to_string().into_bytes() }
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
