//! What it costs to keep what is around the engine: bytes on disk of an ordinary cycle.

use bigfleet_engine::Options;
use bigfleet_record::tape::{Limits, Writer};
use bigfleet_shard::{
    Around, ClusterChange, CycleRecord, Health, Link, Listed, ProviderSettings, Reasons, Settings,
};

const SECOND: i64 = 1_000_000_000;
const START: i64 = 1_800_000_000 * SECOND;
const CLUSTERS: u32 = 2_000;
/// Each cluster reports every so many seconds.
const EVERY_SECS: u32 = 5;

fn record(cycle: u64, around: Option<Around>, is_full: bool) -> CycleRecord {
    CycleRecord {
        cycle,
        epoch: 1,
        edition: bigfleet_engine::EDITION,
        now_unix_nanos: START + cycle.cast_signed() * SECOND,
        reasons: Reasons { demand: true, ..Reasons::default() },
        full: is_full.then(Default::default),
        inputs: Vec::new(),
        options: Options::default(),
        actions: Vec::new(),
        decided: 0,
        digest: 0,
        usd_per_hour: 1.5,
        short_needs: 0,
        around,
    }
}

fn listed(now: i64, machines: u32) -> Vec<(u16, Listed)> {
    let listed = |place: u16| {
        let heard = Some(now - 3 * SECOND - i64::from(place) * 777_777_777);
        (place, Listed { unix_nanos: heard, full_unix_nanos: Some(START), machines })
    };
    (0..3).map(listed).collect()
}

/// All there is: three providers and two thousand sessions.
fn whole() -> Around {
    let provider = |name: &str| ProviderSettings { name: name.into(), ..ProviderSettings::default() };
    let session = |rank: u32| {
        let since_unix_nanos = START - i64::from(rank) * 12_345_678_901;
        let link = Link { number: rank.into(), since_unix_nanos, protocol: "v1alpha1".into() };
        (rank, ClusterChange::Session(Some(link)))
    };
    let providers = ["aws", "gcp", "metal"].map(provider).to_vec();
    Around {
        settings: Some(Settings { providers, ..Settings::default() }.into()),
        listed: listed(START, 100_000),
        health: (0..3).map(|place| (place, Health::default())).collect(),
        came: (0..CLUSTERS).map(|rank| format!("cluster-{rank:04}").into()).collect(),
        clusters: (0..CLUSTERS).map(session).collect(),
        reported: (0..CLUSTERS).map(|rank| (rank, START / SECOND - i64::from(rank % EVERY_SECS))).collect(),
        ..Around::default()
    }
}

/// A second in which nothing happens but that a fifth of the clusters report what they reported before.
fn ordinary(cycle: u64) -> Around {
    let now = START + cycle.cast_signed() * SECOND;
    let is_due = |rank: &u32| u64::from(rank.wrapping_mul(2_654_435_761) >> 7) % 5 == cycle % 5;
    let reported = (0..CLUSTERS).filter(is_due);
    let reported = reported.map(|rank| (rank, now / SECOND - i64::from(rank % 3 == 0)));
    Around {
        listed: listed(now, 100_000 + cycle as u32),
        reported: reported.collect(),
        moves: 17,
        ..Around::default()
    }
}

/// Bytes of the first record and, on average, of those after it.
fn sizes(around: impl Fn(u64) -> Option<Around>) -> (u64, u64) {
    let folder = crate::folder();
    let mut tape = Writer::open(folder.path(), Limits::default()).unwrap().0;
    tape.append(&record(0, around(0), true)).unwrap();
    let full = tape.bytes();
    for cycle in 1..=100 {
        tape.append(&record(cycle, around(cycle), false)).unwrap();
    }
    (full, (tape.bytes() - full) / 100)
}

#[test]
fn what_is_around_two_thousand_sessions_is_small() {
    let (bare_full, bare) = sizes(|_| None);
    let (full, with) = sizes(|cycle| Some(if cycle == 0 { whole() } else { ordinary(cycle) }));
    let (quiet_full, quiet) = sizes(|cycle| {
        Some(if cycle == 0 { whole() } else { Around { reported: Vec::new(), ..ordinary(cycle) } })
    });
    assert_eq!(full, quiet_full);
    assert!(full - bare_full < 40_000, "a full state grows by {}", full - bare_full);
    assert!(with - bare < 600, "a cycle in which 400 clusters report grows by {}", with - bare);
    assert!(quiet - bare < 80, "a cycle in which none does grows by {}", quiet - bare);
}
