//! One moment of a fleet to ask things of: a fork of the living one, or one read back from the decision record.
//!
//! Forking costs microseconds on the shard's thread. Everything asked of a snapshot is worked out elsewhere.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use bigfleet_engine::{Fleet, Options};
use bigfleet_model::machine::Machine;
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_record::replay::{PastAround, ReplayError};
use bigfleet_record::tape::{Reader, TapeError};
use bigfleet_record::{Decided, Recorded};
use bigfleet_shard::{CycleRecord, MachineFacts, Shard, Shortfall};
use tonic::Status;

use crate::decisions;
use crate::known::{self, Known, Search};
use crate::needs::NeedRow;
use crate::service::View;
use crate::shards::Shards;
use crate::v1;

/// One moment of a fleet.
pub(crate) struct Snapshot {
    pub(crate) as_of: v1::AsOf,
    pub(crate) fleet: Fleet,
    pub(crate) options: Options,
    pub(crate) now_unix_nanos: i64,
    /// Present if it was read from the record.
    pub(crate) past: Option<Arc<Past>>,
    /// What the living shard knows beside its fleet, taken in the same look; empty if it was read from the record.
    pub(crate) beside: Beside,
}

/// What a shard knows beside its fleet, in the same instant.
#[derive(Default)]
pub(crate) struct Beside {
    /// The cycles at hand, oldest first.
    pub(crate) recent: Vec<Arc<CycleRecord>>,
    /// Who is short, and since when.
    pub(crate) ledger: Arc<BTreeMap<NeedKey, Shortfall>>,
    /// When parked gangs try again, by cycle.
    next_tries: BTreeMap<NeedKey, u64>,
    /// The longest time between two cycles.
    tick_nanos: i64,
}

/// What the record adds to a fleet of the past.
pub(crate) struct Past {
    pub(crate) machines: BTreeMap<Box<str>, Arc<Machine>>,
    /// Rows of demand by cluster.
    pub(crate) needs: BTreeMap<Arc<str>, Arc<[Need]>>,
    pub(crate) record: Recorded,
    /// Absent if the build that wrote the record did not keep it.
    pub(crate) around: Option<PastAround>,
}

impl Past {
    /// A decision of that cycle.
    pub(crate) fn message(&self, decided: &Decided) -> v1::Decision {
        let facts = |id: &str| self.machines.get(id).map(|machine| MachineFacts::from(&**machine));
        decisions::message((&self.record).into(), &decisions::with_facts(decided.clone(), facts))
    }

    /// A machine with what the record says of its provider.
    pub(crate) fn known(&self, machine: &Arc<Machine>) -> Known {
        let mut known = Known::recorded(machine.clone());
        if let Some(around) = &self.around
            && let Some(name) = around.provider_of(&machine.id)
        {
            known.provider = name.clone();
            let surroundings = &around.surroundings;
            let place = surroundings.settings.providers.iter().position(|provider| provider.name == *name);
            let provider = place.and_then(|place| surroundings.providers.get(place));
            known.heard_unix_nanos = provider.and_then(|p| p.listed.unix_nanos).unwrap_or_default();
        }
        known
    }
}

impl Snapshot {
    pub(crate) fn live(shard: &Shard, now_unix_nanos: i64, simulated: bool) -> Self {
        Self {
            as_of: as_of(shard, now_unix_nanos, simulated),
            fleet: shard.engine().fork(),
            options: shard.options(),
            now_unix_nanos,
            past: None,
            beside: Beside {
                recent: shard.recent().cloned().collect(),
                ledger: shard.ledger().shared(),
                next_tries: shard.next_tries(),
                tick_nanos: shard.config().pace.tick,
            },
        }
    }

    /// Adds to a need what was known beside the fleet: since when it is short, when it tries again, what its machines cost.
    pub(crate) fn fill(&self, row: NeedRow) -> v1::Need {
        let NeedRow { mut message, machines, decided_as, .. } = row;
        let since = match &self.past {
            Some(past) => {
                past.around.as_ref().and_then(|around| around.short_since.get(&decided_as)).copied()
            }
            None => self.beside.ledger.get(&decided_as).map(|short| short.since),
        };
        if let Some(since) = since {
            message.short_since_unix_nanos = since.unix_nanos;
            message.short_since_cycle = since.cycle;
        }
        if let Some(next) = self.beside.next_tries.get(&decided_as) {
            message.next_try_cycle = *next;
            let cycles = i64::try_from(next.saturating_sub(self.as_of.cycle)).unwrap_or(i64::MAX);
            let latest =
                self.as_of.cycle_unix_nanos.saturating_add(self.beside.tick_nanos.saturating_mul(cycles));
            message.next_try_unix_nanos = latest;
        }
        message.usd_per_hour = machines.iter().filter_map(|id| self.fleet.price_of(id)).sum();
        message
    }
}

