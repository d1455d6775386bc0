//! Roll-ups of one session: at most one in work and one waiting, and the newer replaces the one that waits.
//!
//! Reading a roll-up takes long enough to be done beside everything else, and most say what the last one said. Those are
//! recognised by a digest of their bytes and not read at all.

use std::sync::{Arc, Mutex};

use bigfleet_model::need::aggregate;
use bigfleet_model::text::Quoted;
use bigfleet_proto::convert::demand;
use bigfleet_proto::v1alpha1::ClusterCapacityNeeds;
use bigfleet_shard::{Event, Rollup, SessionId};
use bytes::Bytes;
use prost::Message;
use tracing::Instrument;

use super::inbound::digest_without_time;
use crate::core::{Core, Gone};
use crate::metrics::Metrics;

/// From this size on a roll-up is read on a thread of its own: smaller ones take less time than finding one.
const LARGE_BYTES: usize = 64 << 10;

/// The roll-ups of one session.
#[derive(Clone)]
pub(crate) struct Rollups(Arc<Inner>);

struct Inner {
    session: SessionId,
    cluster: Arc<str>,
    core: Core,
    metrics: Metrics,
    desk: Mutex<Desk>,
    /// The digest of what the last roll-up said, if the shard took it.
    last: Mutex<Option<u128>>,
}

#[derive(Default)]
struct Desk {
    in_work: bool,
    waiting: Option<(Bytes, i64)>,
}

impl Rollups {
    pub(crate) fn new(session: SessionId, cluster: Arc<str>, core: Core, metrics: Metrics) -> Self {
        Self(Arc::new(Inner {
            session,
            cluster,
            core,
            metrics,
            desk: Mutex::default(),
            last: Mutex::default(),
        }))
    }

    /// Takes a roll-up that arrived just now. Returns at once.
    pub(crate) fn take(&self, bytes: Bytes, arrived: i64) {
        let mut desk = self.0.desk.lock().expect("no holder panics");
        if desk.waiting.replace((bytes, arrived)).is_some() {
            self.0.metrics.rollup_skipped();
        }
        if !std::mem::replace(&mut desk.in_work, true) {
            tokio::spawn(self.clone().work());
        }
    }

    async fn work(self) {
        loop {
            let next = {
                let mut desk = self.0.desk.lock().expect("no holder panics");
                desk.in_work = desk.waiting.is_some();
                desk.waiting.take()
            };
            let Some((bytes, arrived)) = next else { return };
            let span = tracing::info_span!("rollup", cluster = &*self.0.cluster, bytes = bytes.len());
            if self.pass_on(bytes, arrived).instrument(span).await.is_err() {
                return;
            }
        }
    }

    async fn pass_on(&self, bytes: Bytes, arrived: i64) -> Result<(), Gone> {
        let Inner { session, cluster, core, metrics, last, .. } = &*self.0;
        let session = *session;
        let said = digest_without_time(&bytes);
        if *last.lock().expect("no holder panics") == Some(said) {
            metrics.rollup_again();
            let taken = core.tell_rollup(session, Event::RollupAgain { session }, None).await?;
            self.remember(said, taken);
            return Ok(());
        }
        let rollup = if bytes.len() < LARGE_BYTES {
            read(&bytes, cluster)
        } else {
            let cluster = cluster.clone();
            let read = tokio::task::spawn_blocking(move || read(&bytes, &cluster)).await;
            read.unwrap_or_else(|error| Err(format!("the roll-up could not be read: {error}")))
        };
        let taken = core.tell_rollup(session, Event::Rollup { session, rollup }, Some(arrived)).await?;
        self.remember(said, taken);
        Ok(())
    }

    /// Remembers a roll-up that the shard took. One that was refused, by whom ever, is read again each time, so that its
    /// sender is told why each time.
    fn remember(&self, said: u128, taken: bool) {
        *self.0.last.lock().expect("no holder panics") = taken.then_some(said);
    }
}

fn read(bytes: &[u8], cluster: &Arc<str>) -> Result<Rollup, String> {
    let message =
        ClusterCapacityNeeds::decode(bytes).map_err(|error| format!("it is no roll-up: {error}"))?;
    if message.cluster_id != **cluster {
        return Err(format!(
            "it is of cluster {}, but this session speaks for {}; send each cluster's on its own session",
            Quoted(&message.cluster_id),
            Quoted(cluster)
        ));
    }
    let demand::Rollup { cluster, taken_unix_nanos, needs } =
        demand::Rollup::try_from(&message).map_err(|error| error.to_string())?;
    // Merged and in order, so that the core thread has nothing left to sort.
    Ok(Rollup { cluster, taken_unix_nanos, needs: aggregate(needs) })
}

#[cfg(test)]
mod tests {
    use bigfleet_proto::v1alpha1::CapacityNeed;

    use super::*;

    fn bytes(cluster: &str, priority: i32, bucket: i32) -> Vec<u8> {
        let need = CapacityNeed { priority, interruption_penalty_bucket: bucket, ..CapacityNeed::default() };
        let needs = vec![need];
        ClusterCapacityNeeds { cluster_id: cluster.into(), timestamp_unix_nanos: 9, needs }.encode_to_vec()
    }

    #[test]
    fn a_roll_up_is_read_whole_or_refused_with_the_reason() {
        let shop: Arc<str> = "shop".into();
        let good = read(&bytes("shop", 5, 1), &shop).unwrap();
        assert_eq!((&*good.cluster, good.taken_unix_nanos, good.needs.len()), ("shop", 9, 1));
        for (bad, part) in [
            (bytes("web", 5, 1), "it is of cluster \"web\", but this session speaks for \"shop\""),
            (bytes("", 5, 1), "it is of cluster \"\""),
            (bytes("shop", 5, 99), "row 0"),
            (vec![0xFF], "it is no roll-up"),
        ] {
            let why = read(&bad, &shop).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }
}
