//! Decisions: what cycles ordered and what became of it, from memory and from the record.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bigfleet_model::need::NeedKey;
use bigfleet_record::tape::Reader;
use bigfleet_record::{Decided, Recorded};
use bigfleet_shard::{CycleRecord, Fate, Input, MachineFacts, Ordered};
use tonic::Status;

use crate::convert::{fate, kind, kind_from, why};
use crate::names::{find_need, need_ref};
use crate::pages::Pages;
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::{blocking, tape_status};
use crate::v1;

/// Decisions on one page.
const PAGE: usize = 500;
/// How many are listed if nobody says.
const LIMIT: usize = 1000;
/// How many are listed at most.
const MOST: usize = 100_000;

/// The cycle a decision is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) cycle: u64,
    pub(crate) epoch: i64,
    pub(crate) unix_nanos: i64,
    /// The edition it was decided under, if it is not ours.
    pub(crate) other_edition: Option<u32>,
}

impl From<&CycleRecord> for At {
    fn from(record: &CycleRecord) -> Self {
        // A cycle of this life.
        let other_edition = None;
        Self { cycle: record.cycle, epoch: record.epoch, unix_nanos: record.now_unix_nanos, other_edition }
    }
}

impl From<&Recorded> for At {
    fn from(record: &Recorded) -> Self {
        Self {
            cycle: record.cycle,
            epoch: record.epoch,
            unix_nanos: record.now_unix_nanos,
            other_edition: record.other_edition(),
        }
    }
}

/// The priority in a fingerprint; its form is fixed by the wire.
pub(crate) fn priority_of(fingerprint: &str) -> i32 {
    let number = fingerprint.strip_prefix("p=").and_then(|rest| rest.split('|').next());
    number.and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// A decision as a message, with what its machines were when it fell.
pub(crate) fn message(at: At, decided: &Decided) -> v1::Decision {
    let mut why = decided.why.as_ref().map(why);
    if let (Some(next), Some(facts)) =
        (why.as_mut().and_then(|why| why.runner_up.as_mut()), &decided.runner_up)
    {
        next.instance_type = facts.instance_type.to_string();
        next.zone = facts.zone.to_string();
        next.capacity_type = facts.capacity_type.to_wire();
        next.usd_per_hour = facts.price_usd_per_hour;
    }
    let mut message = v1::Decision {
        cycle: at.cycle,
        epoch: at.epoch,
        unix_nanos: at.unix_nanos,
        kind: kind(decided.kind).into(),
        machine: decided.machine.to_string(),
        cluster: decided.cluster.as_deref().unwrap_or_default().to_owned(),
        need: decided.need.as_ref().map(|need| need_ref(&need.key)),
        priority: decided.need.as_ref().map_or(0, |need| priority_of(&need.key.fingerprint)),
        grace_secs: decided.grace_secs.unwrap_or_default(),
        fate: fate(decided.fate).into(),
        why,
        recorded_edition: at.other_edition,
        approved_by: decided.approved_by.as_deref().unwrap_or_default().to_owned(),
        ..v1::Decision::default()
    };
    if let Some(facts) = &decided.facts {
        message.instance_type = facts.instance_type.to_string();
        message.zone = facts.zone.to_string();
        message.capacity_type = facts.capacity_type.to_wire();
        message.usd_per_hour = facts.price_usd_per_hour;
        message.interruption_probability = facts.interruption_probability;
    }
    message
}

/// Adds what machines were, where the decision does not say: a plan that nobody has kept, or a record of an old build.
pub(crate) fn with_facts(mut decided: Decided, find: impl Fn(&str) -> Option<MachineFacts>) -> Decided {
    let next = decided.why.as_ref().and_then(|why| why.runner_up.as_ref());
    if let (None, Some(next)) = (&decided.runner_up, next) {
        decided.runner_up = find(&next.machine);
    }
    if decided.facts.is_none() {
        decided.facts = find(&decided.machine);
    }
    decided
}

/// The decisions of a cycle as messages.
pub(crate) fn of_record(record: &CycleRecord) -> impl DoubleEndedIterator<Item = v1::Decision> + '_ {
    record.actions.iter().map(|ordered| message(record.into(), &ordered.into()))
}

/// The machines decisions speak of.
pub(crate) fn machines_in<'a>(decided: impl Iterator<Item = &'a Decided>) -> BTreeSet<Box<str>> {
    let next = |one: &'a Decided| Some(&one.why.as_ref()?.runner_up.as_ref()?.machine);
    decided.flat_map(|one| [Some(&one.machine), next(one)]).flatten().cloned().collect()
}

/// What a cycle decided and the rails withheld.
pub(crate) fn withheld(record: &CycleRecord) -> impl Iterator<Item = &Ordered> {
    record.actions.iter().filter(|ordered| ordered.fate != Fate::Begun)
}

