//! Roll-ups: a cluster's whole demand, taken, held or refused as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_engine::Leftover;
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::text::Quoted;

use crate::effect::{Effect, Frame, Reception, Step, Urgency};
use crate::event::SessionId;
use crate::guard::{self, Sum};
use crate::memory::{Fact, HeldRollup};
use crate::planted::Bug;
use crate::rollup::{Prepared, Rollup};
use crate::shard::Shard;
use crate::tally::Tally;
use crate::tape::Input;

/// What tells a cluster's needs apart, and their order.
pub(crate) fn identity(need: &Need) -> (&str, &str) {
    (need.profile.fingerprint(), &need.group)
}

/// The same rows, some of them parked.
fn with_parked(rows: &[Need], parked: &[&NeedKey]) -> Arc<[Need]> {
    let is_parked = |need: &Need| parked.iter().any(|key| identity(need) == (&*key.fingerprint, &*key.group));
    rows.iter().map(|need| Need { parked: is_parked(need), ..need.clone() }).collect()
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
            let rollup = Rollup { cluster: name.clone(), taken_unix_nanos: 0, needs: rows.to_vec() };
            let Ok(rollup) = rollup.prepare() else {
                // A newer build may be stricter than the one that took it. The cluster reports again in a moment and is
                // told; until then nothing of its is taken.
                Tally::bump(&mut self.tally.rollups, "refused");
                continue;
            };
            if let Ok(brought) = self.names.new_in(&rollup.mentioned) {
                self.clusters.entry(name.clone()).or_default().brought.grow(&brought);
                self.names.learn(brought);
            }
            self.replace(&name, rollup, now, &mut Vec::new());
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
        rollup: Result<Box<Prepared>, String>,
        now: i64,
        step: &mut Step,
    ) {
        let Some(name) = self.sessions.get(&session).cloned() else { return };
        let reception = match rollup {
            Err(why) => Reception::Refused { why },
            Ok(rollup) => {
                let pending = self.clusters.get(&name).and_then(|cluster| cluster.pending.as_ref());
                let same = guard::is_same_session(pending.map(|(from, _)| *from), session);
                self.consider(&name, (session, same), rollup, now, step)
            }
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
            self.consider(&name, (session, true), rollup, now, step)
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

    /// Decides about a roll-up that could be read. `same`: it came over the connection of the one that is held.
    fn consider(
        &mut self,
        name: &Arc<str>,
        (session, same): (SessionId, bool),
        rollup: Box<Prepared>,
        now: i64,
        step: &mut Step,
    ) -> Reception {
        if rollup.cluster != *name {
            let why = format!(
                "it is of cluster {} and came over the connection of {}; a cluster may only report its own demand",
                Quoted(&rollup.cluster),
                Quoted(name)
            );
            step.leftovers.push(Leftover::of(rollup));
            return Reception::Refused { why };
        }
        let cluster = self.clusters.entry(name.clone()).or_default();
        let brought = self.names.new_in(&rollup.mentioned);
        let brought = match brought.and_then(|new| cluster.brought.may_grow(&new).map(|()| new)) {
            Ok(new) => new,
            Err(why) => {
                step.leftovers.push(Leftover::of(rollup));
                return Reception::Refused { why: why.to_string() };
            }
        };
        let accepted = Sum { rows: cluster.demand.len(), totals: &cluster.totals };
        let reported = Sum { rows: rollup.needs.len(), totals: &rollup.totals };
        if let Some(why) = guard::suspicion(&self.config.guard, accepted, reported) {
            let (held, believed) = guard::confirm(&self.config.guard, cluster.held.as_ref(), same, now);
            if !believed {
                let (seen, of) = (held.seen, self.config.guard.confirmations);
                if cluster.held.as_ref() != Some(&held) {
                    step.facts.push(Fact::Held(name.clone(), Some(held)));
                }
                cluster.held = Some(held);
                if self.config.has(Bug::HeldTaken) {
                    self.accept(name, *rollup, now, step);
                } else {
                    let before = cluster.pending.replace((session, rollup));
                    step.leftovers.extend(before.map(Leftover::of));
                }
                // The operator did report: what was accepted may be reclaimed by, and that has not shrunk.
                self.has_reported(name, now);
                return Reception::Held { seen, of, why };
            }
        }
        self.accept(name, *rollup, now, step);
        let cluster = self.clusters.entry(name.clone()).or_default();
        if cluster.held.take().is_some() {
            step.facts.push(Fact::Held(name.clone(), None));
        }
        step.leftovers.extend(cluster.pending.take().map(Leftover::of));
        cluster.brought.grow(&brought);
        self.names.learn(brought);
        self.has_reported(name, now);
        Reception::Accepted
    }

    /// Makes rows a cluster's demand. Rows that were there keep the time they were first seen.
    fn accept(&mut self, name: &Arc<str>, rollup: Prepared, now: i64, step: &mut Step) {
        let Some(rows) = self.replace(name, rollup, now, &mut step.leftovers) else { return };
        self.clusters.entry(name.clone()).or_default().changed_unix_nanos = now;
        step.facts.push(Fact::Demand(name.clone(), (!rows.is_empty()).then_some(rows)));
        self.news.demand = true;
    }

    /// Puts rows in the place of a cluster's demand, before the engine too. The rows, unless they were there already.
    fn replace(
        &mut self,
        name: &Arc<str>,
        rollup: Prepared,
        now: i64,
        leftovers: &mut Vec<Leftover>,
    ) -> Option<Arc<[Need]>> {
        let Prepared { mut needs, mut draft, profiles, totals, mentioned, .. } = rollup;
        let rows = Arc::get_mut(&mut needs).expect("rows that were just prepared are nobody else's");
        let mut spare = Vec::new();
        for ((need, profile), hash) in rows.iter_mut().zip(draft.profiles()).zip(&profiles) {
            let shared = self.profiles.share(profile, *hash);
            if !Arc::ptr_eq(&shared, profile) {
                spare.push(std::mem::replace(profile, shared.clone()));
                need.profile = shared;
            }
        }
        let parked = self.parking.parked().filter(|key| key.cluster == *name);
        let parked: Vec<&NeedKey> = parked.filter(|key| draft.park(&key.fingerprint, &key.group)).collect();
        let (replaced, before) = self.engine.adopt(draft, now);
        leftovers.push(before);
        if replaced.is_unchanged() {
            leftovers.push(Leftover::of((needs, spare, profiles, mentioned)));
            return None;
        }
        for (need, first_seen) in rows.iter_mut().zip(self.engine.first_seen_unix_nanos(name)) {
            need.first_seen_unix_nanos = first_seen;
        }
        // Parked gangs are rare; without them all may share the rows.
        let stamped = if parked.is_empty() { needs.clone() } else { with_parked(&needs, &parked) };
        let cluster = self.clusters.entry(name.clone()).or_default();
        let before = std::mem::replace(&mut cluster.demand, needs.clone());
        cluster.totals = totals;
        leftovers.push(Leftover::of((before, spare, profiles, mentioned, self.profiles.swept())));
        self.journal.note(Input::Replace { cluster: name.clone(), needs: stamped, at_unix_nanos: now });
        Some(needs)
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
