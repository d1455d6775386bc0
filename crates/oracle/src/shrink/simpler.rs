//! Simpler machines and needs: fields emptied, numbers rounded, identities shortened.

use std::collections::BTreeSet;
use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::label::Labels;
use bigfleet_model::machine::Machine;
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::Requirement;
use bigfleet_model::resource::ResourceVec;
use bigfleet_model::stamp::Assignment;
use bigfleet_scenario::Scenario;

/// Simplifies every machine and every need as far as it goes.
pub(super) fn simpler(mut smallest: Scenario, still_fails: &mut impl FnMut(&Scenario) -> bool) -> Scenario {
    // Proposals are made anew from what was kept last, so none undoes another. Each takes something away for
    // good, so the walk ends.
    for at in 0..smallest.machines.len() {
        let mut number = 0;
        while let Some(machine) = simpler_machines(&smallest.machines[at]).into_iter().nth(number) {
            let mut candidate = smallest.clone();
            candidate.machines[at] = machine;
            if !keep(&mut smallest, candidate, still_fails) {
                number += 1;
            }
        }
    }
    for at in 0..smallest.needs.len() {
        let mut number = 0;
        while let Some(need) = simpler_needs(&smallest.needs[at]).into_iter().nth(number) {
            let candidate = with_need(&smallest, at, need);
            if !keep(&mut smallest, candidate, still_fails) {
                number += 1;
            }
        }
    }
    let candidate = short_ids(&smallest);
    keep(&mut smallest, candidate, still_fails);
    smallest
}

/// Replaces the smallest scenario by the candidate if that one differs, is possible and fails too.
fn keep(
    smallest: &mut Scenario,
    candidate: Scenario,
    still_fails: &mut impl FnMut(&Scenario) -> bool,
) -> bool {
    let keys: BTreeSet<NeedKey> = candidate.needs.iter().map(Need::key).collect();
    let possible =
        keys.len() == candidate.needs.len() && candidate.machines.iter().all(|m| m.check().is_ok());
    let kept = possible && candidate != *smallest && still_fails(&candidate);
    if kept {
        *smallest = candidate;
    }
    kept
}

fn simpler_machines(machine: &Machine) -> Vec<Machine> {
    let with = |change: &dyn Fn(&mut Machine)| {
        let mut simpler = machine.clone();
        change(&mut simpler);
        simpler
    };
    let bound_for_nothing = Assignment { cluster: machine.assigned.cluster.clone(), ..Assignment::default() };
    let mut proposals = vec![
        with(&|m| m.labels = Labels::EMPTY),
        with(&|m| m.zone = "".into()),
        with(&|m| m.instance_type = "".into()),
        with(&|m| m.allocatable = ResourceVec::ZERO),
        with(&|m| m.draining_for = None),
        with(&|m| m.idle_since_unix_nanos = None),
        with(&|m| m.interruption_probability = 0.0),
        with(&|m| m.capacity_type = CapacityType::Unspecified),
        with(&|m| m.assigned = bound_for_nothing.clone()),
        with(&|m| m.assigned.priority = 0),
        with(&|m| m.assigned.interruption_penalty_usd = 0.0),
        with(&|m| m.assigned.reclamation_penalty_usd = 0.0),
        with(&|m| (m.assigned.fingerprint, m.assigned.group) = (Arc::from(""), Arc::from(""))),
        with(&|m| m.price_usd_per_hour = 0.0),
        with(&|m| m.price_usd_per_hour = m.price_usd_per_hour.min(1.0)),
    ];
    for (key, _) in machine.labels.iter() {
        proposals.push(with(&|m| {
            let others = machine.labels.iter().filter(|(other, _)| *other != key);
            m.labels = Labels::new(others).expect("a part of good labels");
        }));
    }
    proposals
        .extend(smaller_amounts(&machine.resources).into_iter().map(|v| with(&|m| m.resources = v.clone())));
    proposals.extend(
        smaller_amounts(&machine.allocatable).into_iter().map(|v| with(&|m| m.allocatable = v.clone())),
    );
    proposals.retain(|proposal| proposal != machine);
    proposals
}

/// The vector without one of its dimensions, with less of one, or with one unit of one.
fn smaller_amounts(vector: &ResourceVec) -> Vec<ResourceVec> {
    let mut proposals = Vec::new();
    for (name, amount) in vector.iter() {
        for less in [0, 1_000, amount / 2] {
            let amounts =
                vector.iter().map(|(other, a)| (other.clone(), if other == name { less } else { a }));
            if less < amount {
                proposals.push(ResourceVec::new(amounts).expect("smaller amounts of the same names"));
            }
        }
    }
    proposals
}

