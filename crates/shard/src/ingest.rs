//! Roll-ups: a cluster's whole demand, taken, held or refused as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_engine::RollupError;
use bigfleet_model::need::{Need, aggregate};
use bigfleet_model::text::Quoted;

use crate::effect::{Effect, Frame, Reception, Step, Urgency};
use crate::event::{Rollup, SessionId};
use crate::guard;
use crate::memory::{Fact, HeldRollup};
use crate::planted::Bug;
use crate::shard::Shard;
use crate::tally::Tally;
use crate::tape::Input;

/// What tells a cluster's needs apart, and their order.
pub(crate) fn identity(need: &Need) -> (&str, &str) {
    (need.profile.fingerprint(), &need.group)
}

/// Rows in key order, those of one key merged. The border sends them so; then this is a look.
fn in_order(rows: &[Need]) -> Vec<Need> {
    let is_before = |pair: &[Need]| identity(&pair[0]) < identity(&pair[1]);
    if rows.windows(2).all(is_before) { rows.to_vec() } else { aggregate(rows.iter().cloned()) }
}

impl Shard {
    /// Takes up what was accepted in a life before. Reclaims stay shut until the cluster has reported in this one.
    pub(crate) fn recall_demand(
        &mut self,
        demand: BTreeMap<Arc<str>, Arc<[Need]>>,
        held: BTreeMap<Arc<str>, HeldRollup>,
        reclaims: BTreeMap<Arc<str>, Vec<(i64, u32)>>,
        now: i64,
    ) {
        for (name, rows) in demand {
            let share =
                |need: &Need| Need { profile: self.profiles.share(need.profile.clone()), ..need.clone() };
            let rows: Arc<[Need]> = rows.iter().map(share).collect();
            if let Ok(brought) = self.names.new_in(&rows) {
                self.clusters.entry(name.clone()).or_default().brought.grow(&brought);
                self.names.learn(brought);
            }
            if self.replace(&name, rows, now).is_err() {
                // A newer build may be stricter than the one that took it. The cluster reports again in a moment and is
                // told; until then nothing of its is taken.
                Tally::bump(&mut self.tally.rollups, "refused");
            }
        }
        if self.config.has(Bug::GateOpen) {
            let names: Vec<Arc<str>> = self.clusters.keys().cloned().collect();
            for name in &names {
                self.has_reported(name, now);
            }
        }
        for (name, held) in held {
            self.clusters.entry(name).or_default().held = Some(held);
        }
        for (name, times) in reclaims {
            self.clusters.entry(name).or_default().reclaims = times;
        }
    }

    /// A roll-up came.
    pub(crate) fn take_rollup(
        &mut self,
        session: SessionId,
        rollup: Result<Rollup, String>,
        now: i64,
        step: &mut Step,
    ) {
        let Some(name) = self.sessions.get(&session).cloned() else { return };
        let reception = match rollup {
            Err(why) => Reception::Refused { why },
            Ok(rollup) => self.consider(&name, session, rollup, now, step),
        };
        self.answer_rollup(&name, session, reception, step);
    }

    /// A roll-up came that says what the last one on this connection said. It means what that one meant: accepted if
    /// that was, one more confirmation if that is held. After one that was refused there is nothing to repeat.
    pub(crate) fn take_rollup_again(&mut self, session: SessionId, now: i64, step: &mut Step) {
        let Some(name) = self.sessions.get(&session).cloned() else { return };
        let cluster = self.clusters.entry(name.clone()).or_default();
        let reception = if cluster.taken_from != Some(session) {
            let why = "it repeats a roll-up that was not taken on this connection; send it whole".into();
            Reception::Refused { why }
        } else if let Some((_, rollup)) = cluster.pending.take_if(|(from, _)| *from == session) {
            // Put back so that the guard sees the same connection.
            let taken_unix_nanos = rollup.taken_unix_nanos;
            let empty = Rollup { cluster: name.clone(), taken_unix_nanos, needs: Vec::new() };
            cluster.pending = Some((session, empty));
            self.consider(&name, session, rollup, now, step)
        } else {
            self.has_reported(&name, now);
            Reception::Accepted
        };
        self.answer_rollup(&name, session, reception, step);
    }

    /// Whether the last roll-up of a connection was taken, so that another like it need not be read.
    pub fn has_taken_rollup(&self, session: SessionId) -> bool {
        let cluster = self.sessions.get(&session).and_then(|name| self.clusters.get(name));
        cluster.is_some_and(|cluster| cluster.taken_from == Some(session))
    }

    fn answer_rollup(&mut self, name: &Arc<str>, session: SessionId, reception: Reception, step: &mut Step) {
        let (code, notice) = match &reception {
            Reception::Accepted => ("accepted", None),
            Reception::Held { seen, of, why } => (
                "held",
                Some(format!(
                    "cluster {name}: roll-up held, {seen} of {of}: {why}; its demand before stays until {of} reports \
                     agree"
                )),
            ),
            Reception::Refused { why } => {
                ("refused", Some(format!("cluster {name}: roll-up refused: {why}; its demand before stays")))
            }
        };
        let is_taken =
            !matches!(reception, Reception::Refused { .. }) || self.config.has(Bug::RefusedRepeated);
        self.clusters.entry(name.clone()).or_default().taken_from = is_taken.then_some(session);
        Tally::bump(&mut self.tally.rollups, code);
        if let Some(text) = notice {
            Self::say(
                step,
                Urgency::Warning,
                if code == "held" { "rollup_held" } else { "rollup_refused" },
                text,
            );
        }
        step.effects.push(Effect::Send { session, frame: Frame::RollupAck(reception) });
    }