/// Which decisions somebody asks for.
pub(crate) struct Wanted {
    pub(crate) cluster: String,
    pub(crate) kinds: Vec<i32>,
    pub(crate) fates: Vec<i32>,
    pub(crate) machine: String,
    pub(crate) need: Option<NeedKey>,
    pub(crate) cycles: (u64, u64),
    pub(crate) unix_nanos: (i64, i64),
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            cluster: String::new(),
            kinds: Vec::new(),
            fates: Vec::new(),
            machine: String::new(),
            need: None,
            cycles: (0, u64::MAX),
            unix_nanos: (i64::MIN, i64::MAX),
        }
    }
}

impl Wanted {
    fn admits_cycle(&self, at: At) -> bool {
        (self.cycles.0..=self.cycles.1).contains(&at.cycle)
            && (self.unix_nanos.0..=self.unix_nanos.1).contains(&at.unix_nanos)
    }

    fn admits(&self, decided: &Decided) -> bool {
        let gets = decided.need.as_ref().map(|need| &*need.key.cluster);
        (self.cluster.is_empty()
            || decided.cluster.as_deref() == Some(&*self.cluster)
            || gets == Some(&*self.cluster))
            && (self.kinds.is_empty() || self.kinds.contains(&kind(decided.kind).into()))
            && (self.fates.is_empty() || self.fates.contains(&fate(decided.fate).into()))
            && (self.machine.is_empty() || *decided.machine == *self.machine)
            && self.need.as_ref().is_none_or(|key| decided.need.as_ref().is_some_and(|need| need.key == *key))
    }

    /// Those of the cycles at hand, newest first; what was withheld again and again told once.
    pub(crate) fn of_recent_folded(&self, recent: &[Arc<CycleRecord>], most: usize) -> Vec<v1::Decision> {
        fold(self.of_recent(recent, usize::MAX), most)
    }

    /// Those of the cycles at hand, newest first.
    pub(crate) fn of_recent(&self, recent: &[Arc<CycleRecord>], most: usize) -> Vec<v1::Decision> {
        let cycles = recent.iter().rev().filter(|record| self.admits_cycle((&***record).into()));
        let decided = cycles.flat_map(|record| {
            record.actions.iter().rev().map(|ordered| (At::from(&**record), Decided::from(ordered)))
        });
        decided
            .filter(|(_, decided)| self.admits(decided))
            .take(most)
            .map(|(at, d)| message(at, &d))
            .collect()
    }

    /// Those of the record older than `before`, newest first.
    fn of_record(&self, reader: &Reader, before: u64, most: usize) -> Vec<v1::Decision> {
        // Records are read forwards only. What is read is bounded by the last so many that fit.
        let mut kept: VecDeque<(At, Decided)> = VecDeque::new();
        let first = reader.at_cycle(self.cycles.0).ok();
        let records = first.map_or_else(|| reader.records(), |entry| reader.records_from(&entry));
        for record in records.flatten() {
            if record.cycle >= before || record.cycle > self.cycles.1 {
                break;
            }
            let at = At::from(&record);
            if !self.admits_cycle(at) {
                continue;
            }
            for decided in record.decided.into_iter().filter(|decided| self.admits(decided)) {
                if kept.len() == most {
                    kept.pop_front();
                }
                kept.push_back((at, decided));
            }
        }
        if kept.iter().any(|(_, decided)| decided.facts.is_none()) {
            add_facts(reader, &mut kept);
        }
        kept.iter().rev().map(|(at, decided)| message(*at, decided)).collect()
    }
}

/// What makes two decisions the same one, withheld again.
type Same = (String, i32, i32, String);

fn same(decision: &v1::Decision) -> Same {
    let need = decision.need.as_ref().map(|need| need.long_id.clone()).unwrap_or_default();
    (decision.machine.clone(), decision.kind, decision.fate, need)
}

/// Folds a list that has the newest first: every decision is counted in exactly one of what is left, up to `most`. A move
/// that was begun ends a row: what was withheld before it is another story.
fn fold(decisions: Vec<v1::Decision>, most: usize) -> Vec<v1::Decision> {
    let mut folded: Vec<v1::Decision> = Vec::new();
    let mut rows: BTreeMap<String, Vec<(Same, usize)>> = BTreeMap::new();
    for mut decision in decisions {
        (decision.times, decision.first_cycle) = (decision.times.max(1), decision.cycle);
        let of_machine = rows.entry(decision.machine.clone()).or_default();
        if decision.fate() == v1::Fate::Begun {
            of_machine.clear();
        } else {
            let key = same(&decision);
            if let Some((_, at)) = of_machine.iter().find(|(known, _)| *known == key) {
                if let Some(row) = folded.get_mut(*at) {
                    row.times += decision.times;
                    row.first_cycle = decision.first_cycle;
                }
                continue;
            }
            // Those beyond the limit are remembered too, so that no later one passes for new.
            of_machine.push((key, if folded.len() < most { folded.len() } else { usize::MAX }));
        }
        if folded.len() < most {
            folded.push(decision);
        }
    }
    folded
}

