//! Priorities and penalties as clusters declare them, added up to classes, with what each class has and costs.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_tell::words;
use bigfleet_view::v1;
use serde_json::{Value, json};

use super::shards;
use crate::answer::{Answer, Refusal, answer};
use crate::query::Query;
use crate::site::Site;

/// Needs that are read at most; beyond that the answer says that it is of so many.
const MOST_NEEDS: u32 = 50_000;
/// Classes that are told, the highest priority first.
const MOST_CLASSES: usize = 500;

/// Priority, cluster, and both penalties as numbers of the wire.
type Key = (i32, String, i32, i32);

#[derive(Default)]
struct Class {
    needs: u64,
    gangs: u64,
    unmet: u64,
    machines: u64,
    usd_per_hour: f64,
    /// One of them, to look at.
    example: String,
}

/// `/api/policy`.
pub(crate) async fn policy(State(site): State<Arc<Site>>, uri: Uri, headers: HeaderMap) -> Answer {
    let query = Query::read(&uri, &["shard", "cluster", "at"])?;
    let mut classes: BTreeMap<Key, Class> = BTreeMap::new();
    let (mut read, mut total) = (0_u64, 0);
    for (_, shard) in shards(&site, &query)? {
        let request = v1::ListNeedsRequest {
            cluster: query.text("cluster"),
            limit: MOST_NEEDS,
            at: query.moment()?,
            ..v1::ListNeedsRequest::default()
        };
        let mut stream = shard.client().list_needs(request).await.map_err(Refusal::from)?.into_inner();
        while let Some(page) = stream.message().await.map_err(Refusal::from)? {
            total += page.total.unwrap_or_default();
            for need in page.needs {
                read += 1;
                count(&mut classes, &need);
            }
        }
    }
    let rows = classes.iter().rev().take(MOST_CLASSES);
    let rows: Vec<Value> = rows.map(|(key, class)| row(key, class)).collect();
    answer(&headers, &json!({ "rows": rows, "classes": classes.len(), "needs": total, "read": read }))
}

fn count(classes: &mut BTreeMap<Key, Class>, need: &v1::Need) {
    let key = need.key.clone().unwrap_or_default();
    let spec = need.spec.clone().unwrap_or_default();
    let penalties = (spec.interruption_penalty_bucket, spec.reclamation_penalty_bucket);
    let class = classes.entry((spec.priority, key.cluster, penalties.0, penalties.1)).or_default();
    class.needs += 1;
    class.gangs += u64::from(!key.group.is_empty());
    class.unmet += u64::from(!need.satisfied);
    class.machines += u64::from(need.credited + need.acquired);
    class.usd_per_hour += need.usd_per_hour;
    if class.example.is_empty() {
        class.example = key.id;
    }
}

/// A rung of the ladder in words; a number nobody knows is from a newer cluster.
fn penalty(rung: i32) -> String {
    match PenaltyBucket::from_wire(rung) {
        Ok(PenaltyBucket::UNSPECIFIED) => "not declared".into(),
        Ok(bucket) => words::usd_words(bucket.upper_bound_dollars()),
        Err(_) => format!("code-{rung}"),
    }
}

fn row(key: &Key, class: &Class) -> Value {
    let (priority, cluster, interruption, reclamation) = key;
    json!({
        "priority": priority,
        "cluster": cluster,
        "interruption_penalty": penalty(*interruption),
        "reclamation_penalty": penalty(*reclamation),
        "needs": class.needs,
        "gangs": class.gangs,
        "unmet": class.unmet,
        "machines": class.machines,
        "usd_per_hour": class.usd_per_hour,
        "example": class.example,
    })
}
