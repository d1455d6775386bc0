//! Pods of one workload want the same; it is kept once.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use xxhash_rust::xxh3::xxh3_64;

use crate::translate::Wanted;

/// How many wishes are taken in before those that nobody has any more are forgotten.
const SWEEP_EVERY: usize = 4096;

/// Wishes that are in use, by hash.
#[derive(Debug, Default)]
pub(super) struct Interner {
    known: BTreeMap<u64, Vec<Weak<Wanted>>>,
    since_sweep: usize,
}

impl Interner {
    /// The shared copy of a wish.
    pub(super) fn share(&mut self, wanted: Wanted) -> Arc<Wanted> {
        let hash = xxh3_64(format!("{wanted:?}").as_bytes());
        let alike = self.known.entry(hash).or_default();
        if let Some(found) = alike.iter().filter_map(Weak::upgrade).find(|found| **found == wanted) {
            return found;
        }
        let shared = Arc::new(wanted);
        alike.push(Arc::downgrade(&shared));
        self.since_sweep += 1;
        if self.since_sweep >= SWEEP_EVERY {
            self.since_sweep = 0;
            self.known.retain(|_, alike| {
                alike.retain(|wish| wish.strong_count() > 0);
                !alike.is_empty()
            });
        }
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(priority: i32) -> Wanted {
        let mut wanted = Wanted::default();
        wanted.spec.priority = priority;
        wanted
    }

    #[test]
    fn equal_wishes_are_one_and_unused_ones_are_forgotten() {
        let mut interner = Interner::default();
        let first = interner.share(wish(-1));
        assert!(Arc::ptr_eq(&first, &interner.share(wish(-1))));
        assert!(!Arc::ptr_eq(&first, &interner.share(wish(-2))));
        for priority in 0..10_000 {
            interner.share(wish(priority));
        }
        assert!(interner.known.len() <= SWEEP_EVERY + 1, "{}", interner.known.len());
        assert!(Arc::ptr_eq(&first, &interner.share(wish(-1))), "one in use is kept");
    }
}
