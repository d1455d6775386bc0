//! How much work a roll-up makes, by its bytes: counted in instructions, because time depends on what else the machine does.
//!
//! `scripts/count-ingest` runs each shape at two sizes under valgrind, for whoever reads it and for the core thread, and fails if
//! twice the bytes cost much more than twice the work. Here the shapes themselves are tried: each is as large as the bounds allow and is taken.

#[path = "work/check.rs"]
mod check;

use std::collections::BTreeMap;
use std::hint::black_box;

use bigfleet_border::session::Rollups;
use bigfleet_model::limits::{
    FRAME_BYTES, REQUIREMENT_VALUES, ROLLUP_AMOUNTS, ROLLUP_REQUIREMENTS, ROLLUP_ROWS, ROLLUP_VALUES,
    ROW_REQUIREMENTS, ROW_RESOURCES,
};
use bigfleet_proto::v1alpha1::{CapacityNeed, ClusterCapacityNeeds, NodeSelectorRequirement};
use bigfleet_shard::{Config, Event, Memory, SessionId, Shard, Step};
use prost::Message;

/// `In` on the wire.
const IN: i32 = 1;

fn requirement(number: usize, values: usize) -> NodeSelectorRequirement {
    let values = (0..values).rev().map(|value| format!("v{value}")).collect();
    NodeSelectorRequirement { key: format!("example.org/k{number}"), operator: IN, values }
}

fn amounts(first: usize, count: usize) -> BTreeMap<String, String> {
    (first..first + count).map(|name| (format!("example.org/r{name}"), "7".to_owned())).collect()
}

fn row(group: usize) -> CapacityNeed {
    CapacityNeed {
        group: group.to_string(),
        aggregate_resources: amounts(0, 1),
        min_unit: amounts(0, 1),
        ..CapacityNeed::default()
    }
}

/// The needs of a shape, a share of the largest that passes.
fn needs(shape: &str, share: f64) -> Vec<CapacityNeed> {
    let of = |most: usize| (most as f64 * share) as usize;
    match shape {
        // Many rows, in the worst order for whoever sorts them.
        "rows" => (0..of(ROLLUP_ROWS)).rev().map(row).collect(),
        // Many rows that are all one.
        "same" => (0..of(ROLLUP_ROWS)).map(|_| row(0)).collect(),
        // As many requirements as a row may have, in as many rows as there may be.
        "requirements" => {
            // Each row's fingerprint is bounded as well.
            let per_row = ROW_REQUIREMENTS.min(1000);
            let rows = of(ROLLUP_REQUIREMENTS / per_row);
            let all = |group| {
                let requirements = (0..per_row).rev().map(|number| requirement(number, 1)).collect();
                CapacityNeed { requirements, ..row(group) }
            };
            (0..rows).map(all).collect()
        }
        // As many values as a requirement may have.
        "values" => {
            let rows = of(ROLLUP_VALUES / REQUIREMENT_VALUES);
            let all = |group| CapacityNeed {
                requirements: vec![requirement(group, REQUIREMENT_VALUES)],
                ..row(group)
            };
            (0..rows).map(all).collect()
        }
        // As many names as a row may have.
        "amounts" => {
            let rows = of(ROLLUP_AMOUNTS / ROW_RESOURCES / 2);
            let all = |group| CapacityNeed {
                aggregate_resources: amounts(0, ROW_RESOURCES),
                min_unit: amounts(0, ROW_RESOURCES),
                ..row(group)
            };
            (0..rows).map(all).collect()
        }
        // The same within one row: at a fiftieth of a whole report it has as many as one may have.
        "wide-row" => {
            let most = of(50 * ROW_REQUIREMENTS).min(ROW_REQUIREMENTS);
            let requirements = (0..most).rev().map(|number| requirement(number, 1)).collect();
            vec![CapacityNeed { requirements, ..row(0) }]
        }
        "many-values" => {
            let most = of(50 * REQUIREMENT_VALUES).min(REQUIREMENT_VALUES);
            vec![CapacityNeed { requirements: vec![requirement(0, most)], ..row(0) }]
        }
        "many-amounts" => {
            let most = of(50 * ROW_RESOURCES).min(ROW_RESOURCES);
            vec![CapacityNeed { aggregate_resources: amounts(0, most), min_unit: amounts(0, most), ..row(0) }]
        }
        other => panic!("there is no shape {other:?}"),
    }
}

const SHAPES: [&str; 8] =
    ["rows", "same", "requirements", "values", "amounts", "wide-row", "many-values", "many-amounts"];

fn bytes(shape: &str, share: f64) -> Vec<u8> {
    let needs = needs(shape, share);
    ClusterCapacityNeeds { cluster_id: "shop".into(), timestamp_unix_nanos: 9, needs }.encode_to_vec()
}

