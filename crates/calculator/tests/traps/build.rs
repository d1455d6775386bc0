//! Machines, needs and answers in few words.

use std::collections::BTreeMap;

use bigfleet_calculator::{answer, decide, load};
use bigfleet_engine::{Fleet, Options, Parallelism};
use bigfleet_model::label::Labels;
use bigfleet_model::machine::{HostRef, Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::{Operator, Requirement};
use bigfleet_model::resource::ResourceVec;
use bigfleet_model::stamp::Assignment;
use bigfleet_scenario::answer::{Answer, difference};
use bigfleet_scenario::{CycleOptions, Scenario};

/// The key gangs share a value of.
pub(crate) const RACK: &str = "example.org/rack";

/// One thread.
pub(crate) const ALONE: Parallelism = Parallelism { threads: 1, from_clusters: 0 };

/// Amounts, written as in a pod.
pub(crate) fn amounts(quantities: &[(&str, &str)]) -> ResourceVec {
    ResourceVec::parse(quantities.iter().copied()).expect("quantities")
}

/// Only processors.
pub(crate) fn cpu(amount: &str) -> ResourceVec {
    amounts(&[("cpu", amount)])
}

fn machine(id: &str, state: MachineState, cpus: &str) -> Machine {
    Machine { resources: cpu(cpus), ..Machine::new(id, state) }
}

/// A machine nobody uses.
pub(crate) fn idle(id: &str, cpus: &str) -> Machine {
    Machine { host: Some(HostRef::default()), ..machine(id, MachineState::Idle, cpus) }
}

/// A machine that could be bought.
pub(crate) fn speculative(id: &str, cpus: &str) -> Machine {
    machine(id, MachineState::Speculative, cpus)
}

/// A machine of a cluster.
pub(crate) fn configured(id: &str, cpus: &str, cluster: &str) -> Machine {
    let state = MachineState::Configured;
    Machine { host: Some(HostRef::default()), cluster: cluster.into(), ..machine(id, state, cpus) }
}

/// The same machine bound, or being created, for this need.
pub(crate) fn stamped(machine: Machine, need: &Need) -> Machine {
    let profile = &need.profile;
    let assigned = Assignment {
        cluster: need.cluster.clone(),
        priority: profile.priority(),
        interruption_penalty_usd: profile.interruption().upper_bound_dollars(),
        reclamation_penalty_usd: profile.reclamation().upper_bound_dollars(),
        fingerprint: profile.fingerprint().into(),
        group: need.group.clone(),
    };
    Machine { assigned, ..machine }
}

/// The same machine bound at this priority, for whatever.
pub(crate) fn assigned(machine: Machine, priority: i32) -> Machine {
    Machine { assigned: Assignment { priority, ..Assignment::default() }, ..machine }
}

/// The same machine at another price.
pub(crate) fn priced(machine: Machine, price_usd_per_hour: f64) -> Machine {
    Machine { price_usd_per_hour, ..machine }
}

/// The same machine of a kind.
pub(crate) fn typed(machine: Machine, instance_type: &str) -> Machine {
    Machine { instance_type: instance_type.into(), ..machine }
}

/// The same machine in a rack.
pub(crate) fn racked(machine: Machine, rack: &str) -> Machine {
    Machine { labels: Labels::new([(RACK, rack)]).expect("one label"), ..machine }
}

/// What a workload asks of machines, at this priority.
pub(crate) fn profile(requirements: Vec<Requirement>, priority: i32) -> Profile {
    Profile::new(requirements, vec![], priority, PenaltyBucket::ZERO, PenaltyBucket::ZERO)
}

/// A need for so many processors in all, in pieces of `unit`, that any machine may serve.
pub(crate) fn need(cluster: &str, priority: i32, total: &str, unit: &str) -> Need {
    of_profile(cluster, profile(vec![], priority), total, unit)
}

/// A need with a profile of its own.
pub(crate) fn of_profile(cluster: &str, profile: Profile, total: &str, unit: &str) -> Need {
    let unit = Need::of_unit(cluster, profile.into(), cpu(unit));
    Need { aggregate: cpu(total), first_seen_unix_nanos: 1, ..unit }
}

/// A gang whose machines must share a rack, one of these if any are named.
pub(crate) fn gang(group: &str, racks: &[&str], priority: i32, total: &str, unit: &str) -> Need {
    let same = Requirement::new(RACK, Operator::Same, racks.iter().copied());
    Need { group: group.into(), ..of_profile("shop", profile(vec![same], priority), total, unit) }
}

/// A fleet and a demand with the usual options.
pub(crate) fn scenario(
    machines: impl IntoIterator<Item = Machine>,
    needs: impl IntoIterator<Item = Need>,
) -> Scenario {
    Scenario {
        now_unix_nanos: 1_000,
        options: CycleOptions::default(),
        machines: machines.into_iter().collect(),
        needs: needs.into_iter().collect(),
    }
}

/// What the engine answers, after the oracle has agreed.
pub(crate) fn decided(
    machines: impl IntoIterator<Item = Machine>,
    needs: impl IntoIterator<Item = Need>,
) -> Answer {
    let scenario = scenario(machines, needs);
    let ours = decide(&scenario, ALONE).expect("a valid scenario");
    assert_eq!(difference(&bigfleet_oracle::decide(&scenario), &ours), None, "the oracle disagrees");
    ours
}

/// A fleet that has decided once.
pub(crate) fn running(
    machines: impl IntoIterator<Item = Machine>,
    needs: impl IntoIterator<Item = Need>,
) -> Fleet {
    let mut fleet = load(&scenario(machines, needs), ALONE).expect("a valid scenario");
    fleet.cycle(&Options::default(), 1_000);
    fleet
}

/// What a fleet answers now.
pub(crate) fn next(fleet: &mut Fleet) -> Answer {
    let decision = fleet.cycle(&Options::default(), 1_000);
    answer(fleet, &decision)
}

/// Actions as lines: what, which machine, whose, for which need, how much grace.
pub(crate) fn actions(answer: &Answer) -> Vec<String> {
    let line = |action: &bigfleet_scenario::answer::Action| {
        let mut line = format!("{:?} {}", action.kind, action.machine);
        line.extend(action.cluster.iter().map(|cluster| format!(" {cluster}")));
        line.extend(action.need.iter().map(|need| format!(" need {need}")));
        line.extend(action.grace_secs.iter().map(|secs| format!(" in {secs}s")));
        line
    };
    answer.actions.iter().map(line).collect()
}

/// Who claims what: machine and need.
pub(crate) fn claims(answer: &Answer) -> Vec<(&str, u32)> {
    answer.claims.iter().map(|(machine, need)| (machine.as_str(), *need)).collect()
}

/// What each need is short of, in thousandths of a processor.
pub(crate) fn cpu_deficits(answer: &Answer) -> Vec<u64> {
    let cpu = |deficit: &BTreeMap<String, u64>| deficit.get("cpu").copied().unwrap_or_default();
    answer.deficits.iter().map(cpu).collect()
}

/// Why needs are short: need and reason.
pub(crate) fn reasons(answer: &Answer) -> Vec<(u32, String)> {
    answer.reasons.iter().map(|verdict| (verdict.need, verdict.reason.to_string())).collect()
}
