//! What a request's status says, and when it is worth writing.
//!
//! Requests of one row share their fate, so a status is made once per row and written to those that do not show it yet.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::BuildHasher as _;

use bigfleet_crds::{CapacityRequestStatus, Condition, ConditionStatus, condition_type};
use bigfleet_kube_common::time;
use bigfleet_proto::v1alpha1::CapacityNeed;
use bigfleet_tell::explain::need::{missing, why_short};
use bigfleet_tell::sentence::expected_at;
use bigfleet_tell::words::{amounts, count};
use bigfleet_view::v1;
use foldhash::quality::FixedState;
use serde_json::{Value, json};

/// The conditions that we write.
pub(crate) const OURS: [&str; 3] =
    [condition_type::ACCEPTED, condition_type::COVERED, condition_type::JOINED];

/// One condition, without times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) holds: Holds,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) need_id: Option<String>,
    /// When it is expected to hold.
    pub(crate) expected: Option<v1::Expected>,
}

/// Whether it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    Yes,
    No,
    Unknown,
}

impl Holds {
    fn status(self) -> ConditionStatus {
        match self {
            Self::Yes => ConditionStatus::True,
            Self::No => ConditionStatus::False,
            Self::Unknown => ConditionStatus::Unknown,
        }
    }
}

impl Said {
    pub(crate) fn new(holds: Holds, reason: &'static str, message: impl Into<String>) -> Self {
        Self { holds, reason, message: message.into(), need_id: None, expected: None }
    }
}

/// All that the requests of a row say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowStatus {
    pub(crate) accepted: Option<Said>,
    pub(crate) covered: Option<Said>,
    pub(crate) joined: Option<Said>,
    /// What the need asks for beyond the sum of its requests, because pods found no hole.
    pub(crate) reserved: BTreeMap<String, String>,
}

/// Since when each condition is what it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Since(BTreeMap<&'static str, (String, i64)>);

impl Since {
    /// What an object already shows. The earliest of several counts.
    pub(crate) fn learn(&mut self, type_: &'static str, status: &str, since: i64) {
        match self.0.get_mut(type_) {
            Some((known, at)) if known == status => *at = (*at).min(since),
            Some(_) => {}
            None => drop(self.0.insert(type_, (status.into(), since))),
        }
    }

    fn of(&mut self, type_: &'static str, status: ConditionStatus, now: i64) -> i64 {
        let text = format!("{status:?}");
        match self.0.get(type_) {
            Some((known, at)) if *known == text => *at,
            _ => {
                self.0.insert(type_, (text, now));
                now
            }
        }
    }
}

impl RowStatus {
    /// A number that changes when what it says does.
    pub(crate) fn digest(&self) -> u64 {
        let said = [&self.accepted, &self.covered, &self.joined].map(|said| {
            let said = said.as_ref()?;
            Some((said.holds.status(), said.reason, &*said.message, said.need_id.as_deref()))
        });
        let reserved = self.reserved.iter().map(|(name, amount)| (&**name, &**amount));
        digest(said, reserved)
    }

    /// The status to write: our conditions, and those of others as they are.
    pub(crate) fn write(&self, since: &mut Since, others: &[Condition], now: i64) -> Value {
        let all = OURS.into_iter().zip([&self.accepted, &self.covered, &self.joined]);
        let conditions: Vec<Condition> = all
            .filter_map(|(type_, said)| {
                let said = said.as_ref()?;
                let status = said.holds.status();
                Some(Condition {
                    type_: type_.into(),
                    status,
                    reason: said.reason.into(),
                    message: said.message.clone(),
                    last_transition_time: time(since.of(type_, status, now)),
                    observed_generation: None,
                    expected_time: said.expected.map(|expected| time(expected.to_unix_nanos)),
                    earliest_time: said.expected.map(|expected| time(expected.from_unix_nanos)),
                    need_id: said.need_id.clone(),
                })
            })
            .chain(others.iter().cloned())
            .collect();
        // Without a reserve the field goes.
        let reserved = (!self.reserved.is_empty()).then_some(&self.reserved);
        json!({ "conditions": conditions, "reserved": reserved })
    }
}

/// The digest of what an object shows, comparable with [`RowStatus::digest`].
pub(crate) fn shown(status: &CapacityRequestStatus) -> u64 {
    let said = OURS.map(|type_| {
        let one = status.conditions.iter().find(|condition| condition.type_ == type_)?;
        Some((one.status, &*one.reason, &*one.message, one.need_id.as_deref()))
    });
    digest(said, status.reserved.iter().map(|(name, amount)| (&**name, amount.as_str())))
}

type Words<'a> = Option<(ConditionStatus, &'a str, &'a str, Option<&'a str>)>;

fn digest<'a>(said: [Words<'a>; 3], reserved: impl Iterator<Item = (&'a str, &'a str)>) -> u64 {
    let said =
        said.map(|words| words.map(|(status, reason, message, id)| (status as u8, reason, message, id)));
    let reserved: Vec<(&str, &str)> = reserved.collect();
    FixedState::with_seed(0x0073_7461_7475_7331).hash_one((said, reserved))
}

