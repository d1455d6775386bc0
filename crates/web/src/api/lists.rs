//! Lists: a window of each, however long it is.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use bigfleet_proto::v1alpha1::{CapacityType, MachineState};
use bigfleet_tell::{Shown, Story, explain, words};
use bigfleet_view::v1;
use prost::Message;
use serde_json::{Value, json};
use tonic::{Response, Status, Streaming};

use super::rows::{DecisionRow, groups};
use super::{shard, shards};
use crate::answer::{Answer, Refusal, answer};
use crate::query::Query;
use crate::site::Site;

/// Rows of one window.
const WINDOW: u64 = 100;
const MOST_ROWS: u64 = 500;
/// How far a window may lie from the beginning.
const FARTHEST: u64 = 10_000_000;

/// All pages of a list.
pub(crate) async fn pages<T>(list: Result<Response<Streaming<T>>, Status>) -> Result<Vec<T>, Status> {
    let mut stream = list?.into_inner();
    let mut all = Vec::new();
    while let Some(page) = stream.message().await? {
        all.push(page);
    }
    Ok(all)
}

pub(crate) fn shown<M: Message>(name: &str, message: Option<&M>) -> Option<Shown> {
    message.map(|message| Shown::new(name, message))
}

/// The part of a window that falls on the next of several lists, and takes that part away.
struct Window {
    skip: u64,
    limit: u64,
}

impl Window {
    fn read(query: &Query) -> Result<Self, Refusal> {
        Ok(Self {
            skip: query.number("skip", 0, FARTHEST)?,
            limit: query.number("limit", WINDOW, MOST_ROWS)?.max(1),
        })
    }

    /// A list of `total` had `rows` in the window.
    fn passed(&mut self, total: u64, rows: usize) {
        self.skip = self.skip.saturating_sub(total);
        self.limit -= (rows as u64).min(self.limit);
    }
}

/// `/api/needs`: those that are short first.
pub(crate) async fn needs(State(site): State<Arc<Site>>, uri: Uri, headers: HeaderMap) -> Answer {
    let known = ["shard", "cluster", "unmet", "reason", "gangs", "priority", "skip", "limit", "at"];
    let query = Query::read(&uri, &known)?;
    let reasons = query.code("reason", |name| v1::Reason::from_str_name(name).map(Into::into), "REASON_")?;
    let mut window = Window::read(&query)?;
    let (mut rows, mut total, mut as_of) = (Vec::new(), 0, None);
    for (name, shard) in shards(&site, &query)? {
        let request = v1::ListNeedsRequest {
            cluster: query.text("cluster"),
            short_only: query.flag("unmet")?,
            reason: reasons.first().copied().unwrap_or_default(),
            gangs_only: query.flag("gangs")?,
            min_priority: query.get("priority").and_then(|text| text.parse().ok()),
            limit: window.limit.max(1) as u32,
            skip: window.skip as u32,
            short_first: true,
            at: query.moment()?,
            ..v1::ListNeedsRequest::default()
        };
        let found = match pages(shard.client().list_needs(request).await).await {
            // Of several shards only those that know a cluster have needs of it.
            Err(status) if status.code() == tonic::Code::NotFound && site.shards.len() > 1 => continue,
            found => found?,
        };
        let of_shard = found.first().and_then(|page| page.total).unwrap_or_default();
        let needs: Vec<&v1::Need> =
            found.iter().flat_map(|page| &page.needs).take(window.limit as usize).collect();
        window.passed(of_shard, needs.len());
        total += of_shard;
        rows.extend(needs.into_iter().map(|need| need_row(&name, need)));
        as_of = as_of.or_else(|| found.first().and_then(|page| shown("AsOf", page.as_of.as_ref())));
    }
    answer(&headers, &json!({ "rows": rows, "total": total, "as_of": as_of }))
}

/// A need, what it wants and what it lacks in words.
pub(crate) fn need_row(shard: &str, need: &v1::Need) -> Value {
    let spec = need.spec.clone().unwrap_or_default();
    json!({
        "shard": shard,
        "data": Shown::new("Need", need),
        "wants": bigfleet_tell::safe(explain::need::wants(&spec)),
        "missing": bigfleet_tell::safe(explain::need::missing(need)),
        "reason": words::reason(need.reason),
    })
}

