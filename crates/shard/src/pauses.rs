//! Pauses and rehearsals: somebody's order to hold still, with a reason and an end.

use std::collections::BTreeMap;

use bigfleet_engine::{Action, ActionKind};
use thiserror::Error;

use crate::config::SECOND;
use crate::effect::Step;
use crate::memory::{Fact, Pause, PauseScope};
use crate::planted::Bug;
use crate::shard::Shard;
use crate::tape::Fate;
use crate::timers::Timer;

/// Why a command was not obeyed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommandError {
    /// A pause without a reason.
    #[error("a pause needs a reason; people will ask")]
    NoReason,
    /// A pause that would be over before it began.
    #[error("the pause would end before it begins; give a time to come")]
    Past,
    /// Too many pauses.
    #[error("{MOST_PAUSES} pauses are in force already; resume some of them first")]
    TooMany,
    /// There is no such pause.
    #[error("there is no pause of {0}; `bigfleet get rails` shows those in force")]
    NoSuchPause(String),
    /// Too many orders about modes.
    #[error(
        "{} orders about modes are in force already; take some of them back first",
        crate::modes::MOST_MODES
    )]
    TooManyModes,
    /// There is no such order.
    #[error("no mode was set for {0}; `bigfleet mode` shows those in force")]
    NoSuchMode(String),
    /// There is no such proposal.
    #[error(
        "proposal {0:08x} does not wait: it was approved, no longer wanted or over; `bigfleet get proposals` shows those that do"
    )]
    NoSuchProposal(u32),
}

/// How many pauses may be in force at once.
pub const MOST_PAUSES: usize = 1000;

/// Pauses in force, by number.
pub(crate) type Pauses = BTreeMap<u64, Pause>;

/// What a pause makes of an action, if one covers it. An action that gives one cluster a machine of another falls under
/// a pause of either.
pub(crate) fn fate(pauses: &Pauses, now: i64, action: &Action) -> Option<Fate> {
    let gets = action.need.as_ref().map(|demand| &demand.need.cluster);
    holds(pauses, now, action.kind, [action.cluster.as_deref(), gets.map(|c| &**c)])
}

/// As [`fate`], for an action whose clusters are known.
pub(crate) fn holds(
    pauses: &Pauses,
    now: i64,
    kind: ActionKind,
    clusters: [Option<&str>; 2],
) -> Option<Fate> {
    let in_force = |pause: &&Pause| pause.until_unix_nanos.is_none_or(|until| now < until);
    let covers = |pause: &&Pause| clusters.iter().any(|cluster| pause.scope.covers(kind, *cluster));
    let held = pauses.values().filter(in_force).filter(covers);
    // Held back beats rehearsed: whoever asked for the stricter of the two must get it.
    held.map(|pause| if pause.dry_run { Fate::DryRun } else { Fate::Paused }).min()
}

impl Shard {
    /// Holds things still. The number is for [`Shard::resume`].
    pub fn pause(&mut self, pause: Pause, now: i64, step: &mut Step) -> Result<u64, CommandError> {
        if pause.reason.trim().is_empty() {
            return Err(CommandError::NoReason);
        }
        if pause.until_unix_nanos.is_some_and(|until| until <= now) {
            return Err(CommandError::Past);
        }
        if self.pauses.len() >= MOST_PAUSES {
            return Err(CommandError::TooMany);
        }
        let number = self.pauses.keys().next_back().map_or(1, |last| last + 1);
        if let Some(until) = pause.until_unix_nanos {
            self.timers.set(until, Timer::Pauses);
        }
        if !self.config.has(Bug::PauseForgotten) {
            step.facts.push(self.kept(number, &pause));
        }
        self.pauses.insert(number, pause);
        self.news.command = true;
        Ok(number)
    }

    /// Tells what the wall clock shows. A life counts its own time, which no jump of the wall clock changes; the next life
    /// begins with the wall clock, so what is kept of a pause follows it where it runs ahead.
    pub fn note_wall(&mut self, wall_unix_nanos: i64, now: i64, step: &mut Step) {
        // Behind, it would only make pauses longer, and it may be put right before anybody looks at it.
        let ahead = wall_unix_nanos.saturating_sub(now).max(0);
        if (ahead - self.wall_ahead).abs() < SECOND {
            return;
        }
        self.wall_ahead = ahead;
        let limited = self.pauses.iter().filter(|(_, pause)| pause.until_unix_nanos.is_some());
        step.facts.extend(limited.map(|(number, pause)| self.kept(*number, pause)));
    }

    /// A pause as the next life must know it: over when this life and the wall clock both say so, so never shorter than was
    /// asked.
    fn kept(&self, number: u64, pause: &Pause) -> Fact {
        let until_unix_nanos = pause.until_unix_nanos.map(|until| until.saturating_add(self.wall_ahead));
        Fact::Pause(number, Some(Pause { until_unix_nanos, ..pause.clone() }))
    }

    /// Ends every pause of exactly this scope; the numbers of those that ended. If it is of Provisions alone, what the
    /// purchase rail holds within it is let go as well: whoever resumes more than that meant a pause.
    pub fn resume(
        &mut self,
        scope: &PauseScope,
        now: i64,
        step: &mut Step,
    ) -> Result<Vec<u64>, CommandError> {
        let ended: Vec<u64> =
            self.pauses.iter().filter(|(_, pause)| pause.scope == *scope).map(|(n, _)| *n).collect();
        let is_of_purchases = scope.kind == Some(ActionKind::Provision);
        let released = if is_of_purchases { self.release_purchases(scope, step) } else { Vec::new() };
        if ended.is_empty() && released.is_empty() {
            return Err(CommandError::NoSuchPause(name(scope)));
        }
        for number in &ended {
            self.end_pause(*number, step);
        }
        self.pump(now, step);
        Ok(ended)
    }

    pub(crate) fn end_pause(&mut self, number: u64, step: &mut Step) {
        if self.pauses.remove(&number).is_some() {
            step.facts.push(Fact::Pause(number, None));
            self.news.command = true;
            self.moves.look_at_line();
        }
    }

    /// Ends pauses whose time is over.
    pub(crate) fn expire_pauses(&mut self, now: i64, step: &mut Step) {
        let over = |pause: &Pause| pause.until_unix_nanos.is_some_and(|until| until <= now);
        let ended: Vec<u64> = self.pauses.iter().filter(|(_, pause)| over(pause)).map(|(n, _)| *n).collect();
        for number in ended {
            self.end_pause(number, step);
        }
    }

    /// Pauses in force, by number.
    pub fn pauses(&self) -> &BTreeMap<u64, Pause> {
        &self.pauses
    }
}

/// A scope in words.
pub fn name(scope: &PauseScope) -> String {
    match (&scope.cluster, scope.kind) {
        (None, None) => "everything".into(),
        (Some(cluster), None) => format!("cluster {cluster}"),
        (None, Some(kind)) => format!("every {kind}"),
        (Some(cluster), Some(kind)) => format!("every {kind} of cluster {cluster}"),
    }
}
