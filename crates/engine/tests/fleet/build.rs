//! Machines, needs and decisions in few words.

use bigfleet_engine::{Fleet, Options};
use bigfleet_model::label::Labels;
use bigfleet_model::machine::{HostRef, Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::Requirement;
use bigfleet_model::resource::ResourceVec;

/// The key gangs share a value of.
pub(crate) const RACK: &str = "example.org/rack";

/// Only processors.
pub(crate) fn cpu(amount: u64) -> ResourceVec {
    ResourceVec::parse([("cpu", amount.to_string())]).expect("a quantity")
}

/// A machine of eight processors that nobody uses.
pub(crate) fn idle(id: &str) -> Machine {
    let machine = Machine::new(id, MachineState::Idle);
    Machine { host: Some(HostRef::default()), resources: cpu(8), ..machine }
}

/// A machine of eight processors that a cluster has.
pub(crate) fn configured(id: &str, cluster: &str) -> Machine {
    Machine { state: MachineState::Configured, cluster: cluster.into(), ..idle(id) }
}

/// The same machine in a rack.
pub(crate) fn racked(machine: Machine, rack: &str) -> Machine {
    Machine { labels: Labels::new([(RACK, rack)]).expect("one label"), ..machine }
}

/// What any machine may serve, at this priority.
pub(crate) fn profile(requirements: Vec<Requirement>, priority: i32) -> Profile {
    Profile::new(requirements, vec![], priority, PenaltyBucket::ZERO, PenaltyBucket::ZERO)
}

/// A need for so many processors, not yet stamped; the priority tells needs apart.
pub(crate) fn need(cluster: &str, priority: i32, cpus: u64) -> Need {
    Need::of_unit(cluster, profile(vec![], priority).into(), cpu(1)).times(cpus)
}

/// A gang of so many processors that must share a rack.
pub(crate) fn gang(cluster: &str, group: &str, cpus: u64) -> Need {
    let profile = profile(vec![Requirement::same(RACK)], 10);
    Need { group: group.into(), ..Need::of_unit(cluster, profile.into(), cpu(8)) }.times(cpus / 8)
}

/// A fleet of these machines.
pub(crate) fn fleet_of(machines: impl IntoIterator<Item = Machine>) -> Fleet {
    let mut fleet = Fleet::default();
    for machine in machines {
        fleet.observe(&machine).expect("a good record");
    }
    fleet
}

/// What a fleet decides, as lines: what, which machine, whose.
pub(crate) fn decide(fleet: &mut Fleet) -> Vec<String> {
    let decision = fleet.cycle(&Options::default(), 1_000);
    let line = |action: &bigfleet_engine::Action| {
        format!("{} {} {}", action.kind, action.machine, action.cluster.as_deref().unwrap_or("-"))
    };
    decision.actions.iter().map(line).collect()
}

/// What every need got, as lines: priority, group, first seen, amount, machines, what is missing.
pub(crate) fn outcomes(fleet: &Fleet) -> Vec<String> {
    let outcomes = fleet.outcomes();
    let line = |outcome: &bigfleet_engine::Outcome<'_>| {
        let need = &outcome.demand.need;
        format!(
            "{} p{} {:?} seen {}: {} of {}, has {:?} and {:?}, lacks {}",
            need.cluster,
            need.profile.priority(),
            &*need.group,
            need.first_seen_unix_nanos,
            need.aggregate,
            need.min_unit,
            outcome.credited,
            outcome.acquired,
            outcome.deficit,
        )
    };
    outcomes.iter().map(line).collect()
}

/// Everything a fleet says after a cycle from scratch.
pub(crate) fn everything(fleet: &mut Fleet) -> (Vec<String>, Vec<String>) {
    fleet.forget_cache();
    let actions = decide(fleet);
    (actions, outcomes(fleet))
}
