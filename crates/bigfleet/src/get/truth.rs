//! `bigfleet get truth`: what providers promised beside what was observed.

use bigfleet_tell::words::{capacity_type, hourly, probability, short_span, thousands};
use bigfleet_view::v1::{GetProviderTruthRequest, Moment, Took, TruthRow};

use super::column::Column;
use super::listing::{ListArgs, Listing, Pages, single};
use crate::output::{Cell, Tone};
use crate::reach::{Shard, Trouble};

/// What providers promise beside what was observed, by provider and type: prices with their age, interruptions, create times.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet get truth
  bigfleet get truth aws -o wide")]
pub(crate) struct Args {
    /// Only of this provider
    #[arg(value_name = "PROVIDER")]
    name: Option<String>,
    #[command(flatten)]
    pub(super) list: ListArgs,
}

fn took(took: Option<&Took>) -> String {
    took.map_or_else(String::new, |took| {
        let secs = |secs: f64| short_span((secs * 1e9) as i64);
        format!("{} ({}-{})", secs(took.p50_secs), secs(took.p10_secs), secs(took.p90_secs))
    })
}

/// Far more losses than were promised: not by chance in one of twenty cases, roughly.
fn is_worse(row: &TruthRow) -> bool {
    let (promised, observed) = (row.promised_interruptions, f64::from(row.observed_interruptions));
    observed > promised + 2.0 * promised.max(1.0).sqrt()
}

impl Listing for Args {
    type Item = TruthRow;
    const MESSAGE: &'static str = "TruthRow";
    const NOUN: &'static str = "type";

    fn columns() -> Vec<Column<TruthRow>> {
        vec![
            Column::new("provider", |row: &TruthRow, _| row.provider.clone()),
            Column::new("type", |row: &TruthRow, _| row.instance_type.clone()).shrinks(),
            Column::new("capacity", |row: &TruthRow, _| capacity_type(row.capacity_type)),
            Column::number(
                "usd",
                |row: &TruthRow| row.min_usd_per_hour,
                |row, _| {
                    let (least, most) = (row.min_usd_per_hour, row.max_usd_per_hour);
                    if least == most {
                        hourly(least)
                    } else {
                        format!("{} to {}", hourly(least), hourly(most))
                    }
                },
            ),
            Column::new("said", |row: &TruthRow, now: i64| match &row.source {
                Some(source) if source.heard_unix_nanos > 0 => {
                    format!("{} ago", short_span(now - source.heard_unix_nanos))
                }
                _ => "unknown".into(),
            }),
            Column::number(
                "risk",
                |row: &TruthRow| row.max_probability,
                |row, _| probability(row.max_probability),
            ),
            Column::number(
                "bound-hours",
                |row: &TruthRow| row.bound_machine_hours,
                |row, _| format!("{:.1}", row.bound_machine_hours),
            ),
            Column::number(
                "promised",
                |row: &TruthRow| row.promised_interruptions,
                |row, _| format!("{:.2}", row.promised_interruptions),
            ),
            Column::number(
                "lost",
                |row: &TruthRow| row.observed_interruptions.into(),
                |row, _| {
                    let tone = if is_worse(row) { Tone::Bad } else { Tone::Plain };
                    Cell::toned(row.observed_interruptions.to_string(), tone)
                },
            ),
            Column::new("create", |row: &TruthRow, _| took(row.create.as_ref())),
            Column::new("configure", |row: &TruthRow, _| took(row.configure.as_ref())).wide(),
            Column::new("drain", |row: &TruthRow, _| took(row.drain.as_ref())).wide(),
            Column::number(
                "machines",
                |row: &TruthRow| row.machines.into(),
                |row, _| thousands(row.machines.into()),
            )
            .wide(),
        ]
    }

    fn name(row: &TruthRow) -> String {
        format!("{}/{}/{}", row.provider, row.instance_type, capacity_type(row.capacity_type))
    }

    fn asks_for(&self) -> Option<&str> {
        self.name.as_deref()
    }

    async fn list(&self, shard: &Shard, _: Option<Moment>, _: bool) -> Result<Pages<TruthRow>, Trouble> {
        let request =
            GetProviderTruthRequest { provider: self.name.clone().unwrap_or_default(), span_nanos: 0 };
        let truth = shard.ask(|mut client| async move { client.get_provider_truth(request).await }).await?;
        Ok(single(truth.as_of, truth.rows))
    }
}
