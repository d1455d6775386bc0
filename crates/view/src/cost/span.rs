//! Costs over a span: the record is decided again, moment by moment, and the bills of the moments are added up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_engine::Options;
use bigfleet_record::Recorded;
use bigfleet_record::replay::Replay;
use bigfleet_record::tape::Reader;
use bigfleet_shard::Fate;
use tonic::Status;

use super::{Bill, Cause, Sort, Sum, whole};
use crate::names::find_cluster;
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::{blocking, tape_status};
use crate::v1;

/// An hour.
const HOUR_NANOS: i128 = 3_600_000_000_000;
/// How many machines are looked at in all: beyond that, not every cycle is.
const BUDGET: usize = 20_000_000;
/// Points of the curve if nobody says, and at most.
const POINTS: u32 = 60;
const MOST_POINTS: u32 = 1000;

/// Rounds parts so that they add up to their rounded sum: what each lost by rounding down goes to those that lost most.
pub fn divide(parts: &[i128], by: i128) -> Vec<i128> {
    let mut rounded: Vec<i128> = parts.iter().map(|part| part.div_euclid(by)).collect();
    let total = parts.iter().sum::<i128>().div_euclid(by);
    let left = total - rounded.iter().sum::<i128>();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(parts[*at].rem_euclid(by)), *at));
    for at in order.into_iter().take(usize::try_from(left).unwrap_or(0)) {
        rounded[at] += 1;
    }
    rounded
}

/// What was added up so far.
struct Added {
    /// By sort: billionths of a dollar an hour, times nanoseconds; and machine-nanoseconds.
    sums: BTreeMap<Sort, Sum>,
    points: Vec<Point>,
    from: i64,
    /// How long a point is.
    step: i64,
    cycles: u64,
    looked_at: u64,
}

#[derive(Clone, Copy, Default)]
struct Point {
    all: i128,
    idle: i128,
    waste: i128,
    nanos: i64,
    short: u32,
    actions: u32,
}

impl Added {
    fn new(from: i64, to: i64, points: u32) -> Self {
        let points = if points == 0 { POINTS } else { points.min(MOST_POINTS) };
        let step = ((to - from) / i64::from(points)).max(1);
        let len = ((to - from) as u64).div_ceil(step as u64) as usize;
        Self {
            sums: BTreeMap::new(),
            points: vec![Point::default(); len],
            from,
            step,
            cycles: 0,
            looked_at: 0,
        }
    }

    fn point(&mut self, at: i64) -> Option<&mut Point> {
        let place = usize::try_from((at - self.from) / self.step).ok()?;
        self.points.get_mut(place)
    }

    /// A bill held from one instant to another.
    fn held(&mut self, bill: &Bill, from: i64, to: i64) {
        let nanos = to - from;
        if nanos <= 0 {
            return;
        }
        for (sort, sum) in &bill.sums {
            let added = self.sums.entry(sort.clone()).or_default();
            added.nanos += sum.nanos * i128::from(nanos);
            added.machines += sum.machines * nanos as f64;
        }
        let idle = bill.sum(|sort| matches!(sort.cause, Cause::IdleHold | Cause::IdleFixed));
        let (all, waste) = (bill.total(), bill.sum(|sort| sort.cause.is_waste()));
        let mut at = from;
        while at < to {
            let end = (self.from + ((at - self.from) / self.step + 1) * self.step).min(to);
            let nanos = end - at;
            if let Some(point) = self.point(at) {
                let long = i128::from(nanos);
                point.all += all * long;
                point.idle += idle * long;
                point.waste += waste * long;
                point.nanos += nanos;
            }
            at = end;
        }
    }

    fn saw(&mut self, record: &Recorded) {
        self.cycles += 1;
        let begun = record.decided.iter().filter(|decided| decided.fate == Fate::Begun).count() as u32;
        if let Some(point) = self.point(record.now_unix_nanos) {
            point.short = point.short.max(record.short_needs);
            point.actions += begun;
        }
    }

    fn message(self, to: i64) -> v1::Costs {
        let (sorts, sums): (Vec<Sort>, Vec<Sum>) = self.sums.into_iter().unzip();
        let nanos = divide(&sums.iter().map(|sum| sum.nanos).collect::<Vec<_>>(), HOUR_NANOS);
        let sums = nanos
            .into_iter()
            .zip(sums)
            .map(|(nanos, sum)| Sum { nanos, machines: sum.machines / HOUR_NANOS as f64 });
        let bill = Bill { sums: sorts.into_iter().zip(sums).collect() };
        let hours = (to - self.from) as f64 / HOUR_NANOS as f64;
        let mut costs = bill.message();
        for rate in [
            &mut costs.usd_per_hour,
            &mut costs.idle_usd_per_hour,
            &mut costs.moving_usd_per_hour,
            &mut costs.failed_usd_per_hour,
        ] {
            *rate /= hours;
        }
        for cell in &mut costs.cells {
            cell.usd_per_hour /= hours;
        }
        costs.total_nano_usd = whole(bill.total());
        costs.span = Some(v1::CostSpan {
            from_unix_nanos: self.from,
            to_unix_nanos: to,
            cycles: self.cycles,
            looked_at: self.looked_at,
        });
        let rate = |nanos: i128, long: i64| if long == 0 { 0.0 } else { nanos as f64 / long as f64 / 1e9 };
        let (from, step) = (self.from, self.step);
        let points = (0..).zip(self.points).map(|(at, point)| v1::CostPoint {
            unix_nanos: from + step * at,
            usd_per_hour: rate(point.all, point.nanos),
            idle_usd_per_hour: rate(point.idle, point.nanos),
            waste_usd_per_hour: rate(point.waste, point.nanos),
            short_needs: point.short,
            actions: point.actions,
        });
        costs.points = points.collect();
        costs
    }
}

