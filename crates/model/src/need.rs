//! Needs: one cluster's aggregate demand for one profile.
//!
//! A need says how much in total (`aggregate`), how much every machine used for it must hold alone
//! (`min_unit`), and since when. It does not say how many machines: that number is the answer, never the
//! question. Pods, replicas and counts stay in the cluster.
//!
//! Needs have two orders. *Demand order* is the order in which existing machines are credited and in which
//! answers are listed; *precedence order* decides who gets a contested machine, and looks at both penalty
//! buckets before it looks at who came first.

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

    /// Takes another row of the same identity in: amounts are summed, `min_unit` is the per-dimension maximum,
    /// the earlier first-seen wins, and the row stays parked only if both were.
    pub fn absorb(&mut self, other: &Self) {
        self.aggregate = self.aggregate.add(&other.aggregate);
        self.min_unit = self.min_unit.max(&other.min_unit);
        self.first_seen_unix_nanos = self.first_seen_unix_nanos.min(other.first_seen_unix_nanos);
        self.parked &= other.parked;
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
///
/// ```
/// use bigfleet_model::need::{Need, aggregate};
/// use bigfleet_model::{penalty::PenaltyBucket, profile::Profile, resource::ResourceVec};
///
/// let profile = Profile::new(vec![], vec![], 0, PenaltyBucket::ZERO, PenaltyBucket::ZERO);
/// let profile = std::sync::Arc::new(profile);
/// let pod = |cpu, memory| {
///     let unit = ResourceVec::parse([("cpu", cpu), ("memory", memory)]).unwrap();
///     Need::of_unit("shop", profile.clone(), unit)
/// };
/// let rows = aggregate([pod("2", "1Gi"), pod("1", "4Gi"), pod("1", "1Gi")]);
/// assert_eq!(rows.len(), 1);
/// assert_eq!(rows[0].aggregate, ResourceVec::parse([("cpu", "4"), ("memory", "6Gi")]).unwrap());
/// assert_eq!(rows[0].min_unit, ResourceVec::parse([("cpu", "2"), ("memory", "4Gi")]).unwrap());
/// ```
pub fn aggregate(rows: impl IntoIterator<Item = Need>) -> Vec<Need> {
    let mut merged: BTreeMap<NeedKey, Need> = BTreeMap::new();
    for row in rows {
        match merged.entry(row.key()) {
            Entry::Vacant(slot) => {
                slot.insert(row);
            }
            Entry::Occupied(mut slot) => {
                let sum = slot.get_mut();
                let first_seen = earliest(sum.first_seen_unix_nanos, row.first_seen_unix_nanos);
                sum.absorb(&row);
                sum.first_seen_unix_nanos = first_seen;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::penalty::PenaltyBucket;

    fn cpu(amount: &str) -> ResourceVec {
        ResourceVec::parse([("cpu", amount)]).unwrap()
    }

    fn need(
        cluster: &str,
        priority: i32,
        buckets: (i32, i32),
        first_seen_unix_nanos: i64,
        group: &str,
    ) -> Need {
        let bucket = |number| PenaltyBucket::from_wire(number).unwrap();
        let profile = Profile::new(vec![], vec![], priority, bucket(buckets.0), bucket(buckets.1));
        let unit = Need::of_unit(cluster, profile.into(), cpu("1"));
        Need { first_seen_unix_nanos, group: group.into(), ..unit }
    }

    #[test]
    fn a_unit_is_its_own_aggregate_and_floor() {
        let unit = need("shop", 0, (1, 1), 0, "");
        assert_eq!((&unit.aggregate, &unit.min_unit), (&cpu("1"), &cpu("1")));
        let many = unit.clone().times(40);
        assert_eq!((&many.aggregate, &many.min_unit), (&cpu("40"), &cpu("1")));
        assert!(unit.times(0).aggregate.is_zero());
        assert!(many.fits_on(&cpu("1")) && !many.fits_on(&cpu("999m")));
    }

    #[test]
    fn the_key_is_cluster_fingerprint_group() {
        let key = need("shop", 3, (1, 2), 9, "g").key();
        let expected = NeedKey {
            cluster: "shop".into(),
            fingerprint: "p=3|ipb=1|rpb=2|reqs=|spr=".into(),
            group: "g".into(),
        };
        assert_eq!(key, expected);
    }

    #[test]
    fn demand_order_is_exactly_this() {
        let order = [
            need("z", i32::MAX, (1, 1), 9, "z"),
            need("b", 5, (1, 1), 1, "z"),
            need("a", 5, (1, 1), 2, "z"),
            need("b", 5, (1, 1), 2, ""),
            need("b", 5, (1, 1), 2, "A"),
            need("b", 5, (1, 1), 2, "a"),
            need("b", 5, (2, 1), 2, ""),
            need("a", i32::MIN, (27, 27), 0, ""),
        ];
        for (i, a) in order.iter().enumerate() {
            for (j, b) in order.iter().enumerate() {
                assert_eq!(a.cmp_demand(b), i.cmp(&j), "{i} {j}");
            }
        }
    }

    #[test]
    fn precedence_order_is_exactly_this() {
        let order = [
            need("z", 6, (0, 0), 9, ""),
            need("z", 5, (27, 1), 9, ""),
            need("z", 5, (3, 27), 9, ""),
            need("b", 5, (3, 2), 1, ""),
            need("a", 5, (3, 2), 2, ""),
            need("a", 5, (2, 27), 0, ""),
        ];
        for (i, a) in order.iter().enumerate() {
            for (j, b) in order.iter().enumerate() {
                assert_eq!(a.cmp_precedence(b), i.cmp(&j), "{i} {j}");
            }
        }
    }

    #[test]
    fn rows_of_one_identity_merge_and_others_do_not() {
        let row = |cpu: &str, first_seen: i64| {
            let unit = need("shop", 0, (1, 1), first_seen, "g");
            Need { aggregate: self::cpu(cpu), min_unit: self::cpu(cpu), parked: true, ..unit }
        };
        let open = Need { parked: false, ..row("3", 0) };
        let merged = aggregate([row("1", 0), row("2", 7), open, row("1", 5)]);
        assert_eq!(merged.len(), 1);
        let sum = &merged[0];
        assert_eq!((&sum.aggregate, &sum.min_unit), (&cpu("7"), &cpu("3")));
        assert_eq!((sum.first_seen_unix_nanos, sum.parked), (5, false));
        assert!(aggregate([row("1", 0), row("1", 0)])[0].parked);

        let apart = [
            need("shop", 0, (1, 1), 0, ""),
            need("shop", 0, (1, 1), 0, "g"),
            need("shop", 0, (1, 1), 0, "h"),
            need("shop", 0, (0, 1), 0, "g"),
            need("shop", 0, (1, 0), 0, "g"),
            need("shop", 1, (1, 1), 0, "g"),
            need("bank", 0, (1, 1), 0, "g"),
        ];
        assert_eq!(aggregate(apart.clone()).len(), apart.len());
        assert_eq!(aggregate([]), []);
    }

    #[test]
    fn the_earliest_stamp_wins_and_zero_is_none() {
        for (a, b, earlier) in [(0, 0, 0), (0, 5, 5), (5, 0, 5), (5, 7, 5), (7, 5, 5), (-3, 5, -3)] {
            assert_eq!(earliest(a, b), earlier, "{a} {b}");
        }
    }
}
