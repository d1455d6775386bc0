//! The roll-up: the whole demand, every interval and soon after it changed, one under way at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use bigfleet_model::resource::ResourceVec;
use bigfleet_net::nanos;
use bigfleet_operator::demand::RowId;
use bigfleet_proto::convert::demand::Rollup;
use bigfleet_proto::v1alpha1::ClusterCapacityNeeds;
use bigfleet_proto::v1alpha1::operator_message::Payload as Saying;
use tokio::sync::mpsc;

use super::Desk;

/// How long to wait when the link has no room.
const NO_ROOM_NANOS: i64 = 200_000_000;

/// Where roll-ups stand.
#[derive(Debug, Default)]
pub(super) struct Rollups {
    /// Something changed, and is told then.
    soon: Option<i64>,
    last_sent: i64,
    /// Sent and not answered.
    under_way: bool,
    told_revision: u64,
    /// What each row asked for in the last one sent.
    pub(super) sent: BTreeMap<RowId, ResourceVec>,
    pub(super) reception: Reception,
    /// Answers on this session so far: the first says that the shard has told of all machines before it.
    pub(super) answers: u64,
}

/// What the shard said about the last roll-up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Reception {
    /// Nothing yet.
    #[default]
    None,
    Accepted,
    /// It does not count yet, and why.
    Held(String),
    /// It was not taken, and why.
    Refused(String),
}

impl Rollups {
    pub(super) fn begin_session(&mut self, now: i64) {
        (self.soon, self.under_way, self.answers) = (Some(now), false, 0);
    }

    pub(super) fn end_session(&mut self) {
        self.under_way = false;
    }

    /// The demand may say something new.
    pub(super) fn demand_changed(&mut self, revision: u64, now: i64, debounce: Duration) {
        if revision != self.told_revision && self.soon.is_none() {
            self.soon = Some(now.saturating_add(nanos(debounce)));
        }
    }

    /// Something else that belongs into the roll-up changed.
    pub(super) fn soon(&mut self, now: i64) {
        self.soon = Some(self.soon.map_or(now, |at| at.min(now)));
    }
}

impl Desk {
    /// Sends a roll-up if one is due. When the next is.
    pub(super) fn send_rollup(&mut self, now: i64) -> i64 {
        let Some(link) = self.link.clone() else { return i64::MAX };
        let regular = self.rollups.last_sent.saturating_add(nanos(self.settings.interval));
        let due = match self.rollups.soon {
            Some(soon) if !self.rollups.under_way => soon.min(regular),
            _ => regular,
        };
        if due > now {
            return due;
        }
        let place = match link.try_reserve() {
            Ok(place) => place,
            Err(mpsc::error::TrySendError::Full(()) | mpsc::error::TrySendError::Closed(())) => {
                return now + NO_ROOM_NANOS;
            }
        };
        let begun = self.clock.now_unix_nanos();
        let rows: BTreeMap<RowId, Option<ResourceVec>> =
            self.demand.rows().map(|row| (row, self.reserves.extra(row, &self.demand))).collect();
        let mut asked = Vec::with_capacity(rows.len());
        let needs = self.demand.rollup(|row| {
            asked.push(row);
            rows.get(&row).cloned().flatten()
        });
        self.rollups.sent = asked.into_iter().zip(needs.iter().map(|need| need.aggregate.clone())).collect();
        let count = needs.len();
        let rollup = Rollup { cluster: self.settings.cluster.as_str().into(), taken_unix_nanos: now, needs };
        place.send(Saying::Rollup(ClusterCapacityNeeds::from(&rollup)));
        self.metrics.rollup_built(self.clock.now_unix_nanos() - begun);
        self.metrics.rollup("sent");
        let state = &mut self.rollups;
        (state.soon, state.under_way, state.last_sent) = (None, true, now);
        state.told_revision = self.demand.revision();
        let mut refused = 0;
        for request in self.requests.values_mut() {
            if request.refused.is_some() {
                refused += 1;
            } else if request.acknowledged_unix_nanos == 0 {
                request.acknowledged_unix_nanos = now;
            }
        }
        let aside = self.demand.aside();
        self.metrics.demand(self.requests.len() - refused - aside, refused, aside, count);
        now.saturating_add(nanos(self.settings.interval))
    }

    /// The shard answered.
    pub(super) fn acknowledged(&mut self, echo: &str, now: i64) {
        let reception = match echo {
            "rollup" => Reception::Accepted,
            _ if echo.starts_with("rollup held") => Reception::Held(reason(echo)),
            _ if echo.starts_with("rollup refused") => Reception::Refused(reason(echo)),
            _ => return,
        };
        self.rollups.under_way = false;
        self.metrics.rollup(match reception {
            Reception::Accepted | Reception::None => "acknowledged",
            Reception::Held(_) => "held",
            Reception::Refused(_) => "refused",
        });
        if let Reception::Held(why) | Reception::Refused(why) = &reception
            && self.rollups.reception != reception
        {
            tracing::warn!(why, "the shard did not take the roll-up into account");
        }
        self.rollups.answers += 1;
        if self.rollups.answers == 1 {
            self.metrics.set_ready();
            self.all_machines_told(now);
        }
        self.rollups.reception = reception;
        for (name, request) in &mut self.requests {
            if !request.is_answered && request.acknowledged_unix_nanos != 0 {
                request.is_answered = true;
                self.statuses.look_at(name);
            }
        }
        self.statuses.renew_soon(now);
    }
}

/// What stands behind the first words: they may count reports, which people need not hear about one by one.
fn reason(echo: &str) -> String {
    let why = echo.split_once(": ").map_or("", |(_, why)| why);
    why[..why.floor_char_boundary(512)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_what_stands_behind_the_count() {
        assert_eq!(reason("rollup held 1 of 3: it erases 90 % of the rows"), "it erases 90 % of the rows");
        assert_eq!(reason("rollup refused: row 3: cpu"), "row 3: cpu");
        assert_eq!(reason("rollup held"), "");
    }

    #[test]
    fn changes_are_gathered_and_never_put_off() {
        let mut rollups = Rollups::default();
        rollups.demand_changed(1, 100, Duration::from_nanos(50));
        rollups.demand_changed(2, 140, Duration::from_nanos(50));
        assert_eq!(rollups.soon, Some(150), "from the first change");
        rollups.soon(120);
        assert_eq!(rollups.soon, Some(120));
        rollups.told_revision = 2;
        rollups.soon = None;
        rollups.demand_changed(2, 200, Duration::from_nanos(50));
        assert_eq!(rollups.soon, None, "nothing new");
    }
}