/// The filter of machines that a query means.
pub(crate) fn filter(query: &Query) -> Result<v1::MachineFilter, Refusal> {
    let state = |name: &str| MachineState::from_str_name(name).map(Into::into);
    let capacity = |name: &str| CapacityType::from_str_name(name).map(Into::into);
    Ok(v1::MachineFilter {
        cluster: query.text("cluster"),
        states: query.code("state", state, "MACHINE_STATE_")?,
        capacity_types: query.code("capacity", capacity, "CAPACITY_TYPE_")?,
        zones: query.list("zone"),
        instance_types: query.list("type"),
        provider: query.text("provider"),
        id_prefix: query.text("id"),
        labels: query.list("label"),
        need: query.text("need"),
        troubled: query.flag("troubled")?,
        bound_for: query.text("bound_for"),
    })
}

/// `/api/machines`.
pub(crate) async fn machines(State(site): State<Arc<Site>>, uri: Uri, headers: HeaderMap) -> Answer {
    let known = [
        "shard", "cluster", "state", "capacity", "zone", "type", "provider", "id", "label", "need",
        "troubled", "skip", "limit", "at",
    ];
    let query = Query::read(&uri, &known)?;
    let mut window = Window::read(&query)?;
    let (mut rows, mut total, mut known, mut as_of) = (Vec::new(), 0, 0, None);
    for (name, shard) in shards(&site, &query)? {
        let request = v1::ListMachinesRequest {
            filter: Some(filter(&query)?),
            detail: v1::Detail::Brief.into(),
            limit: window.limit.max(1) as u32,
            at: query.moment()?,
            skip: window.skip,
            count: true,
        };
        let found = match pages(shard.client().list_machines(request).await).await {
            Err(status) if status.code() == tonic::Code::NotFound && site.shards.len() > 1 => continue,
            found => found?,
        };
        let matching = found.last().and_then(|page| page.matching).unwrap_or_default();
        let machines: Vec<&v1::Machine> =
            found.iter().flat_map(|page| &page.machines).take(window.limit as usize).collect();
        window.passed(matching, machines.len());
        total += matching;
        known += found.first().and_then(|page| page.known).unwrap_or_default();
        rows.extend(
            machines.into_iter().map(|one| json!({ "shard": name, "data": Shown::new("Machine", one) })),
        );
        as_of = as_of.or_else(|| found.first().and_then(|page| shown("AsOf", page.as_of.as_ref())));
    }
    answer(&headers, &json!({ "rows": rows, "total": total, "known": known, "as_of": as_of }))
}

/// `/api/decisions`: newest first, and in groups; what was withheld again and again once, unless `every` is asked for.
pub(crate) async fn decisions(State(site): State<Arc<Site>>, uri: Uri, headers: HeaderMap) -> Answer {
    let known =
        ["shard", "cluster", "kind", "fate", "machine", "need", "from", "to", "limit", "record", "every"];
    let query = Query::read(&uri, &known)?;
    let kinds =
        query.code("kind", |name| v1::ActionKind::from_str_name(name).map(Into::into), "ACTION_KIND_")?;
    let fates = query.code("fate", |name| v1::Fate::from_str_name(name).map(Into::into), "FATE_")?;
    let mut all: Vec<(String, v1::Decision)> = Vec::new();
    let mut as_of = None;
    for (name, shard) in shards(&site, &query)? {
        let request = v1::ListDecisionsRequest {
            cluster: query.text("cluster"),
            kinds: kinds.clone(),
            fates: fates.clone(),
            machine: query.text("machine"),
            need: query.text("need"),
            from_cycle: query.number("from", 0, u64::MAX)?,
            to_cycle: query.number("to", 0, u64::MAX)?,
            limit: query.number("limit", 200, 2000)? as u32,
            from_record: query.flag("record")?,
            fold: !query.flag("every")?,
            ..v1::ListDecisionsRequest::default()
        };
        let found = pages(shard.client().list_decisions(request).await).await?;
        as_of = as_of.or_else(|| found.first().and_then(|page| shown("AsOf", page.as_of.as_ref())));
        all.extend(found.into_iter().flat_map(|page| page.decisions).map(|one| (name.clone(), one)));
    }
    all.sort_by_key(|(_, decision)| std::cmp::Reverse(decision.unix_nanos));
    let rows: Vec<DecisionRow> = all.iter().map(|(shard, one)| DecisionRow::new(shard, one)).collect();
    answer(&headers, &json!({ "rows": rows, "groups": groups(&all), "as_of": as_of }))
}

