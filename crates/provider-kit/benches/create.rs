//! How long Create takes to be durable and answered, at three sizes of fleet in one run. The size must not
//! matter: each mutation writes what it changes.
//!
//! Two patterns: one caller after the other (each pays a sync of the disk alone), and 32 callers at once
//! (who share it).

#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![expect(clippy::print_stdout, reason = "the table is the result")]

use std::io::Write;
use std::time::{Duration, Instant};

use bigfleet_proto::v1alpha1::CreateRequest;
use bigfleet_proto::v1alpha1::capacity_provider_server::CapacityProvider;
use bigfleet_provider_kit::{Backend, Failure, Machine, Offering, Options, Provider, Store};
use tonic::Request;

const ALONE: usize = 600;
const TOGETHER: usize = 32;
const TOGETHER_ROUNDS: usize = 12;

struct Instantly(usize);

impl Backend for Instantly {
    fn name(&self) -> &'static str {
        "bench"
    }

    async fn offerings(&self) -> Result<Vec<Offering>, Failure> {
        let slot = |index: usize| {
            Offering::new(format!("machine-{index:07}"), "m5.2xlarge", format!("zone-{}", index % 3))
                .with_resource("cpu", "8")
                .with_resource("memory", "32Gi")
                .with_label("topology.bigfleet/rack", format!("rack-{}", index / 40))
                .at_price(0.384)
        };
        Ok((0..self.0).map(slot).collect())
    }

    async fn create(&self, machine: &Machine) -> Result<String, Failure> {
        Ok(machine.id.clone())
    }

    async fn configure(&self, _: &Machine, _: &[u8]) -> Result<(), Failure> {
        Ok(())
    }

    async fn confirm_ready(&self, _: &Machine) -> Result<bool, Failure> {
        Ok(true)
    }

    async fn drain(&self, _: &Machine, _: Duration) -> Result<(), Failure> {
        Ok(())
    }

    async fn delete(&self, _: &Machine) -> Result<(), Failure> {
        Ok(())
    }
}

async fn create(provider: &Provider<Instantly>, index: usize) -> Duration {
    let request = CreateRequest {
        machine_id: format!("machine-{index:07}"),
        shard_id: "shard-1".into(),
        shard_epoch: 1,
        sequence_number: i64::try_from(index).expect("small") + 1,
    };
    let began = Instant::now();
    let ack = provider.create(Request::new(request)).await.expect("the slot is free").into_inner();
    let took = began.elapsed();
    assert_eq!(ack.machine.expect("a snapshot").state, 2, "the machine is being created");
    took
}

fn percentile(times: &mut [Duration], of_hundred: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() * of_hundred / 100).min(times.len() - 1)]
}

/// A provider of one size, and the times taken on it.
struct Subject {
    machines: usize,
    provider: Provider<Instantly>,
    next: usize,
    first_start: Duration,
    next_start: Duration,
    alone: Vec<Duration>,
    together: Vec<Duration>,
    _folder: tempfile::TempDir,
}

impl Subject {
    async fn start(machines: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store");
        let open = || Provider::open(Instantly(machines), Store::file(&path), Options::default());
        let began = Instant::now();
        open().await.expect("a start").handle().stop(Duration::from_secs(10)).await;
        let first_start = began.elapsed();
        let began = Instant::now();
        let provider = open().await.expect("a start");
        let next_start = began.elapsed();
        let (alone, together) = (Vec::new(), Vec::new());
        Self { machines, provider, next: 0, first_start, next_start, alone, together, _folder: folder }
    }

    /// The next slot, spread over the whole fleet.
    fn slot(&mut self) -> usize {
        let stride = self.machines / (ALONE + TOGETHER * TOGETHER_ROUNDS);
        self.next += 1;
        (self.next - 1) * stride
    }

    async fn one_caller(&mut self) {
        let slot = self.slot();
        self.alone.push(create(&self.provider, slot).await);
    }

    async fn many_callers(&mut self) {
        let mut callers = Vec::new();
        for _ in 0..TOGETHER {
            let (provider, slot) = (self.provider.clone(), self.slot());
            callers.push(tokio::spawn(async move { create(&provider, slot).await }));
        }
        for caller in callers {
            self.together.push(caller.await.expect("no panic"));
        }
    }
}

/// What the disk takes for the least there is to do: 4 KiB written and synced.
fn bare_sync(file: &mut std::fs::File) -> Duration {
    let began = Instant::now();
    file.write_all(&[7; 4096]).and_then(|()| file.sync_data()).expect("a disk");
    began.elapsed()
}

/// All sizes take turns, so that whatever else the machine does meets them alike.
async fn measure(sizes: &[usize]) {
    let mut subjects = Vec::new();
    for machines in sizes {
        subjects.push(Subject::start(*machines).await);
    }
    let mut file = tempfile::tempfile().expect("a file");
    let mut bare = Vec::new();
    for _ in 0..ALONE {
        bare.push(bare_sync(&mut file));
        for subject in &mut subjects {
            subject.one_caller().await;
        }
    }
    for _ in 0..TOGETHER_ROUNDS {
        for subject in &mut subjects {
            subject.many_callers().await;
        }
    }
    println!(
        "4 KiB and a sync, nothing else: p50 {:.0?}, p99 {:.0?}",
        percentile(&mut bare, 50),
        percentile(&mut bare, 99)
    );
    println!("          one at a time          {TOGETHER} at once           start");
    println!("machines        p50       p99        p50       p99      first     again");
    for subject in &mut subjects {
        println!(
            "{:>8}  {:>9.2?} {:>9.2?}  {:>9.2?} {:>9.2?}  {:>9.2?} {:>9.2?}",
            subject.machines,
            percentile(&mut subject.alone, 50),
            percentile(&mut subject.alone, 99),
            percentile(&mut subject.together, 50),
            percentile(&mut subject.together, 99),
            subject.first_start,
            subject.next_start,
        );
        subject.provider.handle().stop(Duration::from_secs(10)).await;
    }
}

fn main() {
    // `cargo test --benches` passes --test: then one small size shows that it works.
    let all: &[usize] = &[1000, 20_000, 200_000];
    let sizes = if std::env::args().any(|flag| flag == "--test") { &all[..1] } else { all };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure(sizes));
}
