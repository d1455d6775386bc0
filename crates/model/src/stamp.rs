//! Assignment stamps: what a machine was bound for, written on the machine itself.
//!
//! The stamp travels to the provider as opaque metadata and comes back in every listing. So a shard that
//! lost its memory still knows what each bound machine is worth and to whom. Each key is read alone: one
//! that is missing, unknown or damaged says nothing about the others.
//!
//! ```
//! use bigfleet_model::stamp::{Assignment, PRIORITY_KEY, RECLAMATION_KEY};
//!
//! let mut assigned = Assignment::default();
//! let problems = assigned.decode([(PRIORITY_KEY, "many"), (RECLAMATION_KEY, "+Inf"), ("rack", "7")]);
//! assert_eq!((assigned.priority, assigned.reclamation_penalty_usd), (0, f64::INFINITY));
//! assert_eq!(problems.len(), 1);
//! assert!(problems[0].to_string().contains(r#"is "many", which is not a 32-bit number"#));
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

use crate::cost::canonical;
use crate::text::Quoted;

/// The priority a machine was bound at.
pub const PRIORITY_KEY: &str = "bigfleet.lucy.sh/assigned-priority";
/// What interrupting its workload costs, in dollars.
pub const INTERRUPTION_KEY: &str = "bigfleet.lucy.sh/assigned-interruption-penalty-dollars";
/// What losing this machine costs its workload, in dollars.
pub const RECLAMATION_KEY: &str = "bigfleet.lucy.sh/assigned-reclamation-penalty-dollars";
/// The fingerprint of the need it was bound for.
pub const FINGERPRINT_KEY: &str = "bigfleet.lucy.sh/assigned-need-fingerprint";
/// The gang it was bound for.
pub const GROUP_KEY: &str = "bigfleet.lucy.sh/assigned-group";

/// What a machine was bound for. The default is a machine bound for nothing in particular.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Assignment {
    /// The cluster it was bound for; also set on our own machines while they are being created.
    pub cluster: Arc<str>,
    /// The priority of the need.
    pub priority: i32,
    /// What interrupting the workload costs, in dollars; may be infinite.
    pub interruption_penalty_usd: f64,
    /// What losing this machine costs, in dollars; may be infinite.
    pub reclamation_penalty_usd: f64,
    /// The fingerprint of the need; empty when unknown.
    pub fingerprint: Arc<str>,
    /// The gang; empty for none.
    pub group: Arc<str>,
}

/// A stamp that could not be read and was left out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("machine metadata {key} is {}, which is not {expected}; the stamp is ignored", Quoted(.value))]
pub struct StampProblem {
    /// Which key.
    pub key: &'static str,
    /// What it held.
    pub value: String,
    /// What it should have held.
    pub expected: &'static str,
}

impl Assignment {
    /// The stamp as metadata. The cluster is not among it: the provider keeps that in a field of its own.
    pub fn encode(&self) -> BTreeMap<String, String> {
        let mut metadata = BTreeMap::new();
        metadata.insert(PRIORITY_KEY.into(), self.priority.to_string());
        metadata.insert(INTERRUPTION_KEY.into(), dollars_text(self.interruption_penalty_usd));
        metadata.insert(RECLAMATION_KEY.into(), dollars_text(self.reclamation_penalty_usd));
        metadata.insert(FINGERPRINT_KEY.into(), self.fingerprint.to_string());
        if !self.group.is_empty() {
            metadata.insert(GROUP_KEY.into(), self.group.to_string());
        }
        metadata
    }

    /// Reads metadata over this assignment: absent keys leave their field alone, unknown keys are ignored,
    /// malformed values are skipped and reported.
    pub fn decode<'a>(
        &mut self,
        metadata: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Vec<StampProblem> {
        let mut problems = Vec::new();
        for (key, value) in metadata {
            let read = match key {
                PRIORITY_KEY => {
                    value.parse().map(|v| self.priority = v).map_err(|_| (PRIORITY_KEY, "a 32-bit number"))
                }
                INTERRUPTION_KEY => {
                    read_dollars(value, &mut self.interruption_penalty_usd).ok_or((INTERRUPTION_KEY, DOLLARS))
                }
                RECLAMATION_KEY => {
                    read_dollars(value, &mut self.reclamation_penalty_usd).ok_or((RECLAMATION_KEY, DOLLARS))
                }
                FINGERPRINT_KEY => {
                    self.fingerprint = value.into();
                    Ok(())
                }
                GROUP_KEY => {
                    self.group = value.into();
                    Ok(())
                }
                _ => Ok(()),
            };
            if let Err((key, expected)) = read {
                problems.push(StampProblem { key, value: value.to_string(), expected });
            }
        }
        problems
    }
}

const DOLLARS: &str = "an amount of dollars";

/// The shortest text that reads back as the same number; infinity as other implementations print it.
fn dollars_text(dollars: f64) -> String {
    if dollars == f64::INFINITY { "+Inf".into() } else { format!("{dollars}") }
}

