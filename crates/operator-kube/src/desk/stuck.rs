//! Pods without a hole: looked at when their need is covered, all its machines have joined, and a while has passed.

use std::collections::BTreeMap;

use bigfleet_kube_common::Severity;
use bigfleet_model::resource::{ResourceName, ResourceVec};
use bigfleet_operator::demand::RowId;
use bigfleet_operator::reserve::{Joined, Refusal, Stuck, Wants};
use bigfleet_proto::convert::resources;
use bigfleet_view::v1;

use super::Desk;
use crate::seen::Help;

/// How often to look while somebody is stuck.
const AGAIN_NANOS: i64 = 2_000_000_000;
/// Pods told of what was done about them.
const MOST_TOLD: usize = 10;

/// Since when pods are stuck and machines have joined.
#[derive(Debug, Default)]
pub(super) struct Watchlist {
    stuck_since: BTreeMap<Box<str>, i64>,
    joined_since: BTreeMap<String, i64>,
    look_at: Option<i64>,
}

impl Watchlist {
    pub(super) fn look_soon(&mut self, now: i64) {
        self.look_at.get_or_insert(now);
    }

    pub(super) fn saw(&mut self, uid: &str, is_stuck: bool, now: i64) {
        if !is_stuck {
            self.stuck_since.remove(uid);
        } else if !self.stuck_since.contains_key(uid) {
            self.stuck_since.insert(uid.into(), now);
            self.look_at.get_or_insert(now);
        }
    }
}

/// One need's stuck pods.
#[derive(Default)]
struct Group {
    shapes: Vec<Stuck>,
    uids: Vec<Box<str>>,
}

impl Desk {
    /// Looks at stuck pods if it is time. When to look again.
    pub(super) fn look_at_stuck(&mut self, now: i64) -> i64 {
        match self.watchlist.look_at {
            Some(at) if at <= now => self.watchlist.look_at = None,
            Some(at) => return at,
            None => return i64::MAX,
        }
        self.note_joined(now);
        let groups = self.stuck_by_row(now);
        self.metrics.stuck(groups.values().map(|group| group.uids.len()).sum());
        for row in self.demand.rows().collect::<Vec<_>>() {
            if !groups.contains_key(&row) {
                self.reserves.all_placed(row);
            }
        }
        for (row, group) in &groups {
            if !group.uids.is_empty()
                && let Some(machines) = self.settled_machines(*row, now)
            {
                self.revise(*row, &machines, group, now);
            }
        }
        self.tell_reserved();
        if !groups.is_empty() {
            self.watchlist.look_at = Some(now.saturating_add(AGAIN_NANOS));
        }
        self.watchlist.look_at.unwrap_or(i64::MAX)
    }

    fn note_joined(&mut self, now: i64) {
        let (picture, joined) = (&self.picture, &mut self.watchlist.joined_since);
        joined.retain(|machine, _| picture.ready_node(machine).is_some());
        for machine in picture.machines.keys().filter(|machine| picture.ready_node(machine).is_some()) {
            if !joined.contains_key(machine) {
                joined.insert(machine.clone(), now);
            }
        }
    }

    fn stuck_by_row(&self, now: i64) -> BTreeMap<RowId, Group> {
        let mut groups: BTreeMap<RowId, Group> = BTreeMap::new();
        let settled = now.saturating_sub(self.settle_nanos());
        for (uid, _) in self.picture.stuck() {
            let Some(name) = self.request_of(uid) else { continue };
            let Some((row, unit)) = self.demand.find(name) else { continue };
            let help = self.requests.get(name).map_or(Help::Hole, |request| Help::read(&request.others));
            let wants = match help {
                Help::Hole => Wants::Hole,
                Help::Another => Wants::Machine,
                Help::None => continue,
            };
            let group = groups.entry(row).or_default();
            if self.watchlist.stuck_since.get(uid).is_none_or(|since| *since > settled) {
                // Too soon to judge. Its need is one with somebody stuck, all the same.
                continue;
            }
            group.uids.push(uid.into());
            match group.shapes.iter_mut().find(|stuck| stuck.shape == *unit && stuck.wants == wants) {
                Some(stuck) => stuck.pods += 1,
                None => group.shapes.push(Stuck { shape: unit.clone(), pods: 1, wants }),
            }
        }
        groups
    }

    /// The machines of a need that is covered as it was last told, if all of them joined a while ago.
    fn settled_machines(&self, row: RowId, now: i64) -> Option<Vec<Joined>> {
        let verdict = self.verdict(row).filter(|_| self.has_verdicts)?;
        if !verdict.satisfied || verdict.acquired > 0 || !self.is_of_last_rollup(row, verdict) {
            return None;
        }
        let settled = now.saturating_sub(self.settle_nanos());
        let machines = verdict.machines.iter().map(|machine| {
            let since = self.watchlist.joined_since.get(machine)?;
            (*since <= settled).then(|| self.picture.joined(machine)).flatten()
        });
        machines.collect::<Option<Vec<_>>>().filter(|machines| !machines.is_empty())
    }

    /// Whether a verdict is about what was last asked for.
    pub(super) fn is_of_last_rollup(&self, row: RowId, verdict: &v1::Verdict) -> bool {
        let about = resources::from_map(&verdict.aggregate).ok();
        about.is_some() && about.as_ref() == self.rollups.sent.get(&row)
    }

    fn revise(&mut self, row: RowId, machines: &[Joined], group: &Group, now: i64) {
        let revision = self.reserves.revise(row, &mut self.demand, machines, &group.shapes);
        for (shape, refusal) in &revision.refused {
            let (outcome, message) = match refusal {
                Refusal::HasRoom => (
                    "has_room",
                    "a machine of its need has room for it; something else keeps it away: see the scheduler's own message",
                ),
                Refusal::NothingHoldsIt => (
                    "nothing_holds_it",
                    "no machine of its need could hold it beside what every node carries; ask for less, or allow larger machines",
                ),
                Refusal::GaveUp => (
                    "gave_up",
                    "more machines were asked for several times and it still finds no place; nothing more is asked for",
                ),
            };
            self.metrics.revision(outcome);
            if *refusal != Refusal::HasRoom {
                tracing::warn!(%shape, outcome, "a stuck pod raises nothing");
                self.tell_stuck(group, Severity::Warning, "NoHole", message);
            }
        }
        if revision.raised {
            self.metrics.revision("raised");
            let extra = self.reserves.extra(row, &self.demand).unwrap_or_default();
            tracing::info!(pods = group.uids.len(), %extra, "pods of a covered need have no hole; the need asks for more");
            let message =
                "its need is covered in sums, but no machine has room for it; another machine is asked for";
            self.tell_stuck(group, Severity::Normal, "AskedForHole", message);
            self.rollups.soon(now);
            self.statuses.renew_soon(now);
        }
    }

    fn tell_stuck(&self, group: &Group, severity: Severity, reason: &'static str, message: &str) {
        for uid in group.uids.iter().take(MOST_TOLD) {
            if let Some(about) = self.pod_reference(uid) {
                self.announce(about, severity, reason, message.into());
            }
        }
    }

    fn tell_reserved(&self) {
        let rows = self.demand.rows().filter_map(|row| self.reserves.extra(row, &self.demand));
        let sum = rows.fold(ResourceVec::ZERO, |sum, extra| sum.add(&extra));
        let amounts: Vec<(String, f64)> = sum
            .iter()
            .map(|(name, amount)| {
                let unit = if *name == ResourceName::CPU { 1e3 } else { 1.0 };
                (name.to_string(), amount as f64 / unit)
            })
            .collect();
        self.metrics.reserved(&amounts);
    }
}
