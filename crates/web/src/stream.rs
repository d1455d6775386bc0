//! The stream: the newest state whenever the browser is ready for one.
//!
//! An event is made when the one before has been taken by the socket, from what is newest then. So a slow reader costs
//! one event of memory, and what it misses is only what is older.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bigfleet_tell::Shown;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use crate::api::rows::groups;
use crate::live::Live;
use crate::site::Site;

/// Even if nothing changed, something is sent: a connection that died silently is noticed by both ends.
const AT_LEAST_EVERY: Duration = Duration::from_secs(5);
/// The least time between two events, by this machine's clock: a shard on a fast clock changes more often than eyes see.
const AT_MOST_EVERY: Duration = Duration::from_millis(250);
/// Groups of decisions sent at once.
const GROUPS: usize = 60;

/// Everything that is shown at all times, as it is now. `after` is how far the decisions are known already.
fn state(live: &Live, now_unix_nanos: i64, after: &mut u64) -> Value {
    let (seen, decisions) = live.feed(*after);
    let mut groups = groups(&decisions);
    let skipped = groups.len().saturating_sub(GROUPS);
    groups.drain(..skipped);
    *after = seen;
    let summary = live.summary();
    json!({
        "links": live.links(now_unix_nanos),
        "summary": summary.as_ref().map(|summary| Shown::new("Summary", summary)),
        "feed": groups,
        "skipped": skipped,
    })
}

/// All that a page needs to draw itself: the state and how it came to be.
pub(crate) fn first(site: &Site, after: &mut u64) -> Value {
    let mut all = state(&site.live, site.clock.now_unix_nanos(), after);
    let history = site.live.history();
    let history: Vec<Value> =
        history.iter().map(|(shard, columns)| json!({ "shard": shard, "columns": columns })).collect();
    all["history"] = history.into();
    all
}

fn event(data: &Value) -> Bytes {
    format!("data: {data}\n\n").into()
}

async fn tell(site: Arc<Site>, events: mpsc::Sender<Bytes>, mut changes: watch::Receiver<u64>) {
    let mut seen = 0;
    changes.mark_unchanged();
    if events.send(event(&first(&site, &mut seen))).await.is_err() {
        return;
    }
    loop {
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = site.clock.sleep(AT_LEAST_EVERY) => {}
            () = events.closed() => return,
        }
        // The place first, the state then: it must be new when it leaves.
        let Ok(place) = events.reserve().await else { return };
        changes.mark_unchanged();
        place.send(event(&state(&site.live, site.clock.now_unix_nanos(), &mut seen)));
        site.clock.sleep(AT_MOST_EVERY).await;
    }
}

/// `text/event-stream` until the browser goes.
pub(crate) async fn live(State(site): State<Arc<Site>>) -> Response {
    let (sender, receiver) = mpsc::channel(1);
    let changes = site.live.changes();
    tokio::spawn(tell(site, sender, changes));
    let body = Body::from_stream(ReceiverStream::new(receiver).map(Ok::<_, Infallible>));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}
