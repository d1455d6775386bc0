//! What a request's status says, and when it is worth writing.
//!
//! Requests of one row share their fate, so a status is made once per row and written to those that do not show it yet.

use std::collections::BTreeMap;
use std::hash::BuildHasher as _;

use bigfleet_crds::{CapacityRequestStatus, Condition, ConditionStatus, condition_type};
use bigfleet_kube_common::time;
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
        Self { holds, reason, message: message.into(), need_id: None }
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
                    expected_time: None,
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

/// What the shard's verdict means to a request.
pub(crate) fn covered(verdict: &v1::Verdict) -> Said {
    let id = verdict.key.as_ref().map(|key| key.id.clone());
    let machines = verdict.machines.len() + verdict.acquired as usize;
    let missing = || {
        let amounts = verdict.deficit.iter().map(|(name, amount)| format!("{amount} {name}"));
        amounts.collect::<Vec<_>>().join(", ")
    };
    let (holds, reason, message) = match (verdict.decided, verdict.satisfied, verdict.reason()) {
        (false, ..) => (Holds::Unknown, "NotDecided", "the shard has not decided about it yet".to_owned()),
        (true, true, _) => (
            Holds::Yes,
            "Covered",
            format!("{machines} {} for its need", plural(machines, "machine counts", "machines count")),
        ),
        (true, false, v1::Reason::InFlight) => {
            let draining = verdict.in_flight;
            (
                Holds::No,
                "InFlight",
                format!("what drains for its need ({draining}) will cover it: a matter of time"),
            )
        }
        (true, false, v1::Reason::NoMatchingSupply) => (
            Holds::No,
            "NoMatchingSupply",
            format!("its need misses {}; no machine that matches is to be had", missing()),
        ),
        (true, false, v1::Reason::TopologyUnsatisfiable) => (
            Holds::No,
            "TopologyUnsatisfiable",
            format!("its need misses {}; no single domain holds all of it", missing()),
        ),
        (true, false, v1::Reason::PreemptionExhausted) => (
            Holds::No,
            "PreemptionExhausted",
            format!(
                "its need misses {}; all machines of lower priority together would not be enough",
                missing()
            ),
        ),
        (true, false, v1::Reason::PriorityStarved) => (
            Holds::No,
            "PriorityStarved",
            format!("its need misses {}; what would do is held by needs that come first", missing()),
        ),
        (true, false, v1::Reason::Parked) => (
            Holds::No,
            "Parked",
            format!("its gang misses {} and is not looked for at the moment", missing()),
        ),
        (true, false, v1::Reason::Unspecified) => {
            (Holds::No, "Short", format!("its need misses {}", missing()))
        }
    };
    Said { holds, reason, message, need_id: id }
}

/// Whether all machines of a need are nodes that take pods.
pub(crate) fn joined(verdict: &v1::Verdict, ready: usize) -> Said {
    let all = verdict.machines.len() + verdict.acquired as usize;
    let id = verdict.key.as_ref().map(|key| key.id.clone());
    let (holds, reason, message) = if all == 0 {
        (Holds::No, "NoMachines", "no machine counts for its need".to_owned())
    } else if ready == all {
        (Holds::Yes, "Joined", format!("all of its need's machines ({all}) have joined and are ready"))
    } else {
        (
            Holds::No,
            "Joining",
            format!("{ready} of {all} {} joined", plural(all, "machine has", "machines have")),
        )
    };
    Said { holds, reason, message, need_id: id }
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
        let said = covered(&verdict(true, v1::Reason::Unspecified));
        assert_eq!(
            (said.holds, said.reason, &*said.message),
            (Holds::Yes, "Covered", "2 machines count for its need")
        );
        assert_eq!(said.need_id.as_deref(), Some("77aa88bb"));
        let said = covered(&verdict(false, v1::Reason::PriorityStarved));
        assert_eq!(&*said.message, "its need misses 4 cpu; what would do is held by needs that come first");
        let undecided = v1::Verdict { decided: false, ..verdict(false, v1::Reason::Unspecified) };
        assert_eq!(covered(&undecided).holds, Holds::Unknown);
        assert_eq!(
            &*joined(&verdict(true, v1::Reason::Unspecified), 1).message,
            "1 of 2 machines have joined"
        );
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
