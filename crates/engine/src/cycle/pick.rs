//! Picking from a list until nothing is missing: what keeping and crediting have in common.

use crate::amounts::{contributes, is_zero, subtract};
use crate::needs::Demand;
use crate::vocab::Amounts;

use super::sources::Sources;
use super::trim::trim;

/// What became of what a need keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keeps {
    /// Whether it covers the need.
    pub(super) covers: bool,
    /// Whether something was given back.
    pub(super) trimmed: bool,
}

/// Picks of the machines there are, in order, each that counts and contributes, until nothing is missing. Returns what still is.
pub(super) fn pick<T: Copy>(
    there: impl Iterator<Item = T>,
    class: impl Fn(T) -> u32,
    demand: &Demand,
    sources: Sources<'_>,
    picked: &mut Vec<T>,
) -> Amounts {
    let mut missing = Amounts::from_slice(&demand.aggregate);
    if is_zero(&missing) {
        return missing;
    }
    for one in there {
        let class = class(one);
        if sources.counts(class, demand) && contributes(sources.classes.provides(class), &missing) {
            picked.push(one);
            if subtract(&mut missing, sources.classes.provides(class)) {
                break;
            }
        }
    }
    missing
}

/// Trims picks that cover a need, unless part of them is still on its way or they lie under a strict spread. True if something
/// was given back.
pub(super) fn trim_credit<T: Copy>(
    picked: &mut Vec<T>,
    class: impl Fn(T) -> u32,
    is_configured: impl Fn(T) -> bool,
    demand: &Demand,
    sources: Sources<'_>,
) -> bool {
    let before = picked.len();
    if demand.spread.is_none() && picked.iter().all(|one| is_configured(*one)) {
        trim(picked, &demand.aggregate, |one| sources.classes.provides(class(one)), |_| {});
    }
    picked.len() < before
}

/// Picks what a need keeps of its own machines. A gang keeps all that count, and they count as covering nothing: where it is
/// served is decided at its turn.
pub(super) fn keep<T: Copy>(
    own: impl Iterator<Item = T>,
    class: impl Fn(T) -> u32,
    is_configured: impl Fn(T) -> bool,
    demand: &Demand,
    sources: Sources<'_>,
    picked: &mut Vec<T>,
) -> Keeps {
    if demand.same.is_some() {
        picked.extend(own.filter(|one| sources.counts(class(*one), demand)));
        return Keeps { covers: false, trimmed: false };
    }
    let covers = is_zero(&pick(own, &class, demand, sources, picked));
    let trimmed = covers && trim_credit(picked, class, is_configured, demand, sources);
    Keeps { covers, trimmed }
}