/// What the shard's verdict means to a request, in the words of `bigfleet explain need`.
pub(crate) fn covered(verdict: &v1::Verdict, expected: Option<v1::Expected>) -> Said {
    let machines = verdict.machines.len() + verdict.acquired as usize;
    let need_id = verdict.key.as_ref().map(|key| key.id.clone());
    if !verdict.decided {
        let said = Said::new(Holds::Unknown, "NotDecided", "the shard has not decided about it yet");
        return Said { need_id, ..said };
    }
    if verdict.satisfied {
        let message = format!("its need is covered: {}", count(machines as u64, "machine"));
        return Said { need_id, ..Said::new(Holds::Yes, "Covered", message) };
    }
    let need = as_need(verdict);
    let why = why_short(&need, &CapacityNeed::default());
    let mut message = format!("its need {}", why.trim_end_matches('.'));
    if verdict.reason() == v1::Reason::InFlight {
        let when = expected.map(|expected| format!(", {}", expected_at(&expected)));
        message += &when.unwrap_or_default();
        return Said { need_id, expected, ..Said::new(Holds::No, "InFlight", message) };
    }
    // Writing to a string does not fail.
    let _ = write!(message, "; it misses {}", missing(&need));
    if !verdict.too_small.is_empty() {
        let sizes = verdict.too_small.iter().take(2).map(|size| amounts(&size.amounts));
        let sizes = sizes.collect::<Vec<_>>().join(" or ");
        let _ = write!(message, "; machines that match are too small for its largest pod: at most {sizes}");
    }
    let reason = match verdict.reason() {
        v1::Reason::NoMatchingSupply => "NoMatchingSupply",
        v1::Reason::TopologyUnsatisfiable => "TopologyUnsatisfiable",
        v1::Reason::PreemptionExhausted => "PreemptionExhausted",
        v1::Reason::PriorityStarved => "PriorityStarved",
        v1::Reason::Parked => "Parked",
        v1::Reason::Unspecified | v1::Reason::InFlight => "Short",
    };
    Said { need_id, ..Said::new(Holds::No, reason, message) }
}

/// A verdict in the form that sentences are made from.
fn as_need(verdict: &v1::Verdict) -> v1::Need {
    // A gang's name begins with what its machines must share.
    let group = verdict.key.as_ref().map(|key| &*key.group).unwrap_or_default();
    let domain_key = group.split('\0').next().unwrap_or_default();
    v1::Need {
        key: verdict.key.clone(),
        reason: verdict.reason,
        deficit: verdict.deficit.clone(),
        unresolved: verdict.deficit.clone(),
        in_flight: verdict.in_flight,
        domain_key: domain_key.into(),
        ..v1::Need::default()
    }
}

/// Whether all machines of a need are nodes that take pods.
pub(crate) fn joined(verdict: &v1::Verdict, ready: usize, expected: Option<v1::Expected>) -> Said {
    let all = verdict.machines.len() + verdict.acquired as usize;
    let need_id = verdict.key.as_ref().map(|key| key.id.clone());
    let said = if all == 0 {
        Said::new(Holds::No, "NoMachines", "no machine counts for its need")
    } else if ready == all {
        let message = format!("all of its need's machines ({all}) have joined and are ready");
        Said::new(Holds::Yes, "Joined", message)
    } else {
        let last = expected.map(|expected| format!(", the last {}", expected_at(&expected)));
        let have = plural(all, "machine has", "machines have");
        let message = format!("{ready} of {all} {have} joined{}", last.unwrap_or_default());
        Said { expected, ..Said::new(Holds::No, "Joining", message) }
    };
    Said { need_id, ..said }
}

/// What to show of an expectation: what was shown, unless it has moved by more than this. Each machine that comes moves it
/// a little, and nobody wants to read that.
pub(crate) fn steady(
    shown: Option<v1::Expected>,
    now: Option<v1::Expected>,
    most_nanos: i64,
) -> Option<v1::Expected> {
    let (Some(shown), Some(new)) = (shown, now) else { return now };
    let moved = |a: i64, b: i64| a.abs_diff(b) > most_nanos.unsigned_abs();
    let has_moved =
        moved(shown.from_unix_nanos, new.from_unix_nanos) || moved(shown.to_unix_nanos, new.to_unix_nanos);
    if has_moved { now } else { Some(shown) }
}

