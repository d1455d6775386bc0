//! From a scenario to text, row by row: a fleet of any size is written without a second copy of it.

use std::borrow::Cow;
use std::io::{self, Write};
use std::num::NonZeroU64;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::label::Labels;
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::requirement::{Operator, Requirement};
use bigfleet_model::resource::{ResourceName, ResourceVec};
use bigfleet_model::spread::{TopologySpread, WhenUnsatisfiable};

use super::layout::{Layout, Object};
use super::rows::{
    Amount, Dollars, DrainingFor, MachineRow, NeedRow, Pairs, Phase2, Release, RequirementRow, SpreadRow,
    Text, Weights,
};
use crate::{Answer, CycleOptions, Scenario};

/// Writes the bare input of a scenario, one machine and one need a line.
///
/// What a file cannot say is lost: the host of a machine, and a stamp on a bound machine that names another
/// cluster than the machine does. No decision looks at either. Everything else reads back as it was.
pub fn write(out: &mut impl Write, scenario: &Scenario) -> io::Result<()> {
    input(out, &Layout::PAGE, scenario)?;
    out.write_all(b"\n")
}

/// Writes `{"name": …, "input": …}` on one line.
pub fn write_line(out: &mut impl Write, name: &str, scenario: &Scenario) -> io::Result<()> {
    let mut line = Object::begin(out, &Layout::LINE)?;
    line.field("name", &name)?;
    input(line.place("input")?, &Layout::LINE, scenario)?;
    line.end()?;
    out.write_all(b"\n")
}

/// Writes a vector file: a name, a sentence, the input and the answer to expect.
pub fn write_vector(
    out: &mut impl Write,
    name: &str,
    what: &str,
    scenario: &Scenario,
    expect: &Answer,
) -> io::Result<()> {
    let mut file = Object::begin(out, &Layout::PAGE)?;
    file.field("name", &name)?;
    file.field("what", &what)?;
    input(file.place("input")?, &Layout::NESTED, scenario)?;
    answer(file.place("expect")?, &Layout::NESTED, expect)?;
    file.end()?;
    out.write_all(b"\n")
}

fn input(out: &mut impl Write, layout: &Layout, scenario: &Scenario) -> io::Result<()> {
    let CycleOptions { release, weights, estimated_drain_nanos, ready_clusters } = &scenario.options;
    let default = CycleOptions::default();
    let mut input = Object::begin(out, layout)?;
    input.field("now_unix_nanos", &scenario.now_unix_nanos)?;
    if *release != default.release {
        let nanos = |hold: Option<NonZeroU64>| Some(hold.map_or(0, NonZeroU64::get));
        let on_demand_hold_ns = nanos(release.on_demand_hold_nanos);
        let spot_hold_ns = nanos(release.spot_hold_nanos);
        input.field("release_policy", &Release { on_demand_hold_ns, spot_hold_ns })?;
    }
    if *weights != default.weights || *estimated_drain_nanos != default.estimated_drain_nanos {
        let weights = Weights {
            drain_speed: Some(weights.drain_speed),
            interruption: Some(weights.interruption),
            priority: Some(weights.priority),
            reclamation: Some(weights.reclamation),
        };
        input.field("phase2", &Phase2 { estimated_drain_ns: Some(*estimated_drain_nanos), weights })?;
    }
    if let Some(ready) = ready_clusters {
        input.field("ready_clusters", &ready.iter().map(|name| &**name).collect::<Vec<&str>>())?;
    }
    input.rows("machines", scenario.machines.iter().map(machine_row))?;
    input.rows("needs", scenario.needs.iter().map(need_row))?;
    input.end()
}

fn answer(out: &mut impl Write, layout: &Layout, expect: &Answer) -> io::Result<()> {
    let mut answer = Object::begin(out, layout)?;
    answer.rows("actions", &expect.actions)?;
    answer.field("claims", &expect.claims)?;
    answer.rows("deficits", &expect.deficits)?;
    answer.rows("domains", &expect.domains)?;
    answer.rows("normalized_needs", &expect.normalized_needs)?;
    answer.rows("reasons", &expect.reasons)?;
    answer.rows("unresolved", &expect.unresolved)?;
    answer.end()
}

