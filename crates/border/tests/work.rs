//! How much work a roll-up makes, by its bytes: counted in instructions, because time depends on what else the machine does.
//!
//! `scripts/count-ingest` runs each shape at two sizes under valgrind and fails if twice the bytes cost much more than twice
//! the work. Here the shapes themselves are tried: each is as large as the bounds allow and is taken.

use std::collections::BTreeMap;
use std::hint::black_box;

use bigfleet_border::session::Rollups;
use bigfleet_model::limits::{
    REQUIREMENT_VALUES, ROLLUP_AMOUNTS, ROLLUP_REQUIREMENTS, ROLLUP_ROWS, ROLLUP_VALUES, ROW_REQUIREMENTS,
    ROW_RESOURCES,
};
use bigfleet_proto::v1alpha1::{CapacityNeed, ClusterCapacityNeeds, NodeSelectorRequirement};
use bigfleet_shard::{Event, SessionId};
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
        other => panic!("there is no shape {other:?}"),
    }
}

const SHAPES: [&str; 5] = ["rows", "same", "requirements", "values", "amounts"];

fn bytes(shape: &str, share: f64) -> Vec<u8> {
    let needs = needs(shape, share);
    ClusterCapacityNeeds { cluster_id: "shop".into(), timestamp_unix_nanos: 9, needs }.encode_to_vec()
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
        assert!(!rollup.expect(shape).needs.is_empty());
    }
}

/// For `scripts/count-ingest`: prints how many bytes there are and reads them once.
#[test]
#[ignore = "run by scripts/count-ingest, under valgrind"]
fn one_shape() {
    let shape = std::env::var("SHAPE").expect("SHAPE is set");
    let share: f64 = std::env::var("SHARE").expect("SHARE is set").parse().expect("a number");
    let bytes = bytes(&shape, share);
    let rollups = Rollups::new(SessionId(1), "shop".into());
    let event = measured_read(&rollups, &bytes);
    assert!(matches!(event, Event::Rollup { rollup: Ok(_), .. }));
    eprintln!("bytes: {}", bytes.len());
}
