//! The statuses of requests: made per row, written where they are not shown yet, a few at a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bigfleet_kube_common::{Severity, time};
use bigfleet_operator::demand::RowId;
use bigfleet_view::v1;
use serde_json::json;

use super::Desk;
use super::rollup::Reception;
use crate::amounts::quantities;
use crate::news::{News, Trouble};
use crate::status::{Holds, RowStatus, Said, Since, covered, joined, steady};

/// How long to wait with new statuses: an answer may be followed by a second one that says more.
const GATHER_NANOS: i64 = 300_000_000;
/// Statuses being written at a time.
const MOST_UNDER_WAY: usize = 16;
/// How long to wait after the server refused one.
const RETRY_NANOS: i64 = 1_000_000_000;
/// How long to wait for what somebody else has written.
const CONFLICT_NANOS: i64 = 250_000_000;
/// Rows of at most so many requests follow every word; larger ones only what holds, and why.
const FEW: u64 = 20;
/// How far an expectation must move to be written again: in rows that follow every word, and in larger ones.
const MOVED_NANOS: i64 = 10_000_000_000;
const MOVED_FAR_NANOS: i64 = 120_000_000_000;
/// Pods told of a change, per row.
const MOST_TOLD: usize = 20;

/// Where statuses stand.
#[derive(Debug, Default)]
pub(super) struct Statuses {
    renew_at: Option<i64>,
    rows: BTreeMap<RowId, RowState>,
    /// Requests to look at: they may not show what they should.
    look: BTreeSet<Box<str>>,
    under_way: BTreeSet<Box<str>>,
    not_before: i64,
    /// Requests that somebody wrote at the same time, and when to look at them again; oldest first.
    conflicted: VecDeque<(i64, Box<str>)>,
}

#[derive(Debug, Default)]
struct RowState {
    status: RowStatus,
    digest: u64,
    since: Since,
    /// When what is on its way is expected, as shown.
    expected: Option<v1::Expected>,
}

impl Statuses {
    pub(super) fn renew_soon(&mut self, now: i64) {
        self.renew_at.get_or_insert(now.saturating_add(GATHER_NANOS));
    }

    pub(super) fn learn(&mut self, row: RowId, type_: &'static str, status: &str, since: i64) {
        self.rows.entry(row).or_default().since.learn(type_, status, since);
    }

    pub(super) fn look_at(&mut self, request: &str) {
        self.look.insert(request.into());
    }

    pub(super) fn forget(&mut self, request: &str) {
        self.look.remove(request);
    }
}

impl Desk {
    /// Works the statuses of all rows out again, if something changed.
    pub(super) fn renew_statuses(&mut self, now: i64) -> i64 {
        match self.statuses.renew_at {
            Some(at) if at <= now => self.statuses.renew_at = None,
            Some(at) => return at,
            None => return i64::MAX,
        }
        let rows: BTreeSet<RowId> = self.demand.rows().collect();
        self.statuses.rows.retain(|row, _| rows.contains(row));
        let mut changed: BTreeSet<RowId> = BTreeSet::new();
        for row in rows {
            let Some(status) = self.row_status(row) else { continue };
            let state = self.statuses.rows.entry(row).or_default();
            let digest = status.digest();
            if digest == state.digest {
                continue;
            }
            let holds = |said: &Option<Said>| said.as_ref().map(|said| (said.holds, said.reason));
            let news = holds(&status.covered) != holds(&state.status.covered);
            let when = |status: &RowStatus| status.joined.as_ref().map(|said| said.expected);
            let is_same_kind = !news
                && when(&status) == when(&state.status)
                && holds(&status.accepted) == holds(&state.status.accepted)
                && holds(&status.joined) == holds(&state.status.joined)
                && status.reserved == state.status.reserved;
            if is_same_kind && self.demand.requests_of(row) > FEW {
                continue;
            }
            let said = status.covered.clone().filter(|said| news && said.holds == Holds::No);
            (state.status, state.digest) = (status, digest);
            changed.insert(row);
            if let Some(said) = said {
                self.tell_pods(row, &said);
            }
        }
        if !changed.is_empty() {
            let stale =
                self.demand.requests().filter(|(_, row)| row.is_some_and(|row| changed.contains(&row)));
            self.statuses.look.extend(stale.map(|(name, _)| Box::from(name)));
        }
        i64::MAX
    }

