//! Equal profiles are kept once.
//!
//! Clusters ask for the same few kinds of capacity, each in messages of its own. Thousands of clusters with dozens of needs
//! would hold tens of thousands of profiles of which a few hundred differ.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use bigfleet_model::profile::Profile;
use hashbrown::HashTable;

/// Profiles that nobody uses any more are looked for when there are twice as many as after the last time, and at least
/// so many.
const SWEPT_FROM: usize = 1024;

/// Every profile that some need has, and some that needs had.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    known: HashTable<Arc<Profile>>,
    hasher: foldhash::fast::FixedState,
    sweep_at: usize,
}

impl Profiles {
    /// The profile that all needs like this one share.
    pub(crate) fn share(&mut self, profile: Arc<Profile>) -> Arc<Profile> {
        let hasher = &self.hasher;
        let hash = hasher.hash_one(profile.fingerprint());
        // One text may stand for two sets of requirements (see the head of the model's profile); these stay apart.
        let same = |known: &Arc<Profile>| {
            known.fingerprint() == profile.fingerprint() && known.requirements() == profile.requirements()
        };
        if let Some(known) = self.known.find(hash, same) {
            return known.clone();
        }
        if self.known.len() >= self.sweep_at.max(SWEPT_FROM) {
            self.known.retain(|known| Arc::strong_count(known) > 1);
            self.sweep_at = 2 * self.known.len();
        }
        self.known.insert_unique(hash, profile.clone(), |known| hasher.hash_one(known.fingerprint()));
        profile
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_model::penalty::PenaltyBucket;
    use bigfleet_model::requirement::Requirement;

    use super::*;

    fn profile(priority: i32, values: &[&str]) -> Arc<Profile> {
        let requirement = Requirement::is_in("pool", values.iter().copied());
        let zero = PenaltyBucket::ZERO;
        Profile::new(vec![requirement], vec![], priority, zero, zero).into()
    }

    #[test]
    fn equal_profiles_become_one_and_others_stay_apart() {
        let mut profiles = Profiles::default();
        let first = profiles.share(profile(1, &["a"]));
        assert!(Arc::ptr_eq(&first, &profiles.share(profile(1, &["a"]))));
        assert!(!Arc::ptr_eq(&first, &profiles.share(profile(2, &["a"]))));
        let (none, empty) = (profile(1, &[]), profile(1, &[""]));
        assert_eq!(none.fingerprint(), empty.fingerprint(), "the text is the same");
        profiles.share(none.clone());
        assert!(Arc::ptr_eq(&empty, &profiles.share(empty.clone())), "the meaning is not");
    }

    #[test]
    fn what_nobody_uses_is_forgotten() {
        let mut profiles = Profiles::default();
        let kept: Vec<_> = (0..500).map(|priority| profiles.share(profile(priority, &["a"]))).collect();
        for priority in 0..100_000 {
            profiles.share(profile(priority, &["b"]));
        }
        assert!(profiles.known.len() <= 2 * SWEPT_FROM, "{}", profiles.known.len());
        assert!(kept.iter().all(|kept| Arc::ptr_eq(kept, &profiles.share(Arc::new(Profile::clone(kept))))));
    }
}
