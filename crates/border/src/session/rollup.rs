//! Roll-ups of one session: most say what the last one said. Those are recognised by a digest of their bytes and not read
//! at all.

use std::sync::Arc;

use bigfleet_model::text::Quoted;
use bigfleet_proto::convert::demand;
use bigfleet_proto::v1alpha1::ClusterCapacityNeeds;
use bigfleet_shard::{Event, Rollup, SessionId};
use prost::Message;

use super::count;
use super::inbound::digest_without_time;

/// What a session remembers of its roll-ups.
#[derive(Clone, Debug)]
pub struct Rollups {
    session: SessionId,
    cluster: Arc<str>,
    /// The digest of what the last roll-up said, if the shard took it.
    last: Option<Said>,
}

/// What a roll-up says, apart from when it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said(u128);

impl Rollups {
    /// Of a session that has sent none.
    pub fn new(session: SessionId, cluster: Arc<str>) -> Self {
        Self { session, cluster, last: None }
    }

    /// The session they come on.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The cluster they are of.
    pub fn cluster(&self) -> &Arc<str> {
        &self.cluster
    }

    /// What this one says, and the event if it says what the last one said, which the shard took. If there is no event,
    /// the roll-up must be [read](Self::read); that takes long enough to be done beside everything else.
    pub fn recognise(&self, bytes: &[u8]) -> (Said, Option<Event>) {
        let said = Said(digest_without_time(bytes));
        let again = self.last == Some(said);
        (said, again.then_some(Event::RollupAgain { session: self.session }))
    }

    /// Reads a roll-up, and makes all of it ready that the core thread need not do.
    pub fn read(&self, bytes: &[u8]) -> Event {
        Event::of_rollup(self.session, read(bytes, &self.cluster))
    }

    /// The event of a roll-up that nobody could read.
    pub fn unread(&self, why: String) -> Event {
        Event::Rollup { session: self.session, rollup: Err(why) }
    }

    /// Remembers what the shard made of a roll-up: true if it accepted or held it. One that was refused, by whom ever, is
    /// read again each time, so that its sender is told why each time.
    pub fn judged(&mut self, said: Said, taken: bool) {
        self.last = taken.then_some(said);
    }
}

fn read(bytes: &[u8], cluster: &Arc<str>) -> Result<Rollup, String> {
    let over = |problem| demand::RollupError::OverLimit { cluster: cluster.to_string(), problem }.to_string();
    count::check(bytes).map_err(over)?;
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
    Ok(Rollup { cluster, taken_unix_nanos, needs })
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
            ([0x1A, 0].repeat(50_001), "cluster \"shop\": needs has 50001 rows; at most 50000 are taken"),
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