fn plural(count: usize, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(satisfied: bool, reason: v1::Reason) -> v1::Verdict {
        v1::Verdict {
            key: Some(v1::NeedRef { id: "77aa88bb".into(), ..v1::NeedRef::default() }),
            decided: true,
            satisfied,
            reason: reason.into(),
            deficit: [("cpu".to_owned(), "4".to_owned())].into(),
            machines: vec!["m1".into(), "m2".into()],
            ..v1::Verdict::default()
        }
    }

    #[test]
    fn verdicts_become_sentences() {
        let covered = |verdict| covered(&verdict, None);
        let said = covered(verdict(true, v1::Reason::Unspecified));
        assert_eq!(
            (said.holds, said.reason, &*said.message),
            (Holds::Yes, "Covered", "its need is covered: 2 machines")
        );
        assert_eq!(said.need_id.as_deref(), Some("77aa88bb"));
        let said = covered(verdict(false, v1::Reason::PriorityStarved));
        assert_eq!(
            &*said.message,
            "its need is short: what it could use is held by needs of equal or higher priority; it misses 4 cpu"
        );
        let undecided = v1::Verdict { decided: false, ..verdict(false, v1::Reason::Unspecified) };
        assert_eq!(covered(undecided).holds, Holds::Unknown);
        let sizes = vec![v1::Amounts { amounts: [("cpu".to_owned(), "64".to_owned())].into() }];
        let large = v1::Verdict { too_small: sizes, ..verdict(false, v1::Reason::NoMatchingSupply) };
        assert_eq!(
            &*covered(large).message,
            "its need is short: no machine there is, whoever holds it, meets what it asks for; it misses 4 cpu; \
             machines that match are too small for its largest pod: at most 64 cpu"
        );
        assert_eq!(
            &*joined(&verdict(true, v1::Reason::Unspecified), 1, None).message,
            "1 of 2 machines have joined"
        );
    }

    fn expected(from_secs: i64, to_secs: i64) -> v1::Expected {
        let at = |secs: i64| (1_800_000_000 + secs) * 1_000_000_000;
        v1::Expected { from_unix_nanos: at(from_secs), to_unix_nanos: at(to_secs), samples: 7 }
    }

    #[test]
    fn what_is_on_its_way_says_when_it_is_expected() {
        let said = joined(&verdict(true, v1::Reason::Unspecified), 1, Some(expected(20, 65)));
        assert_eq!(
            &*said.message,
            "1 of 2 machines have joined, the last expected 08:00:20 to 08:01:05 UTC (7 seen)"
        );
        let status = RowStatus { joined: Some(said), ..RowStatus::default() };
        let written = status.write(&mut Since::default(), &[], 0);
        let condition = &written["conditions"][0];
        assert_eq!(condition["earliestTime"], "2027-01-15T08:00:20Z");
        assert_eq!(condition["expectedTime"], "2027-01-15T08:01:05Z");
        let draining = v1::Verdict { in_flight: 1, ..verdict(false, v1::Reason::InFlight) };
        let said = covered(&draining, Some(expected(20, 65)));
        assert_eq!(
            &*said.message,
            "its need is waiting: 1 machine on the way to it will cover the rest, \
             expected 08:00:20 to 08:01:05 UTC (7 seen)"
        );
        let there = joined(&verdict(true, v1::Reason::Unspecified), 2, Some(expected(20, 65)));
        assert_eq!((there.holds, there.expected), (Holds::Yes, None), "what is there is not expected");
    }

    #[test]
    fn an_expectation_that_moves_a_little_is_shown_as_it_was() {
        let (shown, little, much) = (expected(20, 60), expected(22, 65), expected(20, 75));
        let most = 10_000_000_000;
        assert_eq!(steady(Some(shown), Some(little), most), Some(shown));
        assert_eq!(steady(Some(shown), Some(much), most), Some(much));
        assert_eq!(steady(Some(shown), None, most), None);
        assert_eq!(steady(None, Some(little), most), Some(little));
    }

    #[test]
    fn what_an_object_shows_is_known_again_after_a_restart() {
        let status = RowStatus {
            covered: Some(Said {
                need_id: Some("7".into()),
                ..Said::new(Holds::No, "Short", "its need misses 2 cpu")
            }),
            reserved: BTreeMap::from([("cpu".into(), "1500m".into())]),
            ..RowStatus::default()
        };
        let other = serde_json::json!([{"type": "Carried", "status": "False", "reason": "Crowded", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let others: Vec<Condition> = serde_json::from_value(other).unwrap();
        let mut written = status.write(&mut Since::default(), &others, 5_000_000_000);
        written["phase"] = "Acknowledged".into();
        let read: CapacityRequestStatus = serde_json::from_value(written).unwrap();
        assert_eq!(shown(&read), status.digest());
        assert_eq!(read.conditions.len(), 2, "the other's stays");
        assert_ne!(shown(&read), RowStatus { reserved: BTreeMap::new(), ..status }.digest());
    }

    #[test]
    fn times_move_with_the_status_alone_and_survive_a_restart() {
        let mut since = Since::default();
        since.learn(condition_type::COVERED, "True", 7_000_000_000);
        since.learn(condition_type::COVERED, "True", 5_000_000_000);
        let status = |holds| RowStatus { covered: Some(Said::new(holds, "R", "m")), ..RowStatus::default() };
        let at = |value: &Value| value["conditions"][0]["lastTransitionTime"].as_str().unwrap().to_owned();
        assert_eq!(at(&status(Holds::Yes).write(&mut since, &[], 9_000_000_000)), "1970-01-01T00:00:05Z");
        assert_eq!(at(&status(Holds::No).write(&mut since, &[], 9_000_000_000)), "1970-01-01T00:00:09Z");
        assert_eq!(at(&status(Holds::No).write(&mut since, &[], 10_000_000_000)), "1970-01-01T00:00:09Z");
        assert_ne!(status(Holds::Yes).digest(), status(Holds::No).digest());
    }
}