/// A record that is decided again where somebody looks.
#[derive(Default)]
struct Film {
    replay: Replay,
    /// The options and the time of the last record, and what it says was paid.
    last: Option<(Options, i64, f64)>,
    is_decided: bool,
    /// Clusters there were when somebody looked.
    clusters: BTreeSet<Arc<str>>,
}

impl Film {
    /// Remembers which clusters there are.
    fn note_clusters(&mut self) {
        let around = self.replay.around();
        self.clusters.extend(around.iter().flat_map(|around| around.surroundings.clusters.keys().cloned()));
        self.clusters.extend(self.replay.fleet().clusters().map(Arc::from));
    }

    fn take(&mut self, record: &Recorded, decide: bool) -> Result<(), Status> {
        let taken = if decide { self.replay.step(record).map(drop) } else { self.replay.take(record) };
        taken.map_err(|error| tape_status(&error))?;
        self.is_decided = decide;
        self.last = Some((record.options.clone(), record.now_unix_nanos, record.usd_per_hour));
        Ok(())
    }

    /// The bill as it stands.
    fn bill(&mut self, cluster: &str) -> Bill {
        let Some((options, now, usd)) = &self.last else { return Bill::default() };
        if !self.is_decided {
            self.replay.decide(options, *now);
            self.is_decided = true;
        }
        let knowns: Vec<_> = self.replay.machines().map(|machine| self.replay_known(machine)).collect();
        let mut bill = Bill::of(self.replay.fleet(), &knowns);
        bill.complete(*usd);
        bill.keep_cluster(cluster);
        bill
    }

    fn replay_known(
        &self,
        machine: &std::sync::Arc<bigfleet_model::machine::Machine>,
    ) -> crate::known::Known {
        let mut known = crate::known::Known::recorded(machine.clone());
        let provider = self.replay.around().and_then(|around| around.provider_of(&machine.id));
        if let Some(name) = provider {
            known.provider = name.clone();
        }
        known
    }
}

fn over(reader: &Reader, from: i64, to: i64, points: u32, cluster: &str) -> Result<v1::Costs, Status> {
    let fault = |error: bigfleet_record::tape::TapeError| tape_status(&error.into());
    let first = reader.at_time(from).map_err(fault)?;
    let full = reader.full_before(&first).map_err(fault)?;
    let mut added = Added::new(from, to, points);
    let mut film = Film::default();
    // What holds since when.
    let mut standing: Option<(i64, Bill)> = None;
    let mut spacing: Option<i64> = None;
    for record in reader.records_from(&full) {
        let record = record.map_err(fault)?;
        let now = record.now_unix_nanos;
        if now >= to {
            break;
        }
        if now <= from {
            film.take(&record, false)?;
            continue;
        }
        if standing.is_none() {
            standing = Some((from, film.bill(cluster)));
            added.looked_at += 1;
            film.note_clusters();
        }
        added.saw(&record);
        let machines = film.replay.machines().count().max(1);
        let spacing = *spacing.get_or_insert_with(|| {
            let looks = (BUDGET / machines).clamp(50, 100_000) as u32;
            (to - from) / i64::from(looks)
        });
        let since = standing.as_ref().map_or(from, |(since, _)| *since);
        let looks = now - since >= spacing;
        film.take(&record, looks)?;
        if looks && let Some((since, bill)) = standing.replace((now, film.bill(cluster))) {
            added.held(&bill, since, now);
            added.looked_at += 1;
        }
    }
    let (since, bill) = standing.unwrap_or_else(|| (from, film.bill(cluster)));
    added.held(&bill, since, to);
    film.note_clusters();
    if !cluster.is_empty() && added.sums.is_empty() {
        // Nothing was paid for it: is there such a cluster at all?
        find_cluster(cluster, film.clusters.iter().map(|name| &**name))?;
    }
    Ok(added.message(to))
}

impl<S: Shards> View<S> {
    pub(super) async fn costs_over(&self, request: v1::GetCostsRequest) -> Result<v1::Costs, Status> {
        let as_of = self.as_of().await?;
        let now = self.now_of(&as_of).await?;
        let folder = self.record_dir()?.to_owned();
        let to = if request.to_unix_nanos == 0 { now } else { request.to_unix_nanos.min(now) };
        let from = request.from_unix_nanos;
        if from >= to {
            return Err(Status::invalid_argument("the span ends before it begins; give from before to"));
        }
        let judgement = if request.judge {
            let at = v1::Moment { moment: Some(v1::moment::Moment::UnixNanos(to)) };
            let at = if to == now { None } else { Some(at) };
            let (snapshot, machines) = self.moment_with_machines(at).await?;
            Some(blocking(move || Ok(super::judge::judge(&snapshot, &machines))).await?)
        } else {
            None
        };
        let mut costs = blocking(move || {
            let reader = Reader::open(&folder).map_err(|error| tape_status(&error.into()))?;
            over(&reader, from, to, request.points, &request.cluster)
        })
        .await?;
        costs.as_of = Some(v1::AsOf { from_record: true, ..as_of });
        costs.judgement = judgement;
        Ok(costs)
    }
}
