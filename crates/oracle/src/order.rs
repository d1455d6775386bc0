//! Who goes first: of needs, and of machines.

use std::cmp::Ordering;

use bigfleet_model::machine::Machine;
use bigfleet_scenario::answer::Amounts;

use crate::cycle::Row;

/// Demand order.
pub(crate) fn demand(a: &Row, b: &Row) -> Ordering {
    let (x, y) = (&a.need, &b.need);
    y.profile
        .priority()
        .cmp(&x.profile.priority())
        .then(x.first_seen_unix_nanos.cmp(&y.first_seen_unix_nanos))
        .then_with(|| x.cluster.as_bytes().cmp(y.cluster.as_bytes()))
        .then_with(|| x.profile.fingerprint().as_bytes().cmp(y.profile.fingerprint().as_bytes()))
        .then_with(|| x.group.as_bytes().cmp(y.group.as_bytes()))
        .then(a.folded.cmp(&b.folded))
        .then_with(|| larger_first(&a.min_unit, &b.min_unit))
}

/// Precedence order.
pub(crate) fn precedence(a: &Row, b: &Row) -> Ordering {
    let rank = |row: &Row| {
        let profile = &row.need.profile;
        (profile.priority(), profile.interruption().to_wire(), profile.reclamation().to_wire())
    };
    rank(b).cmp(&rank(a)).then_with(|| demand(a, b))
}

/// The larger amounts first, dimension by dimension in name order.
fn larger_first(a: &Amounts, b: &Amounts) -> Ordering {
    let amount = |of: &Amounts, name: &String| of.get(name).copied().unwrap_or(0);
    let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
    names.sort_unstable();
    names
        .into_iter()
        .map(|name| amount(b, name).cmp(&amount(a, name)))
        .find(|ordering| ordering.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Keep order of a cluster's machines in one state.
pub(crate) fn keep(a: &Machine, b: &Machine) -> Ordering {
    a.price_usd_per_hour
        .total_cmp(&b.price_usd_per_hour)
        .then(b.assigned.reclamation_penalty_usd.total_cmp(&a.assigned.reclamation_penalty_usd))
        .then_with(|| by_id(a, b))
}

/// By id.
pub(crate) fn by_id(a: &Machine, b: &Machine) -> Ordering {
    a.id.as_bytes().cmp(b.id.as_bytes())
}

/// Idle machines, cheapest first.
pub(crate) fn idle(a: &Machine, b: &Machine) -> Ordering {
    a.price_usd_per_hour.total_cmp(&b.price_usd_per_hour).then_with(|| by_id(a, b))
}

/// Speculative machines, lowest effective cost for a need with this penalty first.
pub(crate) fn speculative(a: &Machine, b: &Machine, penalty_usd: f64) -> Ordering {
    let cost = |machine: &Machine| effective_cost(machine, penalty_usd);
    cost(a).total_cmp(&cost(b)).then_with(|| by_id(a, b))
}

/// Price plus risk times penalty, where no risk costs nothing even if the penalty is infinite.
fn effective_cost(machine: &Machine, penalty_usd: f64) -> f64 {
    let risk = if machine.interruption_probability == 0.0 {
        0.0
    } else {
        machine.interruption_probability * penalty_usd
    };
    machine.price_usd_per_hour + risk
}
