//! What it costs to remember and to record: commits, full states, records of an ordinary cycle, and reading them again.
//!
//! The fleet has 225,000 machines and 2,000 clusters of 25 needs. An ordinary cycle changes 100 machines and the demand
//! of 20 clusters.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![expect(clippy::print_stdout, reason = "the table is the result")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bigfleet_engine::{Fleet, Options, Ready};
use bigfleet_model::machine::Machine;
use bigfleet_model::need::Need;
use bigfleet_record::codec::{decode_record, encode_record};
use bigfleet_record::tape::{Limits, Reader, Writer};
use bigfleet_record::{Store, replay::replay};
use bigfleet_scenario::Scenario;
use bigfleet_shapes::{Shape, generate};
use bigfleet_shard::{CycleRecord, Fact, Fate, Input, MachineMemo, Ordered, Reasons};

const RECORDS: usize = 300;

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let done = work();
    (start.elapsed(), done)
}

fn median(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

fn memo(number: u64) -> Fact {
    let idle = MachineMemo {
        idle_since: Some(1_800_000_000_000_000_000 + number.cast_signed()),
        ..MachineMemo::default()
    };
    Fact::Machine(format!("i-{:010x}", number.wrapping_mul(0x9E37_79B9) & 0xff_ffff_ffff).into(), Some(idle))
}

fn commits() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path(), 0).unwrap().store;
    println!("commit, median and 99 %:");
    for (facts, rounds) in [(1, 400), (100, 200), (5_000, 30)] {
        let times = (0..rounds).map(|round: u64| {
            let batch: Vec<Fact> = (0..facts).map(|fact| memo(round * 977 + fact)).collect();
            timed(|| store.commit(&batch).unwrap()).0
        });
        let (middle, most) = median(times.collect());
        println!("  {facts:5} facts   {middle:?}   {most:?}");
    }
    let all: Vec<Fact> = (0..225_000).map(memo).collect();
    let (time, ()) = timed(|| store.commit(&all).unwrap());
    println!("  225000 facts   {time:?}");
    drop(store);
    let bytes = std::fs::metadata(folder.path().join("state.redb")).unwrap().len();
    let (time, opened) = timed(|| Store::open(folder.path(), 0).unwrap());
    println!(
        "open with {} memos, every page checked: {time:?}, file of {bytes} bytes",
        opened.memory.machines.len()
    );
}

fn whole(scenario: &Scenario) -> Vec<Input> {
    let mut rollups: BTreeMap<Arc<str>, Vec<Need>> = BTreeMap::new();
    for need in &scenario.needs {
        rollups.entry(need.cluster.clone()).or_default().push(need.clone());
    }
    let machines = scenario.machines.iter().map(|machine| Input::Observe(Arc::new(machine.clone())));
    let demand = rollups.into_iter().map(|(cluster, rows)| Input::Replace {
        cluster,
        needs: rows.into(),
        at_unix_nanos: scenario.now_unix_nanos,
    });
    machines.chain(demand).collect()
}

/// What an ordinary cycle changes: 100 machines change their price or their idle stamp, 20 clusters report.
fn changes(scenario: &mut Scenario, round: usize, by_cluster: &[Vec<usize>]) -> Vec<Input> {
    let count = scenario.machines.len();
    let mut inputs = Vec::new();
    for step in 0..100 {
        let machine: &mut Machine = &mut scenario.machines[(round * 7_919 + step * 2_111) % count];
        machine.price_usd_per_hour *= 1.01;
        machine.idle_since_unix_nanos = machine.idle_since_unix_nanos.map(|stamp| stamp + 1);
        inputs.push(Input::Observe(Arc::new(machine.clone())));
    }
    for step in 0..20 {
        let rows = &by_cluster[(round * 31 + step * 97) % by_cluster.len()];
        for row in rows.iter().step_by(5) {
            let need = &mut scenario.needs[*row];
            need.aggregate = need.aggregate.add(&need.min_unit);
        }
        let needs: Arc<[Need]> = rows.iter().map(|row| scenario.needs[*row].clone()).collect();
        let cluster = needs[0].cluster.clone();
        inputs.push(Input::Replace { cluster, needs, at_unix_nanos: scenario.now_unix_nanos });
    }
    inputs
}

fn take(fleet: &mut Fleet, inputs: &[Input]) {
    for input in inputs {
        match input {
            Input::Observe(machine) => drop(fleet.observe(machine).unwrap()),
            Input::Replace { cluster, needs, at_unix_nanos } => {
                fleet.replace(cluster, needs.to_vec(), *at_unix_nanos).unwrap();
            }
            Input::Remove(_) | Input::Park { .. } => {}
        }
    }
}

struct Tape {
    fleet: Fleet,
    options: Options,
    cycle: u64,
}

