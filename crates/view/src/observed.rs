//! What was observed of providers: how long their moves took and how many bound machines they lost, read from the decision
//! record as it grows.
//!
//! It is read on where the last reader stopped, and only when somebody asks.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_net::{Clock as _, SystemClock};
use bigfleet_record::Recorded;
use bigfleet_record::tape::{Reader, Records, TapeError};
use bigfleet_shard::Input;

use crate::known::Known;
use crate::v1;

/// How far back somebody who asks for the first time is told about.
pub(crate) const DAY_NANOS: i64 = 24 * 3_600_000_000_000;
const HOUR_NANOS: f64 = 3.6e12;
/// Durations kept of each sort.
const SAMPLES: usize = 512;

/// What machines are told apart by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sort {
    pub(crate) provider: Arc<str>,
    pub(crate) instance_type: Box<str>,
    pub(crate) capacity_type: CapacityType,
}

/// How long something took lately, in seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durations {
    samples: VecDeque<f32>,
    /// What these come to, worked out when first asked: many machines of one sort are on their way at once.
    took: Cell<Option<v1::Took>>,
}

impl Durations {
    fn add(&mut self, nanos: i64) {
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back((nanos.max(0) as f64 / 1e9) as f32);
        self.took = Cell::new(None);
    }

    /// How long it took in one of ten cases at most, in half, and in nine of ten.
    pub(crate) fn took(&self) -> Option<v1::Took> {
        if self.samples.is_empty() || self.took.get().is_some() {
            return self.took.get();
        }
        let mut sorted: Vec<f32> = self.samples.iter().copied().collect();
        sorted.sort_by(f32::total_cmp);
        let quantile = |part: f64| f64::from(sorted[((sorted.len() - 1) as f64 * part).round() as usize]);
        self.took.set(Some(v1::Took {
            samples: sorted.len() as u32,
            p10_secs: quantile(0.1),
            p50_secs: quantile(0.5),
            p90_secs: quantile(0.9),
        }));
        self.took.get()
    }
}

/// What was seen of one sort.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) create: Durations,
    pub(crate) configure: Durations,
    pub(crate) drain: Durations,
    pub(crate) bound_hours: f64,
    pub(crate) promised: f64,
    pub(crate) lost: u32,
    /// Bound now, and the sum of their probabilities.
    bound: u32,
    risk: f64,
}

/// A machine as the record last had it.
#[derive(Clone, Copy, Debug)]
struct Last {
    state: MachineState,
    since: i64,
    sort: u32,
    probability: f64,
}

/// What was observed so far.
#[derive(Default)]
pub(crate) struct Observed {
    records: Option<Records>,
    machines: BTreeMap<Box<str>, Last>,
    sorts: BTreeMap<Sort, u32>,
    seen: Vec<Seen>,
    providers: Vec<Arc<str>>,
    pub(crate) from_unix_nanos: i64,
    pub(crate) to_unix_nanos: i64,
}

impl Observed {
    /// Reads on for as long as there is patience.
    pub(crate) fn catch_up(
        &mut self,
        folder: &Path,
        now: i64,
        patience_millis: Option<i64>,
    ) -> Result<(), TapeError> {
        let clock = SystemClock::start();
        let until = patience_millis.map(|millis| clock.now_unix_nanos() + millis * 1_000_000);
        let mut records = if let Some(records) = self.records.take() {
            records
        } else {
            let reader = Reader::open(folder)?;
            let Some(first) = reader.first() else { return Ok(()) };
            let from = reader.at_time(now - DAY_NANOS).unwrap_or(first);
            reader.records_from(&reader.full_before(&from)?)
        };
        while until.is_none_or(|until| clock.now_unix_nanos() < until) {
            match records.next() {
                Some(Ok(record)) => self.take(&record),
                // What cannot be read is passed over: the next segment begins with a full state.
                Some(Err(_)) => self.machines.clear(),
                None => break,
            }
        }
        self.records = Some(records);
        Ok(())
    }

    fn take(&mut self, record: &Recorded) {
        let now = record.now_unix_nanos;
        if self.from_unix_nanos == 0 {
            self.from_unix_nanos = now;
        } else {
            let hours = (now - self.to_unix_nanos).max(0) as f64 / HOUR_NANOS;
            for seen in &mut self.seen {
                seen.bound_hours += f64::from(seen.bound) * hours;
                seen.promised += seen.risk * hours;
            }
        }
        self.to_unix_nanos = now;
        if let Some(settings) = record.around.as_ref().and_then(|around| around.settings.as_ref()) {
            self.providers = settings.providers.iter().map(|provider| provider.name.clone()).collect();
        }
        let inputs = record.full.as_deref().unwrap_or(&record.inputs);
        let mut before =
            if record.full.is_some() { std::mem::take(&mut self.machines) } else { BTreeMap::new() };
        let mut owners = record.around.as_ref().map_or(&[][..], |around| &around.owners).iter();
        for input in inputs {
            match input {
                Input::Observe(machine) => {
                    let owner = owners.next().copied().unwrap_or(0);
                    if let Some(last) = before.remove(&machine.id) {
                        self.machines.insert(machine.id.clone(), last);
                    }
                    self.observe(machine, owner, now);
                }
                Input::Remove(id) => {
                    if let Some(last) = self.machines.remove(id) {
                        self.leave(last, None, now);
                    }
                }
                Input::Replace { .. } | Input::Park { .. } => {}
            }
        }
        // A full state that no longer has a machine says nothing of how it went.
        for last in before.into_values() {
            self.unbind(last);
        }
    }

