//! The whole shard on one screen, now and as it changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bigfleet_engine::Fleet;
use bigfleet_model::need::NeedKey;
use bigfleet_shard::{CycleRecord, Shard, Shortfall};
use tonic::Status;

use crate::clusters::{self, ShortCounts, mark_short, short_counts, supply_cell};
use crate::convert::{amounts, reason};
use crate::decisions::{self, Wanted, of_record};
use crate::modes;
use crate::names::need_ref;
use crate::pages::Pages;
use crate::rails::totals;
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::{as_of, blocking};
use crate::utilisation::Utilisation;
use crate::v1;

/// Short needs told one by one.
const WORST: usize = 20;
/// Decisions added if nobody says how many.
const DECISIONS: u32 = 20;
/// Decisions added at most.
const MOST_DECISIONS: u32 = 1000;
/// The least time between two events of a watch.
const LEAST_MILLIS: u32 = 50;
/// The time between two events of a watch if nobody says.
const MILLIS: u32 = 500;

/// What a cycle left short, worked out once for everybody who watches.
#[derive(Debug)]
pub(crate) struct Verdicts {
    counts: ShortCounts,
    worst: Vec<v1::Shortfall>,
    utilisation: Utilisation,
}

/// The verdicts of the last cycle anybody asked about.
pub(crate) type VerdictCache = Mutex<Option<((u64, i64), Arc<Verdicts>)>>;

impl Verdicts {
    pub(crate) fn of(fleet: &Fleet) -> Self {
        Self {
            counts: short_counts(fleet),
            worst: shortfalls(fleet, Some(WORST), &|_| true).0,
            utilisation: Utilisation::of(fleet),
        }
    }
}

/// What is short, by priority and then by how long its need has been waiting, and how many there are in all. Since when
/// it is short is left to [`since`].
pub(crate) fn shortfalls(
    fleet: &Fleet,
    most: Option<usize>,
    wanted: &dyn Fn(&str) -> bool,
) -> (Vec<v1::Shortfall>, usize) {
    let all: Vec<_> =
        fleet.short_needs().into_iter().filter(|short| wanted(&short.demand.need.cluster)).collect();
    let told = &all[..most.unwrap_or(all.len()).min(all.len())];
    let keys: Vec<_> = told.iter().map(|short| short.demand.need.key()).collect();
    let reasons = fleet.reasons_of(&keys);
    let messages = told.iter().zip(&keys).zip(reasons).map(|((short, key), why)| v1::Shortfall {
        need: Some(need_ref(key)),
        priority: short.demand.priority(),
        since_unix_nanos: 0,
        since_cycle: 0,
        reason: reason(why).into(),
        deficit: amounts(&short.missing),
        unresolved: short.unresolved.as_ref().map(amounts).unwrap_or_default(),
        spec: Some((&short.demand.need).into()),
    });
    (messages.collect(), all.len())
}

/// Adds since when.
pub(crate) fn since(ledger: &BTreeMap<NeedKey, Shortfall>, shortfalls: &mut [v1::Shortfall]) {
    for shortfall in shortfalls {
        let Some(need) = &shortfall.need else { continue };
        let key = NeedKey {
            cluster: need.cluster.as_str().into(),
            fingerprint: need.fingerprint.as_str().into(),
            group: need.group.as_str().into(),
        };
        if let Some(known) = ledger.get(&key) {
            shortfall.since_unix_nanos = known.since.unix_nanos;
            shortfall.since_cycle = known.since.cycle;
        }
    }
}

/// How long the last cycles took, in short.
fn cycle_times(mut nanos: Vec<i64>) -> Option<v1::CycleTimes> {
    let last_nanos = *nanos.last()?;
    nanos.sort_unstable();
    let (cycles, median_nanos) = (nanos.len() as u32, nanos[nanos.len() / 2]);
    Some(v1::CycleTimes { cycles, last_nanos, median_nanos, worst_nanos: *nanos.last()? })
}

fn summarise(shard: &Shard, now: i64, simulated: bool) -> v1::Summary {
    let money = shard.money();
    let lanes = shard.clusters().iter().map(|(name, cluster)| clusters::lane(shard, name, cluster, now));
    v1::Summary {
        as_of: Some(as_of(shard, now, simulated)),
        supply: money.by_state().map(|(state, capacity, bill)| supply_cell(state, capacity, bill)).collect(),
        lanes: lanes.collect(),
        usd_per_hour: money.spend().usd_per_hour(),
        idle_usd_per_hour: money.idle().usd_per_hour(),
        needs: shard.engine().need_count() as u32,
        pauses: shard.pauses().len() as u32,
        mode: modes::strictest(shard, None).0.into(),
        proposals: modes::waiting(shard, now),
        dry_run: shard.config().rails.dry_run,
        moves: shard.queues().calling as u32,
        providers: (0..shard.providers().len()).map(|at| clusters::provider_brief(shard, at, now)).collect(),
        ..v1::Summary::default()
    }
}

