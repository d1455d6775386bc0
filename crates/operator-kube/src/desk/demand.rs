//! Requests, nodes and pods as they come and go.

use std::collections::BTreeSet;

use bigfleet_operator::drain::Mark;

use super::Desk;
use crate::seen::{Listed, NodeSeen, PodSeen, RequestSeen, UpcomingSeen};

impl Desk {
    pub(super) fn take_request(&mut self, listed: Listed<RequestSeen>, now: i64) {
        if let Some(held) = self.lists.requests.follow(&listed) {
            let gone: Vec<Box<str>> =
                self.requests.keys().filter(|name| !held.contains(&***name)).cloned().collect();
            for name in &gone {
                self.drop_request(name);
            }
        }
        match listed {
            Listed::Holds(name, seen) | Listed::Put(name, seen) => {
                // A pod may be stuck before its request is there, or says what would help: without it nobody looks.
                if self.picture.is_stuck(&seen.pod_uid) {
                    self.watchlist.look_soon(now);
                }
                self.put_request(&name, seen);
            }
            Listed::Gone(name) => self.drop_request(&name),
            Listed::Begin | Listed::End => {}
        }
        self.rollups.demand_changed(self.demand.revision(), now, self.settings.debounce);
    }

    fn put_request(&mut self, name: &str, seen: RequestSeen) {
        let RequestSeen { asked, pod_uid, acknowledged_unix_nanos, conditions, others, version, shown } =
            seen;
        let added = asked.and_then(|asked| self.demand.put(name, &asked).map_err(|bad| bad.to_string()));
        let is_new = !self.requests.contains_key(name);
        let request = self.requests.entry(name.into()).or_default();
        // What it shows may be what we wrote in an earlier life, or not be ours at all.
        let mut is_news = is_new || shown.is_some_and(|shown| shown != request.written);
        (request.others, request.version) = (others, version);
        request.written = shown.unwrap_or(request.written);
        if acknowledged_unix_nanos != 0 {
            request.acknowledged_unix_nanos = acknowledged_unix_nanos;
        }
        if *request.pod != *pod_uid {
            if !request.pod.is_empty() {
                self.by_pod.remove(&request.pod);
            }
            if !pod_uid.is_empty() {
                self.by_pod.insert(pod_uid.clone(), name.into());
            }
            request.pod = pod_uid;
        }
        match added {
            Ok(row) => {
                request.refused = None;
                for (type_, status, since) in conditions {
                    self.statuses.learn(row, type_, &status, since);
                }
            }
            Err(why) => {
                // What could not be read may never have been in the demand, or was before it changed.
                self.demand.remove(name);
                is_news |= request.refused.as_deref() != Some(&why);
                request.refused = Some(why.into());
            }
        }
        if is_news {
            self.statuses.look_at(name);
        }
    }

    fn drop_request(&mut self, name: &str) {
        if let Some(gone) = self.requests.remove(name) {
            self.by_pod.remove(&gone.pod);
            self.statuses.forget(name);
        }
        self.existing.forget(name);
        self.demand.remove(name);
        self.reserves.sweep(&self.demand);
    }

    pub(super) fn take_node(&mut self, listed: Listed<NodeSeen>, now: i64) {
        if let Some(held) = self.lists.nodes.follow(&listed) {
            let gone: Vec<String> =
                self.picture.nodes.keys().filter(|name| !held.contains(*name)).cloned().collect();
            for name in &gone {
                self.picture.remove_node(name);
            }
        }
        let changed = match listed {
            Listed::Holds(name, seen) | Listed::Put(name, seen) => {
                self.resume_marked(seen.mark.as_ref());
                self.picture.put_node(&name, seen)
            }
            Listed::Gone(name) => {
                self.picture.remove_node(&name);
                true
            }
            Listed::Begin => false,
            Listed::End => true,
        };
        if changed {
            self.existing.look_soon(now);
            self.watchlist.look_soon(now);
            self.statuses.renew_soon(now);
            self.objects.nodes_changed(now);
        }
    }

    /// A node bears our mark: a drain of an earlier life, or one of ours.
    fn resume_marked(&mut self, mark: Option<&Mark>) {
        if let Some(mark) = mark
            && !self.lists.nodes.is_complete
        {
            self.drains.resume(mark);
        }
    }

    pub(super) fn take_pod(&mut self, listed: Listed<PodSeen>, now: i64) {
        if let Some(held) = self.lists.pods.follow(&listed) {
            self.picture.retain_pods(&held);
        }
        match listed {
            Listed::Holds(uid, seen) | Listed::Put(uid, seen) => {
                let waited = self.picture.pod(&uid).map(|pod| pod.node.is_empty());
                if waited != Some(seen.node.is_empty()) {
                    self.objects.pods_changed(now);
                }
                self.watchlist.saw(&uid, seen.is_stuck, now);
                self.picture.put_pod(&uid, Some(seen));
            }
            Listed::Gone(uid) => {
                self.objects.pods_changed(now);
                self.watchlist.saw(&uid, false, now);
                self.picture.put_pod(&uid, None);
            }
            Listed::Begin | Listed::End => {}
        }
    }

    pub(super) fn take_upcoming(&mut self, listed: Listed<UpcomingSeen>) {
        if let Some(held) = self.lists.upcoming.follow(&listed) {
            let names: BTreeSet<String> = held;
            self.picture.upcoming.retain(|machine, _| names.contains(&crate::upcoming::name_of(machine)));
        }
        match listed {
            Listed::Holds(_, seen) | Listed::Put(_, seen) => self.picture.put_upcoming(seen),
            // Whoever removed it: if the machine is ours it is written again with its next change.
            Listed::Gone(name) => {
                self.picture.remove_upcoming(&name);
                self.objects.vanished(&name);
            }
            Listed::Begin | Listed::End => {}
        }
    }

    /// The request a pod has.
    pub(super) fn request_of(&self, pod: &str) -> Option<&str> {
        self.by_pod.get(pod).map(|name| &**name)
    }
}