/// A shard to which the operator of a cluster has said hello.
fn a_shard() -> Shard {
    let mut shard = Shard::new(Config::new("s1", 1, Vec::new()), Memory::default(), 1);
    let opened = Event::Opened { session: SessionId(1), cluster: "shop".into(), protocol: "v1alpha1".into() };
    shard.handle(opened, 1, &mut Step::default());
    shard
}

/// What is counted: all that the border does with a roll-up before the shard sees it.
#[inline(never)]
fn measured_read(rollups: &Rollups, bytes: &[u8]) -> Event {
    let (_, again) = black_box(rollups.recognise(bytes));
    assert!(again.is_none());
    rollups.read(bytes)
}

#[test]
fn the_largest_of_each_shape_is_taken() {
    for shape in SHAPES {
        // A small machine has not the patience for all of it in a debug build.
        let bytes = bytes(shape, 0.05);
        let rollups = Rollups::new(SessionId(1), "shop".into());
        let Event::Rollup { rollup, .. } = measured_read(&rollups, &bytes) else { panic!("{shape}") };
        assert!(!rollup.expect(shape).needs().is_empty());
    }
}

/// What a large cluster may say: fifty thousand rows over 256 resource names, four amounts and three requirements to a row,
/// and a row of a thousand requirements.
#[test]
fn the_largest_real_cluster_is_taken() {
    let mut needs: Vec<CapacityNeed> = (0..ROLLUP_ROWS)
        .map(|at| CapacityNeed {
            requirements: (0..3).map(|key| requirement(at % 300 + key, 1)).collect(),
            aggregate_resources: amounts(at * 3 % 253, 4),
            min_unit: amounts(at * 3 % 253, 4),
            ..row(at)
        })
        .collect();
    needs[7].requirements = (0..ROW_REQUIREMENTS).map(|key| requirement(key, 1)).collect();
    let message = ClusterCapacityNeeds { cluster_id: "shop".into(), timestamp_unix_nanos: 9, needs };
    let bytes = message.encode_to_vec();
    assert!(bytes.len() < FRAME_BYTES, "{} bytes", bytes.len());
    let mut shard = a_shard();
    let rollups = Rollups::new(SessionId(1), "shop".into());
    let mut step = Step::default();
    shard.handle(measured_read(&rollups, &bytes), 2, &mut step);
    assert!(shard.has_taken_rollup(SessionId(1)), "{:?}", step.effects);
    assert_eq!(shard.clusters()["shop"].demand.len(), ROLLUP_ROWS);
}

/// A small fuzzer without coverage: the same inputs on every machine and in every run.
#[test]
fn any_bytes_cost_what_they_are_worth_and_no_more() {
    const ROUNDS: usize = 1000;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % limit
    };
    let mut taken = 0;
    for round in 0..ROUNDS {
        let most = [8, 40, 400][round % 3];
        let mut bytes: Vec<u8> = (0..below(most)).map(|_| below(256) as u8).collect();
        match round % 4 {
            // A real message, and one that was cut, or changed in one place.
            0 => bytes = self::bytes(SHAPES[below(SHAPES.len())], 0.0001 * below(20) as f64),
            1 => {
                bytes = self::bytes(SHAPES[below(SHAPES.len())], 0.0001 * below(20) as f64);
                bytes.truncate(below(bytes.len() + 1));
            }
            2 => {
                bytes = self::bytes(SHAPES[below(SHAPES.len())], 0.0001 * below(20) as f64);
                let at = below(bytes.len());
                bytes[at] = below(256) as u8;
            }
            _ => {}
        }
        taken += usize::from(check::check(&bytes));
    }
    // Rows that say next to nothing cost the most for each byte.
    for row in [&[0x1A, 0][..], &[0x1A, 2, 0x1A, 0], &[0x1A, 2, 0x12, 0]] {
        check::check(&[b"\x0A\x04shop", &row.repeat(3000)[..]].concat());
    }
    assert!(taken > ROUNDS / 4, "only {taken} of {ROUNDS} were taken");
}

/// What is counted of the core thread.
#[inline(never)]
fn measured_take(shard: &mut Shard, event: Event, step: &mut Step) {
    shard.handle(event, 2, step);
}

/// For `scripts/count-ingest`: prints how many bytes there are, reads them once and puts them in place.
#[test]
#[ignore = "run by scripts/count-ingest, under valgrind"]
fn one_shape() {
    let shape = std::env::var("SHAPE").expect("SHAPE is set");
    let share: f64 = std::env::var("SHARE").expect("SHARE is set").parse().expect("a number");
    let bytes = bytes(&shape, share);
    let mut shard = a_shard();
    let event = measured_read(&Rollups::new(SessionId(1), "shop".into()), &bytes);
    measured_take(&mut shard, event, &mut Step::default());
    assert!(shard.has_taken_rollup(SessionId(1)));
    eprintln!("bytes: {}", bytes.len());
}
