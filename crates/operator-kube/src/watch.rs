//! Watches: what changes in the cluster becomes news, read down to what is kept.
//!
//! A watch that the server ends in good order goes on from where it was. One that breaks, or is told that its place is gone, begins
//! again with a list; the list replaces what was known. Objects that cannot be read are passed on as such and hold nobody up.

use std::fmt::Debug;

use bigfleet_kube_common::watch_cause;
use futures::StreamExt as _;
use kube::Resource;
use kube::api::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use crate::metrics::Metrics;
use crate::news::News;
use crate::seen::Listed;

/// Objects per page of a list.
const PAGE: u32 = 500;

/// Reads an object: its key, and what it says if that can be used.
type Read<K, T> = fn(&K) -> Option<(String, Option<T>)>;

/// Watches one kind until nobody listens, in watches of so many seconds.
pub(crate) async fn watch<K, T>(
    what: &'static str,
    api: Api<K>,
    read: Read<K, T>,
    wrap: fn(Listed<T>) -> News,
    news: mpsc::Sender<News>,
    metrics: Metrics,
    for_secs: u32,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    T: Send + 'static,
{
    let config = watcher::Config::default().page_size(PAGE).timeout(for_secs);
    let mut events = watcher(api, config).default_backoff().boxed();
    while let Some(event) = events.next().await {
        let listed = match event {
            Ok(Event::Init) => {
                metrics.listed(what);
                Some(Listed::Begin)
            }
            Ok(Event::InitApply(object)) => {
                read(&object).and_then(|(key, seen)| seen.map(|seen| Listed::Holds(key, seen)))
            }
            Ok(Event::InitDone) => Some(Listed::End),
            Ok(Event::Apply(object)) => read(&object).map(|(key, seen)| match seen {
                Some(seen) => Listed::Put(key, seen),
                None => Listed::Gone(key),
            }),
            Ok(Event::Delete(object)) => read(&object).map(|(key, _)| Listed::Gone(key)),
            Err(error) => {
                let cause = watch_cause(&error);
                tracing::warn!(what, cause, %error, "a watch broke; it begins again");
                metrics.watch_broke(what, cause);
                None
            }
        };
        if let Some(listed) = listed
            && news.send(wrap(listed)).await.is_err()
        {
            return;
        }
    }
}
