//! From rows to a scenario: everything that enters is checked here, once.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::cost::{VictimWeights, canonical};
use bigfleet_model::label::Labels;
use bigfleet_model::machine::{HostRef, Machine, MachineProblem, MachineState};
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::release::ReleasePolicy;
use bigfleet_model::requirement::{Operator, Requirement};
use bigfleet_model::resource::ResourceVec;
use bigfleet_model::spread::{TopologySpread, WhenUnsatisfiable};
use bigfleet_model::stamp::Assignment;

use super::rows::{Amount, DrainingFor, Input, MachineRow, NeedRow, Pairs, RequirementRow, SpreadRow, Text};
use super::{FieldProblem, InputError, SCENARIO_PROVIDER};
use crate::{CycleOptions, Scenario};

/// What is wrong, and with which field.
type Refusal = (&'static str, FieldProblem);

/// Names the field in a problem's way out.
fn at<E: Into<FieldProblem>>(field: &'static str) -> impl FnOnce(E) -> Refusal {
    move |problem| (field, problem.into())
}

/// The scenario a file describes.
pub(super) fn scenario(input: &Input<'_>) -> Result<Scenario, InputError> {
    let options = options(input);
    let mut names = Names::default();
    // Rows of one identity are one need, as they are when a cluster reports them. A pointer to any of them
    // points at that need.
    let mut places: BTreeMap<NeedKey, usize> = BTreeMap::new();
    let mut rows: Vec<NeedKey> = Vec::with_capacity(input.needs.len());
    let mut needs: Vec<Need> = Vec::with_capacity(input.needs.len());
    for (index, row) in input.needs.iter().enumerate() {
        let refuse = |(field, problem)| {
            let cluster = row.cluster.as_str().to_owned();
            InputError::Need { index, cluster, field, problem }
        };
        let need = need(row, &mut names).map_err(refuse)?;
        let mut key = need.key();
        key.fingerprint = names.shared(&key.fingerprint);
        match places.entry(key.clone()) {
            Entry::Occupied(place) => needs[*place.get()].absorb(&need),
            Entry::Vacant(place) => {
                place.insert(needs.len());
                needs.push(need);
            }
        }
        rows.push(key);
    }
    let mut machines: Vec<Machine> = Vec::with_capacity(input.machines.len());
    for (index, row) in input.machines.iter().enumerate() {
        machines.push(machine(row, &rows, &mut names).map_err(|(field, problem)| {
            let id = row.id.as_str().to_owned();
            InputError::Machine { index, id, field, problem }
        })?);
    }
    refuse_duplicate_ids(&machines)?;
    Ok(Scenario { now_unix_nanos: input.now_unix_nanos, options, machines, needs })
}

fn options(input: &Input<'_>) -> CycleOptions {
    let default = CycleOptions::default();
    let hold = |stated: Option<u64>, otherwise: Option<std::num::NonZeroU64>| {
        stated.unwrap_or(otherwise.map_or(0, std::num::NonZeroU64::get))
    };
    let release = input.release_policy.as_ref().map_or(default.release, |policy| {
        ReleasePolicy::from_nanos(
            hold(policy.on_demand_hold_ns, default.release.on_demand_hold_nanos),
            hold(policy.spot_hold_ns, default.release.spot_hold_nanos),
        )
    });
    let weights = input.phase2.as_ref().map_or(default.weights, |phase2| VictimWeights {
        priority: phase2.weights.priority.unwrap_or(default.weights.priority),
        drain_speed: phase2.weights.drain_speed.unwrap_or(default.weights.drain_speed),
        interruption: phase2.weights.interruption.unwrap_or(default.weights.interruption),
        reclamation: phase2.weights.reclamation.unwrap_or(default.weights.reclamation),
    });
    let stated_drain = input.phase2.as_ref().and_then(|phase2| phase2.estimated_drain_ns);
    let ready = input.ready_clusters.as_ref();
    CycleOptions {
        release,
        weights,
        estimated_drain_nanos: stated_drain.unwrap_or(default.estimated_drain_nanos),
        ready_clusters: ready.map(|list| list.iter().map(|name| Arc::from(name.as_str())).collect()),
    }
}

fn need(row: &NeedRow<'_>, names: &mut Names) -> Result<Need, Refusal> {
    if row.cluster.as_str().is_empty() {
        return Err(("cluster", FieldProblem::Missing));
    }
    let requirements: Vec<Requirement> =
        row.requirements.iter().map(requirement).collect::<Result<_, _>>().map_err(at("requirements"))?;
    let spread: Vec<TopologySpread> =
        row.spread.iter().map(spread).collect::<Result<_, _>>().map_err(at("spread"))?;
    let profile = Profile::new(
        requirements,
        spread,
        row.priority,
        PenaltyBucket::from_wire(row.interruption_bucket).map_err(at("interruption_bucket"))?,
        PenaltyBucket::from_wire(row.reclamation_bucket).map_err(at("reclamation_bucket"))?,
    );
    if row.parked && profile.same().is_none() {
        return Err(("parked", FieldProblem::ParkedWithoutSame));
    }
    Ok(Need {
        cluster: names.shared(row.cluster.as_str()),
        profile: Arc::new(profile),
        group: names.shared(text(row.group.as_ref())),
        aggregate: amounts(&row.aggregate).map_err(at("aggregate"))?,
        min_unit: amounts(&row.min_unit).map_err(at("min_unit"))?,
        first_seen_unix_nanos: row.arrival_unix_nanos,
        parked: row.parked,
    })
}

fn requirement(row: &RequirementRow<'_>) -> Result<Requirement, FieldProblem> {
    let operator =
        row.op.as_ref().map_or(Ok(Operator::Unspecified), |op| word(op, &Operator::ALL, Operator::name))?;
    let requirement = Requirement::new(row.key.as_str(), operator, row.values.iter().map(Text::as_str));
    requirement.validate()?;
    Ok(requirement)
}

fn spread(row: &SpreadRow<'_>) -> Result<TopologySpread, FieldProblem> {
    use WhenUnsatisfiable::{DoNotSchedule, ScheduleAnyway, Unspecified};
    let modes = [Unspecified, DoNotSchedule, ScheduleAnyway];
    let when =
        row.when.as_ref().map_or(Ok(Unspecified), |when| word(when, &modes, WhenUnsatisfiable::name))?;
    // A spread key stands in the fingerprint beside those of requirements and must meet the same rules.
    Requirement::new(row.key.as_str(), Operator::Exists, [""; 0]).validate()?;
    Ok(TopologySpread::new(row.key.as_str(), row.max_skew, when))
}

fn machine(row: &MachineRow<'_>, needs: &[NeedKey], names: &mut Names) -> Result<Machine, Refusal> {
    let state = word(&row.state, &MachineState::ALL, MachineState::name).map_err(at("state"))?;
    let capacity_type = match &row.capacity_type {
        Some(name) => word(name, &CapacityType::ALL, CapacityType::name).map_err(at("capacity_type"))?,
        None => CapacityType::Unspecified,
    };
    let pairs = row.labels.0.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let machine = Machine {
        id: row.id.as_str().into(),
        state,
        host: host(state, row.id.as_str()),
        cluster: text(row.cluster.as_ref()).into(),
        instance_type: text(row.instance_type.as_ref()).into(),
        zone: text(row.zone.as_ref()).into(),
        capacity_type,
        labels: Labels::new(pairs).map_err(at("labels"))?,
        resources: amounts(&row.resources).map_err(at("resources"))?,
        allocatable: amounts(&row.allocatable).map_err(at("allocatable"))?,
        price_usd_per_hour: canonical(row.price),
        interruption_probability: canonical(row.interruption_probability),
        assigned: assignment(row, state, needs, names).map_err(at("assigned_need"))?,
        draining_for: match &row.draining_for {
            Some(stated) => Some(drained_for(stated, needs, names).map_err(at("draining_for"))?),
            None => None,
        },
        idle_since_unix_nanos: row.idle_since_unix_nanos,
        last_error: match text(row.last_error.as_ref()) {
            "" if state == MachineState::Failed => "unknown".into(),
            error => error.into(),
        },
    };
    match machine.check() {
        Ok(()) => Ok(machine),
        Err(error) => Err((field_of(error.problem), FieldProblem::Record(error.problem))),
    }
}

/// Hardware for the states that have some, so that the record is one a provider could have sent.
fn host(state: MachineState, id: &str) -> Option<HostRef> {
    use MachineState::{Configured, Configuring, Deleting, Draining, Idle};
    matches!(state, Idle | Configuring | Configured | Draining | Deleting)
        .then(|| HostRef { provider: SCENARIO_PROVIDER.into(), reference: id.into() })
}

fn assignment(
    row: &MachineRow<'_>,
    state: MachineState,
    needs: &[NeedKey],
    names: &mut Names,
) -> Result<Assignment, FieldProblem> {
    let stamped = pointed_at(row.assigned_need, needs)?;
    let cluster = if state.is_bound() { row.cluster.as_ref() } else { row.assigned_cluster.as_ref() };
    Ok(Assignment {
        cluster: names.stated_or(cluster, stamped.map(|key| &key.cluster)),
        priority: row.assigned_priority,
        interruption_penalty_usd: canonical(row.assigned_interruption_penalty.0),
        reclamation_penalty_usd: canonical(row.assigned_reclamation_penalty.0),
        fingerprint: names.stated_or(row.assigned_fingerprint.as_ref(), stamped.map(|key| &key.fingerprint)),
        group: names.stated_or(row.assigned_group.as_ref(), stamped.map(|key| &key.group)),
    })
}

fn drained_for(
    stated: &DrainingFor<'_>,
    needs: &[NeedKey],
    names: &mut Names,
) -> Result<NeedKey, FieldProblem> {
    let row = pointed_at(stated.need, needs)?;
    Ok(NeedKey {
        cluster: names.stated_or(stated.cluster.as_ref(), row.map(|key| &key.cluster)),
        fingerprint: names.stated_or(stated.fingerprint.as_ref(), row.map(|key| &key.fingerprint)),
        group: names.stated_or(stated.group.as_ref(), row.map(|key| &key.group)),
    })
}

fn pointed_at(index: Option<u64>, needs: &[NeedKey]) -> Result<Option<&NeedKey>, FieldProblem> {
    let Some(need) = index else { return Ok(None) };
    let found = usize::try_from(need).ok().and_then(|index| needs.get(index));
    found.map(Some).ok_or(FieldProblem::NoSuchNeed { need, count: needs.len() })
}

fn refuse_duplicate_ids(machines: &[Machine]) -> Result<(), InputError> {
    let mut order: Vec<usize> = (0..machines.len()).collect();
    order.sort_unstable_by(|a, b| machines[*a].id.cmp(&machines[*b].id).then(a.cmp(b)));
    match order.windows(2).find(|pair| machines[pair[0]].id == machines[pair[1]].id) {
        None => Ok(()),
        Some(pair) => Err(InputError::Machine {
            index: pair[1],
            id: machines[pair[1]].id.to_string(),
            field: "id",
            problem: FieldProblem::Duplicate { first: pair[0] },
        }),
    }
}

/// The field of a file that a rule of machine records is about.
fn field_of(problem: MachineProblem) -> &'static str {
    match problem {
        MachineProblem::EmptyId => "id",
        MachineProblem::UnexpectedHost | MachineProblem::MissingHost => "state",
        MachineProblem::UnexpectedCluster | MachineProblem::MissingCluster => "cluster",
        MachineProblem::MissingError => "last_error",
        MachineProblem::Price(_) => "price",
        MachineProblem::Probability(_) => "interruption_probability",
        MachineProblem::Penalty(_) => "assigned penalties",
    }
}

