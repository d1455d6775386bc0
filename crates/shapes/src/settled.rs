//! What actions make of machines once the provider has carried them out.
//!
//! A benchmark that wants a second cycle needs the state the first one led to. These functions skip all
//! states in between: a bootstrap or provision ends as a Configured machine with the need's stamp, a
//! preemption or reclaim as an Idle one, a deletion as a Speculative one.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::profile::Profile;
use bigfleet_model::stamp::Assignment;
use bigfleet_scenario::answer::ActionKind;
use bigfleet_scenario::{Answer, Scenario};

use crate::fleet::host_name;
use crate::place::REGION;

/// The stamp of a machine bound for a need with this profile.
pub fn stamp(cluster: &Arc<str>, profile: &Profile, group: &Arc<str>) -> Assignment {
    Assignment {
        cluster: cluster.clone(),
        priority: profile.priority(),
        interruption_penalty_usd: profile.interruption().upper_bound_dollars(),
        reclamation_penalty_usd: profile.reclamation().upper_bound_dollars(),
        fingerprint: profile.fingerprint().into(),
        group: group.clone(),
    }
}

/// A machine that joined a cluster. Hardware is invented if there was none.
pub fn bind(machine: &mut Machine, stamp: Assignment) {
    if machine.host.is_none() {
        let owned = machine.capacity_type == CapacityType::BareMetal;
        machine.host = Some(host_name(owned, machine.labels.get(REGION).unwrap_or(""), &machine.id));
    }
    machine.state = MachineState::Configured;
    machine.cluster = (&*stamp.cluster).into();
    machine.assigned = stamp;
    machine.idle_since_unix_nanos = None;
}

/// A machine that left its cluster.
pub fn unbind(machine: &mut Machine, now_unix_nanos: i64) {
    machine.state = MachineState::Idle;
    machine.cluster = "".into();
    machine.assigned = Assignment::default();
    machine.draining_for = None;
    machine.idle_since_unix_nanos = Some(now_unix_nanos);
}

/// A machine that was given back.
pub fn give_back(machine: &mut Machine) {
    machine.state = MachineState::Speculative;
    machine.host = None;
    machine.idle_since_unix_nanos = None;
}

/// Carries one action out; `stamp` is used by bootstraps and provisions.
pub fn apply_action(machine: &mut Machine, kind: ActionKind, stamp: Assignment, now_unix_nanos: i64) {
    match kind {
        ActionKind::Bootstrap | ActionKind::Provision => bind(machine, stamp),
        ActionKind::Preempt | ActionKind::Reclaim => unbind(machine, now_unix_nanos),
        ActionKind::Delete => give_back(machine),
    }
}

/// Carries all actions of an answer out.
///
/// # Panics
///
/// If the answer names a machine or a profile that the scenario does not have.
pub fn apply_answer(scenario: &mut Scenario, answer: &Answer) {
    let places = places(scenario);
    let mut profiles: BTreeMap<Box<str>, Arc<Profile>> = BTreeMap::new();
    for need in &scenario.needs {
        if profiles.insert(need.profile.fingerprint().into(), need.profile.clone()).is_none() {
            let folded = need.profile.without_same();
            profiles.entry(folded.fingerprint().into()).or_insert_with(|| folded.into());
        }
    }
    for action in &answer.actions {
        let need = action.need.map(|need| &answer.normalized_needs[need as usize]);
        let stamp = need.map(|need| {
            let profile = &profiles[need.fingerprint.as_str()];
            stamp(&need.cluster.as_str().into(), profile, &need.group.as_str().into())
        });
        let machine = &mut scenario.machines[places[action.machine.as_str()]];
        apply_action(machine, action.kind, stamp.unwrap_or_default(), scenario.now_unix_nanos);
    }
}

/// Where each machine stands in the scenario's list.
pub(crate) fn places(scenario: &Scenario) -> BTreeMap<Box<str>, usize> {
    scenario.machines.iter().enumerate().map(|(at, machine)| (machine.id.clone(), at)).collect()
}
