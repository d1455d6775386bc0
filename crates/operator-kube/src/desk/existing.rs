//! Nodes that are not the fleet's: pods that run on them ask the fleet for nothing.
//!
//! A node annotated `bigfleet.lucy.sh/adopt=true` is the exception: the fleet shall have machines for its pods, so that it
//! can be emptied.
//!
//! Without this a cluster that is connected with its nodes in place would be bought a second time. It is careful about
//! who is whose: nothing is set aside for a node that was made only a moment ago, and whatever the operator once wrote
//! down as a machine stays one after a restart. The first roll-up of a new cluster knows it already.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::Desk;

/// How old a node must be before it counts as somebody else's. The shard tells of a machine before the machine can join.
const CERTAIN_NANOS: i64 = 10_000_000_000;
/// How often to look.
const AGAIN_NANOS: i64 = 10_000_000_000;

/// Where it stands.
#[derive(Debug, Default)]
pub(super) struct Existing {
    foreign_since: BTreeMap<String, i64>,
    aside: BTreeSet<Box<str>>,
    look_at: i64,
}

impl Existing {
    pub(super) fn look_soon(&mut self, now: i64) {
        self.look_at = self.look_at.min(now);
    }

    pub(super) fn forget(&mut self, request: &str) {
        self.aside.remove(request);
    }
}

impl Desk {
    pub(super) fn look_at_existing(&mut self, now: i64) -> i64 {
        if !self.settings.subtract_existing {
            return i64::MAX;
        }
        if self.existing.look_at > now {
            return self.existing.look_at;
        }
        self.existing.look_at = now.saturating_add(AGAIN_NANOS);
        let foreign = self.picture.foreign_nodes().filter(|(_, node)| !node.is_adopted);
        let foreign: BTreeMap<String, i64> =
            foreign.map(|(name, node)| (name.to_owned(), node.created_unix_nanos)).collect();
        // The server wrote when a node was made.
        let server_now = self.server_now(now);
        self.existing.foreign_since.retain(|name, _| foreign.contains_key(name));
        for (name, created) in foreign {
            if let Entry::Vacant(place) = self.existing.foreign_since.entry(name) {
                let node = place.key().as_str();
                tracing::info!(node, "a node that is not the fleet's: pods on it are not asked for");
                place.insert(if created == 0 { server_now } else { created });
            }
        }
        let certain = server_now.saturating_sub(CERTAIN_NANOS);
        let nodes = self.existing.foreign_since.iter().filter(|(_, since)| **since <= certain);
        let pods = nodes.flat_map(|(name, _)| self.picture.uids_on(name));
        let served: BTreeSet<Box<str>> = pods.filter_map(|uid| self.request_of(uid)).map(Box::from).collect();
        let before = std::mem::take(&mut self.existing.aside);
        for name in before.difference(&served) {
            self.demand.set_aside(name, false);
            self.statuses.look_at(name);
        }
        for name in served.difference(&before) {
            self.demand.set_aside(name, true);
            self.statuses.look_at(name);
        }
        if served != before {
            self.rollups.demand_changed(self.demand.revision(), now, self.settings.debounce);
            self.statuses.renew_soon(now);
        }
        self.existing.aside = served;
        self.existing.look_at
    }
}
