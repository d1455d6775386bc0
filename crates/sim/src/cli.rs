//! `bigfleet sim`: run, list, fuzz, replay and soak.
//!
//! Answers go to standard output, progress and messages to standard error. Exit codes: 0 fine, 1 something was not as it
//! should be, 2 bad usage or input.

mod show;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::fuzz::{self, Found};
use crate::library;
use crate::run::{Outcome, run as play};
use crate::scenario::Scenario;
use crate::soak;
use crate::svg;
use crate::world::Setup;

/// Play scenarios through the real shard, engine and provider kit in virtual time.
#[derive(Clone, Debug, Parser)]
#[command(name = "sim")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    /// Play a scenario: a file, or one of the library by its name
    Run(Run),
    /// List the scenarios of the library
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Play random worlds, one per seed, and check what must always hold
    Fuzz(Fuzz),
    /// Play the random world of one seed again
    Replay {
        /// The seed
        seed: u64,
        /// Print every line of the trace
        #[arg(long)]
        trace: bool,
        /// Write the scenario of this seed into a file
        #[arg(long, value_name = "FILE")]
        write: Option<PathBuf>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Play random worlds for as many simulated days as you like
    Soak {
        /// Simulated days
        #[arg(long, default_value_t = 10.0)]
        days: f64,
        /// The first seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Clone, Debug, clap::Args)]
struct Run {
    /// A file, or a name from `sim list`
    scenario: String,
    /// Decides every random choice, instead of the file's
    #[arg(long)]
    seed: Option<u64>,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Draw supply, demand, cost and events into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print every line of the trace
    #[arg(long)]
    trace: bool,
    /// Check no invariants, which is faster
    #[arg(long)]
    unwatched: bool,
}

#[derive(Clone, Debug, clap::Args)]
struct Fuzz {
    /// The seeds, from the first up to but without the last, such as 1..1000
    #[arg(long, default_value = "1..101")]
    seeds: String,
    /// Where the smallest world that still fails is written, per failing seed
    #[arg(long, value_name = "FOLDER")]
    failures: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Run(args) => run_scenario(args),
        Command::List { json } => list(*json),
        Command::Fuzz(args) => run_fuzz(args),
        Command::Replay { seed, trace, write, json } => replay(*seed, *trace, write.as_ref(), *json),
        Command::Soak { days, seed, json } => run_soak(*days, *seed, *json),
    }
}

fn usage(message: &str) -> ExitCode {
    say(&format!("error: {message}"));
    ExitCode::from(2)
}

fn verdict(fine: bool) -> ExitCode {
    if fine { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn find(name: &str) -> Result<Scenario, String> {
    if let Some(scenario) = library::find(name) {
        return Ok(scenario);
    }
    let text = std::fs::read_to_string(name)
        .map_err(|error| format!("{name} is neither a scenario of the library nor a file that can be read: {error}; `sim list` shows the library"))?;
    Scenario::from_json(&text).map_err(|problems| format!("{name} cannot be used:\n{problems}"))
}

fn run_scenario(args: &Run) -> anyhow::Result<ExitCode> {
    let mut scenario = match find(&args.scenario) {
        Ok(scenario) => scenario,
        Err(message) => return Ok(usage(&message)),
    };
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    let setup = Setup { keep_trace: args.trace, unwatched: args.unwatched, ..Setup::default() };
    let outcome = play(&scenario, setup);
    if let Some(path) = &args.svg
        && let Err(error) = std::fs::write(path, svg::draw(&scenario.name, scenario.lasts.nanos(), &outcome))
    {
        return Ok(usage(&format!("cannot write {}: {error}", path.display())));
    }
    show_outcome(&outcome, args.json)
}

fn show_outcome(outcome: &Outcome, json: bool) -> anyhow::Result<ExitCode> {
    if let Some(trace) = &outcome.trace {
        print(trace)?;
    }
    print(&if json { show::json(outcome) } else { show::text(outcome) })?;
    Ok(verdict(outcome.is_fine()))
}

fn list(json: bool) -> anyhow::Result<ExitCode> {
    print(&show::library(json))?;
    Ok(ExitCode::SUCCESS)
}

fn run_fuzz(args: &Fuzz) -> anyhow::Result<ExitCode> {
    let bounds = args.seeds.split_once("..").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    let Some((first, last)) = bounds.filter(|(first, last): &(u64, u64)| first < last) else {
        return Ok(usage(&format!("{:?} is no range of seeds; write it like 1..1000", args.seeds)));
    };
    let mut found = Vec::new();
    let mut progress = Progress::new(last - first, "seeds");
    for seed in first..last {
        if let Some(failure) = fuzz::run_seed(seed, None) {
            progress.line(&format!("seed {seed}: {}", failure.violation));
            progress.line("  making its world smaller");
            let small = fuzz::shrink(&failure);
            if let Some(folder) = &args.failures {
                std::fs::create_dir_all(folder)?;
                let path = folder.join(format!("seed-{seed}.json"));
                std::fs::write(&path, small.scenario.to_json())?;
                progress.line(&format!("  smallest world: bigfleet sim run {}", path.display()));
            }
            progress.line(&format!("  to see it: bigfleet sim replay {seed} --trace"));
            found.push(small);
        }
        progress.step(found.len());
    }
    progress.end();
    print(&show::fuzz(last - first, &found, args.json))?;
    Ok(verdict(found.is_empty()))
}

fn replay(seed: u64, trace: bool, write: Option<&PathBuf>, json: bool) -> anyhow::Result<ExitCode> {
    if let Some(path) = write {
        std::fs::write(path, fuzz::world_of(seed).to_json())?;
    }
    let outcome = fuzz::play(&fuzz::world_of(seed), Setup { keep_trace: trace, ..Setup::default() });
    show_outcome(&outcome, json)
}

fn run_soak(days: f64, seed: u64, json: bool) -> anyhow::Result<ExitCode> {
    let mut progress = Progress::new(days.ceil().max(1.0) as u64, "simulated days");
    let soak = soak::soak(days, seed, &mut |day, failures| progress.at(day as u64, failures));
    progress.end();
    let found: Vec<&Found> = soak.found.iter().collect();
    for failure in &found {
        say(&format!("seed {}: {}", failure.seed, failure.violation));
    }
    print(&show::soak(&soak, json))?;
    Ok(verdict(found.is_empty()))
}

/// Prints an answer. A reader that has seen enough, as `head` does, is no failure.
fn print(text: &str) -> std::io::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

fn say(line: &str) {
    // Nobody may be listening; that is no reason to stop.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// How far it is, on standard error: a bar drawn in place on a terminal, elsewhere a line for every tenth.
struct Progress {
    total: u64,
    done: u64,
    unit: &'static str,
    drawn: bool,
    /// Tenths that have their line.
    said: u64,
}

impl Progress {
    fn new(total: u64, unit: &'static str) -> Self {
        Self { total, done: 0, unit, drawn: false, said: 0 }
    }

    fn step(&mut self, failures: usize) {
        self.at(self.done + 1, failures);
    }

    fn at(&mut self, done: u64, failures: usize) {
        self.done = done.min(self.total);
        if !std::io::stderr().is_terminal() {
            let tenths = self.done * 10 / self.total.max(1);
            if tenths > self.said {
                self.said = tenths;
                say(&format!("{} of {} {}, {failures} failures", self.done, self.total, self.unit));
            }
            return;
        }
        let filled = (self.done * 40 / self.total.max(1)) as usize;
        let bar = "#".repeat(filled) + &".".repeat(40 - filled);
        let _ = write!(
            std::io::stderr(),
            "\r[{bar}] {} of {} {}, {failures} failures",
            self.done,
            self.total,
            self.unit
        );
        self.drawn = true;
    }

    fn line(&mut self, text: &str) {
        self.end();
        say(text);
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.drawn) {
            say("");
        }
    }
}
