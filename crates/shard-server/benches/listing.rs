//! Listing half a million machines over a real socket: bytes, time, memory; the first listing and unchanged ones.
//!
//! `cargo bench -p bigfleet-shard-server --bench listing [SHAPE] [--unary]`. Two processes: this one is the shard, the other
//! the provider, which serves the machines of a benchmark shape with the stamps a shard writes. `--unary` takes the
//! stream away, as in providers that do not have it. That all machines arrived is asserted.

#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a benchmark measures and prints")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bigfleet_net::SystemClock;
use bigfleet_proto::v1alpha1::capacity_provider_server::CapacityProvider;
use bigfleet_proto::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, Machine, MachineList,
    MachineRef, TransitionAck,
};
use bigfleet_provider_kit::{Lister, Outputs, Selection, Server, Settings as Serving, Store};
use bigfleet_provider_sim::{Config as Cloud, Sim};
use bigfleet_shapes::{Shape, generate};
use bigfleet_shard::{Config, ProviderConfig, SECOND};
use bigfleet_shard_server::{ProviderAddress, Running, Settings};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::{Request, Response, Status};

/// How many unchanged listings are measured.
const UNCHANGED: u32 = 10;

/// Serves a fleet that does not move.
struct Still {
    machines: Vec<Arc<Machine>>,
    streams: bool,
}

fn no<T>() -> Result<T, Status> {
    Err(Status::internal("nothing moves here"))
}

#[tonic::async_trait]
impl CapacityProvider for Still {
    async fn create(&self, _: Request<CreateRequest>) -> Result<Response<TransitionAck>, Status> {
        no()
    }
    async fn configure(&self, _: Request<ConfigureRequest>) -> Result<Response<TransitionAck>, Status> {
        no()
    }
    async fn drain(&self, _: Request<DrainRequest>) -> Result<Response<TransitionAck>, Status> {
        no()
    }
    async fn delete(&self, _: Request<DeleteRequest>) -> Result<Response<TransitionAck>, Status> {
        no()
    }
    async fn get(&self, _: Request<MachineRef>) -> Result<Response<Machine>, Status> {
        no()
    }
    async fn list(&self, request: Request<ListFilter>) -> Result<Response<MachineList>, Status> {
        let states = request.into_inner().states;
        let wanted = |one: &&Arc<Machine>| states.is_empty() || states.contains(&one.state);
        let machines = self.machines.iter().filter(wanted).cloned().collect();
        Ok(Response::new(Selection { machines, revision: Vec::new() }.into_list().await))
    }
}

impl Lister for Still {
    async fn select(&self, _: &ListFilter) -> Result<Selection, Status> {
        if !self.streams {
            return Err(Status::unimplemented("not in this run"));
        }
        Ok(Selection { machines: self.machines.clone(), revision: Vec::new() })
    }
}

impl Outputs for Still {}

/// The provider's process: says where it listens and how large its fleet is, and serves until it is killed.
async fn serve(shape: Shape, streams: bool) {
    let machines: Vec<Arc<Machine>> =
        generate(shape, 1).machines.iter().map(|machine| Arc::new(machine.into())).collect();
    let bytes: usize = machines.iter().map(|machine| machine.encoded_len()).sum();
    let count = machines.len();
    let unused = Cloud::for_test_suites("unused", 1);
    let unused = Sim::open(unused, Store::memory(), Arc::new(SystemClock::start())).await.unwrap();
    let settings = Serving::plain(([127, 0, 0, 1], 0).into());
    let server = Server::bind(Still { machines, streams }, unused.handle(), settings).await.unwrap();
    println!("{} {count} {bytes}", server.grpc_addr());
    server.run(std::future::pending()).await.unwrap();
}

/// The most memory a process has used, in MiB.
fn peak_mib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or_default() / 1024
}

/// Forgets the most so far, so that the next is that of what comes.
fn forget_peak(pid: u32) {
    let _ = std::fs::write(format!("/proc/{pid}/clear_refs"), "5");
}

/// What this process has used of its processors.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

