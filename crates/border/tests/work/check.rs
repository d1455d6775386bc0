//! Any bytes offered as a roll-up are read or refused with work that is bounded by their number, and the core thread's share of
//! it is less. Work is counted, not timed: memory asked for, in pieces and in bytes. (`scripts/count-ingest` counts
//! instructions.)
//!
//! One function, used by tests and by the fuzzer. Bytes are taken as a message as they are, and as the plan of a message: four
//! bytes for each row, so that a few bytes reach shapes that nobody would find by chance.

use std::collections::BTreeMap;

use allocation_counter::measure;
use bigfleet_border::session::Rollups;
use bigfleet_proto::v1alpha1::{CapacityNeed, ClusterCapacityNeeds, NodeSelectorRequirement, TopologySpread};
use bigfleet_shard::{Config, Event, Memory, SessionId, Shard, Step};
use prost::Message;

/// Pieces of memory that reading may ask for, for each byte; a row, a requirement and a value take some bytes each.
const PIECES_PER_BYTE: f64 = 3.0;
/// Bytes of memory that reading may ask for in all, for each byte. The shortest row is two bytes and becomes a need, twice, and
/// a line in tables.
const BYTES_PER_BYTE: f64 = 1500.0;
/// The same for the core thread.
const CORE_PIECES_PER_BYTE: f64 = 0.5;
const CORE_BYTES_PER_BYTE: f64 = 250.0;
/// Whatever comes, so much may be asked for beside it.
const FIXED: f64 = 64.0 * 1024.0;

/// The most bytes of a plan: eight rows, which may be large.
const PLAN: usize = 32;

/// Holds one input to the bounds; true if it was taken as a roll-up in either reading.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let planned = planned(&bytes[..bytes.len().min(PLAN)]).encode_to_vec();
    let as_it_is = count(bytes);
    count(&planned) || as_it_is
}

fn count(bytes: &[u8]) -> bool {
    let rollups = Rollups::new(SessionId(1), "shop".into());
    let mut shard = Shard::new(Config::new("s1", 1, Vec::new()), Memory::default(), 1);
    let opened = Event::Opened { session: SessionId(1), cluster: "shop".into(), protocol: "v1alpha1".into() };
    shard.handle(opened, 1, &mut Step::default());
    let mut event = None;
    let reading = measure(|| {
        let (_, again) = rollups.recognise(bytes);
        event = again.or_else(|| Some(rollups.read(bytes)));
    });
    let mut step = Step::default();
    let event = event.expect("it was read");
    let taking = measure(|| shard.handle(event, 2, &mut step));
    for (who, work, pieces, most) in [
        ("reading", reading, PIECES_PER_BYTE, BYTES_PER_BYTE),
        ("the core thread", taking, CORE_PIECES_PER_BYTE, CORE_BYTES_PER_BYTE),
    ] {
        let len = bytes.len() as f64;
        let (count, total) = (work.count_total as f64, work.bytes_total as f64);
        assert!(
            count <= pieces * len + FIXED / 64.0 && total <= most * len + FIXED,
            "{who} asks for {count} pieces and {total} bytes of memory for {len} bytes: {bytes:?}"
        );
    }
    shard.has_taken_rollup(SessionId(1))
}

/// A roll-up by a plan: each four bytes say how many requirements, values and amounts a row has, and how like others it is.
fn planned(plan: &[u8]) -> ClusterCapacityNeeds {
    let needs = plan.as_chunks().0.iter().enumerate().map(|(at, row)| planned_row(at, *row)).collect();
    ClusterCapacityNeeds { cluster_id: "shop".into(), timestamp_unix_nanos: 9, needs }
}

fn planned_row(at: usize, [requirements, values, amounts, kind]: [u8; 4]) -> CapacityNeed {
    let salt = if kind & 1 == 0 { at } else { 0 };
    let value = |value| format!("v{}", value * 7919 % 256 + 256 * usize::from(kind >> 6));
    let requirement = |number: usize| NodeSelectorRequirement {
        key: format!("k{}", number * 104_729 % 256),
        operator: 1 + i32::from(kind >> 1 & 3),
        values: (0..usize::from(values / 4)).rev().map(value).collect(),
    };
    let all = |each: &str| -> BTreeMap<String, String> {
        (0..amounts).map(|name| (format!("example.org/r{name}"), each.to_owned())).collect()
    };
    let mut requirements: Vec<_> = (0..usize::from(requirements / 4)).map(requirement).collect();
    if kind & 8 != 0 {
        let key = format!("k{}", salt % 256);
        requirements.push(NodeSelectorRequirement { key, operator: 5, values: Vec::new() });
    }
    let spread = (kind & 16 != 0).then(|| TopologySpread {
        topology_key: format!("k{}", salt % 256),
        max_skew: 1,
        when_unsatisfiable: 1,
    });
    CapacityNeed {
        requirements,
        aggregate_resources: all("7"),
        min_unit: all("1"),
        priority: i32::from(kind >> 5),
        spread: spread.into_iter().collect(),
        group: if kind & 32 == 0 { String::new() } else { format!("g{salt}") },
        ..CapacityNeed::default()
    }
}