impl Tape {
    fn record(&mut self, inputs: Vec<Input>, is_full: bool, now: i64) -> CycleRecord {
        self.cycle += 1;
        take(&mut self.fleet, &inputs);
        let decision = self.fleet.cycle(&self.options, now);
        let actions = decision.actions.iter().enumerate();
        let actions = actions.map(|(index, action)| Ordered {
            action: action.clone(),
            fate: Fate::Begun,
            machine: None,
            runner_up: None,
            approved_by: None,
            why: (index < 5).then(|| self.fleet.explain_action(action, &self.options)).flatten(),
        });
        CycleRecord {
            cycle: self.cycle,
            epoch: 1,
            edition: bigfleet_engine::EDITION,
            now_unix_nanos: now,
            reasons: Reasons { demand: true, supply: true, ..Reasons::default() },
            actions: actions.collect(),
            decided: decision.actions.len() as u32,
            digest: bigfleet_shard::digest(&decision.actions),
            full: is_full.then(|| Arc::new(inputs.clone())),
            inputs: if is_full { Vec::new() } else { inputs },
            options: self.options.clone(),
            usd_per_hour: 1.0,
            short_needs: 0,
            around: None,
        }
    }
}

fn tape() {
    let mut scenario = generate(Shape::Fleet225k, 1);
    let mut by_cluster: BTreeMap<Arc<str>, Vec<usize>> = BTreeMap::new();
    for (row, need) in scenario.needs.iter().enumerate() {
        by_cluster.entry(need.cluster.clone()).or_default().push(row);
    }
    let ready = Ready::Only(Arc::new(by_cluster.keys().cloned().collect()));
    let by_cluster: Vec<Vec<usize>> = by_cluster.into_values().collect();
    println!(
        "{} machines, {} clusters, {} needs",
        scenario.machines.len(),
        by_cluster.len(),
        scenario.needs.len()
    );
    let mut tape =
        Tape { fleet: Fleet::default(), options: Options { ready, ..Options::default() }, cycle: 0 };
    let full = tape.record(whole(&scenario), true, scenario.now_unix_nanos);
    let (encoding, raw) = timed(|| encode_record(&full));
    let (decoding, _) = timed(|| decode_record(&raw, full.options.clone()).unwrap());

    let folder = tempfile::tempdir().unwrap();
    let limits =
        Limits { full_every: u32::MAX, segment_bytes: 1 << 30, max_bytes: 1 << 33, ..Limits::default() };
    let mut writer = Writer::open(folder.path(), limits).unwrap().0;
    let (appending, ()) = timed(|| writer.append(&full).unwrap());
    println!(
        "full state: {} bytes, {} on disk ({} actions); encode {encoding:?}, append {appending:?}, decode {decoding:?}",
        raw.len(),
        writer.bytes(),
        full.actions.len()
    );

    let mut sizes = Vec::new();
    let mut times = Vec::new();
    let (mut raw_bytes, mut actions) = (0, 0);
    for round in 0..RECORDS {
        scenario.now_unix_nanos += 1_000_000_000;
        let inputs = changes(&mut scenario, round, &by_cluster);
        let mut record = tape.record(inputs, false, scenario.now_unix_nanos);
        // The fleet never acts on what it decides, so the same actions come up again: a shard has some of them.
        record.actions.truncate(100);
        actions += record.actions.len();
        raw_bytes += encode_record(&record).len();
        let before = writer.bytes();
        times.push(timed(|| writer.append(&record).unwrap()).0);
        sizes.push(writer.bytes() - before);
    }
    let total: Duration = times.iter().sum();
    let (middle, most) = median(times);
    println!(
        "cycle of 100 machines, 20 clusters of 25 rows, {} actions: {} bytes, {} on disk; append {middle:?}, 99 % {most:?}, {:.0} a second",
        actions / RECORDS,
        raw_bytes / RECORDS,
        sizes.iter().sum::<u64>() / RECORDS as u64,
        RECORDS as f64 / total.as_secs_f64()
    );
    writer.close().unwrap();
    let (opening, reader) = timed(|| Reader::open(folder.path()).unwrap());
    let (seeking, entry) = timed(|| reader.at_cycle(200).unwrap());
    let (rebuilding, state) = timed(|| reader.state_at(&entry).unwrap());
    println!(
        "open {opening:?}, find cycle 200 {seeking:?}, rebuild it {rebuilding:?} ({} machines)",
        state.machines.len()
    );
    let (reading, count) = timed(|| reader.records().skip(1).flatten().count());
    println!("read {count} records after the full state: {reading:?}");
    // Only the full one holds all of its actions.
    let (replaying, report) = timed(|| replay(reader.records().take(1)));
    assert!(report.first_difference.is_none());
    println!("replay the full state: {replaying:?}, {} actions alike", report.actions);
}

fn main() {
    commits();
    tape();
}