fn amounts(pairs: &Pairs<'_, Amount<'_>>) -> Result<ResourceVec, bigfleet_model::resource::ResourceError> {
    ResourceVec::parse(pairs.0.iter().map(|(name, amount)| (name.as_str(), &*amount.0)))
}

/// The item with this name.
fn word<T: Copy>(text: &Text<'_>, items: &[T], name: fn(T) -> &'static str) -> Result<T, FieldProblem> {
    items.iter().copied().find(|item| name(*item) == text.as_str()).ok_or_else(|| FieldProblem::UnknownWord {
        value: text.as_str().to_owned(),
        known: items.iter().map(|item| name(*item)).collect(),
    })
}

fn text<'a>(field: Option<&'a Text<'_>>) -> &'a str {
    field.map_or("", Text::as_str)
}

/// Shared copies of repeated names: half a million machines carry a handful of fingerprints.
#[derive(Default)]
struct Names(BTreeSet<Arc<str>>);

impl Names {
    fn shared(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return known.clone();
        }
        let new: Arc<str> = name.into();
        self.0.insert(new.clone());
        new
    }

    fn stated_or(&mut self, stated: Option<&Text<'_>>, otherwise: Option<&Arc<str>>) -> Arc<str> {
        match (stated, otherwise) {
            (Some(name), _) => self.shared(name.as_str()),
            (None, Some(name)) => name.clone(),
            (None, None) => self.shared(""),
        }
    }
}
