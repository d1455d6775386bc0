//! Who is there, what the caller may do, and everything the first screen shows: one answer, so that it is drawn at once.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use bigfleet_tell::Shown;
use bigfleet_view::v1::{GetVersionRequest, Version};
use serde_json::{Value, json};

use crate::answer::{Answer, answer};
use crate::guard::{Access, Caller};
use crate::site::Site;
use crate::stream;

/// The program's name and version, the shards, and the caller.
pub(crate) async fn hello(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Answer {
    let mut shards: Vec<Value> = Vec::new();
    let mut may_act = caller.may_act;
    for shard in &site.shards {
        let version = shard.client().get_version(GetVersionRequest {}).await;
        match version.map(tonic::Response::into_inner) {
            Ok(version) => {
                may_act &= may_command(&version);
                shards.push(json!({ "name": version.shard_id, "version": Shown::new("Version", &version) }));
            }
            Err(status) => shards.push(json!({ "name": shard.name, "trouble": status.message() })),
        }
    }
    let mut seen = 0;
    let hello = json!({
        "program": env!("CARGO_PKG_VERSION"),
        "caller": { "name": caller.name, "may_act": may_act },
        "signed_in": matches!(site.access, Access::Tokens(_)),
        "shards": shards,
        "now": stream::first(&site, &mut seen),
    });
    answer(&headers, &hello)
}

/// Whether the shard takes commands from this program: it does unless our certificate may only look.
fn may_command(version: &Version) -> bool {
    version.role != "readonly"
}
