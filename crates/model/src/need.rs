//! Needs: one cluster's aggregate demand for one profile.
//!
//! A need says how much in total (`aggregate`), how much every machine used for it must hold alone
//! (`min_unit`), and since when. It does not say how many machines: that number is the answer, never the
//! question. Pods, replicas and counts stay in the cluster.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use crate::profile::Profile;
use crate::resource::ResourceVec;

/// What two rows must share to be one need, and what a machine bound for it is stamped with.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct NeedKey {
    /// The cluster that asks.
    pub cluster: Arc<str>,
    /// The fingerprint of the profile.
    pub fingerprint: Arc<str>,
    /// The gang; empty for none.
    pub group: Arc<str>,
}

/// One cluster's aggregate demand for one profile (and gang).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The cluster that asks.
    pub cluster: Arc<str>,
    /// Which machines may serve it, at which priority and price of disturbance.
    pub profile: Arc<Profile>,
    /// The gang it belongs to; empty for none. Gangs stay apart even under one profile.
    pub group: Arc<str>,
    /// The sum of everything asked for.
    pub aggregate: ResourceVec,
    /// The largest indivisible piece, per dimension: a machine that cannot hold it does not count.
    pub min_unit: ResourceVec,
    /// When the shard first saw this need, in Unix nanoseconds; 0 before it is stamped.
    pub first_seen_unix_nanos: i64,
    /// The shard has stopped acquiring for this gang for a while. Only on needs with `Same`.
    pub parked: bool,
}

impl Need {
    /// The need of a single indivisible piece, not yet stamped.
    pub fn of_unit(cluster: impl Into<Arc<str>>, profile: Arc<Profile>, unit: ResourceVec) -> Self {
        Self {
            cluster: cluster.into(),
            profile,
            group: Arc::from(""),
            aggregate: unit.clone(),
            min_unit: unit,
            first_seen_unix_nanos: 0,
            parked: false,
        }
    }

    /// The same need `count` times over.
    #[must_use]
    pub fn times(mut self, count: u64) -> Self {
        self.aggregate = self.aggregate.scale(count);
        self
    }

    /// The identity.
    pub fn key(&self) -> NeedKey {
        NeedKey {
            cluster: self.cluster.clone(),
            fingerprint: self.profile.fingerprint().into(),
            group: self.group.clone(),
        }
    }

    /// Whether a machine of this size may be counted for the need at all.
    pub fn fits_on(&self, machine: &ResourceVec) -> bool {
        machine.covers(&self.min_unit)
    }

    /// Demand order: priority down, first seen up, then cluster, fingerprint and group by their bytes.
    ///
    /// Two rows that folding made equal in all of these are told apart by the engine.
    pub fn cmp_demand(&self, other: &Self) -> Ordering {
        other
            .profile
            .priority()
            .cmp(&self.profile.priority())
            .then(self.first_seen_unix_nanos.cmp(&other.first_seen_unix_nanos))
            .then_with(|| self.cluster.cmp(&other.cluster))
            .then_with(|| self.profile.fingerprint().cmp(other.profile.fingerprint()))
            .then_with(|| self.group.cmp(&other.group))
    }

    /// Precedence order: priority, interruption bucket, reclamation bucket, all down, then demand order.
    pub fn cmp_precedence(&self, other: &Self) -> Ordering {
        let rank = |n: &Self| (n.profile.priority(), n.profile.interruption(), n.profile.reclamation());
        rank(other).cmp(&rank(self)).then_with(|| self.cmp_demand(other))
    }
}

/// Merges rows of one identity: amounts are summed, `min_unit` is the per-dimension maximum, the earliest
/// stamped first-seen wins, and the merged row is parked only if all its rows were. Comes back in key order.
///
/// This is the one roll-up primitive: operators use it to build what they send, ingest uses it on what it
/// receives.
pub fn aggregate(rows: impl IntoIterator<Item = Need>) -> Vec<Need> {
    let mut merged: BTreeMap<NeedKey, Need> = BTreeMap::new();
    for row in rows {
        match merged.entry(row.key()) {
            Entry::Vacant(slot) => {
                slot.insert(row);
            }
            Entry::Occupied(mut slot) => {
                let sum = slot.get_mut();
                sum.aggregate = sum.aggregate.add(&row.aggregate);
                sum.min_unit = sum.min_unit.max(&row.min_unit);
                sum.first_seen_unix_nanos = earliest(sum.first_seen_unix_nanos, row.first_seen_unix_nanos);
                sum.parked &= row.parked;
            }
        }
    }
    merged.into_values().collect()
}

/// The earlier of two stamps, where 0 means that there is none.
fn earliest(a: i64, b: i64) -> i64 {
    match (a, b) {
        (0, stamp) | (stamp, 0) => stamp,
        (a, b) => a.min(b),
    }
}