    /// Decides about a roll-up that could be read.
    fn consider(
        &mut self,
        name: &Arc<str>,
        session: SessionId,
        rollup: Rollup,
        now: i64,
        step: &mut Step,
    ) -> Reception {
        if rollup.cluster != *name {
            let why = format!(
                "it is of cluster {} and came over the connection of {}; a cluster may only report its own demand",
                Quoted(&rollup.cluster),
                Quoted(name)
            );
            return Reception::Refused { why };
        }
        let reported = in_order(&rollup.needs);
        let cluster = self.clusters.entry(name.clone()).or_default();
        let brought = self.names.new_in(&reported);
        let brought = match brought.and_then(|new| cluster.brought.may_grow(&new).map(|()| new)) {
            Ok(new) => new,
            Err(why) => return Reception::Refused { why: why.to_string() },
        };
        if let Some(why) = guard::suspicion(&self.config.guard, &cluster.demand, &reported) {
            let before = cluster.pending.as_ref().map(|(from, _)| *from);
            let same = guard::is_same_session(before, session);
            let (held, believed) = guard::confirm(&self.config.guard, cluster.held.as_ref(), same, now);
            if !believed {
                let (seen, of) = (held.seen, self.config.guard.confirmations);
                if cluster.held.as_ref() != Some(&held) {
                    step.facts.push(Fact::Held(name.clone(), Some(held)));
                }
                cluster.held = Some(held);
                cluster.pending = Some((session, rollup));
                if self.config.has(Bug::HeldTaken) {
                    let _ = self.accept(name, reported, now, step);
                }
                // The operator did report: what was accepted may be reclaimed by, and that has not shrunk.
                self.has_reported(name, now);
                return Reception::Held { seen, of, why };
            }
        }
        if let Err(error) = self.accept(name, reported, now, step) {
            return Reception::Refused { why: error.to_string() };
        }
        let cluster = self.clusters.entry(name.clone()).or_default();
        if cluster.held.take().is_some() {
            step.facts.push(Fact::Held(name.clone(), None));
        }
        cluster.pending = None;
        cluster.brought.grow(&brought);
        self.names.learn(brought);
        self.has_reported(name, now);
        Reception::Accepted
    }

    /// Makes rows a cluster's demand. Rows that were there keep the time they were first seen. Nothing is remembered of
    /// rows that the engine does not take.
    fn accept(
        &mut self,
        name: &Arc<str>,
        mut reported: Vec<Need>,
        now: i64,
        step: &mut Step,
    ) -> Result<(), RollupError> {
        let cluster = self.clusters.entry(name.clone()).or_default();
        let before = &cluster.demand;
        // Both are in key order.
        let mut old = before.iter().peekable();
        let mut same = before.len() == reported.len();
        for need in &mut reported {
            let profile = need.profile.clone();
            let order = |row: &Need| {
                row.profile.fingerprint().cmp(profile.fingerprint()).then_with(|| row.group.cmp(&need.group))
            };
            while old.next_if(|row| order(row).is_lt()).is_some() {}
            if let Some(row) = old.next_if(|row| order(row).is_eq()) {
                same &= row.aggregate == need.aggregate && row.min_unit == need.min_unit;
                need.first_seen_unix_nanos = row.first_seen_unix_nanos;
                need.profile = row.profile.clone();
                need.group = row.group.clone();
            } else {
                same = false;
                need.first_seen_unix_nanos = now;
                need.profile = self.profiles.share(profile);
            }
            need.cluster = name.clone();
            need.parked = false;
        }
        if same {
            return Ok(());
        }
        let rows: Arc<[Need]> = reported.into();
        self.replace(name, rows.clone(), now)?;
        self.clusters.entry(name.clone()).or_default().changed_unix_nanos = now;
        step.facts.push(Fact::Demand(name.clone(), (!rows.is_empty()).then_some(rows)));
        self.news.demand = true;
        Ok(())
    }

    /// Puts rows before the engine. If it refuses them everything is as before.
    fn replace(&mut self, name: &Arc<str>, rows: Arc<[Need]>, now: i64) -> Result<(), RollupError> {
        let mut stamped = rows.to_vec();
        for need in stamped.iter_mut().filter(|need| need.profile.same().is_some()) {
            need.parked = self.parking.is_parked(&need.key());
        }
        // Parked gangs are rare; without them all may share the rows.
        let needs =
            if stamped.iter().any(|need| need.parked) { stamped.clone().into() } else { rows.clone() };
        self.engine.replace(name, stamped, now)?;
        self.clusters.entry(name.clone()).or_default().demand = rows;
        self.tape.push(Input::Replace { cluster: name.clone(), needs, at_unix_nanos: now });
        Ok(())
    }

    /// Opens the gate: this cluster has spoken, so things may be taken from it.
    fn has_reported(&mut self, name: &Arc<str>, now: i64) {
        let cluster = self.clusters.entry(name.clone()).or_default();
        let first = !cluster.has_reported();
        cluster.reported_unix_nanos = now;
        if first {
            Arc::make_mut(&mut self.ready).insert(name.clone());
            self.news.demand = true;
        }
    }
}
