//! The shortfall ledger: which needs even preemption could not meet, and since when.
//!
//! Ages are in time and in cycles, kept by (cluster, fingerprint, group), and only grow while a need stays short. They
//! are on disk: a restart does not make anybody's wait look shorter.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_engine::{Demand, Fleet};
use bigfleet_model::need::NeedKey;
use bigfleet_model::resource::ResourceVec;

use crate::config::{MINUTE, SECOND};
use crate::effect::Step;
use crate::memory::{Fact, ShortSince};

/// A need that is short.
#[derive(Clone, Debug)]
pub struct Shortfall {
    /// The need, after folding.
    pub demand: Arc<Demand>,
    /// What is missing.
    pub missing: ResourceVec,
    /// Since when, without a break.
    pub since: ShortSince,
}

/// Bounds of the age buckets that metrics show, in nanoseconds, with their names.
pub const AGE_BUCKETS: [(i64, &str); 6] = [
    (10 * SECOND, "10s"),
    (MINUTE, "1m"),
    (5 * MINUTE, "5m"),
    (15 * MINUTE, "15m"),
    (60 * MINUTE, "1h"),
    (i64::MAX, "more"),
];

/// All shortfalls.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Shared with those who look at it elsewhere; each cycle that changes something makes a new one.
    short: Arc<BTreeMap<NeedKey, Shortfall>>,
    /// Ages of before the start, until the first cycle says whether they go on.
    remembered: BTreeMap<NeedKey, ShortSince>,
}

impl Ledger {
    pub(crate) fn remembering(remembered: BTreeMap<NeedKey, ShortSince>) -> Self {
        Self { short: Arc::default(), remembered }
    }

    /// Takes in what the last cycle left short.
    pub(crate) fn take(&mut self, engine: &Fleet, cycle: u64, now: i64, step: &mut Step) {
        let mut before = Arc::unwrap_or_clone(std::mem::take(&mut self.short));
        let mut now_short: BTreeMap<NeedKey, Shortfall> = BTreeMap::new();
        for short in engine.short_needs() {
            let Some(missing) = short.unresolved else { continue };
            let key = short.demand.need.key();
            // Gangs that fit a machine each are a plain need now, perhaps beside one of the very same name.
            if let Some(namesake) = now_short.get_mut(&key) {
                namesake.missing = namesake.missing.add(&missing);
                continue;
            }
            let since = match before.remove(&key) {
                Some(shortfall) => shortfall.since,
                None => self.remembered.remove(&key).unwrap_or_else(|| {
                    let since = ShortSince { unix_nanos: now, cycle };
                    step.facts.push(Fact::Shortfall(key.clone(), Some(since)));
                    since
                }),
            };
            now_short.insert(key, Shortfall { demand: short.demand.clone(), missing, since });
        }
        self.short = Arc::new(now_short);
        let ended = before.into_keys().chain(std::mem::take(&mut self.remembered).into_keys());
        step.facts.extend(ended.map(|key| Fact::Shortfall(key, None)));
    }

    /// All of them, to look at elsewhere.
    pub fn shared(&self) -> Arc<BTreeMap<NeedKey, Shortfall>> {
        self.short.clone()
    }

    /// One need's shortfall.
    pub fn get(&self, key: &NeedKey) -> Option<&Shortfall> {
        self.short.get(key)
    }

    /// All of them, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&NeedKey, &Shortfall)> {
        self.short.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.short.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.short.is_empty()
    }

    /// The most urgent ones: by priority, then by age, then by key.
    pub fn top(&self, most: usize) -> Vec<(&NeedKey, &Shortfall)> {
        let mut all: Vec<_> = self.short.iter().collect();
        all.sort_by_key(|(key, short)| (Reverse(short.demand.priority()), short.since.unix_nanos, *key));
        all.truncate(most);
        all
    }

    /// How many there are in each age bucket.
    pub fn by_age(&self, now: i64) -> [(&'static str, usize); AGE_BUCKETS.len()] {
        let mut counts = AGE_BUCKETS.map(|(_, name)| (name, 0));
        for shortfall in self.short.values() {
            let age = now.saturating_sub(shortfall.since.unix_nanos);
            let bucket =
                AGE_BUCKETS.iter().position(|(most, _)| age < *most).unwrap_or(AGE_BUCKETS.len() - 1);
            counts[bucket].1 += 1;
        }
        counts
    }
}
