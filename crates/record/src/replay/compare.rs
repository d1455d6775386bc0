//! Then and now: what a tape says was decided, against what the engine decides from the same input.
//!
//! Under the same edition of the rules any difference is a bug, in the engine or on the disk, and the first one ends the
//! comparison: whatever follows may only follow from it. Under another edition differences are what one wants to see,
//! so they are all counted and the first of them listed.

use std::fmt::Write as _;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bigfleet_engine::{Decision, EDITION, Options};
use bigfleet_model::text::Quoted;

use super::Replay;
use crate::recorded::{Decided, Recorded};
use crate::tape::TapeError;

/// How many differences between two editions are listed. All are counted.
const MOST_LISTED: usize = 1000;

/// What came of a replay.
#[derive(Clone, Debug, Default)]
pub struct ReplayReport {
    /// Cycles that were decided again and compared, whatever came of it.
    pub cycles: u64,
    /// Actions among them.
    pub actions: u64,
    /// Records no full state leads to, because it is lost: not compared.
    pub unanchored: u64,
    /// What could not be read.
    pub lost: Vec<TapeError>,
    /// The first place where recorded and replayed decisions of the same edition differ: a failure.
    pub first_difference: Option<Difference>,
    /// What came of cycles that were decided under other editions of the rules.
    pub other_rules: OtherRules,
}

/// Cycles that were decided under other editions of the rules than this build's.
#[derive(Clone, Debug, Default)]
pub struct OtherRules {
    /// Those editions.
    pub editions: BTreeSet<u32>,
    /// How many cycles.
    pub cycles: u64,
    /// How many of them are decided differently now.
    pub differing_cycles: u64,
    /// How many differences there are in them.
    pub differences_in_all: u64,
    /// The first of them.
    pub differences: Vec<Difference>,
}

/// Where a replay and its tape part.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Which cycle.
    pub cycle: u64,
    /// When it ran.
    pub now_unix_nanos: i64,
    /// The edition it was decided under.
    pub edition: u32,
    /// What differs.
    pub what: What,
}

/// What differs between a tape and its replay.
#[derive(Clone, Debug)]
pub enum What {
    /// An action; absent where one side does not have it.
    Action {
        /// Its place among the actions of the cycle, as recorded if it was recorded.
        index: usize,
        /// As recorded.
        recorded: Option<Box<Decided>>,
        /// As replayed.
        replayed: Option<Box<Decided>>,
    },
    /// The actions that are listed agree, but not all of those that are not.
    Unlisted {
        /// How many there were.
        recorded: u32,
        /// How many there are.
        replayed: u32,
    },
    /// The engine does not take an input it took then.
    Refused(String),
}

/// An action in a few words.
fn show(side: Option<&Decided>, with_need: bool) -> String {
    let Some(decided) = side else { return "nothing".into() };
    let mut text = format!("{} {}", decided.kind, Quoted(&decided.machine));
    if let Some(cluster) = &decided.cluster {
        let _ = write!(text, " of {}", Quoted(cluster));
    }
    if let Some(need) = decided.need.as_ref().filter(|_| with_need) {
        let _ = write!(text, " for {} {}", Quoted(&need.key.fingerprint), Quoted(&need.key.group));
    }
    if let Some(grace) = decided.grace_secs.filter(|_| with_need) {
        let _ = write!(text, " within {grace} s");
    }
    text
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cycle = self.cycle;
        match &self.what {
            What::Action { index, recorded, replayed } => {
                let sides = |with_need| [recorded, replayed].map(|side| show(side.as_deref(), with_need));
                let [mut then, mut now] = sides(false);
                if then == now {
                    [then, now] = sides(true);
                }
                write!(f, "cycle {cycle}: action {index} was {then} and is {now} when replayed")?;
            }
            What::Unlisted { recorded, replayed } => write!(
                f,
                "cycle {cycle}: of {recorded} actions, now {replayed}, some that are not listed differ when replayed"
            )?,
            What::Refused(reason) => {
                write!(f, "cycle {cycle}: the engine refuses an input it took then: {reason}")?;
            }
        }
        if self.edition != EDITION {
            write!(f, ", by edition {} of the rules then and edition {EDITION} now", self.edition)?;
        }
        Ok(())
    }
}

/// Decides every cycle again under changed options and lists what comes out differently, as between two editions.
pub fn replay_with(
    records: impl IntoIterator<Item = Result<Recorded, TapeError>>,
    change: impl Fn(&mut Options),
) -> ReplayReport {
    let mut report = ReplayReport::default();
    let mut state: Option<Replay> = None;
    for record in records {
        let mut record = match record {
            Ok(record) => record,
            Err(error) => {
                report.lost.push(error);
                state = None;
                continue;
            }
        };
        if record.full.is_some() {
            state = Some(Replay::default());
        }
        let Some(replay) = &mut state else {
            report.unanchored += 1;
            continue;
        };
        change(&mut record.options);
        let differences = match replay.step(&record) {
            Ok(decision) => list(&record, &decision),
            Err(error) => {
                state = None;
                vec![What::Refused(error.to_string())]
            }
        };
        let difference = |what| Difference {
            cycle: record.cycle,
            now_unix_nanos: record.now_unix_nanos,
            edition: record.edition,
            what,
        };
        report.other_rules.take(record.edition, differences.into_iter().map(difference));
        report.cycles += 1;
        report.actions += u64::from(record.decided_in_all);
    }
    report
}

