//! How good the decisions are: what is paid beside what the same demand must cost at least, and what protection costs.
//!
//! Only money that decisions can change counts: hardware of one's own is paid for anyway, so it is free on both sides.

use std::collections::BTreeSet;
use std::sync::Arc;

use bigfleet_bound::{Bound, BoundError, Method, Problem};
use bigfleet_engine::Demand;
use bigfleet_model::cost::effective_cost;
use bigfleet_model::machine::Machine;
use bigfleet_model::need::Need;
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;

use crate::known::Known;
use crate::snapshot::Snapshot;
use crate::v1;
use crate::what_if::World;

/// Pairs of want and offer the bound is given here: about a second.
const MAX_VARIABLES: usize = 50_000;
/// Cycles in which demand that is bought afresh comes to rest.
const CYCLES: u32 = 20;

/// A machine at the price that decisions can change.
fn marginal(machine: &Machine) -> Machine {
    let mut machine = machine.clone();
    if !machine.capacity_type.is_elastic() {
        machine.price_usd_per_hour = 0.0;
    }
    machine
}

/// The same need without any requirement of its machines.
fn anywhere(need: &Need) -> Need {
    let profile = &need.profile;
    let (priority, interruption) = (profile.priority(), profile.interruption());
    let free = Profile::new(Vec::new(), Vec::new(), priority, interruption, profile.reclamation());
    Need { profile: Arc::new(free), ..need.clone() }
}

fn unprotected(need: &Need) -> Need {
    let profile = &need.profile;
    let (requirements, spread) = (profile.requirements().to_vec(), profile.spread().to_vec());
    let bare =
        Profile::new(requirements, spread, profile.priority(), PenaltyBucket::ZERO, profile.reclamation());
    Need { profile: Arc::new(bare), ..need.clone() }
}

fn method(bound: &Result<Bound, BoundError>) -> String {
    match bound {
        Ok(Bound { method: Method::Exact, .. }) => "exact".into(),
        Ok(Bound { method: Method::Coarse { .. }, .. }) => "coarse".into(),
        Err(error) => format!("none: {error}"),
    }
}

pub(super) fn judge(snapshot: &Snapshot, knowns: &[Known]) -> v1::CostJudgement {
    let fleet = &snapshot.fleet;
    let machines: Vec<Machine> =
        knowns.iter().filter(|known| known.counts).map(|known| marginal(&known.machine)).collect();
    // Short needs have not what they ask for, so what they have proves nothing.
    let short: BTreeSet<*const Demand> =
        fleet.short_needs().iter().map(|short| Arc::as_ptr(short.demand)).collect();
    let mut paid = 0.0;
    let mut covered: BTreeSet<*const Demand> = BTreeSet::new();
    let mut needs: Vec<&Need> = Vec::new();
    let by_id: std::collections::BTreeMap<&str, &Machine> =
        machines.iter().map(|machine| (&*machine.id, machine)).collect();
    for (id, demand) in fleet.claims() {
        let (place, Some(machine)) = (Arc::as_ptr(demand), by_id.get(id)) else { continue };
        if short.contains(&place) {
            continue;
        }
        let interruption = demand.need.profile.interruption();
        paid += effective_cost(machine.price_usd_per_hour, machine.interruption_probability, interruption);
        if covered.insert(place) {
            needs.push(&demand.need);
        }
    }
    let bound = Problem::of_fleet(&machines, needs.iter().copied()).bound_within(MAX_VARIABLES);
    let free: Vec<Need> = needs.iter().map(|need| anywhere(need)).collect();
    let unconstrained = Problem::of_fleet(&machines, &free).bound_within(MAX_VARIABLES);
    let usd = |bound: &Result<Bound, BoundError>| bound.as_ref().map_or(0.0, |bound| bound.usd_per_hour);
    let mut judgement = v1::CostJudgement {
        paid_usd_per_hour: paid,
        bound_usd_per_hour: usd(&bound),
        method: method(&bound),
        unconstrained_usd_per_hour: usd(&unconstrained).min(usd(&bound)),
        uncovered_needs: short.len() as u32,
        ..v1::CostJudgement::default()
    };
    protection(snapshot, knowns, &mut judgement);
    judgement
}

/// Buys the whole demand afresh, once as it is and once without interruption penalties.
fn protection(snapshot: &Snapshot, knowns: &[Known], judgement: &mut v1::CostJudgement) {
    let machines = knowns.iter().filter(|known| known.counts).map(|known| &*known.machine);
    let rows = |change: fn(&Need) -> Need| {
        snapshot.fleet.needs().map(|demand| change(&demand.need)).collect::<Vec<Need>>()
    };
    let settle = |needs: Vec<Need>| {
        let mut world =
            World::afresh(machines.clone(), needs, snapshot.options.clone(), snapshot.now_unix_nanos);
        for _ in 0..CYCLES {
            let decision = world.cycle();
            if decision.actions.is_empty() {
                break;
            }
            world.arrive(&decision);
        }
        world.bill()
    };
    let (with, without) = (settle(rows(Need::clone)), settle(rows(unprotected)));
    judgement.protected_usd_per_hour = with.rented_usd_per_hour;
    judgement.unprotected_usd_per_hour = without.rented_usd_per_hour;
    judgement.protected_interruptions_per_hour = with.interruptions_per_hour;
    judgement.unprotected_interruptions_per_hour = without.interruptions_per_hour;
}