    /// What the requests of a row should show; nothing before it was part of a roll-up.
    fn row_status(&mut self, row: RowId) -> Option<RowStatus> {
        let mut status = RowStatus::default();
        if self.rollups.sent.contains_key(&row) {
            status.accepted = Some(match &self.rollups.reception {
                Reception::None => return None,
                Reception::Accepted => {
                    Said::new(Holds::Yes, "Accepted", "the shard has taken it into account")
                }
                Reception::Held(why) => {
                    Said::new(Holds::No, "Held", format!("the shard holds the cluster's roll-up back: {why}"))
                }
                Reception::Refused(why) => {
                    Said::new(Holds::No, "Refused", format!("the shard refused the cluster's roll-up: {why}"))
                }
            });
        } else if self.demand.is_aside(row) {
            let why = "its pod runs on a node that is not the fleet's";
            status.accepted = Some(Said::new(Holds::Yes, "ServedElsewhere", why));
            return Some(status);
        } else {
            return None;
        }
        if self.has_verdicts
            && let Some(verdict) = self.verdict(row)
        {
            let ready = verdict.machines.iter().filter(|machine| self.picture.ready_node(machine).is_some());
            let is_large = self.demand.requests_of(row) > FEW;
            let most = if is_large { MOVED_FAR_NANOS } else { MOVED_NANOS };
            let shown = self.statuses.rows.get(&row).and_then(|state| state.expected);
            let expected = steady(shown, verdict.expected, most);
            status.joined = Some(joined(verdict, ready.count(), expected));
            status.covered = Some(covered(verdict, expected));
            self.statuses.rows.entry(row).or_default().expected = expected;
        }
        if let Some(extra) = self.reserves.extra(row, &self.demand) {
            status.reserved = quantities(&extra);
        }
        Some(status)
    }

    /// Says to pods that wait what their request says.
    fn tell_pods(&self, row: RowId, said: &Said) {
        let waiting = self.picture.stuck().filter_map(|(uid, _)| {
            let (of, _) = self.demand.find(self.request_of(uid)?)?;
            (of == row).then_some(uid)
        });
        for uid in waiting.take(MOST_TOLD) {
            if let Some(about) = self.pod_reference(uid) {
                let severity = if said.reason == "InFlight" { Severity::Normal } else { Severity::Warning };
                self.announce(about, severity, said.reason, said.message.clone());
            }
        }
    }

    /// Writes statuses that are not shown yet.
    pub(super) fn flush_statuses(&mut self, now: i64) -> i64 {
        if self.statuses.not_before > now {
            return self.statuses.not_before;
        }
        while let Some((_, name)) = self.statuses.conflicted.pop_front_if(|(at, _)| *at <= now) {
            self.statuses.look.insert(name);
        }
        while self.statuses.under_way.len() < MOST_UNDER_WAY
            && let Some(name) = self.statuses.look.pop_first()
        {
            if self.statuses.under_way.contains(&name) {
                // Looked at again when the answer is there.
                continue;
            }
            let Some(request) = self.requests.get(&name) else { continue };
            let refused = request.refused.as_ref().map(|why| {
                let said = Said::new(Holds::No, "Invalid", format!("left out of the roll-up: {why}"));
                RowStatus { accepted: Some(said), ..RowStatus::default() }
            });
            let mut own = Since::default();
            let (digest, status) = if let Some(status) = refused {
                (status.digest(), status.write(&mut own, &request.others, now))
            } else {
                let Some((row, _)) = self.demand.find(&name) else { continue };
                let Some(state) = self.statuses.rows.get_mut(&row).filter(|state| state.digest != 0) else {
                    continue;
                };
                (state.digest, state.status.write(&mut state.since, &request.others, now))
            };
            if request.written == digest || (request.refused.is_none() && !request.is_answered) {
                continue;
            }
            let acknowledged = request.acknowledged_unix_nanos;
            let at = (acknowledged != 0).then(|| json!(time(acknowledged)));
            self.statuses.under_way.insert(name.clone());
            let (hands, version) = (self.hands.clone(), request.version.clone());
            self.spawn(async move {
                let done = hands.write_status(&name, &version, status, at.as_ref()).await;
                News::Written { request: name.into(), digest, done }
            });
        }
        self.statuses.conflicted.front().map_or(i64::MAX, |(at, _)| *at)
    }

    /// A status was written, or not.
    pub(super) fn written(&mut self, name: &str, digest: u64, done: Result<String, Trouble>, now: i64) {
        self.statuses.under_way.remove(name);
        let Some(request) = self.requests.get_mut(name) else { return };
        match done {
            Ok(version) => {
                self.metrics.write("CapacityRequest", "ok");
                (request.written, request.version) = (digest, version.into());
            }
            Err(Trouble::Conflict) => {
                // What somebody else wrote is on its way to us, or will be by the time the others have been written.
                self.metrics.write("CapacityRequest", "conflict");
                self.statuses.conflicted.push_back((now.saturating_add(CONFLICT_NANOS), name.into()));
                return;
            }
            Err(Trouble::Gone) => {
                self.metrics.write("CapacityRequest", "gone");
                return;
            }
            Err(Trouble::Failed(why)) => {
                tracing::warn!(request = name, why, "a status could not be written; trying again");
                self.metrics.write("CapacityRequest", "failed");
                self.statuses.not_before = now.saturating_add(RETRY_NANOS);
            }
        }
        // It may have changed meanwhile.
        self.statuses.look_at(name);
    }
}