/// What an answer of the living shard is of.
pub(crate) fn as_of(shard: &Shard, now_unix_nanos: i64, simulated: bool) -> v1::AsOf {
    let ran = shard.last_cycle_unix_nanos();
    v1::AsOf {
        shard_id: shard.config().shard_id.to_string(),
        epoch: shard.config().epoch,
        cycle: if ran.is_some() { shard.cycle() } else { 0 },
        cycle_unix_nanos: ran.unwrap_or_default(),
        now_unix_nanos,
        from_record: false,
        simulated,
        recorded_edition: None,
    }
}

/// Runs something that takes its time where it disturbs nobody.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Status::internal(format!("the answer could not be worked out: {error}"))))
}

/// What a trouble with the record means to whoever asked.
pub(crate) fn tape_status(error: &ReplayError) -> Status {
    match error {
        ReplayError::Tape(TapeError::TooEarly { unix_nanos, .. }) => {
            Status::not_found(format!("{error}, of {}", time(*unix_nanos)))
        }
        ReplayError::Tape(TapeError::Empty(_) | TapeError::Dropped) => Status::not_found(error.to_string()),
        _ => Status::internal(error.to_string()),
    }
}

/// A time as people write it, to the second.
fn time(unix_nanos: i64) -> String {
    prost_types::Timestamp { seconds: unix_nanos.div_euclid(1_000_000_000), nanos: 0 }.to_string()
}

/// Refuses a moment that is yet to come: the newest record would be passed off for it.
fn not_yet(moment: &v1::moment::Moment, last_cycle: u64, now_unix_nanos: i64) -> Result<(), Status> {
    let what = match moment {
        v1::moment::Moment::Cycle(cycle) if *cycle > last_cycle => {
            format!("cycle {cycle} has not run yet; the last was {last_cycle}")
        }
        v1::moment::Moment::UnixNanos(at) if *at > now_unix_nanos => {
            format!("{} is yet to come; the shard's clock says {}", time(*at), time(now_unix_nanos))
        }
        _ => return Ok(()),
    };
    Err(Status::out_of_range(format!("{what}; ask without a moment to see the present")))
}

fn read_back(
    folder: &Path,
    moment: &v1::moment::Moment,
    mut as_of: v1::AsOf,
) -> Result<Snapshot, ReplayError> {
    let reader = Reader::open(folder)?;
    let entry = match moment {
        v1::moment::Moment::Cycle(cycle) => reader.at_cycle(*cycle)?,
        v1::moment::Moment::UnixNanos(unix_nanos) => reader.at_time(*unix_nanos)?,
    };
    let state = reader.state_at(&entry)?;
    as_of.cycle = state.record.cycle;
    as_of.epoch = state.record.epoch;
    as_of.cycle_unix_nanos = state.record.now_unix_nanos;
    as_of.from_record = true;
    as_of.recorded_edition = state.other_edition();
    Ok(Snapshot {
        as_of,
        fleet: state.fleet,
        options: state.record.options.clone(),
        now_unix_nanos: state.record.now_unix_nanos,
        past: Some(Arc::new(Past {
            machines: state.machines,
            needs: state.needs,
            record: state.record,
            around: state.around,
        })),
        beside: Beside::default(),
    })
}