/// Any decimal spelling, or infinity. A number too large for 64 bits reads as infinite, which is the safe side.
fn read_dollars(text: &str, field: &mut f64) -> Option<()> {
    let dollars: f64 = text.parse().ok()?;
    if dollars.is_nan() || dollars < 0.0 {
        return None;
    }
    *field = canonical(dollars);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(key: &str, value: &str) -> (Assignment, Vec<StampProblem>) {
        let mut assigned = Assignment::default();
        let problems = assigned.decode([(key, value)]);
        (assigned, problems)
    }

    #[test]
    fn the_stamp_is_written_in_this_form() {
        let assigned = Assignment {
            cluster: "shop".into(),
            priority: -5,
            interruption_penalty_usd: 0.5,
            reclamation_penalty_usd: f64::INFINITY,
            fingerprint: "p=-5|…".into(),
            group: "gang\u{0}7".into(),
        };
        let written: Vec<(String, String)> = assigned.encode().into_iter().collect();
        let expected = [
            ("bigfleet.lucy.sh/assigned-group", "gang\u{0}7"),
            ("bigfleet.lucy.sh/assigned-interruption-penalty-dollars", "0.5"),
            ("bigfleet.lucy.sh/assigned-need-fingerprint", "p=-5|…"),
            ("bigfleet.lucy.sh/assigned-priority", "-5"),
            ("bigfleet.lucy.sh/assigned-reclamation-penalty-dollars", "+Inf"),
        ];
        assert_eq!(written, expected.map(|(key, value)| (key.to_string(), value.to_string())));
        assert!(!Assignment::default().encode().contains_key(GROUP_KEY), "no gang, no key");
    }

    #[test]
    fn priorities_are_32_bit_numbers() {
        for (text, priority) in
            [("0", 0), ("-5", -5), ("+7", 7), ("007", 7), ("2147483647", i32::MAX), ("-2147483648", i32::MIN)]
        {
            let (assigned, problems) = decoded(PRIORITY_KEY, text);
            assert_eq!(
                (assigned, problems),
                (Assignment { priority, ..Assignment::default() }, vec![]),
                "{text}"
            );
        }
        for text in ["", " 1", "1 ", "1.0", "1e3", "0x1", "2147483648", "-2147483649", "one", "\u{0}"] {
            let problem = StampProblem { key: PRIORITY_KEY, value: text.into(), expected: "a 32-bit number" };
            assert_eq!(decoded(PRIORITY_KEY, text), (Assignment::default(), vec![problem]), "{text:?}");
        }
    }

    #[test]
    fn dollars_are_decimal_or_infinite() {
        for (text, dollars) in [
            ("0", 0.0),
            ("-0", 0.0),
            ("0.5", 0.5),
            (".5", 0.5),
            ("8388608", 8_388_608.0),
            ("8.388608e+06", 8_388_608.0),
            ("1e-3", 0.001),
            ("1E3", 1_000.0),
            ("+2", 2.0),
            ("+Inf", f64::INFINITY),
            ("Inf", f64::INFINITY),
            ("inf", f64::INFINITY),
            ("+inf", f64::INFINITY),
            ("infinity", f64::INFINITY),
            ("1e400", f64::INFINITY),
        ] {
            let (assigned, problems) = decoded(INTERRUPTION_KEY, text);
            assert_eq!((assigned.interruption_penalty_usd, problems), (dollars, vec![]), "{text}");
            let (assigned, problems) = decoded(RECLAMATION_KEY, text);
            assert_eq!((assigned.reclamation_penalty_usd, problems), (dollars, vec![]), "{text}");
        }
        for text in
            ["", " 1", "1 ", "$1", "1,5", "-1", "-Inf", "-1e-300", "NaN", "nan", "1e", "0x10", "1_000"]
        {
            for key in [INTERRUPTION_KEY, RECLAMATION_KEY] {
                let problem = StampProblem { key, value: text.into(), expected: DOLLARS };
                assert_eq!(decoded(key, text), (Assignment::default(), vec![problem]), "{text:?}");
            }
        }
    }

    #[test]
    fn any_text_is_a_fingerprint_and_a_group() {
        for text in ["", "plain", "a\u{0}b", "|;:,", "\u{1b}"] {
            let (assigned, problems) = decoded(FINGERPRINT_KEY, text);
            assert_eq!((&*assigned.fingerprint, problems.len()), (text, 0));
            let (assigned, problems) = decoded(GROUP_KEY, text);
            assert_eq!((&*assigned.group, problems.len()), (text, 0));
        }
    }

    #[test]
    fn a_problem_says_what_was_found_and_what_happens() {
        let (_, problems) = decoded(PRIORITY_KEY, "high");
        assert_eq!(
            problems[0].to_string(),
            "machine metadata bigfleet.lucy.sh/assigned-priority is \"high\", which is not a 32-bit number; \
             the stamp is ignored"
        );
    }
}
