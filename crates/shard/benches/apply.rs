//! Applying a listing of a whole fleet, without the wire: what it costs around the engine and what inside it.
//!
//! `cargo bench -p bigfleet-shard --bench apply [SHAPE]`. A part of 2,048 records is what holds the shard's thread at once,
//! so the longest part is told beside the sum. Times are of the thread's processor. That every machine arrived is asserted.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::sync::Arc;
use std::time::Duration;

use bigfleet_engine::Fleet;
use bigfleet_model::machine::Machine;
use bigfleet_shapes::{NOW_UNIX_NANOS, Shape, generate};
use bigfleet_shard::{
    BadRecord, Config, Effect, Event, ListEnd, Memory, ProviderConfig, Report, Reports, SECOND, Shard, Step,
    Told,
};

/// As the server hands them over.
const PART: usize = 2048;

/// Records that are decoded already, as far as they are read at all.
struct Part {
    machines: Arc<Vec<Machine>>,
    /// Which of them, in which order.
    places: Arc<Vec<u32>>,
    range: std::ops::Range<usize>,
    /// How they are written, and what changed in them.
    writing: u64,
    content: u64,
}

struct Record<'p> {
    machine: &'p Machine,
    number: u64,
    part: &'p Part,
}

impl Reports for Part {
    fn each(&self, take: &mut dyn FnMut(&dyn Report)) {
        for place in &self.places[self.range.clone()] {
            let number = u64::from(*place);
            take(&Record { machine: &self.machines[*place as usize], number, part: self });
        }
    }
}

impl Report for Record<'_> {
    fn id(&self) -> &str {
        &self.machine.id
    }
    fn digest(&self) -> u128 {
        // Spread, as a digest is.
        (u128::from(self.part.writing) << 64 | u128::from(self.content())).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
    fn content(&self) -> u64 {
        self.number + 1 + (self.part.content << 40)
    }
    fn read(&self) -> Result<Told, BadRecord> {
        let mut machine = self.machine.clone();
        machine.price_usd_per_hour += self.part.content as f64;
        Ok(Told { machine, bad_stamps: 0 })
    }
}

struct Bench {
    shard: Shard,
    machines: Arc<Vec<Machine>>,
    now: i64,
}

/// What this thread has used of its processor: a busy machine makes it wait, not work.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = cpu();
    let done = work();
    (cpu().checked_sub(start).unwrap(), done)
}

impl Bench {
    /// One listing, from the moment its records are there: the sum, and the longest part.
    fn list(&mut self, what: &str, order: &[u32], (writing, content): (u64, u64)) {
        let mut step = Step::default();
        let call = loop {
            self.shard.advance(self.now, &mut step);
            let call = step.effects.iter().find_map(|effect| match effect {
                Effect::List { call, .. } => Some(*call),
                _ => None,
            });
            if let Some(call) = call {
                break call;
            }
            step = Step::default();
            self.now += SECOND;
        };
        let places = Arc::new(order.to_vec());
        let (mut sum, mut longest) = (Duration::ZERO, Duration::ZERO);
        for start in (0..order.len()).step_by(PART) {
            let range = start..(start + PART).min(order.len());
            let end = (range.end == order.len()).then(ListEnd::default);
            let part =
                Part { machines: self.machines.clone(), places: places.clone(), range, writing, content };
            let event = Event::Listed { call, records: Box::new(part), end };
            let mut step = Step::default();
            let (time, ()) = timed(|| self.shard.handle(event, self.now, &mut step));
            sum += time;
            longest = longest.max(time);
        }
        let tally = self.shard.tally();
        assert_eq!(tally.read_otherwise, 0);
        println!("  {what:44} {sum:>9.1?}   longest part {longest:>8.1?}");
    }
}

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let shape = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let shape: Shape = shape.map_or(Shape::Fleet500k, |name| name.parse().expect("a shape"));
    let machines = Arc::new(generate(shape, 1).machines);
    println!("{} machines", machines.len());

    let (reading, _) =
        timed(|| machines.iter().map(|machine| machine.clone().price_usd_per_hour).sum::<f64>());
    println!("  {:44} {reading:>9.1?}", "copying them, which counts as reading");
    let shared: Vec<Arc<Machine>> = machines.iter().map(|machine| Arc::new(machine.clone())).collect();
    let mut engine = Fleet::new(Config::new("s", 1, Vec::new()).parallelism);
    for what in ["the engine alone, all new", "the engine alone, all unchanged"] {
        let (observing, ()) = timed(|| {
            for machine in &shared {
                engine.observe(machine).expect("a machine of a shape is sound");
            }
        });
        println!("  {what:44} {observing:>9.1?}");
    }
    drop((engine, shared));

    let mut config = Config::new("s", 1, vec![ProviderConfig::named("p")]);
    // No cycle in between: listings alone are measured.
    config.pace.tick = i64::MAX / 4;
    let shard = Shard::new(config, Memory::default(), NOW_UNIX_NANOS);
    let count = machines.len() as u32;
    let mut bench = Bench { shard, machines, now: NOW_UNIX_NANOS };
    let straight: Vec<u32> = (0..count).collect();
    // A step that meets every machine once, far apart.
    let stride = (1..1_000).map(|n| 7_919 + n * 2).find(|n| gcd(*n, count) == 1).unwrap_or(1);
    let mixed: Vec<u32> =
        (0..count).map(|n| (u64::from(n) * u64::from(stride) % u64::from(count)) as u32).collect();
    let rotated: Vec<u32> = (0..count).map(|n| (n + count / 3) % count).collect();
    bench.list("all new", &straight, (1, 0));
    assert_eq!(bench.shard.providers()[0].machines, count as usize);
    bench.list("unchanged, same order", &straight, (1, 0));
    bench.list("unchanged, begun elsewhere", &rotated, (1, 0));
    bench.list("unchanged, any order", &mixed, (1, 0));
    bench.list("unchanged, written otherwise", &straight, (2, 0));
    bench.list("all changed", &straight, (2, 1));
    bench.list("unchanged again", &straight, (2, 1));
    assert_eq!(bench.shard.providers()[0].machines, count as usize);
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
