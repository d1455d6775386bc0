//! Decisions: what cycles ordered and what became of it, from memory and from the record.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::need::NeedKey;
use bigfleet_record::tape::Reader;
use bigfleet_record::{Decided, Recorded};
use bigfleet_shard::{CycleRecord, Fate, Ordered};
use tonic::Status;

use crate::convert::{fate, kind, kind_from, why};
use crate::known::{Known, named};
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

/// A decision as a message, without what is known of its machine.
pub(crate) fn message(at: At, decided: &Decided) -> v1::Decision {
    v1::Decision {
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
        why: decided.why.as_ref().map(why),
        recorded_edition: at.other_edition,
        ..v1::Decision::default()
    }
}

/// The decisions of a cycle as messages.
pub(crate) fn of_record(record: &CycleRecord) -> impl DoubleEndedIterator<Item = v1::Decision> + '_ {
    record.actions.iter().map(|ordered| message(record.into(), &ordered.into()))
}

/// Adds what is known of the machines.
pub(crate) fn describe(decisions: &mut [v1::Decision], machines: &[Known]) {
    let by_id: BTreeMap<&str, &Known> = machines.iter().map(|known| (&*known.machine.id, known)).collect();
    for decision in decisions {
        if let Some(known) = by_id.get(decision.machine.as_str()) {
            let machine = &known.machine;
            decision.instance_type = machine.instance_type.to_string();
            decision.zone = machine.zone.to_string();
            decision.capacity_type = machine.capacity_type.to_wire();
            decision.usd_per_hour = machine.price_usd_per_hour;
        }
        let next = decision.why.as_mut().and_then(|why| why.runner_up.as_mut());
        if let Some(next) = next
            && let Some(known) = by_id.get(next.machine.as_str())
        {
            let machine = &known.machine;
            next.instance_type = machine.instance_type.to_string();
            next.zone = machine.zone.to_string();
            next.capacity_type = machine.capacity_type.to_wire();
            next.usd_per_hour = machine.price_usd_per_hour;
        }
    }
}

/// The machines decisions speak of.
pub(crate) fn machines_in(decisions: &[v1::Decision]) -> Vec<Box<str>> {
    let next = |decision: &v1::Decision| Some(decision.why.as_ref()?.runner_up.as_ref()?.machine.clone());
    let names = decisions.iter().flat_map(|d| [Some(d.machine.clone()), next(d)]).flatten();
    let names: std::collections::BTreeSet<String> = names.collect();
    names.into_iter().map(Into::into).collect()
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
        let mut kept: std::collections::VecDeque<v1::Decision> = std::collections::VecDeque::new();
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
            for decided in record.decided.iter().filter(|decided| self.admits(decided)) {
                if kept.len() == most {
                    kept.pop_front();
                }
                kept.push_back(message(at, decided));
            }
        }
        kept.into_iter().rev().collect()
    }
}

impl<S: Shards> View<S> {
    /// The cycles at hand, oldest first.
    pub(crate) async fn recent(&self) -> Result<Vec<Arc<CycleRecord>>, Status> {
        Ok(self.shards.inspect(|shard, _| shard.recent().cloned().collect()).await?)
    }

    /// Decisions with what is known now of their machines.
    pub(crate) async fn described(
        &self,
        mut decisions: Vec<v1::Decision>,
    ) -> Result<Vec<v1::Decision>, Status> {
        let machines = named(&*self.shards, machines_in(&decisions)).await?;
        describe(&mut decisions, &machines);
        Ok(decisions)
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
        let mut decisions = wanted.of_recent(&recent, limit);
        if request.from_record && decisions.len() < limit {
            let folder = self.record_dir()?.to_owned();
            let before = recent.first().map_or(u64::MAX, |record| record.cycle);
            let most = limit - decisions.len();
            let older = blocking(move || {
                let reader = Reader::open(&folder).map_err(|error| tape_status(&error.into()))?;
                Ok(wanted.of_record(&reader, before, most))
            });
            decisions.extend(older.await?);
        }
        let mut parts = decisions.chunks(PAGE);
        let mut first = true;
        loop {
            let part = parts.next();
            if part.is_none() && !first {
                return Ok(());
            }
            let decisions = self.described(part.unwrap_or_default().to_vec()).await?;
            pages.send(v1::DecisionPage { as_of: Some(as_of.clone()), decisions }).await?;
            first = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_priority_is_read_from_the_fingerprint() {
        assert_eq!(priority_of("p=-5|ipb=27|rpb=0|reqs=|spr="), -5);
        assert_eq!(priority_of("p=100000|ipb=1"), 100_000);
        assert_eq!(priority_of("something else"), 0);
    }
}
