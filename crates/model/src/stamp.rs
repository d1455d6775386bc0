//! Assignment stamps: what a machine was bound for, written on the machine itself.
//!
//! The stamp travels to the provider as opaque metadata and comes back in every listing. So a shard that
//! lost its memory still knows what each bound machine is worth and to whom. Each key is read alone: one
//! that is missing, unknown or damaged says nothing about the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

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

fn read_dollars(text: &str, field: &mut f64) -> Option<()> {
    let dollars: f64 = text.parse().ok()?;
    if dollars.is_nan() || dollars < 0.0 {
        return None;
    }
    *field = dollars;
    Some(())
}
