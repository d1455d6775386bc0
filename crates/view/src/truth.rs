//! What providers promised beside what was observed, and when something on its way is expected.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bigfleet_model::machine::MachineState;
use tonic::Status;

use crate::known::Known;
use crate::observed::{Observed, Sort};
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::{blocking, tape_status};
use crate::v1;

/// How long an ordinary answer reads the record for the sake of an estimate.
const PATIENCE_MILLIS: i64 = 40;

/// What was observed, for everybody who asks.
pub(crate) type Watched = Arc<Mutex<Observed>>;

/// Whether a machine is on its way to somebody: it is made or bound, or emptied for a need.
pub(crate) fn is_coming(known: &Known) -> bool {
    match known.machine.state {
        MachineState::Creating | MachineState::Configuring => true,
        MachineState::Draining => known.machine.draining_for.is_some(),
        _ => false,
    }
}

/// When the last of several is expected: all of them are there when it is.
pub(crate) fn last_of(so_far: Option<v1::Expected>, this: v1::Expected) -> v1::Expected {
    let last = so_far.unwrap_or(this);
    v1::Expected {
        from_unix_nanos: last.from_unix_nanos.max(this.from_unix_nanos),
        to_unix_nanos: last.to_unix_nanos.max(this.to_unix_nanos),
        samples: last.samples.min(this.samples),
    }
}

impl<S: Shards> View<S> {
    /// Adds when machines on their way are expected, as far as the record says in a short time. Nothing without a record.
    pub(crate) async fn expectations(
        &self,
        knowns: Vec<Known>,
        now: i64,
    ) -> Result<Vec<(Known, Option<v1::Expected>)>, Status> {
        let is_coming = |known: &Known| known.machine.state.is_transitional();
        let Some(folder) = self.about.record_dir.clone().filter(|_| knowns.iter().any(is_coming)) else {
            return Ok(knowns.into_iter().map(|known| (known, None)).collect());
        };
        let watched = self.watched.clone();
        blocking(move || {
            let mut observed = watched.lock().expect("no holder panics");
            // An estimate is worth no error: what cannot be read is not estimated.
            let _ = observed.catch_up(&folder, now, Some(PATIENCE_MILLIS));
            let expect = |known: Known| {
                let expected = observed.expect(&known);
                (known, expected)
            };
            Ok(knowns.into_iter().map(expect).collect())
        })
        .await
    }

    pub(crate) async fn provider_truth(
        &self,
        request: v1::GetProviderTruthRequest,
    ) -> Result<v1::ProviderTruth, Status> {
        let (snapshot, machines) = self.moment_with_machines(None).await?;
        let folder = self.about.record_dir.clone();
        let (watched, now) = (self.watched.clone(), self.now_of(&snapshot.as_of).await?);
        blocking(move || {
            let mut rows: BTreeMap<Sort, v1::TruthRow> = BTreeMap::new();
            for known in &machines {
                said(rows.entry(sort(known)).or_insert_with(|| row(known)), known);
            }
            let mut truth = v1::ProviderTruth {
                from_unix_nanos: now,
                to_unix_nanos: now,
                ..v1::ProviderTruth::default()
            };
            if let Some(folder) = folder {
                let mut observed = watched.lock().expect("no holder panics");
                observed.catch_up(&folder, now, None).map_err(|error| tape_status(&error.into()))?;
                (truth.from_unix_nanos, truth.to_unix_nanos) =
                    (observed.from_unix_nanos, observed.to_unix_nanos);
                for (sort, seen) in observed.sorts() {
                    let Some(row) = rows.get_mut(sort) else { continue };
                    row.bound_machine_hours = seen.bound_hours;
                    row.promised_interruptions = seen.promised;
                    row.observed_interruptions = seen.lost;
                    (row.create, row.configure) = (seen.create.took(), seen.configure.took());
                    row.drain = seen.drain.took();
                }
            }
            let wanted = |row: &v1::TruthRow| request.provider.is_empty() || row.provider == request.provider;
            truth.rows = rows.into_values().filter(wanted).collect();
            truth.as_of = Some(snapshot.as_of);
            Ok(truth)
        })
        .await
    }
}

fn sort(known: &Known) -> Sort {
    Sort {
        provider: known.provider.clone(),
        instance_type: known.machine.instance_type.clone(),
        capacity_type: known.machine.capacity_type,
    }
}

fn row(known: &Known) -> v1::TruthRow {
    v1::TruthRow {
        provider: known.provider.to_string(),
        instance_type: known.machine.instance_type.to_string(),
        capacity_type: known.machine.capacity_type.to_wire(),
        min_usd_per_hour: f64::INFINITY,
        min_probability: f64::INFINITY,
        source: Some(known.price_source()),
        ..v1::TruthRow::default()
    }
}

/// Takes in what a provider says of a machine.
fn said(row: &mut v1::TruthRow, known: &Known) {
    let (price, risk) = (known.machine.price_usd_per_hour, known.machine.interruption_probability);
    row.machines += 1;
    row.min_usd_per_hour = row.min_usd_per_hour.min(price);
    row.max_usd_per_hour = row.max_usd_per_hour.max(price);
    row.min_probability = row.min_probability.min(risk);
    row.max_probability = row.max_probability.max(risk);
}