impl<S: Shards> View<S> {
    /// The moment somebody asks about; now if they do not say.
    pub(crate) async fn snapshot(&self, at: Option<v1::Moment>) -> Result<Snapshot, Status> {
        let simulated = self.about.simulated;
        let newest = self.about.record_only.then_some(v1::moment::Moment::Cycle(u64::MAX));
        let Some(moment) = at.and_then(|at| at.moment).or(newest) else {
            return Ok(self.shards.inspect(move |shard, now| Snapshot::live(shard, now, simulated)).await?);
        };
        let look = move |shard: &Shard, now: i64| (as_of(shard, now, simulated), shard.cycle());
        let (now, last_cycle) = self.shards.inspect(look).await?;
        let folder = self.record_dir()?.to_owned();
        if !self.about.record_only {
            not_yet(&moment, last_cycle, now.now_unix_nanos)?;
        }
        blocking(move || read_back(&folder, &moment, now).map_err(|error| tape_status(&error))).await
    }

    /// What an answer about now is of.
    pub(crate) async fn as_of(&self) -> Result<v1::AsOf, Status> {
        let simulated = self.about.simulated;
        Ok(self.shards.inspect(move |shard, now| as_of(shard, now, simulated)).await?)
    }

    /// Until when there is anything to tell: now, or the end of the record.
    pub(crate) async fn now_of(&self, as_of: &v1::AsOf) -> Result<i64, Status> {
        if !self.about.record_only {
            return Ok(as_of.now_unix_nanos);
        }
        let folder = self.record_dir()?.to_owned();
        blocking(move || {
            let fault = |error: TapeError| tape_status(&error.into());
            let last = Reader::open(&folder).map_err(fault)?.last().map_err(fault)?;
            Ok(last.map_or(0, |last| last.now_unix_nanos))
        })
        .await
    }

    /// Refuses what only a living shard can answer.
    pub(crate) fn needs_life(&self, what: &str) -> Result<(), Status> {
        if self.about.record_only {
            let says = format!(
                "{what} needs a running shard; a record answers get, explain need, machine and decision, cost, lint and whatif"
            );
            return Err(Status::failed_precondition(says));
        }
        Ok(())
    }

    pub(crate) fn record_dir(&self) -> Result<&Path, Status> {
        self.about.record_dir.as_deref().ok_or_else(|| {
            Status::failed_precondition(
                "this shard keeps no decision record, so it cannot look back; run it with a data folder",
            )
        })
    }

    /// The machine somebody means.
    pub(crate) async fn find_machine(&self, snapshot: &Snapshot, text: &str) -> Result<Known, Status> {
        let Some(past) = &snapshot.past else { return known::find(&*self.shards, text).await };
        if let Some(machine) = past.machines.get(text) {
            return Ok(past.known(machine));
        }
        let mut search = Search::new(text);
        past.machines.values().for_each(|machine| search.consider(past.known(machine)));
        search.result()
    }

    /// Machines by name; those unknown are left out.
    pub(crate) async fn machines_named(
        &self,
        snapshot: &Snapshot,
        ids: Vec<Box<str>>,
    ) -> Result<Vec<Known>, Status> {
        let Some(past) = &snapshot.past else { return known::named(&*self.shards, ids).await };
        Ok(ids.iter().filter_map(|id| past.machines.get(id)).map(|machine| past.known(machine)).collect())
    }

    /// The next machines of a walk over all of them.
    pub(crate) async fn next_slice(&self, walk: &mut Walk) -> Result<Option<Vec<Known>>, Status> {
        match walk {
            Walk::Over => Ok(None),
            Walk::Living(place) => {
                let slice = known::slice(&*self.shards, *place).await?;
                *walk = slice.next.map_or(Walk::Over, Walk::Living);
                Ok(Some(slice.machines))
            }
            Walk::Past(past, after) => {
                let rest = past.machines.range::<str, _>((Bound::Excluded(&**after), Bound::Unbounded));
                let slice: Vec<Known> =
                    rest.take(known::SLICE).map(|(_, machine)| past.known(machine)).collect();
                match slice.last() {
                    Some(last) => *after = last.machine.id.clone(),
                    None => *walk = Walk::Over,
                }
                Ok(Some(slice))
            }
        }
    }
}

/// How far a walk over all machines has come.
pub(crate) enum Walk {
    /// Through the living shard, from this place on.
    Living(u32),
    /// Through the record, after this machine.
    Past(Arc<Past>, Box<str>),
    /// All were seen.
    Over,
}

impl Walk {
    /// From the first machine on.
    pub(crate) fn begin(past: Option<&Arc<Past>>) -> Self {
        past.map_or(Self::Living(0), |past| Self::Past(past.clone(), "".into()))
    }
}
