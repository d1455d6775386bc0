//! Who goes first: of needs, and of machines.

use std::cmp::Ordering;

use bigfleet_model::machine::Machine;
use bigfleet_model::need::Need;
use bigfleet_scenario::answer::Amounts;

use crate::amounts::amount;
use crate::cycle::Row;
use crate::met::first_difference;

/// Demand order, and what decides it.
pub(crate) fn demand(a: &Row, b: &Row) -> (&'static str, Ordering) {
    let (x, y) = (&a.need, &b.need);
    let fingerprint = |need: &Need| need.profile.fingerprint().as_bytes().to_vec();
    first_difference(&[
        ("priority", &|| b.priority().cmp(&a.priority())),
        ("first seen", &|| x.first_seen_unix_nanos.cmp(&y.first_seen_unix_nanos)),
        ("cluster", &|| x.cluster.as_bytes().cmp(y.cluster.as_bytes())),
        ("fingerprint", &|| fingerprint(x).cmp(&fingerprint(y))),
        ("group", &|| x.group.as_bytes().cmp(y.group.as_bytes())),
        ("folded", &|| a.is_folded().cmp(&b.is_folded())),
        ("min_unit", &|| larger_first(&a.min_unit, &b.min_unit)),
    ])
}

/// Precedence order, and what decides it.
pub(crate) fn precedence(a: &Row, b: &Row) -> (&'static str, Ordering) {
    let interruption = |row: &Row| row.need.profile.interruption().to_wire();
    let reclamation = |row: &Row| row.need.profile.reclamation().to_wire();
    let by_rank = first_difference(&[
        ("priority", &|| b.priority().cmp(&a.priority())),
        ("interruption bucket", &|| interruption(b).cmp(&interruption(a))),
        ("reclamation bucket", &|| reclamation(b).cmp(&reclamation(a))),
    ]);
    if by_rank.1.is_ne() { by_rank } else { demand(a, b) }
}

/// The larger amounts first, dimension by dimension in name order.
fn larger_first(a: &Amounts, b: &Amounts) -> Ordering {
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
    stored(a.price_usd_per_hour)
        .total_cmp(&stored(b.price_usd_per_hour))
        .then(
            stored(b.assigned.reclamation_penalty_usd).total_cmp(&stored(a.assigned.reclamation_penalty_usd)),
        )
        .then_with(|| by_id(a, b))
}

/// By id.
pub(crate) fn by_id(a: &Machine, b: &Machine) -> Ordering {
    a.id.as_bytes().cmp(b.id.as_bytes())
}

/// A number of dollars as it is stored: a negative zero is a zero.
pub(crate) fn stored(dollars: f64) -> f64 {
    if dollars == 0.0 { 0.0 } else { dollars }
}
