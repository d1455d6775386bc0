//! A shard under load over real sockets, on one machine: thousands of operators, hundreds of thousands of machines.
//!
//! `cargo bench -p bigfleet --bench load`. Three kinds of processes: the simulated provider, the shard, and this one, which
//! plays all operators. `LOAD_SESSIONS`, `LOAD_ROWS`, `LOAD_MACHINES`, `LOAD_SECONDS` and `LOAD_PERIOD` (seconds between two
//! roll-ups of an operator) change the size. What is reported covers the time after the fleet was built up; that
//! machines were bound and needs met is asserted, so that no figure is of an idle shard.

#![expect(clippy::disallowed_methods, reason = "a benchmark lives in real time")]

#[path = "load/histogram.rs"]
mod histogram;
#[path = "load/operators.rs"]
mod operators;
#[path = "../tests/support/process.rs"]
#[allow(dead_code, reason = "shared with tests, which use more of it")]
mod process;
#[path = "load/questions.rs"]
mod questions;

use std::time::Duration;

use histogram::Scrape;
use operators::Operators;
use process::{Process, free_port};

struct Size {
    sessions: usize,
    rows: usize,
    machines: usize,
    seconds: u64,
    period: Duration,
}

impl Size {
    fn from_environment() -> Self {
        let number = |name: &str, default: usize| {
            std::env::var(name)
                .ok()
                .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
        };
        Self {
            sessions: number("LOAD_SESSIONS", 2000),
            rows: number("LOAD_ROWS", 25),
            machines: number("LOAD_MACHINES", 225_000),
            seconds: number("LOAD_SECONDS", 120) as u64,
            period: Duration::from_secs(number("LOAD_PERIOD", 10) as u64),
        }
    }
}

fn main() {
    // `cargo test --benches` and `cargo nextest` call benches too; this one is too large for that.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let size = Size::from_environment();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(run(size));
}

async fn run(size: Size) {
    let folder = tempfile::tempdir().expect("a folder");
    let [provider_port, shard_port, http_port] = [free_port(), free_port(), free_port()];
    let (addr, count) = (format!("127.0.0.1:{provider_port}"), size.machines.to_string());
    let provider = Process::start(
        "provider",
        &["provider", "sim", "--use-fake-backend", "--seed-count", &count, "--addr", &addr, "--http", "none"],
    );
    let (listen, metrics) = (format!("127.0.0.1:{shard_port}"), format!("127.0.0.1:{http_port}"));
    let (data, at) = (folder.path().join("shard"), format!("sim=http://{addr}"));
    let data = data.to_str().expect("a plain path");
    let shard = Process::start(
        "shard",
        &[
            "shard",
            "--shard-id",
            "s1",
            "--data",
            data,
            "--provider",
            &at,
            "--listen",
            &listen,
            "--metrics",
            &metrics,
        ],
    );
    say(&format!(
        "{} machines, {} sessions x {} rows every {} s",
        size.machines,
        size.sessions,
        size.rows,
        size.period.as_secs()
    ));
    wait_for(
        http_port,
        |scrape| scrape.sum("bigfleet_shard_machines{") >= size.machines as f64,
        "the first listing",
    )
    .await;
    report_process("after the first listing", "shard", shard.id());

    let operators =
        Operators::start(&format!("http://127.0.0.1:{shard_port}"), size.sessions, size.rows, size.period);
    let needs = (size.sessions * size.rows) as f64;
    wait_for(
        http_port,
        |scrape| scrape.sum("bigfleet_shard_sessions") >= size.sessions as f64,
        "all sessions",
    )
    .await;
    wait_for(http_port, |scrape| scrape.sum("bigfleet_shard_needs") >= needs, "all demand").await;
    let built = |scrape: &Scrape| {
        let bound = scrape.sum_of("bigfleet_shard_machines{", "state=\"Configured\"");
        bound >= 0.9 * needs && scrape.sum("bigfleet_shard_moves_in_flight") < 50.0
    };
    wait_for(http_port, built, "the fleet is built up").await;
    report_process("after the fleet was built up", "shard", shard.id());
    operators.forget_latencies();

    let (before, cpu) = (scrape(http_port).await.expect("metrics are served"), cpu_seconds(shard.id()));
    tokio::time::sleep(Duration::from_secs(size.seconds)).await;
    let (after, cpu) = (scrape(http_port).await.expect("metrics are served"), cpu_seconds(shard.id()) - cpu);

    let bound = after.sum_of("bigfleet_shard_machines{", "state=\"Configured\"");
    assert!(bound >= 0.9 * needs, "only {bound} machines serve {needs} needs: this was no load");
    let rollups = operators.rollups_sent();
    assert!(rollups > 0, "nobody reported");
    say(&format!(
        "bound {bound} machines for {needs} needs; {} short",
        after.sum("bigfleet_shard_shortfalls")
    ));
    for (name, what) in [
        ("bigfleet_shard_cycle_duration_seconds", "cycle"),
        ("bigfleet_shard_rollup_to_decision_seconds", "roll-up to decision"),
        ("bigfleet_shard_commit_duration_seconds", "commit"),
    ] {
        let histogram = after.histogram(name).since(&before.histogram(name));
        say(&format!("{what:<22} {histogram}"));
    }
    let actions = after.sum_of("bigfleet_shard_actions_total", "begun")
        - before.sum_of("bigfleet_shard_actions_total", "begun");
    say(&format!("actions begun          {actions} in {} s", size.seconds));
    say(&format!("decision to Configured {}", operators.latencies()));
    say(&format!("CPU of the shard       {:.2} cores", cpu / size.seconds as f64));
    report_process("at the end", "shard", shard.id());
    report_process("at the end", "provider", provider.id());

    questions::ask(&format!("http://127.0.0.1:{shard_port}"), say).await;
    drop(operators);
    assert_eq!(shard.stop(), Some(0), "it stops cleanly");
}

/// One scrape, or nothing if nobody answers.
async fn scrape(port: u16) -> Option<Scrape> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.ok()?;
    let mut text = String::new();
    socket.read_to_string(&mut text).await.ok()?;
    Some(Scrape::parse(&text))
}

async fn wait_for(port: u16, is: impl Fn(&Scrape) -> bool, what: &str) {
    for _ in 0..1200 {
        if scrape(port).await.is_some_and(|scrape| is(&scrape)) {
            say(&format!("{what}: done"));
            return;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    panic!("{what}: did not happen in ten minutes");
}

/// Resident memory now and at most, from the kernel's books.
fn report_process(when: &str, name: &str, id: u32) {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let field = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map_or("?", str::trim);
    say(&format!("{name} {when}: resident {}, at most {}", field("VmRSS:"), field("VmHWM:")));
}

/// Processor time used so far.
fn cpu_seconds(id: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // After the name in brackets: field 14 and 15 of the line, in hundredths of a second.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

#[expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]
fn say(line: &str) {
    println!("{line}");
}