/// A list that is shown whole: its pages, one name for a row, and the field that holds the rows.
macro_rules! whole {
    ($(#[$doc:meta])* $name:ident, $call:ident, $request:ident { $($field:ident),* }, $row:literal, $rows:ident) => {
        $(#[$doc])*
        #[allow(clippy::needless_update, reason = "some requests have more fields than these")]
        pub(crate) async fn $name(State(site): State<Arc<Site>>, uri: Uri, headers: HeaderMap) -> Answer {
            let query = Query::read(&uri, &["shard", "at", $(stringify!($field)),*])?;
            let mut rows: Vec<Value> = Vec::new();
            let mut as_of = None;
            for (name, shard) in shards(&site, &query)? {
                let request = v1::$request {
                    at: query.moment()?,
                    $($field: query.text(stringify!($field)),)*
                    ..v1::$request::default()
                };
                for page in pages(shard.client().$call(request).await).await? {
                    as_of = as_of.or_else(|| shown("AsOf", page.as_of.as_ref()));
                    rows.extend(page.$rows.iter().map(|one| json!({ "shard": name, "data": Shown::new($row, one) })));
                }
            }
            answer(&headers, &json!({ "rows": rows, "as_of": as_of }))
        }
    };
}

whole!(
    /// `/api/clusters`.
    clusters, list_clusters, ListClustersRequest { prefix }, "Cluster", clusters
);
whole!(
    /// `/api/providers`.
    providers, list_providers, ListProvidersRequest { prefix }, "Provider", providers
);
whole!(
    /// `/api/sessions`.
    sessions, list_sessions, ListSessionsRequest { cluster }, "Session", sessions
);
whole!(
    /// `/api/offers`: free capacity by sort, the cheapest first.
    offers, list_offers, ListOffersRequest { need }, "Offer", offers
);

/// `/api/rails` of one shard: what keeps it from doing too much, and what it withholds now.
pub(crate) async fn rails(State(site): State<Arc<Site>>, uri: Uri, headers: HeaderMap) -> Answer {
    let query = Query::read(&uri, &["shard", "at"])?;
    let shard = shard(&site, &query)?;
    let rails =
        shard.client().get_rails(v1::GetRailsRequest { at: query.moment()? }).await.map_err(Refusal::from)?;
    let rails = rails.into_inner();
    let now = rails.as_of.as_ref().map_or(0, |as_of| as_of.now_unix_nanos);
    let pauses: Vec<Value> = rails
        .pauses
        .iter()
        .map(|pause| {
            let said = bigfleet_tell::safe(bigfleet_tell::sentence::pause(pause, now));
            json!({ "data": Shown::new("PauseView", pause), "said": said })
        })
        .collect();
    answer(&headers, &json!({ "data": Shown::new("Rails", &rails), "pauses": pauses }))
}

/// `/api/costs` of one shard: now, at a moment, or over a span; with `judge` also how good that is.
pub(crate) async fn costs(State(site): State<Arc<Site>>, uri: Uri, headers: HeaderMap) -> Answer {
    let query = Query::read(&uri, &["shard", "cluster", "at", "from", "to", "points", "judge"])?;
    let time = |name: &str| query.number(name, 0, u64::MAX >> 1).map(u64::cast_signed);
    let request = v1::GetCostsRequest {
        cluster: query.text("cluster"),
        at: query.moment()?,
        from_unix_nanos: time("from")?,
        to_unix_nanos: time("to")?,
        points: query.number("points", 0, 1000)? as u32,
        judge: query.flag("judge")?,
    };
    let costs = shard(&site, &query)?.client().get_costs(request).await.map_err(Refusal::from)?.into_inner();
    let mut story = Story::default();
    if let Some(judged) = &costs.judgement {
        explain::cost::judged(&mut story, judged);
    }
    answer(&headers, &json!({ "data": Shown::new("Costs", &costs), "story": story }))
}

/// `/api/lint` of one shard: what is wrong or doubtful.
pub(crate) async fn lint(State(site): State<Arc<Site>>, uri: Uri, headers: HeaderMap) -> Answer {
    let query = Query::read(&uri, &["shard", "at", "code"])?;
    let request = v1::LintRequest { at: query.moment()?, codes: query.list("code") };
    let found = shard(&site, &query)?.client().lint(request).await.map_err(Refusal::from)?;
    answer(&headers, &json!({ "data": Shown::new("LintAnswer", found.get_ref()) }))
}

/// `/api/truth` of one shard: what providers promised beside what was observed.
pub(crate) async fn truth(State(site): State<Arc<Site>>, uri: Uri, headers: HeaderMap) -> Answer {
    let query = Query::read(&uri, &["shard", "provider"])?;
    let request = v1::GetProviderTruthRequest { provider: query.text("provider"), span_nanos: 0 };
    let found = shard(&site, &query)?.client().get_provider_truth(request).await.map_err(Refusal::from)?;
    answer(&headers, &json!({ "data": Shown::new("ProviderTruth", found.get_ref()) }))
}
