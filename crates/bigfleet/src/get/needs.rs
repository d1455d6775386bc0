//! `bigfleet get needs`.

use bigfleet_proto::v1alpha1::PenaltyBucket;
use bigfleet_view::v1::{ExplainNeedRequest, ListNeedsRequest, Moment, Need, NeedRef};

use super::column::Column;
use super::listing::{Back, ListArgs, Listing, Pages, pages, single};
use crate::at::At;
use crate::flags::Why;
use crate::output::{Cell, Tone};
use crate::reach::{Shard, Trouble};
use crate::words::{age, amounts, hourly, reason, requirement, signed, thousands};

/// What clusters want: one need per cluster, profile and gang.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet get needs --unmet
  bigfleet get needs --cluster ml --gangs -o wide
  bigfleet get needs --sort=-priority,cluster --columns id,cluster,missing
  bigfleet get needs --at 1842")]
pub(crate) struct Args {
    /// Only this one: an id or its beginning, cluster/id, or cluster/gang
    #[arg(value_name = "NEED")]
    name: Option<String>,
    /// Only of this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Only those that are short of something
    #[arg(long, visible_alias = "short")]
    unmet: bool,
    /// Only those short for this reason
    #[arg(long, value_enum, ignore_case = true)]
    reason: Option<Why>,
    /// Only from this priority up
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// Only those that ask for this resource
    #[arg(long, value_name = "NAME")]
    resource: Option<String>,
    /// Only gangs
    #[arg(long)]
    gangs: bool,
    #[command(flatten)]
    back: Back,
    #[command(flatten)]
    pub(super) list: ListArgs,
}

fn key(need: &Need) -> NeedRef {
    need.key.clone().unwrap_or_default()
}

fn priority(need: &Need) -> i32 {
    need.spec.as_ref().map_or(0, |spec| spec.priority)
}

/// `-` if nobody declared one.
fn penalty(bucket: i32) -> String {
    match PenaltyBucket::try_from(bucket) {
        Ok(PenaltyBucket::Unspecified) => "-".into(),
        Ok(PenaltyBucket::Zero) => "$0".into(),
        Ok(PenaltyBucket::HalfDollar) => "$0.50".into(),
        Ok(PenaltyBucket::Pinned) => "pinned".into(),
        Ok(other) => format!("${}", other.as_str_name().trim_start_matches("PENALTY_BUCKET_")),
        Err(_) => format!("code-{bucket}"),
    }
}

fn status(need: &Need) -> Cell {
    let why = reason(need.reason);
    let pods = thousands(need.pods_waiting.into());
    match (need.satisfied, why.is_empty()) {
        (true, _) if need.pods_waiting > 0 => Cell::toned(format!("covered, {pods} wait"), Tone::Warn),
        (true, _) => Cell::toned("covered", Tone::Good),
        (false, _) if need.pods_waiting > 0 && !why.is_empty() => Cell::toned(
            format!("{why}, {pods} wait"),
            if why == "on its way" { Tone::Warn } else { Tone::Bad },
        ),
        (false, true) => Cell::toned("short", Tone::Warn),
        (false, false) if why == "on its way" => Cell::toned(why, Tone::Warn),
        (false, false) => Cell::toned(why, Tone::Bad),
    }
}

impl Listing for Args {
    type Item = Need;
    const MESSAGE: &'static str = "Need";
    const NOUN: &'static str = "need";

    fn columns() -> Vec<Column<Need>> {
        let machines = |need: &Need| need.credited + need.acquired;
        vec![
            Column::new("id", |need, _| key(need).id),
            Column::new("cluster", |need, _| key(need).cluster),
            Column::new("gang", |need, _| key(need).group).shrinks(),
            Column::number("priority", |need| priority(need).into(), |need, _| signed(priority(need).into())),
            Column::new("wants", |need: &Need, _| {
                need.spec.as_ref().map(|spec| amounts(&spec.aggregate_resources)).unwrap_or_default()
            })
            .shrinks(),
            Column::number(
                "machines",
                move |need| machines(need).into(),
                move |need, _| thousands(machines(need).into()),
            ),
            Column::number("usd", |need: &Need| need.usd_per_hour, |need, _| hourly(need.usd_per_hour)),
            Column::new("status", |need, _| status(need)),
            Column::number(
                "short",
                |need: &Need| -(need.short_since_unix_nanos as f64),
                |need, now| age(need.short_since_unix_nanos, now),
            ),
            Column::number(
                "waiting",
                |need: &Need| need.pods_waiting.into(),
                |need, _| thousands(need.pods_waiting.into()),
            )
            .wide(),
            Column::new("missing", |need: &Need, _| {
                amounts(if need.unresolved.is_empty() { &need.deficit } else { &need.unresolved })
            })
            .shrinks(),
            Column::number(
                "in-flight",
                |need: &Need| need.in_flight.into(),
                |need, _| thousands(need.in_flight.into()),
            )
            .wide(),
            Column::new("penalties", |need: &Need, _| {
                let spec = need.spec.as_ref();
                spec.map(|spec| {
                    format!(
                        "{}/{}",
                        penalty(spec.interruption_penalty_bucket),
                        penalty(spec.reclamation_penalty_bucket)
                    )
                })
                .unwrap_or_default()
            })
            .wide(),
            Column::new("domain", |need: &Need, _| need.domain.clone()).wide(),
            Column::new("reserved", |need: &Need, _| amounts(&need.reserved)).wide(),
            Column::number(
                "seen",
                |need: &Need| -(need.first_seen_unix_nanos as f64),
                |need, now| age(need.first_seen_unix_nanos, now),
            )
            .wide(),
            Column::new("min-unit", |need: &Need, _| {
                need.spec.as_ref().map(|spec| amounts(&spec.min_unit)).unwrap_or_default()
            })
            .wide(),
            Column::new("requires", |need: &Need, _| {
                let spec = need.spec.as_ref();
                let all = spec.map(|spec| spec.requirements.iter().map(requirement).collect::<Vec<_>>());
                all.unwrap_or_default().join("; ")
            })
            .wide(),
            Column::new("fingerprint", |need, _| key(need).fingerprint).wide(),
        ]
    }

    fn name(need: &Need) -> String {
        key(need).id
    }

    fn at(&self) -> Option<&At> {
        self.back.at.as_ref()
    }

    async fn list(&self, shard: &Shard, at: Option<Moment>, _: bool) -> Result<Pages<Need>, Trouble> {
        if let Some(name) = &self.name {
            let request = ExplainNeedRequest {
                need: name.clone(),
                at,
                without_remedies: true,
                machines: 1,
                patience_millis: 0,
            };
            let answer = shard.ask(|mut client| async move { client.explain_need(request).await }).await?;
            return Ok(single(answer.as_of, answer.need.into_iter().collect()));
        }
        let request = ListNeedsRequest {
            cluster: self.cluster.clone().unwrap_or_default(),
            short_only: self.unmet,
            reason: self.reason.map_or(0, Into::into),
            min_priority: self.priority,
            resource: self.resource.clone().unwrap_or_default(),
            gangs_only: self.gangs,
            limit: self.list.server_limit(),
            at,
            ..ListNeedsRequest::default()
        };
        let stream = shard.ask(|mut client| async move { client.list_needs(request).await }).await?;
        Ok(pages(stream, |page| (page.as_of, page.needs)))
    }
}
