//! Matching one machine.

use bigfleet_model::label::{INSTANCE_TYPE, ZONE};
use bigfleet_model::machine::Machine;
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::Operator;

/// The machine's value for a key: the type and the zone from their fields if these have a value, everything
/// else, and those otherwise, from the labels.
pub(crate) fn value<'a>(machine: &'a Machine, key: &str) -> Option<&'a str> {
    if key == INSTANCE_TYPE && !machine.instance_type.is_empty() {
        return Some(&machine.instance_type);
    }
    if key == ZONE && !machine.zone.is_empty() {
        return Some(&machine.zone);
    }
    machine.labels.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// Whether the machine meets every requirement of the profile.
pub(crate) fn matches(machine: &Machine, profile: &Profile) -> bool {
    profile.requirements().iter().all(|requirement| {
        let value = value(machine, requirement.key());
        let listed = value.is_some_and(|v| requirement.values().iter().any(|one| **one == *v));
        match requirement.operator() {
            Operator::In => listed,
            Operator::NotIn => !listed,
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Same => listed || (value.is_some() && requirement.values().is_empty()),
            Operator::Unspecified => false,
        }
    })
}

/// The key whose values are the domains of a gang: that of the first `Same` by key.
pub(crate) fn same_key(profile: &Profile) -> Option<&str> {
    let keys = profile.requirements().iter().filter(|r| r.operator() == Operator::Same);
    keys.map(bigfleet_model::requirement::Requirement::key).min()
}

/// The strict spread that binds the need: the first by key; none if `Same` decides where machines lie.
pub(crate) fn strict_spread(profile: &Profile) -> Option<Strict<'_>> {
    use bigfleet_model::spread::WhenUnsatisfiable::DoNotSchedule;
    if same_key(profile).is_some() {
        return None;
    }
    let strict = profile.spread().iter().filter(|spread| spread.when == DoNotSchedule);
    let first = strict.min_by_key(|spread| (&spread.key, spread.max_skew))?;
    Some(Strict { key: &first.key, max_skew: i64::from(first.max_skew.max(1)) })
}

/// A spread that must be kept.
#[derive(Clone, Copy)]
pub(crate) struct Strict<'a> {
    /// The key whose values are the domains.
    pub(crate) key: &'a str,
    /// How far domains may differ, at least 1.
    pub(crate) max_skew: i64,
}
