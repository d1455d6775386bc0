//! Who was preempted for whom, and why just they.

use std::sync::Arc;

use bigfleet_model::machine::MachineState;
use bigfleet_model::need::NeedKey;
use bigfleet_record::tape::Reader;
use bigfleet_shard::CycleRecord;
use tonic::Status;

use crate::decisions::Wanted;
use crate::explain::{decision, victim_parts};
use crate::known::{Known, named};
use crate::names::{find_need, need_ref};
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::{Snapshot, blocking};
use crate::v1;

/// Preemptions told if nobody says how many.
const TOLD: u32 = 20;
/// Cycles run again at most to find out how things stood then.
const REPLAYED: usize = 5;

impl<S: Shards> View<S> {
    pub(crate) async fn explain_preemption(
        &self,
        request: v1::ExplainPreemptionRequest,
    ) -> Result<v1::PreemptionExplanation, Status> {
        if !request.machine.is_empty() && !request.need.is_empty() {
            return Err(Status::invalid_argument("name a machine or a need, or neither for all; not both"));
        }
        self.needs_life("explaining preemptions")?;
        let limit = if request.limit == 0 { TOLD } else { request.limit } as usize;
        let snapshot = self.snapshot(None).await?;
        let wanted = Wanted { kinds: vec![v1::ActionKind::Preempt.into()], ..Wanted::default() };
        let recent = snapshot.beside.recent.clone();
        let all = wanted.of_recent(&recent, usize::MAX);
        let (decisions, gone) = if request.need.is_empty() && request.machine.is_empty() {
            (all, None)
        } else if request.need.is_empty() {
            let machine = self.find_machine(&snapshot, &request.machine).await?;
            let of_it = all.into_iter().filter(|d| *d.machine == *machine.machine.id);
            (of_it.collect::<Vec<_>>(), None)
        } else {
            let key = find_need(&snapshot.fleet, &request.need)?;
            let reference = need_ref(&key);
            (all, Some((key, reference)))
        };
        let machines =
            named(&*self.shards, decisions.iter().map(|d| d.machine.as_str().into()).collect()).await?;
        let mut told = Vec::new();
        let mut replayed = 0;
        for decision in decisions {
            if told.len() == limit {
                break;
            }
            let known = machines.iter().find(|known| *known.machine.id == *decision.machine);
            let is_for = |key: &Option<v1::NeedRef>, wanted: &v1::NeedRef| key.as_ref() == Some(wanted);
            let gains = gone.as_ref().is_none_or(|(_, wanted)| is_for(&decision.need, wanted));
            let mut preemption = of_now(&snapshot, decision, known);
            of_memory(&mut preemption, &snapshot, &recent);
            if preemption.score.is_none() && replayed < REPLAYED {
                replayed += 1;
                self.of_then(&mut preemption).await;
            }
            let loses = gone.as_ref().is_none_or(|(_, wanted)| is_for(&preemption.victim_need, wanted));
            if gains || loses {
                told.push(preemption);
            }
        }
        Ok(v1::PreemptionExplanation { as_of: Some(snapshot.as_of), preemptions: told })
    }

    /// Adds how things stood when it was decided, if the record still knows.
    async fn of_then(&self, preemption: &mut v1::Preemption) {
        let (Some(folder), Some(at)) = (self.about.record_dir.clone(), preemption.decision.clone()) else {
            return;
        };
        let read = move || {
            let fault = |error: bigfleet_record::replay::ReplayError| crate::snapshot::tape_status(&error);
            let reader = Reader::open(&folder).map_err(|error| fault(error.into()))?;
            let entry = reader.at_cycle(at.cycle).map_err(|error| fault(error.into()))?;
            let state = reader.state_at(&entry).map_err(fault)?;
            decision::of_state(&state, &at.machine)
        };
        // What cannot be read back stays unknown; the rest of the answer is worth having.
        if let Ok(then) = blocking(read).await {
            preemption.score = then.score;
            preemption.victim_need = then.machine.and_then(|machine| machine.bound_for);
            if let (Some(now), Some(then)) = (&mut preemption.decision, then.decision) {
                now.why = now.why.take().or(then.why);
            }
        }
    }
}

/// What the shard remembers of the victim, if the machine has moved on since.
fn of_memory(preemption: &mut v1::Preemption, snapshot: &Snapshot, recent: &[Arc<CycleRecord>]) {
    let (None, Some(decision)) = (&preemption.score, &preemption.decision) else { return };
    let at = recent.binary_search_by_key(&decision.cycle, |record| record.cycle);
    let actions = at.map_or(&[][..], |at| &recent[at].actions);
    let ordered = actions.iter().find(|ordered| *ordered.action.machine == *decision.machine);
    if let Some(machine) = ordered.and_then(|ordered| ordered.machine.as_deref()) {
        let stamp = &machine.assigned;
        preemption.score = Some(victim_parts(&snapshot.options, decision.priority, stamp));
        preemption.victim_need = (!stamp.fingerprint.is_empty()).then(|| {
            need_ref(&NeedKey {
                cluster: stamp.cluster.clone(),
                fingerprint: stamp.fingerprint.clone(),
                group: stamp.group.clone(),
            })
        });
    }
}

/// What the machine itself still says: it keeps its stamp until it has drained.
fn of_now(snapshot: &Snapshot, decision: v1::Decision, known: Option<&Known>) -> v1::Preemption {
    let drains_for = |known: &&Known| {
        let key: Option<&NeedKey> = known.machine.draining_for.as_ref();
        known.machine.state == MachineState::Draining && key.map(need_ref) == decision.need
    };
    // A preemption that was withheld has left its machine as it was.
    let stands = |known: &&Known| {
        drains_for(known)
            || (decision.fate() != v1::Fate::Begun && known.machine.state == MachineState::Configured)
    };
    let same = known.filter(stands);
    v1::Preemption {
        victim_need: same.and_then(Known::bound_for).as_ref().map(need_ref),
        score: same.map(|known| victim_parts(&snapshot.options, decision.priority, &known.machine.assigned)),
        until_unix_nanos: same
            .and_then(|known| known.under_way.as_ref())
            .map_or(0, |under_way| under_way.until_unix_nanos),
        state: known.map_or(0, |known| known.machine.state.to_wire()),
        decision: Some(decision),
    }
}