fn simpler_needs(need: &Need) -> Vec<Need> {
    let with = |change: &dyn Fn(&mut Need)| {
        let mut simpler = need.clone();
        change(&mut simpler);
        simpler.parked &= simpler.profile.same().is_some();
        simpler
    };
    let mut proposals = Vec::new();
    for profile in simpler_profiles(&need.profile) {
        let profile = Arc::new(profile);
        proposals.push(with(&|n| n.profile = profile.clone()));
    }
    let lists = smaller_amounts(&need.aggregate);
    proposals.extend(lists.into_iter().map(|v| with(&|n| n.aggregate = v.clone())));
    let lists = smaller_amounts(&need.min_unit);
    proposals.extend(lists.into_iter().map(|v| with(&|n| n.min_unit = v.clone())));
    proposals.push(with(&|n| n.group = Arc::from("")));
    proposals.push(with(&|n| n.parked = false));
    proposals.push(with(&|n| n.first_seen_unix_nanos = 1));
    proposals.retain(|proposal| proposal != need);
    proposals
}

fn simpler_profiles(profile: &Profile) -> Vec<Profile> {
    let (requirements, spread) = (profile.requirements(), profile.spread());
    let (priority, interruption, reclamation) =
        (profile.priority(), profile.interruption(), profile.reclamation());
    let without = |at: usize| {
        let mut rest = requirements.to_vec();
        let removed = rest.remove(at);
        (rest, removed)
    };
    let mut proposals = Vec::new();
    for at in 0..requirements.len() {
        let (rest, removed) = without(at);
        proposals.push(Profile::new(rest.clone(), spread.to_vec(), priority, interruption, reclamation));
        for value in removed.values() {
            let fewer = removed.values().iter().filter(|other| *other != value).cloned();
            let mut list = rest.clone();
            list.push(Requirement::new(removed.key(), removed.operator(), fewer));
            proposals.push(Profile::new(list, spread.to_vec(), priority, interruption, reclamation));
        }
    }
    for at in 0..spread.len() {
        let mut rest = spread.to_vec();
        let mut removed = rest.remove(at);
        proposals.push(Profile::new(
            requirements.to_vec(),
            rest.clone(),
            priority,
            interruption,
            reclamation,
        ));
        removed.max_skew = 1;
        rest.push(removed);
        proposals.push(Profile::new(requirements.to_vec(), rest, priority, interruption, reclamation));
    }
    let list = || (requirements.to_vec(), spread.to_vec());
    let (r, s) = list();
    proposals.push(Profile::new(r, s, 0, interruption, reclamation));
    let (r, s) = list();
    proposals.push(Profile::new(r, s, priority, PenaltyBucket::UNSPECIFIED, reclamation));
    let (r, s) = list();
    proposals.push(Profile::new(r, s, priority, interruption, PenaltyBucket::UNSPECIFIED));
    proposals.retain(|proposal| proposal != profile);
    proposals
}

/// The scenario with one need replaced; machines stamped with the old identity, or with its folded form,
/// carry the new one.
fn with_need(scenario: &Scenario, at: usize, need: Need) -> Scenario {
    let mut changed = scenario.clone();
    let old = std::mem::replace(&mut changed.needs[at], need);
    let renames = [(old.key(), changed.needs[at].key()), (folded_key(&old), folded_key(&changed.needs[at]))];
    for machine in &mut changed.machines {
        let Machine { assigned, draining_for, .. } = machine;
        let rename = renames
            .iter()
            .find(|(from, _)| from.fingerprint == assigned.fingerprint && from.group == assigned.group);
        if let Some((_, to)) = rename {
            (assigned.fingerprint, assigned.group) = (to.fingerprint.clone(), to.group.clone());
        }
        if let Some(key) = draining_for
            && let Some((_, to)) = renames.iter().find(|(from, _)| from == key)
        {
            *key = to.clone();
        }
    }
    changed
}

fn folded_key(need: &Need) -> NeedKey {
    NeedKey {
        cluster: need.cluster.clone(),
        fingerprint: need.profile.without_same().fingerprint().into(),
        group: Arc::from(""),
    }
}

/// Ids as short as their number allows, in the same order.
fn short_ids(scenario: &Scenario) -> Scenario {
    let mut renamed = scenario.clone();
    let mut order: Vec<usize> = (0..renamed.machines.len()).collect();
    order.sort_by(|a, b| scenario.machines[*a].id.cmp(&scenario.machines[*b].id));
    let width = order.len().to_string().len();
    for (number, at) in order.into_iter().enumerate() {
        let machine = &mut renamed.machines[at];
        machine.id = format!("m{:0width$}", number + 1).into();
        if let Some(host) = &mut machine.host {
            host.reference.clone_from(&machine.id);
        }
    }
    renamed
}
