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

/// What a profile is looked for by. Reads all of it, so it is worth keeping.
pub(crate) fn fingerprint_hash(profile: &Profile) -> u64 {
    foldhash::fast::FixedState::default().hash_one(profile.fingerprint())
}

/// Whether one text stands for the same requirements in two valid profiles: no values, and the empty value alone, read alike
/// (see the head of the model's profile).
fn is_read_alike(a: &Profile, b: &Profile) -> bool {
    let mut pairs = a.requirements().iter().zip(b.requirements());
    pairs.all(|(a, b)| a.values().len() == b.values().len())
}

/// Every profile that some need has, and some that needs had, each with its hash.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    known: HashTable<(u64, Arc<Profile>)>,
    sweep_at: usize,
}

impl Profiles {
    /// The profile that all needs like this one share.
    pub(crate) fn share(&mut self, profile: &Arc<Profile>, hash: u64) -> Arc<Profile> {
        let same = |(_, known): &(u64, Arc<Profile>)| {
            known.fingerprint() == profile.fingerprint() && is_read_alike(known, profile)
        };
        if let Some((_, known)) = self.known.find(hash, same) {
            return known.clone();
        }
        self.known.insert_unique(hash, (hash, profile.clone()), |(hash, _)| *hash);
        profile.clone()
    }

    /// Those that nobody uses any more, if it is time to look for them.
    pub(crate) fn swept(&mut self) -> Vec<Arc<Profile>> {
        if self.known.len() < self.sweep_at.max(SWEPT_FROM) {
            return Vec::new();
        }
        let gone = self.known.extract_if(|(_, known)| Arc::strong_count(known) == 1);
        let gone = gone.map(|(_, profile)| profile).collect();
        self.sweep_at = 2 * self.known.len();
        gone
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
        let mut share = |profile: &Arc<Profile>| profiles.share(profile, fingerprint_hash(profile));
        let first = share(&profile(1, &["a"]));
        assert!(Arc::ptr_eq(&first, &share(&profile(1, &["a"]))));
        assert!(!Arc::ptr_eq(&first, &share(&profile(2, &["a"]))));
        let (none, empty) = (profile(1, &[]), profile(1, &[""]));
        assert_eq!(none.fingerprint(), empty.fingerprint(), "the text is the same");
        share(&none);
        assert!(Arc::ptr_eq(&empty, &share(&empty)), "the meaning is not");
    }

    #[test]
    fn what_nobody_uses_is_forgotten() {
        let mut profiles = Profiles::default();
        let share = |profiles: &mut Profiles, profile: Arc<Profile>| {
            let shared = profiles.share(&profile, fingerprint_hash(&profile));
            drop(profile);
            profiles.swept();
            shared
        };
        let kept: Vec<_> = (0..500).map(|priority| share(&mut profiles, profile(priority, &["a"]))).collect();
        for priority in 0..100_000 {
            share(&mut profiles, profile(priority, &["b"]));
        }
        assert!(profiles.known.len() <= 2 * SWEPT_FROM, "{}", profiles.known.len());
        let again = |kept: &Arc<Profile>| share(&mut profiles, Arc::new(Profile::clone(kept)));
        let again: Vec<_> = kept.iter().map(again).collect();
        assert!(kept.iter().zip(&again).all(|(kept, again)| Arc::ptr_eq(kept, again)));
    }
}
