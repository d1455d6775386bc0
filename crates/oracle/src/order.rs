//! Who goes first: of needs, and of machines.

use std::cmp::Ordering;

use bigfleet_model::machine::Machine;
use bigfleet_scenario::answer::Amounts;

use crate::amounts::amount;
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
        .then(a.is_folded().cmp(&b.is_folded()))
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
