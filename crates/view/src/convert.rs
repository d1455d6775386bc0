//! From the shard's and the engine's words to those of the wire.

use std::collections::BTreeMap;

use bigfleet_engine::{
    ActionExplanation, ActionKind, Change, DomainChoice, DomainCoverage, Exclusion, Filter, Funnel, Lent,
    Origins, Reason, Remedy, Rule, ShortNeed,
};
use bigfleet_model::need::NeedKey;
use bigfleet_model::resource::ResourceVec;
use bigfleet_proto::convert::resources::to_map;
use bigfleet_shard::{Fate, Pause, Reasons};
use tonic::Status;

use crate::names::need_ref;
use crate::v1;

/// Amounts as canonical quantities; nothing for nothing.
pub(crate) fn amounts(amounts: &ResourceVec) -> BTreeMap<String, String> {
    to_map(amounts)
}

pub(crate) fn kind(kind: ActionKind) -> v1::ActionKind {
    match kind {
        ActionKind::Bootstrap => v1::ActionKind::Bootstrap,
        ActionKind::Provision => v1::ActionKind::Provision,
        ActionKind::Preempt => v1::ActionKind::Preempt,
        ActionKind::Reclaim => v1::ActionKind::Reclaim,
        ActionKind::Delete => v1::ActionKind::Delete,
    }
}

/// The kind somebody means; `None` for all.
pub(crate) fn kind_from(number: i32) -> Result<Option<ActionKind>, Status> {
    Ok(match v1::ActionKind::try_from(number) {
        Ok(v1::ActionKind::Unspecified) => None,
        Ok(v1::ActionKind::Bootstrap) => Some(ActionKind::Bootstrap),
        Ok(v1::ActionKind::Provision) => Some(ActionKind::Provision),
        Ok(v1::ActionKind::Preempt) => Some(ActionKind::Preempt),
        Ok(v1::ActionKind::Reclaim) => Some(ActionKind::Reclaim),
        Ok(v1::ActionKind::Delete) => Some(ActionKind::Delete),
        Err(_) => return Err(Status::invalid_argument(format!("there is no action kind number {number}"))),
    })
}

pub(crate) fn fate(fate: Fate) -> v1::Fate {
    match fate {
        Fate::Begun => v1::Fate::Begun,
        Fate::Paused => v1::Fate::Paused,
        Fate::DryRun => v1::Fate::DryRun,
        Fate::Capped => v1::Fate::Capped,
        Fate::OverBound => v1::Fate::OverBound,
        Fate::NoPlace => v1::Fate::NoPlace,
        Fate::StaleInventory => v1::Fate::StaleInventory,
        Fate::OperatorBackoff => v1::Fate::OperatorBackoff,
        Fate::Busy => v1::Fate::Busy,
        Fate::Regretted => v1::Fate::Regretted,
        Fate::TakenBack => v1::Fate::TakenBack,
        Fate::LossUnconfirmed => v1::Fate::LossUnconfirmed,
        Fate::OnlyLooks => v1::Fate::OnlyLooks,
        Fate::Observed => v1::Fate::Observed,
        Fate::AwaitsApproval => v1::Fate::AwaitsApproval,
    }
}

pub(crate) fn reason(reason: Option<Reason>) -> v1::Reason {
    match reason {
        None => v1::Reason::Unspecified,
        Some(Reason::Parked) => v1::Reason::Parked,
        Some(Reason::InFlight) => v1::Reason::InFlight,
        Some(Reason::NoMatchingSupply) => v1::Reason::NoMatchingSupply,
        Some(Reason::TopologyUnsatisfiable) => v1::Reason::TopologyUnsatisfiable,
        Some(Reason::PreemptionExhausted) => v1::Reason::PreemptionExhausted,
        Some(Reason::PriorityStarved) => v1::Reason::PriorityStarved,
    }
}

/// Whether what is on its way will not be enough for a need.
pub(crate) fn is_unmet(short: &ShortNeed<'_>) -> bool {
    short.unresolved.is_some() || short.demand.need.parked
}

pub(crate) fn domain(domain: DomainCoverage) -> v1::DomainCoverage {
    v1::DomainCoverage {
        domain: domain.domain.into(),
        coverage_per_mille: domain.per_mille,
        machines: domain.machines as u32,
        reachable_machines: domain.reachable_machines as u32,
        reachable_per_mille: domain.reachable_per_mille,
    }
}

/// Machine names that stand for all of a sort.
const EXAMPLES: usize = 5;

pub(crate) fn origins(origins: &Origins) -> v1::Origins {
    let by_need = |lent: &[Lent]| {
        let mut groups: BTreeMap<Option<&NeedKey>, v1::Lent> = BTreeMap::new();
        for Lent { machine, need } in lent {
            let group = groups
                .entry(need.as_ref())
                .or_insert_with(|| v1::Lent { need: need.as_ref().map(need_ref), ..v1::Lent::default() });
            group.machines += 1;
            if group.examples.len() < EXAMPLES {
                group.examples.push(machine.to_string());
            }
        }
        groups.into_values().collect()
    };
    v1::Origins {
        own: origins.own as u32,
        unkept: by_need(&origins.unkept),
        taken_over: by_need(&origins.taken_over),
        lost: by_need(&origins.lost),
        given_back: origins.given_back.len() as u32,
        given_back_examples: origins.given_back.iter().take(EXAMPLES).map(ToString::to_string).collect(),
        gangs: origins.gangs as u32,
    }
}