impl<S: Shards> View<S> {
    pub(crate) async fn summary(&self, decisions: u32) -> Result<v1::Summary, Status> {
        self.needs_life("a summary")?;
        let most = if decisions == 0 { DECISIONS } else { decisions.min(MOST_DECISIONS) };
        let simulated = self.about.simulated;
        let cached = self.verdicts.lock().expect("no holder panics").clone();
        let have = cached.as_ref().map(|(of, _)| *of);
        let look = move |shard: &Shard, now: i64| {
            let of = (shard.cycle(), shard.last_cycle_unix_nanos().unwrap_or_default());
            let fork = (have != Some(of)).then(|| shard.engine().fork());
            let recent: Vec<Arc<CycleRecord>> = shard.recent().cloned().collect();
            (of, fork, recent, shard.ledger().shared(), summarise(shard, now, simulated))
        };
        let (of, fork, recent, ledger, mut summary) = self.shards.inspect(look).await?;
        let verdicts = match (fork, cached) {
            (Some(fleet), _) => {
                let verdicts = Arc::new(blocking(move || Ok(Verdicts::of(&fleet))).await?);
                *self.verdicts.lock().expect("no holder panics") = Some((of, verdicts.clone()));
                verdicts
            }
            (None, Some((_, verdicts))) => verdicts,
            (None, None) => return Err(Status::internal("a summary without verdicts")),
        };
        let held = recent.last().into_iter().flat_map(|record| decisions::withheld(record));
        summary.withheld = totals(held.map(|ordered| (ordered.action.kind, ordered.fate)));
        for lane in &mut summary.lanes {
            mark_short(lane, &verdicts.counts);
            verdicts.utilisation.mark(lane);
        }
        summary.r#use.clone_from(&verdicts.utilisation.fleet);
        (summary.unmet, summary.short) =
            verdicts.counts.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        summary.worst.clone_from(&verdicts.worst);
        since(&ledger, &mut summary.worst);
        summary.cycle_times = cycle_times(self.shards.cycle_times());
        summary.recent = Wanted::default().of_recent_folded(&recent, most as usize);
        Ok(summary)
    }

    pub(crate) async fn watch(
        &self,
        request: v1::WatchRequest,
        pages: Pages<v1::WatchEvent>,
    ) -> Result<(), Status> {
        let millis = if request.min_interval_millis == 0 { MILLIS } else { request.min_interval_millis };
        let interval = Duration::from_millis(millis.max(LEAST_MILLIS).into());
        let mut cycles = self.shards.cycles();
        let mut told = match request.decisions_after_cycle {
            0 => self.shards.inspect(|shard, _| shard.cycle()).await?,
            after => after,
        };
        loop {
            cycles.mark_unchanged();
            let recent = self.recent().await?;
            let new: Vec<v1::Decision> = recent
                .iter()
                .filter(|record| record.cycle > told)
                .flat_map(|record| of_record(record))
                .collect();
            // How many decisions cycles made that are no longer at hand, only the record knows; each counts as one.
            let lost = recent.first().map_or(0, |record| record.cycle.saturating_sub(told + 1));
            told = recent.last().map_or(told, |record| record.cycle.max(told));
            let over = new.len().saturating_sub(MOST_DECISIONS as usize);
            let decisions = new[over..].to_vec();
            let summary = Some(self.summary(request.decisions).await?);
            pages.send(v1::WatchEvent { summary, decisions, skipped: over as u64 + lost }).await?;
            tokio::select! {
                () = self.about.clock.sleep(interval) => {}
                () = pages.closed() => return Ok(()),
            }
            tokio::select! {
                changed = cycles.changed() => if changed.is_err() { return Err(crate::shards::Gone.into()) },
                () = pages.closed() => return Ok(()),
            }
        }
    }

    pub(crate) async fn list_shortfalls(
        &self,
        request: v1::ListShortfallsRequest,
        pages: Pages<v1::ShortfallPage>,
    ) -> Result<(), Status> {
        let snapshot = self.snapshot(request.at).await?;
        if !request.cluster.is_empty() {
            self.check_cluster(&snapshot, &request.cluster).await?;
        }
        let (fleet, ledger) = (snapshot.fleet, snapshot.beside.ledger);
        let most = (request.limit > 0).then_some(request.limit as usize);
        let wanted = move |cluster: &str| request.cluster.is_empty() || *cluster == *request.cluster;
        let (mut all, total) = blocking(move || Ok(shortfalls(&fleet, most, &wanted))).await?;
        if let Some(past) = &snapshot.past {
            past.add_since(&mut all);
        } else {
            since(&ledger, &mut all);
        }
        let mut total = Some(total as u64);
        let mut parts: Vec<Vec<v1::Shortfall>> = all.chunks(500).map(<[_]>::to_vec).collect();
        if parts.is_empty() {
            parts.push(Vec::new());
        }
        for shortfalls in parts {
            let as_of = Some(snapshot.as_of.clone());
            pages.send(v1::ShortfallPage { as_of, shortfalls, total: total.take() }).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_cycles_are_told_in_short() {
        assert_eq!(cycle_times(Vec::new()), None);
        let expected = v1::CycleTimes { cycles: 3, last_nanos: 2, median_nanos: 2, worst_nanos: 9 };
        assert_eq!(cycle_times(vec![1, 9, 2]), Some(expected));
    }
}
