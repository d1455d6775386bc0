//! One recorded moment of the whole fleet, for looking back and for comparing two of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use bigfleet_proto::v1alpha1::MachineState;
use bigfleet_tell::{Shown, words};
use bigfleet_view::v1;
use serde_json::{Value, json};

use super::lists::pages;
use super::rows::groups;
use super::shard;
use crate::answer::{Answer, Refusal, answer};
use crate::query::Query;
use crate::site::Site;
use crate::way::Client;

/// Shortfalls and decisions told of one moment.
const MOST: u32 = 500;

/// `/api/moment?at=`: clusters, supply, what was short, and what that cycle decided.
pub(crate) async fn moment(State(site): State<Arc<Site>>, uri: Uri, headers: HeaderMap) -> Answer {
    let query = Query::read(&uri, &["shard", "at"])?;
    let at = query.moment()?.ok_or_else(|| Refusal::bad("at: say which cycle or time"))?;
    let shard = shard(&site, &query)?;
    answer(&headers, &tell(shard.client(), at).await?)
}

async fn tell(mut client: Client, at: v1::Moment) -> Result<Value, Refusal> {
    let request = v1::ListClustersRequest { at: Some(at), ..v1::ListClustersRequest::default() };
    let clusters = pages(client.list_clusters(request).await).await?;
    let as_of = clusters.first().and_then(|page| page.as_of.clone()).unwrap_or_default();
    // From here on by number: a time might meanwhile mean a later cycle.
    let at = Some(v1::Moment { moment: Some(v1::moment::Moment::Cycle(as_of.cycle)) });
    let request = v1::ListShortfallsRequest { at, limit: MOST, ..v1::ListShortfallsRequest::default() };
    let shortfalls = pages(client.list_shortfalls(request).await).await?;
    let request = v1::ListProvidersRequest { at, ..v1::ListProvidersRequest::default() };
    let supply = match pages(client.list_providers(request).await).await {
        Ok(found) => Some(supply(found.iter().flat_map(|page| &page.providers))),
        // Records of older builds do not keep how providers were doing.
        Err(status) if status.code() == tonic::Code::FailedPrecondition => None,
        Err(status) => return Err(status.into()),
    };
    let request = v1::ListDecisionsRequest {
        from_cycle: as_of.cycle,
        to_cycle: as_of.cycle,
        limit: MOST,
        from_record: true,
        ..v1::ListDecisionsRequest::default()
    };
    let decided = pages(client.list_decisions(request).await).await?;
    let decided: Vec<(String, v1::Decision)> = decided
        .into_iter()
        .flat_map(|page| page.decisions)
        .map(|one| (as_of.shard_id.clone(), one))
        .collect();
    let lanes: Vec<Shown> = clusters
        .iter()
        .flat_map(|page| &page.clusters)
        .filter_map(|cluster| cluster.lane.as_ref())
        .map(|lane| Shown::new("Lane", lane))
        .collect();
    let short: Vec<Value> = shortfalls
        .iter()
        .flat_map(|page| &page.shortfalls)
        .map(|one| {
            let misses = bigfleet_tell::safe(words::amounts(&one.deficit));
            let reason = words::reason(one.reason);
            json!({ "data": Shown::new("Shortfall", one), "reason": reason, "misses": misses })
        })
        .collect();
    Ok(json!({
        "as_of": Shown::new("AsOf", &as_of),
        "time": words::clock_time(as_of.cycle_unix_nanos, as_of.now_unix_nanos),
        "lanes": lanes,
        "supply": supply.as_ref().map(|(cells, _)| cells.iter().map(|one| Shown::new("SupplyCell", one)).collect::<Vec<_>>()),
        "usd_per_hour": supply.as_ref().map(|(_, usd)| usd),
        "short": short,
        "groups": groups(&decided),
    }))
}

/// What all providers had together, and what it cost.
fn supply<'a>(providers: impl Iterator<Item = &'a v1::Provider>) -> (Vec<v1::SupplyCell>, f64) {
    let mut cells: BTreeMap<(i32, i32), v1::SupplyCell> = BTreeMap::new();
    for cell in providers.flat_map(|provider| &provider.machines) {
        let sum = cells.entry((cell.capacity_type, cell.state)).or_insert_with(|| v1::SupplyCell {
            machines: 0,
            usd_per_hour: 0.0,
            ..*cell
        });
        sum.machines += cell.machines;
        sum.usd_per_hour += cell.usd_per_hour;
    }
    // Quota is listed with what it would cost; only what is there is paid for.
    let quota = [MachineState::Speculative as i32, MachineState::Creating as i32];
    let paid = cells.values().filter(|cell| !quota.contains(&cell.state));
    let usd = paid.map(|cell| cell.usd_per_hour).sum();
    (cells.into_values().collect(), usd)
}
