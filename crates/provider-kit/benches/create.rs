//! How long Create takes to be durable and answered, at three sizes of fleet in one run. The size must not
//! matter: each mutation writes what it changes.
//!
//! Two patterns: one caller after the other (each pays a sync of the disk alone), and 32 callers at once
//! (who share it).

#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![expect(clippy::print_stdout, reason = "the table is the result")]

use std::time::{Duration, Instant};

use bigfleet_proto::v1alpha1::CreateRequest;
use bigfleet_proto::v1alpha1::capacity_provider_server::CapacityProvider;
use bigfleet_provider_kit::{Backend, Failure, Machine, Offering, Options, Provider, Store};
use tonic::Request;

const ALONE: usize = 400;
const TOGETHER: usize = 32;
const TOGETHER_ROUNDS: usize = 15;

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

async fn measure(machines: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let began = Instant::now();
    let seeded =
        Provider::open(Instantly(machines), Store::file(&path), Options::default()).await.expect("a start");
    let seed_time = began.elapsed();
    seeded.handle().stop(Duration::from_secs(10)).await;
    let began = Instant::now();
    let provider =
        Provider::open(Instantly(machines), Store::file(&path), Options::default()).await.expect("a start");
    let reopen_time = began.elapsed();

    let stride = machines / (ALONE + TOGETHER * TOGETHER_ROUNDS);
    let mut index = (0..).map(|step| step * stride.max(1));
    let mut alone = Vec::new();
    for _ in 0..ALONE {
        alone.push(create(&provider, index.next().expect("endless")).await);
    }
    let mut together = Vec::new();
    for _ in 0..TOGETHER_ROUNDS {
        let callers: Vec<_> = (0..TOGETHER)
            .map(|_| {
                let (provider, index) = (provider.clone(), index.next().expect("endless"));
                tokio::spawn(async move { create(&provider, index).await })
            })
            .collect();
        for caller in callers {
            together.push(caller.await.expect("no panic"));
        }
    }
    println!(
        "{machines:>8}  {:>9.2?} {:>9.2?}  {:>9.2?} {:>9.2?}  {seed_time:>9.2?} {reopen_time:>9.2?}",
        percentile(&mut alone, 50),
        percentile(&mut alone, 99),
        percentile(&mut together, 50),
        percentile(&mut together, 99),
    );
    provider.handle().stop(Duration::from_secs(10)).await;
}

fn main() {
    // `cargo test --benches` passes --test: then one small size shows that it works.
    let sizes: &[usize] =
        if std::env::args().any(|flag| flag == "--test") { &[1000] } else { &[1000, 20_000, 200_000] };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    println!("          one at a time        32 at once           start");
    println!("machines        p50       p99        p50       p99      first     again");
    for size in sizes {
        runtime.block_on(measure(*size));
    }
}
