//! `bigfleet get clusters`.

use bigfleet_view::v1::{Cluster, Lane, ListClustersRequest, Mode, Moment};

use super::column::Column;
use super::listing::{Back, ListArgs, Listing, Pages, pages};
use crate::at::At;
use crate::output::{Cell, Tone};
use crate::reach::{Shard, Trouble};
use crate::sentence;
use crate::words::{age, hourly, short_span, thousands};

/// The clusters that report to the shard, and what they have.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet get clusters --sort=-usd
  bigfleet get clusters prod- --watch
  bigfleet get clusters --at 10m")]
pub(crate) struct Args {
    /// Only those whose name begins so
    #[arg(value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    back: Back,
    #[command(flatten)]
    pub(super) list: ListArgs,
}

fn lane(cluster: &Cluster) -> Lane {
    cluster.lane.clone().unwrap_or_default()
}

fn status(cluster: &Cluster, now: i64) -> Cell {
    if cluster.fleet_only {
        return Cell::toned("not in this record", Tone::Warn);
    }
    let lane = lane(cluster);
    let mut words = Vec::new();
    let mut bad = false;
    if !lane.connected {
        words.push("not connected".to_owned());
        bad = true;
    }
    if !lane.reported {
        words.push("never reported".into());
    }
    if let Some(held) = &cluster.held {
        words.push(format!("roll-up held {} of {}", held.seen, held.of));
    }
    if lane.paused {
        words.push("paused".into());
    }
    if cluster.backoff_until_unix_nanos > now {
        let left = short_span(cluster.backoff_until_unix_nanos - now);
        words.push(format!("operator left alone for {left}: {}", cluster.operator_error));
        bad = true;
    }
    match (words.is_empty(), bad) {
        (true, _) => Cell::toned("ok", Tone::Good),
        (false, bad) => Cell::toned(words.join(", "), if bad { Tone::Bad } else { Tone::Warn }),
    }
}

impl Listing for Args {
    type Item = Cluster;
    const MESSAGE: &'static str = "Cluster";
    const NOUN: &'static str = "cluster";
    const SUMS: &'static [&'static str] = &["machines", "usd", "needs", "short", "unmet"];

    fn columns() -> Vec<Column<Cluster>> {
        let number = |name: &'static str, figure: fn(&Lane) -> u32| {
            Column::number(
                name,
                move |cluster: &Cluster| figure(&lane(cluster)).into(),
                move |cluster, _| thousands(figure(&lane(cluster)).into()),
            )
        };
        vec![
            Column::new("name", |cluster, _| lane(cluster).cluster),
            number("machines", |lane| lane.machines),
            Column::number(
                "usd",
                |cluster| lane(cluster).usd_per_hour,
                |cluster, _| hourly(lane(cluster).usd_per_hour),
            ),
            number("needs", |lane| lane.needs),
            number("short", |lane| lane.short),
            Column::number(
                "unmet",
                |cluster: &Cluster| lane(cluster).unmet.into(),
                |cluster, _| {
                    let unmet = lane(cluster).unmet;
                    Cell::toned(thousands(unmet.into()), if unmet > 0 { Tone::Bad } else { Tone::Plain })
                },
            ),
            Column::number(
                "reported",
                |cluster: &Cluster| -(cluster.reported_unix_nanos as f64),
                |cluster, now| age(cluster.reported_unix_nanos, now),
            ),
            Column::new("mode", |cluster: &Cluster, _| {
                let lane = lane(cluster);
                let tone = if lane.mode() == Mode::Auto { Tone::Plain } else { Tone::Warn };
                Cell::toned(sentence::mode(lane.mode, lane.mode_mixed), tone)
            }),
            Column::new("status", status).shrinks(),
            Column::number(
                "changed",
                |cluster: &Cluster| -(cluster.changed_unix_nanos as f64),
                |cluster, now| age(cluster.changed_unix_nanos, now),
            )
            .wide(),
            Column::new("reclaim-cap", |cluster: &Cluster, _| {
                let cap = cluster.reclaim_cap.as_ref();
                cap.map(|cap| format!("{} of {} used", cap.used, cap.cap)).unwrap_or_default()
            })
            .wide(),
            Column::new("protocol", |cluster: &Cluster, _| {
                cluster.session.as_ref().map(|session| session.protocol.clone()).unwrap_or_default()
            })
            .wide(),
        ]
    }

    fn name(cluster: &Cluster) -> String {
        lane(cluster).cluster
    }

    fn add(total: &mut Cluster, cluster: &Cluster) {
        let one = lane(cluster);
        let sum = total.lane.get_or_insert_with(|| Lane { cluster: "total".into(), ..Lane::default() });
        sum.machines += one.machines;
        sum.usd_per_hour += one.usd_per_hour;
        sum.needs += one.needs;
        sum.short += one.short;
        sum.unmet += one.unmet;
    }

    fn asks_for(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn at(&self) -> Option<&At> {
        self.back.at.as_ref()
    }

    async fn list(&self, shard: &Shard, at: Option<Moment>, _: bool) -> Result<Pages<Cluster>, Trouble> {
        let request = ListClustersRequest {
            prefix: self.name.clone().unwrap_or_default(),
            limit: self.list.server_limit(),
            at,
        };
        let stream = shard.ask(|mut client| async move { client.list_clusters(request).await }).await?;
        Ok(pages(stream, |page| (page.as_of, page.clusters)))
    }
}
