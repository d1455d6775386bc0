//! Penalties, from annotations of a pod or of its priority class.

use std::collections::BTreeMap;

use bigfleet_crds::{INTERRUPTION_PENALTY, Quantity as Text, RECLAMATION_PENALTY};
use bigfleet_model::quantity::Quantity;

/// Two penalties in dollars, as far as they were said and could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Penalties {
    /// What an interruption costs.
    pub interruption: Option<Text>,
    /// What it costs to give up the machine.
    pub reclamation: Option<Text>,
    /// Annotations that are no amount of dollars. They count as not there.
    pub bad: Vec<BadPenalty>,
}

/// An annotation that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPenalty {
    /// Which.
    pub annotation: &'static str,
    /// Why not. Text of the annotation in it is escaped and bounded.
    pub reason: String,
}

/// What a priority class says for the pods in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassDefaults {
    /// The penalties.
    pub penalties: Penalties,
}

impl Penalties {
    /// Reads the two annotations.
    pub fn read(annotations: Option<&BTreeMap<String, String>>) -> Self {
        let mut bad = Vec::new();
        let mut read = |annotation: &'static str| {
            let text = annotations?.get(annotation)?;
            match dollars(text) {
                Ok(amount) => Some(Text(amount.to_string())),
                Err(reason) => {
                    bad.push(BadPenalty { annotation, reason });
                    None
                }
            }
        };
        let (interruption, reclamation) = (read(INTERRUPTION_PENALTY), read(RECLAMATION_PENALTY));
        Self { interruption, reclamation, bad }
    }
}

fn dollars(text: &str) -> Result<Quantity, String> {
    let amount = Quantity::parse(text).map_err(|error| error.to_string())?;
    if amount.is_negative() {
        return Err(format!("quantity {amount} is negative; a penalty is zero dollars or more"));
    }
    Ok(amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_penalties_are_carried_and_bad_ones_are_named() {
        let read = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            Penalties::read(Some(&pairs.collect()))
        };
        let both = read(&[(INTERRUPTION_PENALTY, "2.50"), (RECLAMATION_PENALTY, "1k")]);
        assert_eq!((both.interruption, both.reclamation), (Some("2500m".into()), Some("1k".into())));
        let zero = read(&[(INTERRUPTION_PENALTY, "0")]);
        assert_eq!((zero.interruption, zero.reclamation, zero.bad.len()), (Some("0".into()), None, 0));
        for text in ["", "$5", "5 ", "-1", "five", "1e99", "NaN", "\u{1b}[31m", "٣"] {
            let bad = read(&[(INTERRUPTION_PENALTY, text), (RECLAMATION_PENALTY, "7")]);
            assert_eq!((bad.interruption, bad.reclamation), (None, Some("7".into())), "{text:?}");
            let [problem] = bad.bad.as_slice() else { panic!("{:?}", bad.bad) };
            assert_eq!(problem.annotation, INTERRUPTION_PENALTY);
            assert!(!problem.reason.contains('\u{1b}') && !problem.reason.is_empty(), "{}", problem.reason);
        }
        let long = read(&[(INTERRUPTION_PENALTY, &"x".repeat(200_000))]);
        assert!(long.bad[0].reason.len() < 400, "{}", long.bad[0].reason.len());
    }
}
