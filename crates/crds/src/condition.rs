//! Conditions: what became of a request, in the form that `kubectl describe` and `kubectl wait` know.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing that is true, false or not known yet, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What is being said.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// One word for programs.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// Since when the status has been what it is.
    pub last_transition_time: Time,
    /// The generation of the object that this was said about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the status is expected to become true, if that can be said: in nine of ten cases by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_time: Option<Time>,
    /// When it is expected at the earliest: in nine of ten cases not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest_time: Option<Time>,
    /// The need that the request is part of, as `bigfleet explain need` takes it.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "needID")]
    pub need_id: Option<String>,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody can say.
    Unknown,
}

/// Puts a condition in the place of the one of its type. The time of the last transition stays if the status did.
///
/// Says whether anything has changed.
pub fn set_condition(conditions: &mut Vec<Condition>, mut new: Condition) -> bool {
    let Some(old) = conditions.iter_mut().find(|old| old.type_ == new.type_) else {
        conditions.push(new);
        return true;
    };
    if old.status == new.status {
        new.last_transition_time = old.last_transition_time.clone();
    }
    let changed = *old != new;
    *old = new;
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(status: ConditionStatus, message: &str, at: &str) -> Condition {
        Condition {
            type_: "Covered".into(),
            status,
            reason: "Test".into(),
            message: message.into(),
            last_transition_time: serde_json::from_value(at.into()).unwrap(),
            observed_generation: None,
            expected_time: None,
            earliest_time: None,
            need_id: Some("7".into()),
        }
    }

    #[test]
    fn the_time_of_transition_moves_with_the_status_alone() {
        let (one, two) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        let mut conditions = Vec::new();
        assert!(set_condition(&mut conditions, covered(ConditionStatus::False, "a", one)));
        assert!(!set_condition(&mut conditions, covered(ConditionStatus::False, "a", two)));
        assert!(set_condition(&mut conditions, covered(ConditionStatus::False, "b", two)));
        assert_eq!(conditions, [covered(ConditionStatus::False, "b", one)]);
        assert!(set_condition(&mut conditions, covered(ConditionStatus::True, "b", two)));
        assert_eq!(conditions, [covered(ConditionStatus::True, "b", two)]);
    }

    #[test]
    fn the_field_names_are_those_of_kubernetes() {
        let json = serde_json::to_value(covered(ConditionStatus::True, "a", "2026-01-01T00:00:00Z")).unwrap();
        assert_eq!(
            json,
            serde_json::json!({"type": "Covered", "status": "True", "reason": "Test", "message": "a",
                "lastTransitionTime": "2026-01-01T00:00:00Z", "needID": "7"})
        );
    }
}
