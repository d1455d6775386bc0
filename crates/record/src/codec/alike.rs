//! Which machines, stamps and profiles are alike, told by one pass over them.
//!
//! A full state names hundreds of thousands of machines of a few thousand kinds. Looking up every string of every
//! machine takes longer than everything else together, so whole kinds are looked up first.

use std::hash::{Hash, Hasher};

use bigfleet_model::machine::Machine;
use bigfleet_model::profile::Profile;
use bigfleet_model::stamp::Assignment;

/// A machine, as far as its kind goes.
#[derive(Clone, Copy)]
pub(super) struct Kind<'a>(pub(super) &'a Machine);

impl Kind<'_> {
    fn numbers(self) -> [u64; 3] {
        let Machine { price_usd_per_hour, interruption_probability, .. } = self.0;
        [price_usd_per_hour.to_bits(), interruption_probability.to_bits(), self.0.capacity_type as u64]
    }
}

impl PartialEq for Kind<'_> {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (self.0, other.0);
        self.numbers() == other.numbers()
            && a.resources == b.resources
            && a.allocatable == b.allocatable
            && a.instance_type == b.instance_type
            && a.zone == b.zone
            && a.labels == b.labels
    }
}

impl Eq for Kind<'_> {}

impl Hash for Kind<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Sizes follow from the type nearly always; equality looks at them.
        self.numbers().hash(state);
        self.0.instance_type.hash(state);
        self.0.zone.hash(state);
        self.0.labels.hash(state);
    }
}

/// What a machine was bound for.
#[derive(Clone, Copy)]
pub(super) struct Stamp<'a>(pub(super) &'a Assignment);

impl Stamp<'_> {
    fn numbers(self) -> [u64; 3] {
        let Assignment { priority, interruption_penalty_usd, reclamation_penalty_usd, .. } = self.0;
        [
            u64::from(priority.cast_unsigned()),
            interruption_penalty_usd.to_bits(),
            reclamation_penalty_usd.to_bits(),
        ]
    }
}

impl PartialEq for Stamp<'_> {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (self.0, other.0);
        self.numbers() == other.numbers()
            && a.cluster == b.cluster
            && a.fingerprint == b.fingerprint
            && a.group == b.group
    }
}

impl Eq for Stamp<'_> {}

impl Hash for Stamp<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.numbers().hash(state);
        self.0.cluster.hash(state);
        self.0.fingerprint.hash(state);
        self.0.group.hash(state);
    }
}

/// A profile. Its fingerprint does not tell no values from the empty value alone; equality looks at them.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a>(pub(super) &'a Profile);

impl PartialEq for Terms<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
            || self.0 == other.0
                && self.0.requirements() == other.0.requirements()
                && self.0.spread() == other.0.spread()
    }
}

impl Eq for Terms<'_> {}

impl Hash for Terms<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::penalty::PenaltyBucket;
    use bigfleet_model::requirement::Requirement;

    #[test]
    fn profiles_that_read_alike_are_told_apart() {
        let profile = |values: &[&str]| {
            let requirement = Requirement::is_in("pool", values.iter().copied());
            Profile::new(vec![requirement], vec![], 0, PenaltyBucket::ZERO, PenaltyBucket::ZERO)
        };
        let (none, empty) = (profile(&[]), profile(&[""]));
        assert!(none == empty, "by their fingerprints they are the same");
        assert!(Terms(&none) != Terms(&empty));
        assert!(Terms(&none) == Terms(&profile(&[])));
    }
}
