//! What a run found out, and the three ways to write it down.

use std::time::Duration;

use crate::behaviour::{Behaviour, Group, Level};
use crate::latency::Latency;
use crate::verdict::Failure;

mod human;
mod json;
mod junit;

pub use human::{human, list};
pub use json::json;
pub use junit::junit;

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The behaviour was seen.
    Passed,
    /// Something else was seen.
    Failed(Failure),
    /// It could not be tried, for this reason. Never counts as passed.
    Skipped(String),
}

impl Outcome {
    /// One word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
        }
    }
}

/// One behaviour and how its check ended.
#[derive(Clone, Debug)]
pub struct CheckResult {
    /// Which.
    pub behaviour: Behaviour,
    /// How it ended.
    pub outcome: Outcome,
    /// How long the check took.
    pub took: Duration,
    /// What else there is to say.
    pub notes: Vec<String>,
    /// What was measured on the way.
    pub latencies: Vec<Latency>,
}

/// Everything a run found out, in the order of the catalogue.
#[derive(Clone, Debug)]
pub struct Report {
    /// Who was examined.
    pub address: String,
    /// What decided the random choices.
    pub seed: u64,
    /// How long it took.
    pub took: Duration,
    /// One result per selected behaviour.
    pub results: Vec<CheckResult>,
}

/// Whether skipped checks are held against the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skips {
    /// They are reported and forgiven.
    Allowed,
    /// They count like failures.
    Refused,
}

impl Report {
    /// How many ended this way: `passed`, `failed` or `skipped`.
    pub fn count(&self, outcome: &str) -> usize {
        self.results.iter().filter(|result| result.outcome.name() == outcome).count()
    }

    /// The ids of the behaviours that are missing.
    pub fn failed_ids(&self) -> Vec<&'static str> {
        let failed = self.results.iter().filter(|result| matches!(result.outcome, Outcome::Failed(_)));
        failed.map(|result| result.behaviour.id).collect()
    }

    /// What a program that runs the suite should end with: 1 if a behaviour that every provider must show is missing, else
    /// 0. What is optional is reported and decides nothing.
    pub fn exit_code(&self, skips: Skips) -> u8 {
        let is_bad = |result: &CheckResult| match result.outcome {
            Outcome::Passed => false,
            Outcome::Failed(_) => true,
            Outcome::Skipped(_) => skips == Skips::Refused,
        };
        let mut core = self.results.iter().filter(|result| result.behaviour.level == Level::Core);
        u8::from(core.any(is_bad))
    }

    fn of(&self, group: Group) -> impl Iterator<Item = &CheckResult> {
        self.results.iter().filter(move |result| result.behaviour.group == group)
    }
}

/// Text that any terminal and any XML reader can take: control characters are written as escapes.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() && character != '\n' || matches!(character, '\u{fffe}' | '\u{ffff}') {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::catalogue::catalogue;

    /// One result of each kind.
    pub(crate) fn sample() -> Report {
        let failure = Failure {
            expected: "Create(\"m\u{0}\", no token) is accepted".into(),
            got: "INTERNAL: <bang> & \u{1b}[31m".into(),
            calls: vec!["Get(\"m\") -> OK".into()],
            reproduce: "bigfleet conform h:1 --only LIFE-002 --seed 7".into(),
        };
        let outcomes =
            [Outcome::Passed, Outcome::Failed(failure), Outcome::Skipped("no \"machines\"".into())];
        let results = catalogue().iter().zip(outcomes).map(|(behaviour, outcome)| CheckResult {
            behaviour: *behaviour,
            outcome,
            took: Duration::from_millis(1500),
            notes: vec!["3 cycles".into()],
            latencies: Latency::of("Create", &[Duration::from_millis(2)]).into_iter().collect(),
        });
        Report { address: "h:1".into(), seed: 7, took: Duration::from_secs(2), results: results.collect() }
    }

    #[test]
    fn the_exit_code_forgives_skips_only_if_told_so() {
        let mut report = sample();
        report.results.iter_mut().for_each(|result| result.behaviour.level = Level::Core);
        assert_eq!(report.exit_code(Skips::Allowed), 1);
        report.results.remove(1);
        assert_eq!(report.exit_code(Skips::Allowed), 0);
        assert_eq!(report.exit_code(Skips::Refused), 1);
        report.results.remove(1);
        assert_eq!(report.exit_code(Skips::Refused), 0);
    }

    #[test]
    fn what_is_optional_never_fails_a_run() {
        let mut report = sample();
        report.results.iter_mut().for_each(|result| result.behaviour.level = Level::Optional);
        assert_eq!((report.count("failed"), report.exit_code(Skips::Refused)), (1, 0));
        report.results[1].behaviour.level = Level::Core;
        assert_eq!(report.exit_code(Skips::Allowed), 1);
    }
}