    fn observe(&mut self, machine: &Machine, owner: u16, now: i64) {
        let provider = self.providers.get(usize::from(owner)).cloned().unwrap_or_else(|| "".into());
        let sort = Sort {
            provider,
            instance_type: machine.instance_type.clone(),
            capacity_type: machine.capacity_type,
        };
        let next = self.sorts.len() as u32;
        let sort = *self.sorts.entry(sort).or_insert(next);
        if sort == next {
            self.seen.push(Seen::default());
        }
        let last = self.machines.get(&machine.id).copied();
        let since = match last {
            Some(last) if last.state == machine.state => last.since,
            _ => now,
        };
        if let Some(last) = last {
            if last.state == machine.state {
                self.unbind(last);
            } else {
                self.leave(last, Some(machine.state), now);
            }
        }
        let probability = machine.interruption_probability;
        let this = Last { state: machine.state, since, sort, probability };
        if machine.state == MachineState::Configured {
            let seen = &mut self.seen[sort as usize];
            seen.bound += 1;
            seen.risk += probability;
        }
        self.machines.insert(machine.id.clone(), this);
    }

    fn unbind(&mut self, last: Last) {
        if last.state == MachineState::Configured {
            let seen = &mut self.seen[last.sort as usize];
            seen.bound -= 1;
            seen.risk = if seen.bound == 0 { 0.0 } else { seen.risk - last.probability };
        }
    }

    /// A machine is in another state now, or gone.
    fn leave(&mut self, last: Last, to: Option<MachineState>, now: i64) {
        use MachineState::{Configured, Configuring, Creating, Draining, Idle};
        self.unbind(last);
        let seen = &mut self.seen[last.sort as usize];
        let took = now - last.since;
        match (last.state, to) {
            (Creating, Some(Idle | Configuring | Configured)) => seen.create.add(took),
            (Configuring, Some(Configured)) => seen.configure.add(took),
            (Draining, Some(Idle)) => seen.drain.add(took),
            // We drain what we take: everything else was taken from us.
            (Configured, to) if to != Some(Draining) => seen.lost += 1,
            _ => {}
        }
    }

    pub(crate) fn sorts(&self) -> impl Iterator<Item = (&Sort, &Seen)> {
        self.sorts.iter().map(|(sort, place)| (sort, &self.seen[*place as usize]))
    }

    /// How long something took for machines of a sort; if nothing of it was seen yet, for the like of it, of the same
    /// provider.
    pub(crate) fn took(&self, sort: &Sort, durations: fn(&Seen) -> &Durations) -> Option<v1::Took> {
        let own = self.sorts.get(sort).and_then(|place| durations(&self.seen[*place as usize]).took());
        own.or_else(|| {
            let alike = self.sorts().filter(|(other, _)| {
                other.provider == sort.provider && other.capacity_type == sort.capacity_type
            });
            alike.filter_map(|(_, seen)| durations(seen).took()).max_by_key(|took| took.samples)
        })
    }

    /// When what is under way with a machine should be done.
    pub(crate) fn expect(&self, known: &Known) -> Option<v1::Expected> {
        let machine = &*known.machine;
        let since = match known.since_unix_nanos {
            0 => self.machines.get(&machine.id).filter(|last| last.state == machine.state)?.since,
            since => since,
        };
        let exact = Sort {
            provider: known.provider.clone(),
            instance_type: machine.instance_type.clone(),
            capacity_type: machine.capacity_type,
        };
        let pick = |durations: fn(&Seen) -> &Durations| self.took(&exact, durations);
        let parts = match machine.state {
            MachineState::Creating if machine.assigned.fingerprint.is_empty() => {
                vec![pick(|seen| &seen.create)?]
            }
            // Bought for a need: it is bound as soon as it is there.
            MachineState::Creating => {
                std::iter::once(pick(|seen| &seen.create)?).chain(pick(|seen| &seen.configure)).collect()
            }
            MachineState::Configuring => vec![pick(|seen| &seen.configure)?],
            MachineState::Draining if machine.draining_for.is_none() => vec![pick(|seen| &seen.drain)?],
            // Emptied for a need: it is bound again as soon as it is empty.
            MachineState::Draining => {
                std::iter::once(pick(|seen| &seen.drain)?).chain(pick(|seen| &seen.configure)).collect()
            }
            _ => return None,
        };
        let after = |secs: f64| since.saturating_add((secs * 1e9) as i64);
        Some(v1::Expected {
            from_unix_nanos: after(parts.iter().map(|took| took.p10_secs).sum()),
            to_unix_nanos: after(parts.iter().map(|took| took.p90_secs).sum()),
            samples: parts.iter().map(|took| took.samples).min().unwrap_or(0),
        })
    }
}
