//! What the next cycle would do.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use bigfleet_tell::Shown;
use bigfleet_view::v1;
use serde_json::json;

use super::rows::{DecisionRow, groups};
use super::shard;
use crate::answer::{Answer, Refusal, answer};
use crate::query::Query;
use crate::site::Site;

/// `/api/plan` of one shard.
pub(crate) async fn plan(State(site): State<Arc<Site>>, uri: Uri, headers: HeaderMap) -> Answer {
    let query = Query::read(&uri, &["shard", "cluster", "limit"])?;
    let request = v1::PlanRequest {
        cluster: query.text("cluster"),
        limit: query.number("limit", 200, 1000)? as u32,
        ..v1::PlanRequest::default()
    };
    let plan = shard(&site, &query)?.client().plan(request).await.map_err(Refusal::from)?.into_inner();
    let name = plan.as_of.as_ref().map(|as_of| as_of.shard_id.clone()).unwrap_or_default();
    let actions: Vec<(String, v1::Decision)> =
        plan.actions.iter().map(|action| (name.clone(), action.clone())).collect();
    let rows: Vec<DecisionRow> = actions.iter().map(|(shard, one)| DecisionRow::new(shard, one)).collect();
    let totals: Vec<Shown> = plan.totals.iter().map(|one| Shown::new("FateCount", one)).collect();
    answer(
        &headers,
        &json!({
            "as_of": plan.as_of.as_ref().map(|as_of| Shown::new("AsOf", as_of)),
            "rows": rows,
            "groups": groups(&actions),
            "totals": totals,
            "usd_per_hour_before": plan.usd_per_hour_before,
            "usd_per_hour_after": plan.usd_per_hour_after,
            "unmet_before": plan.unmet_before,
            "unmet_after": plan.unmet_after,
        }),
    )
}
