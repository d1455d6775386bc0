//! `bigfleet up`: everything in one process, to see it work within a second of starting it.
//!
//! A simulated cloud, three simulated clusters that live, and the real shard between them, all over real sockets. On a
//! terminal it shows the live view, without one it writes lines.
//!
//! ```text
//!   clusters (cast, life) ──► operators ══ Shard.Session ══► shard ══ six calls ══► simulated cloud
//!        ▲                                                     ▲                         ▲
//!        └── bigfleet demand ── admin ── bigfleet fault ───────┼─────────────────────────┘
//!                                   page, top, feed ── view ───┘
//! ```

mod admin;
mod banner;
mod cast;
mod cluster;
mod feed;
mod fleet;
mod life;
mod operator;
mod pace;
mod ports;
mod stage;
mod thrift;
mod world;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use bigfleet_shard_server::telemetry::{LogForm, Telemetry, TelemetrySettings};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::clock::Stopwatch;
use crate::context::{Places, Source, Target, Up};
use crate::exit::{FOUND, Failure};
use crate::output::note;
use crate::top;
use pace::Speed;
use stage::{Plan, Stage};

/// See it work: a simulated cloud and three simulated clusters with the real shard between them.
///
/// Everything runs in this process, on loopback, and nothing in it is real but the software. Other commands find it by
/// themselves. Ctrl-C stops everything; without --data everything is forgotten then.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet up
  bigfleet up --clock 10 --seed 7
  bigfleet up --data ./fleet --no-view

Then, in another terminal:
  bigfleet get clusters
  bigfleet explain cluster ml
  bigfleet demand set shop web=90
  bigfleet fault add zone-outage zone-b --for 10m")]
pub(crate) struct Args {
    /// How many times as fast as real time the simulated world runs
    #[arg(long, value_name = "1..1000", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=1000))]
    clock: u32,
    /// Decides every random choice [default: 42, or that of --data]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Keep the fleet in this folder, and go on with it next time
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where the shard listens; a taken port moves on by itself, 0 takes any free ports
    #[arg(long, value_name = "PORT", default_value_t = 7780)]
    port: u16,
    /// Where the page is; a taken port moves on by itself
    #[arg(long, value_name = "PORT", default_value_t = 7700)]
    web_port: u16,
    /// How many shards share the cloud, a zone each, with a coordinator beside them; they help each other
    #[arg(long, value_name = "1..3", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    shards: u8,
    /// Write lines instead of showing the live view
    #[arg(long)]
    no_view: bool,
    /// Which messages of the servers to write to standard error while there is no live view
    #[arg(long, value_name = "FILTER", default_value = "error", env = "BIGFLEET_LOG")]
    log: String,
}

/// Runs until it is told to stop.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    thrift::begin();
    let watch = Stopwatch::start();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(play(args, &watch));
    // Whatever still waits for a socket has nothing left to say.
    runtime.shutdown_background();
    done
}

async fn play(args: &Args, watch: &Stopwatch) -> Result<ExitCode, Failure> {
    // Before anything is started: a stop at any later moment is an orderly one.
    let mut stop = Stop::listen()?;
    let with_view = !args.no_view && std::io::stdout().is_terminal() && top::is_there();
    if !with_view {
        let settings = TelemetrySettings {
            form: LogForm::Text,
            filter: args.log.clone(),
            otlp: None,
            shard_id: "up".into(),
        };
        Telemetry::start(&settings).context("--log")?;
    }
    let kept = world::open(args.data.as_deref(), args.seed)?;
    let speed = Speed(args.clock);
    let plan = Plan {
        kept: kept.clone(),
        speed,
        folder: args.data.clone(),
        port: args.port,
        web_port: args.web_port,
        shards: args.shards.into(),
    };
    let mut stage = Stage::set(plan).await?;
    let server = format!("http://{}", stage.shard.grpc);
    let metrics = stage.shard.http.map(|address| address.to_string()).unwrap_or_default();
    let up = Up { server: server.clone(), metrics, admin: stage.admin.to_string(), pid: std::process::id() };
    let announced = up.announce(&Places::of_this_user());
    if let Err(error) = &announced {
        note(&format!(
            "other commands need --server {server} to find this: no file can be left for them ({error})"
        ));
    }
    let text = banner::text(&stage, &kept, args, watch.nanos());
    write(&text)?;

    let broken = if with_view {
        let target = Target { server, tls: None, source: Source::Flag };
        let notes = banner::notes(&stage);
        let options = top::Options { notes, ..top::Options::of(target) };
        tokio::select! {
            seen = top::run(stage.channel.clone(), options) => { seen?; None }
            () = stop.asked() => None,
            error = stage.broken() => Some(error),
        }
    } else {
        let feed = feed::follow(stage.channel.clone());
        tokio::select! {
            written = feed => { written?; None }
            () = stop.asked() => None,
            error = stage.broken() => Some(error),
        }
    };
    drop(announced);
    let stopping = Stopwatch::start();
    if let Some(error) = broken {
        note(&format!("bigfleet: {error:#}"));
        return Ok(ExitCode::from(FOUND));
    }
    let stopped = stage.strike().await;
    if let Err(error) = stopped {
        note(&format!("bigfleet: {error}"));
        return Ok(ExitCode::from(FOUND));
    }
    write(&banner::farewell(args.data.as_deref(), stopping.nanos()))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes to standard output at once: somebody may wait for the line.
fn write(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Ctrl-C, or a supervisor that has had enough.
struct Stop {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Stop {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