/// Decides every cycle again and compares. Stops at the first difference from a cycle of this build's edition; lists
/// those from cycles of other editions; what cannot be read is told and passed over.
pub fn replay(records: impl IntoIterator<Item = Result<Recorded, TapeError>>) -> ReplayReport {
    let mut report = ReplayReport::default();
    let mut state: Option<Replay> = None;
    for record in records {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                report.lost.push(error);
                state = None;
                continue;
            }
        };
        if record.full.is_some() {
            state = Some(Replay::default());
        }
        let Some(replay) = &mut state else {
            report.unanchored += 1;
            continue;
        };
        let decision = replay.step(&record);
        let difference = |what| Difference {
            cycle: record.cycle,
            now_unix_nanos: record.now_unix_nanos,
            edition: record.edition,
            what,
        };
        if record.other_edition().is_some() {
            let differences = match decision {
                Ok(decision) => list(&record, &decision),
                Err(error) => {
                    // Without this input nothing that follows is what it was, until the next full state.
                    state = None;
                    vec![What::Refused(error.to_string())]
                }
            };
            report.other_rules.take(record.edition, differences.into_iter().map(difference));
        } else {
            let first = match decision {
                Ok(decision) => first(&record, &decision),
                Err(error) => Some(What::Refused(error.to_string())),
            };
            if let Some(what) = first {
                report.first_difference = Some(difference(what));
                return report;
            }
        }
        report.cycles += 1;
        report.actions += u64::from(record.decided_in_all);
    }
    report
}

impl OtherRules {
    /// Adds what differs in one cycle.
    fn take(&mut self, edition: u32, differences: impl ExactSizeIterator<Item = Difference>) {
        self.editions.insert(edition);
        self.cycles += 1;
        self.differing_cycles += u64::from(differences.len() > 0);
        self.differences_in_all += differences.len() as u64;
        let room = MOST_LISTED.saturating_sub(self.differences.len());
        self.differences.extend(differences.take(room));
    }
}

fn action(index: usize, recorded: Option<&Decided>, replayed: Option<&Decided>) -> What {
    let side = |decided: Option<&Decided>| decided.cloned().map(Box::new);
    What::Action { index, recorded: side(recorded), replayed: side(replayed) }
}

fn is_whole(record: &Recorded) -> bool {
    record.decided.len() as u32 == record.decided_in_all
}

fn unlisted(record: &Recorded, decision: &Decision) -> Option<What> {
    let same = record.digest == bigfleet_shard::digest(&decision.actions);
    (!same)
        .then(|| What::Unlisted { recorded: record.decided_in_all, replayed: decision.actions.len() as u32 })
}

/// The first difference, if there is one. Order counts. Actions that are listed are compared one by one, those that are
/// not by the digest of all.
fn first(record: &Recorded, decision: &Decision) -> Option<What> {
    let (recorded, replayed) = (&record.decided, Decided::all_of(decision));
    let differs = |index: &usize| match (recorded.get(*index), replayed.get(*index)) {
        (Some(then), Some(now)) => !then.same_decision(now),
        _ => true,
    };
    let missing = || {
        let mut left = replayed.iter();
        recorded.iter().position(|then| !left.any(|now| now.same_decision(then)))
    };
    let index =
        if is_whole(record) { (0..recorded.len().max(replayed.len())).find(differs) } else { missing() };
    match index {
        Some(index) => Some(action(index, recorded.get(index), replayed.get(index))),
        None => unlisted(record, decision),
    }
}

/// All differences, machine by machine: what was decided about a machine then and what is decided about it now. Order
/// does not count, because other rules may well look at needs in another order. What a record does not list is only
/// said to differ.
fn list(record: &Recorded, decision: &Decision) -> Vec<What> {
    let replayed = Decided::all_of(decision);
    let mut now: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, decided) in replayed.iter().enumerate().rev() {
        now.entry(&decided.machine).or_default().push(index);
    }
    let mut matched = vec![false; replayed.len()];
    let mut differences = Vec::new();
    for (index, then) in record.decided.iter().enumerate() {
        let same_machine = now.get_mut(&*then.machine).and_then(Vec::pop);
        if let Some(place) = same_machine {
            matched[place] = true;
        }
        let counterpart = same_machine.map(|place| &replayed[place]);
        if !counterpart.is_some_and(|now| now.same_decision(then)) {
            differences.push(action(index, Some(then), counterpart));
        }
    }
    if is_whole(record) {
        let new = replayed.iter().enumerate().filter(|(place, _)| !matched[*place]);
        differences.extend(new.map(|(place, decided)| action(place, None, Some(decided))));
    } else if differences.is_empty() {
        differences.extend(unlisted(record, decision));
    }
    differences
}
