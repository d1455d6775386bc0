//! The largest roll-ups that are taken, as far as the core thread has to do with them: what it costs to put one that is
//! prepared in the place of another.
//!
//! `cargo bench -p bigfleet-shard --bench ingest [SHAPE]`. Each shape is as large as the bounds allow. *New*: the cluster had
//! nothing. *Changed*: every amount of every row is another. *Replaced*: none of the rows was there before. Times are of the
//! thread's processor, best of three; beside them what preparing costs, which no core thread does.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::sync::Arc;
use std::time::Duration;

use bigfleet_model::limits::{
    CLUSTER_KEYS, FINGERPRINT_BYTES, FRAME_BYTES, REQUIREMENT_VALUES, ROLLUP_AMOUNTS, ROLLUP_REQUIREMENTS,
    ROLLUP_ROWS, ROLLUP_VALUES, ROW_REQUIREMENTS, ROW_RESOURCES, VALUE_BYTES,
};
use bigfleet_model::need::Need;
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::Requirement;
use bigfleet_model::resource::{ResourceName, ResourceVec};
use bigfleet_shard::{Config, Event, Memory, Rollup, SessionId, Shard, Step};

const SHAPES: [&str; 7] = ["rows", "all", "requirements", "values", "amounts", "gangs", "long"];

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn amounts(count: usize, each: u64) -> ResourceVec {
    let name = |number: usize| ResourceName::new(&format!("example.org/r{number}")).expect("a name");
    ResourceVec::new((0..count).map(|number| (name(number), each))).expect("amounts")
}

fn row(requirements: Vec<Requirement>, group: String, amounts: (usize, usize), each: u64) -> Need {
    let profile = Profile::new(requirements, vec![], 1000, PenaltyBucket::ZERO, PenaltyBucket::ZERO);
    Need {
        cluster: "shop".into(),
        profile: Arc::new(profile),
        group: group.into(),
        aggregate: self::amounts(amounts.0, each),
        min_unit: self::amounts(amounts.1, 1),
        first_seen_unix_nanos: 0,
        parked: false,
    }
}

fn requirement(key: usize, values: impl Iterator<Item = String>) -> Requirement {
    Requirement::is_in(format!("example.org/k{}", key % CLUSTER_KEYS), values)
}

/// The rows of a shape. `salt` tells those of one time from those of another; `each` is the amounts.
fn rows(shape: &str, salt: usize, each: u64) -> Vec<Need> {
    let one = |row: usize| vec![format!("v{salt}-{row}")].into_iter();
    let many = |row: usize, count: usize| (0..count).map(move |value| format!("v{salt}-{row}-{value}"));
    match shape {
        "rows" => (0..ROLLUP_ROWS)
            .map(|at| row(vec![requirement(0, one(0))], format!("g{salt}-{at}"), (2, 2), each))
            .collect(),
        "all" => {
            let requirements = ROLLUP_REQUIREMENTS / ROLLUP_ROWS;
            let values = ROLLUP_VALUES / ROLLUP_ROWS / requirements;
            let amounts = ROLLUP_AMOUNTS / ROLLUP_ROWS / 2;
            let of = |at: usize| {
                (0..requirements).map(|key| requirement(at * 7 + key, many(at, values.max(1)))).collect()
            };
            (0..ROLLUP_ROWS).map(|at| row(of(at), String::new(), (amounts, amounts), each)).collect()
        }
        "requirements" => {
            let of = |at: usize| (0..ROW_REQUIREMENTS).map(|key| requirement(key, one(at))).collect();
            let rows = ROLLUP_REQUIREMENTS / ROW_REQUIREMENTS;
            (0..rows).map(|at| row(of(at), String::new(), (2, 2), each)).collect()
        }
        "values" => (0..ROLLUP_VALUES / REQUIREMENT_VALUES)
            .map(|at| row(vec![requirement(at, many(at, REQUIREMENT_VALUES))], String::new(), (2, 2), each))
            .collect(),
        "amounts" => (0..ROLLUP_AMOUNTS / ROW_RESOURCES / 2)
            .map(|at| {
                let most = (ROW_RESOURCES, ROW_RESOURCES);
                row(vec![requirement(0, one(at))], String::new(), most, each)
            })
            .collect(),
        "gangs" => (0..ROLLUP_ROWS)
            .map(|at| {
                let same = Requirement::same(format!("example.org/k{}", at % CLUSTER_KEYS));
                row(vec![same], format!("g{salt}-{at}"), (2, 2), each)
            })
            .collect(),
        "long" => {
            let long =
                |at: usize, value: usize| format!("v{salt}-{at}-{value}-{}", "x".repeat(VALUE_BYTES - 24));
            let values = FINGERPRINT_BYTES / (VALUE_BYTES + 8);
            let rows = FRAME_BYTES / FINGERPRINT_BYTES;
            let of = |at: usize| vec![requirement(0, (0..values).map(move |value| long(at, value)))];
            (0..rows).map(|at| row(of(at), String::new(), (2, 2), each)).collect()
        }
        other => panic!("there is no shape {other:?}; there are {SHAPES:?}"),
    }
}

struct Bed {
    shard: Shard,
    now: i64,
}

impl Bed {
    fn new() -> Self {
        let mut shard = Shard::new(Config::new("s1", 1, Vec::new()), Memory::default(), 1);
        let opened =
            Event::Opened { session: SessionId(1), cluster: "shop".into(), protocol: "v1alpha1".into() };
        shard.handle(opened, 1, &mut Step::default());
        Self { shard, now: 2 }
    }

    /// What taking a roll-up in costs: to prepare it, and the core thread.
    fn take(&mut self, rows: Vec<Need>) -> [Duration; 2] {
        self.now += 1_000_000_000;
        let begun = cpu();
        let rollup = Rollup { cluster: "shop".into(), taken_unix_nanos: 9, needs: rows };
        let event = Event::of_rollup(SessionId(1), Ok(rollup));
        let prepared = cpu();
        let mut step = Step::default();
        self.shard.handle(event, self.now, &mut step);
        let taken = cpu();
        assert!(self.shard.has_taken_rollup(SessionId(1)), "it was refused: {:?}", step.effects);
        [prepared.saturating_sub(begun), taken.saturating_sub(prepared)]
    }
}

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let asked = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    println!(
        "{:<14} {:>7} {:>10} {:>10} {:>10} {:>10}",
        "shape", "rows", "prepare", "new", "changed", "replaced"
    );
    for shape in SHAPES.into_iter().filter(|shape| asked.as_deref().is_none_or(|asked| asked == *shape)) {
        let mut best = [Duration::MAX; 4];
        let mut count = 0;
        for _ in 0..3 {
            let mut bed = Bed::new();
            let first = rows(shape, 1, 7);
            count = first.len();
            let steps = [first, rows(shape, 1, 8), rows(shape, 2, 8)];
            for (at, rows) in steps.into_iter().enumerate() {
                let [prepared, taken] = bed.take(rows);
                best[0] = best[0].min(prepared);
                best[at + 1] = best[at + 1].min(taken);
            }
        }
        let ms = best.map(|time| format!("{:.1} ms", time.as_secs_f64() * 1e3));
        println!("{shape:<14} {count:>7} {:>10} {:>10} {:>10} {:>10}", ms[0], ms[1], ms[2], ms[3]);
    }
}