/// Adds to decisions of old builds what their machines were, from the inputs that led to them.
fn add_facts(reader: &Reader, kept: &mut VecDeque<(At, Decided)>) {
    let Some(first) = kept.front().and_then(|(at, _)| reader.at_cycle(at.cycle).ok()) else { return };
    let Ok(full) = reader.full_before(&first) else { return };
    let mut machines: BTreeMap<Box<str>, MachineFacts> = BTreeMap::new();
    let mut left = kept.iter_mut().peekable();
    for record in reader.records_from(&full).flatten() {
        if record.full.is_some() {
            machines.clear();
        }
        for input in record.full.as_deref().unwrap_or(&record.inputs) {
            match input {
                Input::Observe(machine) => {
                    machines.insert(machine.id.clone(), (&**machine).into());
                }
                Input::Remove(id) => drop(machines.remove(id)),
                Input::Replace { .. } | Input::Park { .. } => {}
            }
        }
        let of_it =
            |(at, _): &&mut (At, Decided)| (at.cycle, at.unix_nanos) == (record.cycle, record.now_unix_nanos);
        while let Some((_, decided)) = left.next_if(of_it) {
            *decided = with_facts(decided.clone(), |id| machines.get(id).cloned());
        }
        if left.peek().is_none() {
            return;
        }
    }
}

impl<S: Shards> View<S> {
    /// The cycles at hand, oldest first.
    pub(crate) async fn recent(&self) -> Result<Vec<Arc<CycleRecord>>, Status> {
        Ok(self.shards.inspect(|shard, _| shard.recent().cloned().collect()).await?)
    }

    pub(crate) async fn list_decisions(
        &self,
        request: v1::ListDecisionsRequest,
        pages: Pages<v1::DecisionPage>,
    ) -> Result<(), Status> {
        for number in &request.kinds {
            kind_from(*number)?;
        }
        let need = if request.need.is_empty() {
            None
        } else {
            Some(find_need(&self.snapshot(None).await?.fleet, &request.need)?)
        };
        let bound = |number: u64| if number == 0 { u64::MAX } else { number };
        let wanted = Wanted {
            cluster: request.cluster,
            kinds: request.kinds,
            fates: request.fates,
            machine: request.machine,
            need,
            cycles: (request.from_cycle, bound(request.to_cycle)),
            unix_nanos: (
                request.from_unix_nanos,
                if request.to_unix_nanos == 0 { i64::MAX } else { request.to_unix_nanos },
            ),
        };
        let limit = if request.limit == 0 { LIMIT } else { (request.limit as usize).min(MOST) };
        let as_of = self.as_of().await?;
        let recent = self.recent().await?;
        let is_folded = request.fold;
        let taken = if is_folded { MOST } else { limit };
        let mut decisions = wanted.of_recent(&recent, taken);
        if (request.from_record || self.about.record_only) && decisions.len() < taken {
            let folder = self.record_dir()?.to_owned();
            let before = recent.first().map_or(u64::MAX, |record| record.cycle);
            let most = taken - decisions.len();
            let older = blocking(move || {
                let reader = Reader::open(&folder).map_err(|error| tape_status(&error.into()))?;
                Ok(wanted.of_record(&reader, before, most))
            });
            decisions.extend(older.await?);
        }
        if is_folded {
            decisions = fold(decisions, limit);
        }
        let mut parts = decisions.chunks(PAGE);
        let mut first = true;
        loop {
            let part = parts.next();
            if part.is_none() && !first {
                return Ok(());
            }
            let decisions = part.unwrap_or_default().to_vec();
            pages.send(v1::DecisionPage { as_of: Some(as_of.clone()), decisions }).await?;
            first = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_loses_no_decision_and_a_move_that_began_ends_a_row() {
        let one = |cycle: u64, machine: &str, fate: v1::Fate| v1::Decision {
            cycle,
            machine: machine.into(),
            fate: fate.into(),
            kind: v1::ActionKind::Reclaim.into(),
            ..v1::Decision::default()
        };
        let (capped, begun) = (v1::Fate::Capped, v1::Fate::Begun);
        let all = vec![
            one(9, "a", capped),
            one(8, "b", begun),
            one(8, "a", capped),
            one(7, "b", capped),
            one(6, "b", capped),
            one(5, "b", begun),
            one(4, "b", capped),
            one(4, "a", v1::Fate::Paused),
        ];
        let rows: Vec<_> = fold(all.clone(), 100)
            .iter()
            .map(|d| (d.machine.clone(), d.cycle, d.first_cycle, d.times))
            .collect();
        let own = |machine: &str, cycle, first, times| (machine.to_owned(), cycle, first, times);
        assert_eq!(
            rows,
            [
                own("a", 9, 8, 2),
                own("b", 8, 8, 1),
                own("b", 7, 6, 2),
                own("b", 5, 5, 1),
                own("b", 4, 4, 1),
                own("a", 4, 4, 1)
            ]
        );
        assert_eq!(rows.iter().map(|row| row.3).sum::<u32>() as usize, all.len());
        assert_eq!(fold(all, 2).len(), 2);
    }

    #[test]
    fn the_priority_is_read_from_the_fingerprint() {
        assert_eq!(priority_of("p=-5|ipb=27|rpb=0|reqs=|spr="), -5);
        assert_eq!(priority_of("p=100000|ipb=1"), 100_000);
        assert_eq!(priority_of("something else"), 0);
    }
}
