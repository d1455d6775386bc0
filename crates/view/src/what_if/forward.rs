//! Hours ahead: the copy goes on in the simulator, as often as asked with other chances.
//!
//! The shipped shard, the shipped engine and providers made with the kit carry on from the copy in virtual time, with the
//! shard's own rails and holds. Moves take as long as the record has seen them take. Demand and prices stay as they are;
//! machines are lost as likely as their providers say, and are there again after ten minutes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bigfleet_shard::Config;
use bigfleet_sim::{Ahead as Run, Dwell, Present, Span, Standing};
use tonic::Status;

use super::world::World;
use crate::known::Known;
use crate::observed::{Observed, Sort};
use crate::truth::Watched;
use crate::v1;

/// Hours ahead at most, and runs with different chances at most and if nobody says.
const MOST_HOURS: u32 = 24 * 28;
const MOST_SEEDS: u32 = 100;
const SEEDS: u32 = 20;
/// Hours times machines times runs at most, for both sides together: some minutes of work.
const MOST_WORK: u64 = 4_000_000;
/// Whose machines are that somebody adds.
const ADDED: &str = "what-if";

/// How far ahead, and how often.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    hours: u32,
    seeds: u32,
    seed: u64,
}

/// What is known beside a copy: how its shard is set up, whose machines are, and how long their moves take.
pub(super) struct Surroundings {
    config: Config,
    providers: BTreeMap<Box<str>, Arc<str>>,
    watched: Watched,
}

impl Surroundings {
    pub(super) fn new(
        config: Config,
        knowns: &[Known],
        watched: Watched,
        record: Option<&Path>,
        now: i64,
    ) -> Self {
        if let Some(folder) = record {
            // What cannot be read is not known: moves take what they usually do.
            let _ = watched.lock().expect("no holder panics").catch_up(folder, now, None);
        }
        let whose = knowns.iter().map(|known| (known.machine.id.clone(), known.provider.clone()));
        Self { config, providers: whose.collect(), watched }
    }

    /// A copy, ready to go on.
    fn present(&self, world: &World) -> Result<Arc<Present>, Status> {
        let mut world = world.clone();
        world.land();
        let observed = self.watched.lock().expect("no holder panics");
        let stand = |machine: &Arc<bigfleet_model::machine::Machine>| {
            let provider = self.providers.get(&machine.id).cloned().unwrap_or_else(|| ADDED.into());
            let sort = Sort {
                provider: provider.clone(),
                instance_type: machine.instance_type.clone(),
                capacity_type: machine.capacity_type,
            };
            Standing { provider, machine: machine.clone(), dwell: dwell(&observed, &sort) }
        };
        let machines = world.machines.values().map(stand).collect();
        let clusters: Vec<Arc<str>> = world.fleet.clusters().map(Into::into).collect();
        let rows = clusters.iter().flat_map(|cluster| world.fleet.rows_of(cluster));
        let needs = rows.map(|demand| demand.need.clone()).collect();
        let present = Present::new(&self.config, machines, needs, clusters, world.now_unix_nanos);
        present.map(Arc::new).map_err(|error| Status::failed_precondition(error.to_string()))
    }
}

/// How long moves of a sort take: between what one of ten stayed below and what nine of ten did.
fn dwell(observed: &Observed, sort: &Sort) -> Dwell {
    let mut dwell = Dwell::default();
    let (mut spread, mut seen) = (0.0, 0);
    let mut take = |place: &mut Span, took: Option<v1::Took>| {
        if let Some(took) = took.filter(|took| took.p10_secs > 0.0) {
            *place = Span::from_nanos((took.p10_secs * 1e9) as i64);
            spread += took.p90_secs / took.p10_secs - 1.0;
            seen += 1;
        }
    };
    take(&mut dwell.create, observed.took(sort, |seen| &seen.create));
    take(&mut dwell.configure, observed.took(sort, |seen| &seen.configure));
    take(&mut dwell.drain, observed.took(sort, |seen| &seen.drain));
    if seen > 0 {
        dwell.jitter = (spread / f64::from(seen)).clamp(0.0, 10.0);
    }
    dwell
}

impl Ahead {
    pub(super) fn of(request: &v1::WhatIfRequest, machines: u64) -> Result<Option<Self>, Status> {
        if request.hours == 0 {
            return Ok(None);
        }
        let seeds = if request.seeds == 0 { SEEDS } else { request.seeds };
        if request.hours > MOST_HOURS || seeds > MOST_SEEDS {
            return Err(Status::invalid_argument(format!(
                "hours: {}, seeds: {seeds}; at most {MOST_HOURS} and {MOST_SEEDS} are run",
                request.hours
            )));
        }
        let work = u64::from(request.hours) * u64::from(seeds) * machines.max(1) * 2;
        if work > MOST_WORK {
            return Err(Status::invalid_argument(format!(
                "{} h, {seeds} runs and {machines} machines are more than is run for a question; ask for fewer of them",
                request.hours
            )));
        }
        Ok(Some(Self { hours: request.hours, seeds, seed: request.seed }))
    }

    pub(super) fn go(self, world: &World, surroundings: &Surroundings) -> Result<v1::HoursAhead, Status> {
        let present = surroundings.present(world)?;
        let runs = (0..u64::from(self.seeds))
            .map(|number| present.run(self.hours, self.seed.wrapping_add(number)))
            .collect::<Result<Vec<Run>, _>>()
            .map_err(|error| Status::internal(error.to_string()))?;
        let of = |figure: fn(&Run) -> f64| spread(&runs.iter().map(figure).collect::<Vec<_>>());
        let (usd, usd_spread) = of(|run| run.usd);
        let (interruptions, interruptions_spread) = of(|run| run.interruptions as f64);
        let (unmet_need_hours, unmet_need_hours_spread) = of(|run| run.unmet_need_hours);
        Ok(v1::HoursAhead {
            hours: self.hours,
            runs: self.seeds,
            usd,
            usd_spread,
            interruptions,
            interruptions_spread,
            preemptions: of(|run| run.preemptions as f64).0,
            unmet_need_hours,
            unmet_need_hours_spread,
            provisions: of(|run| run.provisions as f64).0,
        })
    }
}

/// The mean and the spread (one standard deviation) of some figures.
fn spread(figures: &[f64]) -> (f64, f64) {
    let count = figures.len().max(1) as f64;
    let mean = figures.iter().sum::<f64>() / count;
    let variance = figures.iter().map(|figure| (figure - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_a_standard_deviation() {
        assert_eq!(spread(&[2.0, 4.0]), (3.0, 1.0));
        assert_eq!(spread(&[]), (0.0, 0.0));
    }
}