async fn scrape(running: &Running) -> String {
    let mut stream = tokio::net::TcpStream::connect(running.http.unwrap()).await.unwrap();
    let request = "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn sum(text: &str, name: &str) -> f64 {
    let lines = text.lines().filter(|line| line.starts_with(name));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// How many listings were taken in, and how many failed.
async fn listings(running: &Running) -> (f64, f64) {
    let text = scrape(running).await;
    let of = |outcome: &str| sum(&text, &format!("bigfleet_shard_listings_total{{outcome=\"{outcome}\"}}"));
    (of("full"), of("failed"))
}

struct Provider(Child);

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn shard(arguments: &[String]) {
    let mut provider = Command::new(std::env::current_exe().unwrap());
    provider.args(arguments).arg("--serve").stdout(Stdio::piped());
    let mut provider = Provider(provider.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(provider.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let [address, count, bytes] = line.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{line}") };
    println!("{count} machines, {bytes} bytes of records");
    let pid = provider.0.id();
    let served = peak_mib(pid);
    forget_peak(pid);

    let every = ProviderConfig { list_every: SECOND / 100, ..ProviderConfig::named("p") };
    let every = ProviderConfig { full_list_every: 0, ..every };
    let mut config = Config::new("s", 1, Vec::new());
    // No cycle in between: listings alone are measured.
    config.pace.tick = i64::MAX / 4;
    config.pace.min_spacing = i64::MAX / 4;
    let address = ProviderAddress { config: every, address: format!("http://{address}") };
    let me = std::process::id();
    let (before, begun, used) = (peak_mib(me), Instant::now(), cpu());
    let running =
        bigfleet_shard_server::start(Settings::local(config, vec![address]), Arc::new(SystemClock::start()));
    let running = running.await.unwrap();
    let mut told = 0.0;
    while listings(&running).await.0 < 1.0 {
        let failed = listings(&running).await.1;
        if failed > told {
            told = failed;
            println!("  a listing failed");
        }
        assert!(failed < 3.0, "it cannot be listed this way");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    println!(
        "  first listing, machines met: {:.2?} of time, {:.2?} of processors; peak memory: shard {} MiB (from {before}), \
         provider {} MiB (from {served})",
        begun.elapsed(),
        cpu().checked_sub(used).unwrap(),
        peak_mib(me),
        peak_mib(pid),
    );
    let known = sum(&scrape(&running).await, "bigfleet_shard_machines{");
    assert_eq!(known, count.parse::<f64>().unwrap());

    let until = |wanted: f64| {
        let running = &running;
        async move {
            while listings(running).await.0 < wanted {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    };
    // One to settle in.
    until(2.0).await;
    forget_peak(me);
    let latency = |text: &str| {
        let name = "bigfleet_shard_provider_call_duration_seconds_sum";
        let named: Vec<&str> =
            text.lines().filter(|line| line.starts_with(name) && line.contains("List\"")).collect();
        named.iter().filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>()
    };
    let (from, at, used) = (listings(&running).await.0, latency(&scrape(&running).await), cpu());
    until(from + f64::from(UNCHANGED)).await;
    let (to, done) = (listings(&running).await.0, latency(&scrape(&running).await));
    let rounds = to - from;
    println!(
        "  unchanged listing: {:.0} ms of time in the call, {:.0} ms of the shard's processors; peak memory {} MiB",
        (done - at) * 1e3 / rounds,
        cpu().checked_sub(used).unwrap().as_secs_f64() * 1e3 / rounds,
        peak_mib(me),
    );
    let otherwise = sum(&scrape(&running).await, "bigfleet_shard_records_read_otherwise_total");
    assert_eq!(otherwise, 0.0);
    running.stop().await.unwrap();
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    if !has("--bench") {
        return;
    }
    let shape = arguments.iter().find(|argument| !argument.starts_with("--"));
    let shape: Shape = shape.map_or(Shape::Fleet500k, |name| name.parse().expect("a shape"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if has("--serve") {
        runtime.block_on(serve(shape, !has("--unary")));
    } else {
        runtime.block_on(shard(&arguments));
    }
}
