//! Roll-ups of one session: most say what the last one said. Those are recognised by a digest of their bytes and not read
//! at all. Of the others it is counted what they consist of before any of it is decoded: two bytes on the wire can become hundreds
//! in memory.

use std::sync::Arc;

use bigfleet_model::limits::{
    OverLimit, ROLLUP_AMOUNTS, ROLLUP_REQUIREMENTS, ROLLUP_ROWS, ROLLUP_VALUES, ROW_SPREADS, count,
};
use bigfleet_model::text::Quoted;
use bigfleet_proto::convert::demand;
use bigfleet_proto::v1alpha1::ClusterCapacityNeeds;
use bigfleet_shard::{Event, Rollup, SessionId};
use prost::Message;

use super::inbound::digest_without_time;
use crate::wire::fields;

// ClusterCapacityNeeds
const NEEDS: u32 = 3;
// CapacityNeed
const REQUIREMENTS: u32 = 1;
const AGGREGATE: u32 = 2;
const SPREAD: u32 = 5;
const MIN_UNIT: u32 = 8;
// NodeSelectorRequirement
const VALUES: u32 = 3;

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
    check(bytes).map_err(over)?;
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

/// The payloads of the delimited fields of a message. Whoever decodes it will say where it is malformed.
fn parts(message: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let whole = fields(message).map_while(Result::ok).filter(|field| field.is_delimited);
    whole.map(|field| (field.number, field.payload(message)))
}

/// Refuses a roll-up that has more of something than is taken. One look at each byte at most, and nothing is set aside.
fn check(rollup: &[u8]) -> Result<(), OverLimit> {
    let rows = || parts(rollup).filter(|(number, _)| *number == NEEDS).map(|(_, row)| row);
    count("needs", "rows", rows().count(), ROLLUP_ROWS)?;
    let (mut requirements, mut values, mut amounts) = (0, 0, 0);
    for row in rows() {
        let mut spreads = 0;
        for (number, part) in parts(row) {
            match number {
                REQUIREMENTS => {
                    requirements += 1;
                    values += parts(part).filter(|(number, _)| *number == VALUES).count();
                }
                AGGREGATE | MIN_UNIT => amounts += 1,
                SPREAD => spreads += 1,
                _ => {}
            }
        }
        count("spread", "constraints", spreads, ROW_SPREADS)?;
    }
    count("needs", "requirements in all", requirements, ROLLUP_REQUIREMENTS)?;
    count("needs", "values in all", values, ROLLUP_VALUES)?;
    count("needs", "amounts in all", amounts, ROLLUP_AMOUNTS)
}

#[cfg(test)]
mod tests {
    use bigfleet_proto::v1alpha1::{CapacityNeed, NodeSelectorRequirement, TopologySpread};

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

    /// What is said of a roll-up of these rows, and of the same without the last.
    fn refused(mut needs: Vec<CapacityNeed>) -> (String, Result<(), OverLimit>) {
        let mut message = ClusterCapacityNeeds::default();
        message.needs.append(&mut needs);
        let over = check(&message.encode_to_vec()).unwrap_err();
        message.needs.pop();
        (over.to_string(), check(&message.encode_to_vec()))
    }

    #[test]
    fn each_bound_is_counted_where_it_lies() {
        let row = CapacityNeed::default();
        let rows = refused(vec![row.clone(); ROLLUP_ROWS + 1]);
        assert_eq!(rows, ("needs has 50001 rows; at most 50000 are taken".into(), Ok(())));
        let requirement = |values: usize| NodeSelectorRequirement {
            values: vec![String::new(); values],
            ..NodeSelectorRequirement::default()
        };
        let of = |requirements| CapacityNeed { requirements, ..row.clone() };
        let mut needs = vec![of(vec![requirement(0); 1000]); ROLLUP_REQUIREMENTS / 1000];
        needs.push(of(vec![requirement(0)]));
        let over = "needs has 200001 requirements in all; at most 200000 are taken";
        assert_eq!(refused(needs), (over.into(), Ok(())));
        let mut needs = vec![of(vec![requirement(1000)]); ROLLUP_VALUES / 1000];
        needs.push(of(vec![requirement(1)]));
        assert_eq!(
            refused(needs),
            ("needs has 200001 values in all; at most 200000 are taken".into(), Ok(()))
        );
        let amounts = |count: usize| CapacityNeed {
            aggregate_resources: (0..count).map(|name| (name.to_string(), "1".into())).collect(),
            min_unit: [("cpu".to_owned(), "1".to_owned())].into(),
            ..row.clone()
        };
        let mut needs = vec![amounts(199); ROLLUP_AMOUNTS / 200];
        needs.push(amounts(0));
        assert_eq!(
            refused(needs),
            ("needs has 400001 amounts in all; at most 400000 are taken".into(), Ok(()))
        );
        let spread = vec![TopologySpread::default(); ROW_SPREADS + 1];
        let over = "spread has 33 constraints; at most 32 are taken";
        assert_eq!(refused(vec![CapacityNeed { spread, ..row }]), (over.into(), Ok(())));
    }

    #[test]
    fn what_is_malformed_is_left_to_whoever_decodes_it() {
        for bytes in [&[0x1A, 9][..], &[0xFF], &[0x1A, 2, 0x0A, 9], &[]] {
            assert_eq!(check(bytes), Ok(()));
        }
    }
}
