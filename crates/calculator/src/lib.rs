//! The engine over a scenario: load it into a fleet, run a cycle, write down everything it answered.
//!
//! For people this is the offline calculator behind `bigfleet cycle`; for us it is how the engine is held
//! against the decision vectors, the oracle and other engines.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_engine::{
    ActionKind, Decision, Fleet, Options, Outcome, Parallelism, Ready, Reason, RollupError,
};
use bigfleet_model::machine::MachineError;
use bigfleet_model::need::Need;
use bigfleet_scenario::answer::{self, Answer, NormalizedNeed, Shortfall, Verdict, amounts};
use bigfleet_scenario::{CycleOptions, Scenario};
use thiserror::Error;

/// Why a scenario could not be loaded.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum LoadError {
    /// A machine was refused.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A cluster's demand was refused.
    #[error(transparent)]
    Rollup(#[from] RollupError),
}

/// The engine's options for a scenario's.
pub fn engine_options(options: &CycleOptions) -> Options {
    Options {
        release: options.release,
        weights: options.weights,
        estimated_drain_nanos: options.estimated_drain_nanos,
        ready: options.ready_clusters.clone().map_or(Ready::All, |clusters| Ready::Only(Arc::new(clusters))),
    }
}

/// A fleet with a scenario's machines and needs.
pub fn load(scenario: &Scenario, parallelism: Parallelism) -> Result<Fleet, LoadError> {
    let mut fleet = Fleet::new(parallelism);
    for machine in &scenario.machines {
        fleet.observe(machine)?;
    }
    let mut rollups: BTreeMap<&str, Vec<Need>> = BTreeMap::new();
    for need in &scenario.needs {
        rollups.entry(&need.cluster).or_default().push(need.clone());
    }
    for (cluster, rows) in rollups {
        // A scenario says itself when each need was first seen; 0 is an instant like any other there.
        fleet.replace(cluster, rows, 0)?;
    }
    Ok(fleet)
}

/// Loads a scenario, runs one cycle and writes down its answer.
pub fn decide(scenario: &Scenario, parallelism: Parallelism) -> Result<Answer, LoadError> {
    let mut fleet = load(scenario, parallelism)?;
    let decision = fleet.cycle(&engine_options(&scenario.options), scenario.now_unix_nanos);
    Ok(answer(&fleet, &decision))
}

/// Everything the last cycle answered.
pub fn answer(fleet: &Fleet, decision: &Decision) -> Answer {
    let outcomes = fleet.outcomes();
    let mut answer = Answer::default();
    let mut unresolved = Vec::new();
    for (need, outcome) in (0..).zip(&outcomes) {
        let demand = &outcome.demand.need;
        answer.normalized_needs.push(NormalizedNeed::from(demand));
        answer.deficits.push(amounts(&outcome.deficit));
        let claims = outcome.credited.iter().chain(&outcome.acquired);
        answer.claims.extend(claims.map(|machine| ((*machine).to_owned(), need)));
        if demand.profile.same().is_some() {
            answer.domains.push(answer::Domain {
                covers: outcome.domain.is_some_and(|domain| domain.covers),
                need,
                value: outcome.domain.map(|domain| domain.value.to_owned()),
            });
        }
        answer.reasons.extend(outcome.reason.map(|reason| Verdict { need, reason: reason_code(reason) }));
        unresolved.extend(shortfall(need, outcome));
    }
    // In the order of phase 2; among rows that folding made equal, the order they stand in decides.
    unresolved.sort_by(|a, b| {
        let of = |shortfall: &Shortfall| &outcomes[shortfall.need as usize].demand.need;
        of(a).cmp_precedence(of(b))
    });
    answer.unresolved = unresolved;
    // A need is known by its place among the outcomes; actions point at the same shared values.
    let places: BTreeMap<_, u32> =
        (0..).zip(&outcomes).map(|(need, o)| (Arc::as_ptr(o.demand), need)).collect();
    answer.actions = decision
        .actions
        .iter()
        .map(|action| answer::Action {
            cluster: action.cluster.as_deref().map(str::to_owned),
            grace_secs: action.grace_secs,
            kind: action_kind(action.kind),
            machine: action.machine.to_string(),
            need: action.need.as_ref().map(|need| places[&Arc::as_ptr(need)]),
        })
        .collect();
    answer
}

fn shortfall(need: u32, outcome: &Outcome<'_>) -> Option<Shortfall> {
    let missing = amounts(outcome.unresolved.as_ref()?);
    Some(Shortfall { missing, need, victims: outcome.victims.len() as u32 })
}

fn action_kind(kind: ActionKind) -> answer::ActionKind {
    match kind {
        ActionKind::Bootstrap => answer::ActionKind::Bootstrap,
        ActionKind::Provision => answer::ActionKind::Provision,
        ActionKind::Preempt => answer::ActionKind::Preempt,
        ActionKind::Reclaim => answer::ActionKind::Reclaim,
        ActionKind::Delete => answer::ActionKind::Delete,
    }
}

fn reason_code(reason: Reason) -> answer::Reason {
    match reason {
        Reason::Parked => answer::Reason::Parked,
        Reason::InFlight => answer::Reason::InFlight,
        Reason::NoMatchingSupply => answer::Reason::NoMatchingSupply,
        Reason::TopologyUnsatisfiable => answer::Reason::TopologyUnsatisfiable,
        Reason::PreemptionExhausted => answer::Reason::PreemptionExhausted,
        Reason::PriorityStarved => answer::Reason::PriorityStarved,
    }
}
