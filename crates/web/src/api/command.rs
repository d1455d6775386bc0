//! The few things people may tell a shard from the page: hold still, and go on.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use bigfleet_tell::{Shown, sentence};
use bigfleet_view::v1;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{shard, shards};
use crate::answer::{Answer, Refusal, answer};
use crate::guard::{Caller, read_body};
use crate::query::Query;
use crate::site::Site;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pause {
    /// Empty for all.
    #[serde(default)]
    cluster: String,
    /// Empty for all.
    #[serde(default)]
    kind: String,
    reason: String,
    /// 0 until resumed.
    #[serde(default)]
    for_secs: u32,
    #[serde(default)]
    dry_run: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resume {
    /// One pause; 0 with `everything` for all.
    #[serde(default)]
    number: u64,
    #[serde(default)]
    everything: bool,
}

fn kind(name: &str) -> Result<i32, Refusal> {
    if name.is_empty() {
        return Ok(0);
    }
    let full = format!("ACTION_KIND_{}", name.to_ascii_uppercase());
    let kind = v1::ActionKind::from_str_name(&full);
    kind.map(Into::into).ok_or_else(|| Refusal::bad(format!("kind: {name:?} is no kind of action")))
}

/// `/api/pause`: of the shard that is named, or of all that know the cluster.
pub(crate) async fn pause(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    caller.check_acts()?;
    let query = Query::read(&uri, &["shard"])?;
    let asked: Pause = read_body(body).await?;
    let request = v1::PauseRequest {
        cluster: asked.cluster,
        kind: kind(&asked.kind)?,
        dry_run: asked.dry_run,
        reason: asked.reason,
        author: caller.name,
        for_nanos: i64::from(asked.for_secs) * 1_000_000_000,
    };
    let (mut paused, mut said, mut unknown): (Vec<Value>, Vec<String>, Option<Refusal>) = Default::default();
    let shards = shards(&site, &query)?;
    for (name, shard) in &shards {
        let answered = match shard.client().pause(request.clone()).await.map_err(Refusal::from) {
            Ok(answered) => answered.into_inner(),
            // Another shard has this cluster.
            Err(refusal) if refusal.is_not_found() => {
                unknown = Some(refusal);
                continue;
            }
            // What was paused before stays paused, and is said.
            Err(refusal) if said.is_empty() => return Err(refusal),
            Err(refusal) => {
                said.push(format!("{name}: NOT paused, {}", refusal.words()));
                continue;
            }
        };
        let pause = answered.pause.unwrap_or_default();
        let text = bigfleet_tell::safe(sentence::pause(&pause, pause.since_unix_nanos));
        said.push(if shards.len() > 1 { format!("{name}: {text}") } else { text });
        paused.push(json!(Shown::new("PauseView", &pause)));
    }
    match unknown {
        Some(refusal) if said.is_empty() => Err(refusal),
        _ => answer(&headers, &json!({ "data": paused, "said": said.join("; ") })),
    }
}

/// `/api/resume`.
pub(crate) async fn resume(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    caller.check_acts()?;
    let query = Query::read(&uri, &["shard"])?;
    let Resume { number, everything } = read_body(body).await?;
    if (number == 0) != everything {
        return Err(Refusal::bad("say which pause, or everything"));
    }
    let request = v1::ResumeRequest { number, everything, ..v1::ResumeRequest::default() };
    let answered = shard(&site, &query)?.client().resume(request).await.map_err(Refusal::from)?.into_inner();
    let ended: Vec<Value> =
        answered.ended.iter().map(|pause| json!(Shown::new("PauseView", pause))).collect();
    answer(&headers, &json!({ "ended": ended }))
}
