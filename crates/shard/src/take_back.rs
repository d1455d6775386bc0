//! Taking a reclaim back: demand that returns within the grace keeps the machine its cluster was about to lose.
//!
//! Between a reclaim and its drain lies the grace, and the pods of that time are still there. If the same cluster is to be
//! given a machine meanwhile, one that is on its way out and would do is kept instead: nothing is bought, nothing has to
//! join, and whoever was not evicted yet stays.
//!
//! It cannot swing. The kept machine is Configured in the next cycle and matches the need that was short, so it is
//! credited to that need or to an earlier one of its cluster, and is not reclaimed while this demand lasts. Gangs and
//! spreads are left alone: for them it matters where a machine lies, and one that matches need not count.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_engine::{Action, ActionKind};
use bigfleet_model::machine::MachineState;

use crate::effect::{Effect, Frame, Step};
use crate::event::{SessionId, WireId};
use crate::flight::Stage;
use crate::shard::Shard;
use crate::table::Slot;

/// Machines looked at for one action.
const MOST_TRIED: usize = 64;

/// Machines that are on their way out of their cluster and could be kept, by cluster.
pub(crate) type Leaving = BTreeMap<Arc<str>, Vec<Slot>>;

/// Whether an action gets somebody a machine.
pub(crate) fn acquires(action: &Action) -> bool {
    matches!(action.kind, ActionKind::Bootstrap | ActionKind::Provision | ActionKind::Preempt)
}

impl Shard {
    /// The machines whose reclaim can still be taken back: the cluster is letting go, and nobody was told to drain.
    pub(crate) fn leaving(&self) -> Leaving {
        let mut leaving = Leaving::new();
        for slot in self.moves.waiting() {
            let Some(row) = self.table.get(slot) else { continue };
            let Some(flight) = &row.flight else { continue };
            if flight.kind == ActionKind::Reclaim
                && matches!(flight.stage, Stage::LettingGo(_))
                && let Some(cluster) = &flight.cluster
            {
                leaving.entry(cluster.clone()).or_default().push(slot);
            }
        }
        for slots in leaving.values_mut() {
            slots.sort_by(|a, b| self.table.row(*a).machine.id.cmp(&self.table.row(*b).machine.id));
        }
        leaving
    }

    /// Keeps a machine that is on its way out if it would do for the need of this action. True if there was one.
    pub(crate) fn take_back(
        &mut self,
        action: &Action,
        leaving: &mut Leaving,
        now: i64,
        step: &mut Step,
    ) -> bool {
        let need = action.need.as_ref().map(|demand| &demand.need);
        let Some(need) = need.filter(|_| acquires(action)) else { return false };
        if !need.group.is_empty() || need.profile.same().is_some() || need.profile.strict_spread().is_some() {
            return false;
        }
        let Some(slots) = leaving.get_mut(&need.cluster) else { return false };
        let place = slots.iter().take(MOST_TRIED).position(|slot| {
            let machine = &self.table.row(*slot).machine;
            machine.provides().covers(&need.min_unit) && need.profile.matches(machine.facts())
        });
        let Some(place) = place else { return false };
        let slot = slots.remove(place);
        debug_assert!(matches!(self.stage(slot), Some(Stage::LettingGo(_))), "nobody was told to drain it");
        self.tally.taken_back += 1;
        self.moves.take_back(self.flight(slot).instruction, slot);
        self.roll_back(slot, "taken_back", now, step);
        true
    }

    /// A cluster acknowledged an instruction that nobody waits for. If it was taken back, the word of that may have overtaken
    /// the instruction itself: newer news about a machine goes out in the place of the older. So it is said again.
    pub(crate) fn say_again_that_it_stays(
        &mut self,
        session: SessionId,
        instruction: WireId,
        step: &mut Step,
    ) {
        let Some(row) = self.moves.was_taken_back(instruction).and_then(|slot| self.table.get(slot)) else {
            return;
        };
        let is_theirs = self.sessions.get(&session).is_some_and(|cluster| *row.machine.cluster == **cluster);
        if is_theirs && row.machine.state == MachineState::Configured {
            let frame = Frame::Node(row.machine.clone());
            step.effects.push(Effect::Send { session, frame });
        }
    }
}
