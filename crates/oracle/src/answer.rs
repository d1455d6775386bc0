//! Everything the cycle decided, as an answer.

use bigfleet_model::machine::MachineState;
use bigfleet_scenario::Answer;
use bigfleet_scenario::answer::{Action, ActionKind, Domain, NormalizedNeed, Shortfall, Verdict};

use crate::cycle::{Cycle, Row};
use crate::preempt::grace_secs;
use crate::reasons::reason;

/// The seconds of grace when nobody waits for the machine.
const RECLAIM_GRACE_SECS: u32 = 600;

/// Puts the answer together.
pub(crate) fn answer(cycle: &Cycle<'_>, reclaimed: &[usize], released: &[usize]) -> Answer {
    let id = |machine: usize| cycle.machines[machine].id.to_string();
    let mut answer = Answer::default();
    for (machine, holder) in cycle.claimed_by.iter().enumerate() {
        if let Some(need) = holder {
            answer.claims.insert(id(machine), *need as u32);
        }
    }
    for (need, row) in cycle.rows.iter().enumerate() {
        answer.normalized_needs.push(normalized(row));
        answer.deficits.push(row.missing.clone());
        answer.reasons.extend(reason(cycle, need).map(|reason| Verdict { need: need as u32, reason }));
        if row.same_key().is_some() {
            answer.domains.push(Domain {
                covers: row.domain.as_ref().is_some_and(|domain| domain.covers),
                need: need as u32,
                value: row.domain.as_ref().map(|domain| domain.value.clone()),
            });
        }
    }
    for need in cycle.turns() {
        if let Some(freed) = &cycle.rows[need].freed
            && !freed.missing.is_empty()
        {
            answer.unresolved.push(Shortfall {
                missing: freed.missing.clone(),
                need: need as u32,
                victims: freed.victims.len() as u32,
            });
        }
    }
    answer.actions = actions(cycle, reclaimed, released);
    answer
}

fn normalized(row: &Row) -> NormalizedNeed {
    NormalizedNeed {
        aggregate: row.aggregate.clone(),
        cluster: row.need.cluster.to_string(),
        fingerprint: row.need.profile.fingerprint().to_owned(),
        first_seen: row.need.first_seen_unix_nanos,
        group: row.need.group.to_string(),
        min_unit: row.min_unit.clone(),
        parked: row.need.parked,
    }
}

fn actions(cycle: &Cycle<'_>, reclaimed: &[usize], released: &[usize]) -> Vec<Action> {
    let action = |kind, machine: usize| Action {
        cluster: None,
        grace_secs: None,
        kind,
        machine: cycle.machines[machine].id.to_string(),
        need: None,
    };
    let mut actions = Vec::new();
    for (need, row) in cycle.rows.iter().enumerate() {
        for (state, kind) in
            [(MachineState::Idle, ActionKind::Bootstrap), (MachineState::Speculative, ActionKind::Provision)]
        {
            let mut gained: Vec<usize> =
                row.gained.iter().copied().filter(|m| cycle.machines[*m].state == state).collect();
            gained.sort_by(|a, b| cycle.machines[*a].id.cmp(&cycle.machines[*b].id));
            actions.extend(gained.into_iter().map(|machine| Action {
                cluster: Some(row.need.cluster.to_string()),
                need: Some(need as u32),
                ..action(kind, machine)
            }));
        }
    }
    for need in cycle.turns() {
        let row = &cycle.rows[need];
        let victims = row.freed.iter().flat_map(|freed| freed.victims.iter().copied());
        actions.extend(victims.map(|machine| Action {
            cluster: Some(cycle.machines[machine].cluster.to_string()),
            grace_secs: Some(grace_secs(row, &cycle.machines[machine])),
            need: Some(need as u32),
            ..action(ActionKind::Preempt, machine)
        }));
    }
    actions.extend(reclaimed.iter().map(|machine| Action {
        cluster: Some(cycle.machines[*machine].cluster.to_string()),
        grace_secs: Some(RECLAIM_GRACE_SECS),
        ..action(ActionKind::Reclaim, *machine)
    }));
    actions.extend(released.iter().map(|machine| action(ActionKind::Delete, *machine)));
    actions
}