fn machine_row(machine: &Machine) -> MachineRow<'_> {
    let stamp = &machine.assigned;
    MachineRow {
        allocatable: amounts(&machine.allocatable),
        assigned_cluster: if machine.state.is_bound() { None } else { some(&stamp.cluster) },
        assigned_fingerprint: some(&stamp.fingerprint),
        assigned_group: some(&stamp.group),
        assigned_interruption_penalty: Dollars(stamp.interruption_penalty_usd),
        assigned_need: None,
        assigned_priority: stamp.priority,
        assigned_reclamation_penalty: Dollars(stamp.reclamation_penalty_usd),
        capacity_type: Some(machine.capacity_type)
            .filter(|kind| *kind != CapacityType::Unspecified)
            .map(|kind| Text::from(kind.name())),
        cluster: some(&machine.cluster),
        draining_for: machine.draining_for.as_ref().map(draining_for),
        id: Text::from(&*machine.id),
        idle_since_unix_nanos: machine.idle_since_unix_nanos,
        instance_type: some(&machine.instance_type),
        interruption_probability: machine.interruption_probability,
        labels: labels(&machine.labels),
        // The one error that reading supplies need not be written.
        last_error: some(&machine.last_error)
            .filter(|e| (machine.state, e.as_str()) != (MachineState::Failed, "unknown")),
        price: machine.price_usd_per_hour,
        resources: amounts(&machine.resources),
        state: Text::from(machine.state.name()),
        zone: some(&machine.zone),
    }
}

fn draining_for(key: &NeedKey) -> DrainingFor<'_> {
    DrainingFor {
        cluster: some(&key.cluster),
        fingerprint: some(&key.fingerprint),
        group: some(&key.group),
        need: None,
    }
}

fn need_row(need: &Need) -> NeedRow<'_> {
    NeedRow {
        aggregate: amounts(&need.aggregate),
        arrival_unix_nanos: need.first_seen_unix_nanos,
        cluster: Text::from(&*need.cluster),
        group: some(&need.group),
        interruption_bucket: need.profile.interruption().to_wire(),
        min_unit: amounts(&need.min_unit),
        parked: need.parked,
        priority: need.profile.priority(),
        reclamation_bucket: need.profile.reclamation().to_wire(),
        requirements: need.profile.requirements().iter().map(requirement_row).collect(),
        spread: need.profile.spread().iter().map(spread_row).collect(),
    }
}

fn requirement_row(requirement: &Requirement) -> RequirementRow<'_> {
    RequirementRow {
        key: Text::from(requirement.key()),
        op: Some(Text::from(Operator::name(requirement.operator()))),
        values: requirement.values().iter().map(|value| Text::from(&**value)).collect(),
    }
}

fn spread_row(spread: &TopologySpread) -> SpreadRow<'_> {
    SpreadRow {
        key: Text::from(&*spread.key),
        max_skew: spread.max_skew,
        when: Some(Text::from(WhenUnsatisfiable::name(spread.when))),
    }
}

fn some(text: &str) -> Option<Text<'_>> {
    (!text.is_empty()).then(|| Text::from(text))
}

fn labels(labels: &Labels) -> Pairs<'_, Text<'_>> {
    Pairs(labels.iter().map(|(key, value)| (Text::from(key), Text::from(value))).collect())
}

/// Amounts as quantities: thousandths of cpu carry their `m`, everything else is a whole number.
fn amounts(vector: &ResourceVec) -> Pairs<'_, Amount<'_>> {
    Pairs(
        vector
            .iter()
            .map(|(name, amount)| {
                let unit = if *name == ResourceName::CPU { "m" } else { "" };
                (Text::from(name.as_str()), Amount(Cow::Owned(format!("{amount}{unit}"))))
            })
            .collect(),
    )
}
