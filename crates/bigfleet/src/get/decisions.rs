//! `bigfleet get decisions`.

use bigfleet_view::v1::moment::Moment::{Cycle, UnixNanos};
use bigfleet_view::v1::{Decision, ListDecisionsRequest, Moment};

use super::column::Column;
use super::listing::{ListArgs, Listing, Pages, pages};
use crate::at::At;
use crate::flags::{Became, Kind, numbers};
use crate::output::{Cell, Tone};
use crate::reach::{Shard, Trouble};
use crate::sentence;
use crate::words::{capacity_type, clock_time, fate, hourly, kind, need, signed};

/// What cycles decided, and what became of it; the newest first.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet get decisions --cluster shop --limit 20
  bigfleet get decisions --kind preempt,reclaim --since 1h
  bigfleet get decisions --fate capped --all
  bigfleet get decisions --watch -o json")]
pub(crate) struct Args {
    /// Only about machines of this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Only these kinds of action
    #[arg(long, value_enum, ignore_case = true, value_delimiter = ',')]
    kind: Vec<Kind>,
    /// Only with these fates
    #[arg(long, value_enum, ignore_case = true, value_delimiter = ',')]
    fate: Vec<Became>,
    /// Only about this machine
    #[arg(long, value_name = "ID")]
    machine: Option<String>,
    /// Only for this need
    #[arg(long, value_name = "NEED")]
    need: Option<String>,
    /// Only from this cycle or time on: 1842, 14:02, or how long ago (1h)
    #[arg(long, value_name = "CYCLE|TIME")]
    since: Option<At>,
    /// Only up to this cycle or time
    #[arg(long, visible_alias = "at", value_name = "CYCLE|TIME")]
    until: Option<At>,
    /// Also the older ones that only the record has
    #[arg(long)]
    all: bool,
    /// One row for every time something was decided; else what was withheld again and again is one row with a count
    #[arg(long)]
    every: bool,
    #[command(flatten)]
    pub(super) list: ListArgs,
}

/// What withheld it, if anything did, and the reason.
fn why(decision: &Decision) -> Cell {
    let tone = if sentence::withheld(decision) { Tone::Warn } else { Tone::Plain };
    Cell::toned(sentence::why_and_fate(decision), tone)
}

impl Listing for Args {
    type Item = Decision;
    const MESSAGE: &'static str = "Decision";
    const NOUN: &'static str = "decision";

    fn columns() -> Vec<Column<Decision>> {
        vec![
            Column::number(
                "time",
                |decision: &Decision| decision.unix_nanos as f64,
                |decision, now| clock_time(decision.unix_nanos, now),
            ),
            Column::number(
                "cycle",
                |decision: &Decision| decision.cycle as f64,
                |decision, _| decision.cycle.to_string(),
            ),
            Column::new("kind", |decision: &Decision, _| kind(decision.kind)),
            Column::new("machine", |decision: &Decision, _| decision.machine.clone()),
            Column::number(
                "usd",
                |decision: &Decision| decision.usd_per_hour,
                |decision, _| hourly(decision.usd_per_hour),
            ),
            Column::new("cluster", |decision: &Decision, _| decision.cluster.clone()),
            Column::new("need", |decision: &Decision, _| {
                decision.need.as_ref().map(need).unwrap_or_default()
            })
            .shrinks(),
            Column::new("why", |decision: &Decision, _| why(decision)).shrinks().keeps(),
            Column::number(
                "times",
                |decision: &Decision| f64::from(decision.times.max(1)),
                |decision, _| decision.times.max(1).to_string(),
            )
            .wide(),
            Column::new("fate", |decision: &Decision, _| fate(decision.fate)).wide(),
            Column::new("type", |decision: &Decision, _| decision.instance_type.clone()).wide(),
            Column::new("capacity", |decision: &Decision, _| capacity_type(decision.capacity_type)).wide(),
            Column::number(
                "priority",
                |decision: &Decision| decision.priority.into(),
                |decision, _| signed(decision.priority.into()),
            )
            .wide(),
            Column::new("zone", |decision: &Decision, _| decision.zone.clone()).wide(),
            Column::number(
                "grace",
                |decision: &Decision| decision.grace_secs.into(),
                |decision, _| format!("{}s", decision.grace_secs),
            )
            .wide(),
        ]
    }

    fn name(decision: &Decision) -> String {
        format!("{}/{}", decision.cycle, decision.machine)
    }

    fn newest_first() -> bool {
        true
    }

    async fn list(&self, shard: &Shard, _: Option<Moment>, _: bool) -> Result<Pages<Decision>, Trouble> {
        let asks_now = [&self.since, &self.until].into_iter().flatten().any(At::needs_now);
        let now = if asks_now { shard.version().await?.now_unix_nanos } else { 0 };
        let mut request = ListDecisionsRequest {
            cluster: self.cluster.clone().unwrap_or_default(),
            kinds: numbers(&self.kind),
            fates: numbers(&self.fate),
            machine: self.machine.clone().unwrap_or_default(),
            need: self.need.clone().unwrap_or_default(),
            limit: self.list.server_limit(),
            fold: !self.every,
            from_record: self.all || self.since.is_some() || self.until.is_some(),
            ..ListDecisionsRequest::default()
        };
        match self.since.as_ref().and_then(|at| at.moment(now).moment) {
            Some(Cycle(cycle)) => request.from_cycle = cycle,
            Some(UnixNanos(time)) => request.from_unix_nanos = time,
            None => {}
        }
        match self.until.as_ref().and_then(|at| at.moment(now).moment) {
            Some(Cycle(cycle)) => request.to_cycle = cycle,
            Some(UnixNanos(time)) => request.to_unix_nanos = time,
            None => {}
        }
        let stream = shard.ask(|mut client| async move { client.list_decisions(request).await }).await?;
        Ok(pages(stream, |page| (page.as_of, page.decisions)))
    }
}