pub(crate) fn domain_choice(choice: DomainChoice) -> v1::DomainChoice {
    let (next, next_figure) = choice.next.unwrap_or_default();
    v1::DomainChoice {
        domain: choice.domain.into(),
        covers: choice.covers,
        rule: choice.rule.code().to_owned(),
        figure: choice.figure,
        next: next.into(),
        next_figure,
        resources: choice.resources as u32,
    }
}

pub(crate) fn why(why: &ActionExplanation) -> v1::Why {
    let rule = match why.rule {
        Rule::CheapestIdle => v1::Rule::CheapestIdle,
        Rule::LeastEffectiveCost => v1::Rule::LeastEffectiveCost,
        Rule::BestVictim => v1::Rule::BestVictim,
        Rule::Unclaimed => v1::Rule::Unclaimed,
        Rule::HoldOver => v1::Rule::HoldOver,
        Rule::PaidFor => v1::Rule::PaidFor,
        Rule::Bargain => v1::Rule::Bargain,
        Rule::UnclaimedVictim => v1::Rule::UnclaimedVictim,
    };
    let runner_up = why.runner_up.as_ref().map(|next| v1::RunnerUp {
        machine: next.machine.to_string(),
        state: next.state.to_wire(),
        figure: next.figure,
        share: next.share,
        given_back: next.given_back,
        ..v1::RunnerUp::default()
    });
    let resources = why.resources as u32;
    let (figure, share, brief) = (why.figure, why.share, why.brief);
    v1::Why { rule: rule.into(), figure, runner_up, share, resources, brief }
}

pub(crate) fn reasons(reasons: Reasons) -> v1::Reasons {
    let Reasons { tick, demand, supply, command, leftover } = reasons;
    v1::Reasons { tick, demand, supply, command, leftover }
}

pub(crate) fn funnel(funnel: &Funnel) -> v1::Funnel {
    let removed = funnel.removed.iter().map(|removed| v1::Removed {
        code: removed.by.code().to_owned(),
        detail: if let Filter::Requirement(text) = &removed.by { text.clone() } else { String::new() },
        machines: removed.machines as u64,
    });
    let holders = funnel.holders.iter().map(|holder| v1::Holder {
        need: holder.need.as_ref().map(need_ref),
        cluster: holder.cluster.to_string(),
        state: holder.state.to_wire(),
        priority: holder.priority,
        machines: holder.machines as u64,
    });
    v1::Funnel {
        considered: funnel.considered as u64,
        removed: removed.collect(),
        its_own: funnel.its_own as u64,
        holders: holders.collect(),
        unlisted_holders: funnel.unlisted.holders as u64,
        unlisted_machines: funnel.unlisted.machines as u64,
    }
}

pub(crate) fn remedy(remedy: &Remedy) -> v1::Remedy {
    use v1::remedy::Change as Wire;
    let change = match &remedy.change {
        Change::Priority(priority) => Wire::Priority(*priority),
        Change::Without(requirement) => Wire::WithoutRequirement(requirement.clone()),
        Change::WithoutSpread => Wire::WithoutSpread(true),
        Change::Less(less) => Wire::Less(v1::Amounts { amounts: amounts(less) }),
    };
    v1::Remedy { change: Some(change), acquires: remedy.acquires as u32, preempts: remedy.preempts as u32 }
}

/// Puts what keeps a need and a machine apart into an answer.
pub(crate) fn exclusion(exclusion: &Exclusion, answer: &mut v1::WhyNotAnswer) {
    exclusion.code().clone_into(&mut answer.code);
    match exclusion {
        Exclusion::Requirement { requirement, value } => {
            answer.requirement.clone_from(requirement);
            answer.value.clone_from(value);
        }
        Exclusion::TooSmall { resource, needed, provides } => {
            let spoken = |amount: u64| {
                let one = ResourceVec::new([(resource.clone(), amount)]).unwrap_or(ResourceVec::ZERO);
                to_map(&one).into_values().next().unwrap_or_else(|| "0".to_owned())
            };
            answer.resource = resource.to_string();
            (answer.needed, answer.provides) = (spoken(*needed), spoken(*provides));
        }
        Exclusion::OtherDomain { chosen, lies_in } => {
            answer.chosen_domain.clone_from(chosen);
            answer.machine_domain.clone_from(lies_in);
        }
        Exclusion::ClaimedBy { need, priority } => {
            answer.other = Some(need_ref(need));
            answer.priority = *priority;
        }
        Exclusion::NotLowerPriority { assigned } => answer.priority = *assigned,
        Exclusion::PreemptedFor { need } => answer.other = Some(need_ref(need)),
        Exclusion::None
        | Exclusion::Dead(_)
        | Exclusion::Covered
        | Exclusion::AddsNothing
        | Exclusion::Parked
        | Exclusion::NoDomain
        | Exclusion::InTransit(_)
        | Exclusion::Spread
        | Exclusion::Incomplete => {}
    }
}

pub(crate) fn pause(number: u64, pause: &Pause) -> v1::PauseView {
    v1::PauseView {
        number,
        cluster: pause.scope.cluster.as_deref().unwrap_or_default().to_owned(),
        kind: pause.scope.kind.map_or(v1::ActionKind::Unspecified, kind).into(),
        dry_run: pause.dry_run,
        reason: pause.reason.to_string(),
        author: pause.author.to_string(),
        since_unix_nanos: pause.since_unix_nanos,
        until_unix_nanos: pause.until_unix_nanos.unwrap_or_default(),
    }
}
