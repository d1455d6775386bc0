//! Why one action was chosen: from memory if the cycle is still at hand, else by running it again.

use std::path::PathBuf;
use std::sync::Arc;

use bigfleet_engine::EDITION;
use bigfleet_record::Decided;
use bigfleet_record::replay::ReplayState;
use bigfleet_record::tape::Reader;
use bigfleet_shard::{CycleRecord, MachineFacts};
use tonic::Status;

use crate::convert::reasons;
use crate::decisions::{message, with_facts};
use crate::explain::victim_parts;
use crate::known::Known;
use crate::needs;
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::{blocking, tape_status};
use crate::v1;

impl<S: Shards> View<S> {
    pub(crate) async fn explain_decision(
        &self,
        request: v1::ExplainDecisionRequest,
    ) -> Result<v1::DecisionExplanation, Status> {
        if request.machine.is_empty() || request.cycle == 0 {
            return Err(Status::invalid_argument(
                "a decision is named by its cycle and its machine; give both",
            ));
        }
        let recent = self.recent().await?;
        let at_hand = recent.iter().find(|record| record.cycle == request.cycle);
        let kept = at_hand.map(|record| of_record(record, &request.machine));
        let is_whole = |kept: &v1::DecisionExplanation| {
            let why = kept.decision.as_ref().and_then(|decision| decision.why.as_ref());
            why.is_some_and(|why| !why.brief)
        };
        let mut answer = match (kept, self.about.record_dir.clone()) {
            (Some(Ok(kept)), _) if is_whole(&kept) => kept,
            // A cycle of long ago, or one in which too much was decided to keep all reasons.
            (kept, Some(folder)) => match (run_again(folder, request.clone()).await, kept) {
                (Ok(answer), _) => answer,
                // The newest cycles may not have reached the disk.
                (Err(_), Some(kept)) => kept?,
                (Err(status), None) => return Err(status),
            },
            (Some(kept), None) => kept?,
            (None, None) => return Err(not_at_hand(request.cycle, &recent)),
        };
        answer.as_of = Some(self.as_of().await?);
        Ok(answer)
    }
}

async fn run_again(
    folder: PathBuf,
    request: v1::ExplainDecisionRequest,
) -> Result<v1::DecisionExplanation, Status> {
    blocking(move || {
        let reader = Reader::open(&folder).map_err(|error| tape_status(&error.into()))?;
        let entry = reader.at_cycle(request.cycle).map_err(|error| tape_status(&error.into()))?;
        if entry.cycle != request.cycle {
            return Err(quiet(request.cycle));
        }
        let state = reader.state_at(&entry).map_err(|error| tape_status(&error))?;
        of_state(&state, &request.machine)
    })
    .await
}

fn not_at_hand(cycle: u64, recent: &[Arc<CycleRecord>]) -> Status {
    let kept = match (recent.first(), recent.last()) {
        (Some(first), Some(last)) => format!("{} to {}", first.cycle, last.cycle),
        _ => "none".to_owned(),
    };
    Status::not_found(format!(
        "cycle {cycle} is not at hand ({kept} are), and this shard keeps no decision record"
    ))
}

fn quiet(cycle: u64) -> Status {
    Status::not_found(format!("cycle {cycle} decided nothing, or is not in the record"))
}

fn nothing(cycle: u64, machine: &str) -> Status {
    Status::not_found(format!(
        "cycle {cycle} decided nothing about machine {machine:?}; `bigfleet get decisions` lists what it did"
    ))
}

fn of_record(record: &CycleRecord, machine: &str) -> Result<v1::DecisionExplanation, Status> {
    let found = record.actions.iter().find(|ordered| *ordered.action.machine == *machine);
    let ordered = found.ok_or_else(|| nothing(record.cycle, machine))?;
    let decision = message(record.into(), &Decided::from(ordered));
    let known = ordered.machine.clone().map(Known::recorded);
    let score = known
        .as_ref()
        .filter(|_| decision.kind() == v1::ActionKind::Preempt)
        .map(|known| victim_parts(&record.options, decision.priority, &known.machine.assigned));
    Ok(v1::DecisionExplanation {
        need: ordered.action.need.as_deref().map(needs::asked),
        machine: known.map(|known| known.message(v1::Detail::Full)),
        score,
        decision: Some(decision),
        reasons: Some(reasons(record.reasons)),
        ..v1::DecisionExplanation::default()
    })
}

pub(super) fn of_state(state: &ReplayState, machine: &str) -> Result<v1::DecisionExplanation, Status> {
    let record = &state.record;
    let found = record.decided.iter().find(|decided| *decided.machine == *machine);
    let decided = found.ok_or_else(|| nothing(record.cycle, machine))?;
    let facts = |id: &str| state.machines.get(id).map(|machine| MachineFacts::from(&**machine));
    let action = state.decision.actions.iter().find(|action| *action.machine == *machine);
    let explained = || action.and_then(|action| state.fleet.explain_action(action, &record.options));
    // Rules that did not decide it cannot say why it was decided.
    let other_rules = state.other_edition().is_some();
    let replayed = decided.why.as_ref().is_none_or(|why| why.brief) && !other_rules;
    let why = if replayed { explained() } else { decided.why.clone() };
    let decision = message(record.into(), &with_facts(Decided { why, ..decided.clone() }, facts));
    let today = action.filter(|_| other_rules).map(|action| {
        let today = with_facts(Decided::new(action, decided.fate, explained()), facts);
        v1::Decision {
            fate: v1::Fate::Unspecified.into(),
            recorded_edition: None,
            ..message(record.into(), &today)
        }
    });
    let known = state.machines.get(machine).map(|machine| Known::recorded(machine.clone()));
    let need = decided.need.as_ref().and_then(|need| needs::one(&state.fleet, &need.key));
    let score = known
        .as_ref()
        .filter(|_| decision.kind() == v1::ActionKind::Preempt)
        .map(|known| victim_parts(&record.options, decision.priority, &known.machine.assigned));
    Ok(v1::DecisionExplanation {
        as_of: None,
        decision: Some(decision),
        replayed,
        need: need.map(|row| row.message),
        machine: known.map(|known| known.message(v1::Detail::Full)),
        score,
        reasons: Some(reasons(record.reasons)),
        today,
        edition: other_rules.then_some(EDITION),
    })
}
