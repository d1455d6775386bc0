//! Tolerations against the taints of machines.
//!
//! A request has no place for tolerations, and needs none: a toleration matters only where there is a taint. So the
//! administrator says which machines are tainted when they become nodes, by a label that these machines are listed with. A
//! pod that does not tolerate the taint asks for machines without the label; a pod that does may have either. That is
//! exactly what the scheduler will do later.

use std::str::FromStr;

use bigfleet_crds::Requirement;
use k8s_openapi::api::core::v1::{PodSpec, Toleration};
use thiserror::Error;

/// Machines with this label are nodes with this taint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineTaint {
    /// The label by which the machines are known.
    pub label: String,
    /// Its value; any, if absent.
    pub label_value: Option<String>,
    /// The taint's key.
    pub key: String,
    /// The taint's value.
    pub value: String,
    /// `NoSchedule` or `NoExecute`.
    pub effect: String,
}

/// Why a text does not say which machines are tainted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "not a machine taint; write KEY[=VALUE]:NoSchedule@LABEL[=VALUE], like dedicated=ml:NoSchedule@pool=ml"
)]
pub struct MachineTaintError;

impl FromStr for MachineTaint {
    type Err = MachineTaintError;

    /// Reads `dedicated=ml:NoSchedule@pool=ml`.
    fn from_str(text: &str) -> Result<Self, MachineTaintError> {
        let (taint, label) = text.split_once('@').ok_or(MachineTaintError)?;
        let (taint, effect) = taint.rsplit_once(':').ok_or(MachineTaintError)?;
        let (key, value) = taint.split_once('=').unwrap_or((taint, ""));
        let (label, label_value) = match label.split_once('=') {
            Some((label, value)) => (label, Some(value.to_owned())),
            None => (label, None),
        };
        if key.is_empty() || label.is_empty() || !matches!(effect, "NoSchedule" | "NoExecute") {
            return Err(MachineTaintError);
        }
        Ok(Self {
            label: label.into(),
            label_value,
            key: key.into(),
            value: value.into(),
            effect: effect.into(),
        })
    }
}

/// The requirements that keep a pod from machines whose taints it does not tolerate.
pub(super) fn avoided<'a>(
    spec: &'a PodSpec,
    taints: &'a [MachineTaint],
) -> impl Iterator<Item = Requirement> + use<'a> {
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    let avoided =
        taints.iter().filter(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)));
    avoided.map(|taint| match &taint.label_value {
        Some(value) => {
            Requirement { key: taint.label.clone(), operator: "NotIn".into(), values: vec![value.clone()] }
        }
        None => Requirement { key: taint.label.clone(), operator: "DoesNotExist".into(), values: Vec::new() },
    })
}

/// As the scheduler has it: an empty effect or key means any.
fn tolerates(toleration: &Toleration, taint: &MachineTaint) -> bool {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let effect_fits = given(&toleration.effect).is_none_or(|effect| effect == taint.effect);
    let exists = toleration.operator.as_deref() == Some("Exists");
    let key_fits = match given(&toleration.key) {
        Some(key) => key == taint.key,
        None => exists,
    };
    let equal = matches!(toleration.operator.as_deref(), None | Some("" | "Equal"));
    let value_fits = exists || (equal && toleration.value.as_deref().unwrap_or("") == taint.value);
    effect_fits && key_fits && value_fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_written_is_read_and_nothing_else() {
        let taint: MachineTaint = "dedicated=ml:NoSchedule@pool=ml".parse().unwrap();
        assert_eq!((taint.label.as_str(), taint.label_value.as_deref()), ("pool", Some("ml")));
        assert_eq!(
            (taint.key.as_str(), taint.value.as_str(), taint.effect.as_str()),
            ("dedicated", "ml", "NoSchedule")
        );
        let taint: MachineTaint = "example.com/gpu:NoExecute@gpu".parse().unwrap();
        assert_eq!((taint.value.as_str(), taint.label_value), ("", None));
        for bad in [
            "",
            "a",
            "a@b",
            "a:NoSchedule",
            ":NoSchedule@b",
            "a:Sometimes@b",
            "a:NoSchedule@",
            "a:NoSchedule@=x",
        ] {
            assert_eq!(bad.parse::<MachineTaint>(), Err(MachineTaintError), "{bad}");
        }
    }

    #[test]
    fn tolerations_are_judged_as_the_scheduler_does() {
        let taint: MachineTaint = "dedicated=ml:NoSchedule@pool=ml".parse().unwrap();
        for (json, tolerated) in [
            (r#"{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}"#, true),
            (r#"{"key": "dedicated", "operator": "Equal", "value": "ml"}"#, true),
            (r#"{"key": "dedicated", "operator": "Exists"}"#, true),
            (r#"{"operator": "Exists"}"#, true),
            (r#"{"operator": "Exists", "effect": "NoExecute"}"#, false),
            (r#"{"key": "dedicated", "value": "web"}"#, false),
            (r#"{"key": "dedicated"}"#, false),
            (r#"{"value": "ml"}"#, false),
            (r#"{"key": "dedicated", "operator": "Lt", "value": "ml"}"#, false),
        ] {
            let toleration: Toleration = serde_json::from_str(json).unwrap();
            assert_eq!(tolerates(&toleration, &taint), tolerated, "{json}");
        }
    }
}
