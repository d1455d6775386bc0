//! `bigfleet cycle`: the engine as an offline calculator.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use bigfleet_calculator::{answer, engine_options, load};
use bigfleet_engine::Parallelism;
use bigfleet_scenario::{Answer, Scenario, input};
use serde::Serialize;

use crate::clock::Stopwatch;
use crate::exit::Failure;

/// Decide one cycle over a scenario file and print everything the engine answers.
///
/// The file holds one scenario (a bare input, or a decision vector) as a JSON object, or many as JSON lines
/// of {"name": …, "input": …}. The answer has the form of a vector's "expect", one line per line of input.
/// Needs of one cluster, profile and group are one need, as they are when a cluster reports them.
/// Nothing is contacted and nothing is changed.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The scenario file; - reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How many threads a cycle may use; the answer does not depend on it
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// How often to decide from scratch; timings are those of the quickest run
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Add how long each step of the cycle took, in nanoseconds, under `timings_ns`: they add up to `cycle_ns`.
    /// What a shard does not pay for in a cycle (reading the file, loading it, writing the answer) is under
    /// `outside_ns`
    #[arg(long)]
    timings: bool,
}

/// An answer as it is printed.
#[derive(Serialize)]
struct Printed<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(flatten)]
    answer: Answer,
    #[serde(flatten)]
    timings: Option<Timings>,
}

/// What took how long, in nanoseconds. The names of the fields are those of the file.
#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "units last, and the names are an interface")]
struct Timings {
    /// The whole of the quickest cycle.
    cycle_ns: u64,
    /// Its steps; they add up to it.
    timings_ns: BTreeMap<&'static str, u64>,
    /// What came before and after.
    outside_ns: BTreeMap<&'static str, u64>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let text = read(args)?;
    let mut out = BufWriter::new(io::stdout().lock());
    if is_json_lines(&text) {
        let mut stopwatch = Stopwatch::start();
        for line in input::lines(&*text) {
            let line = line.with_context(|| format!("cannot take {}", args.file.display()))?;
            print(&mut out, args, &line.name, &line.scenario, stopwatch.nanos(), false)?;
            stopwatch = Stopwatch::start();
        }
    } else {
        let stopwatch = Stopwatch::start();
        let scenario = input::read(&text).with_context(|| format!("cannot take {}", args.file.display()))?;
        let parse_nanos = stopwatch.nanos();
        drop(text);
        print(&mut out, args, "", &scenario, parse_nanos, io::stdout().is_terminal())?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn read(args: &Args) -> anyhow::Result<Vec<u8>> {
    if args.file.as_os_str() == "-" {
        let mut text = Vec::new();
        io::stdin().lock().read_to_end(&mut text).context("cannot read standard input")?;
        return Ok(text);
    }
    fs::read(&args.file).with_context(|| {
        format!("cannot read {}; give a scenario file, for example tests/vectors/mixed/fleet-07.json, or - for standard input", args.file.display())
    })
}

/// Several lines that each look like an object: a pretty-printed scenario never has `{…}` as its first line.
fn is_json_lines(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let whole = |line: &[u8]| line.starts_with(b"{") && line.ends_with(b"}");
    let Some(first) = lines.next() else { return false };
    let named = first.len() < 4096 && first.windows(8).any(|piece| piece == b"\"input\":");
    whole(first) && (lines.next().is_some_and(whole) || named)
}

fn print(
    out: &mut impl Write,
    args: &Args,
    name: &str,
    scenario: &Scenario,
    parse_nanos: u64,
    pretty: bool,
) -> Result<(), Failure> {
    let mut outside_ns = BTreeMap::from([("parse", parse_nanos)]);
    let stopwatch = Stopwatch::start();
    let parallelism = Parallelism { threads: args.threads.into(), ..Parallelism::default() };
    let mut fleet =
        load(scenario, parallelism).with_context(|| format!("cannot take {}", args.file.display()))?;
    outside_ns.insert("load", stopwatch.nanos());
    let options = engine_options(&scenario.options);
    let mut last = None;
    let mut quickest: Option<(u64, BTreeMap<&'static str, u64>)> = None;
    for _ in 0..args.repeat {
        fleet.forget_cache();
        let mut steps = BTreeMap::new();
        let mut lap = 0;
        let stopwatch = Stopwatch::start();
        last = Some(fleet.cycle_probed(&options, scenario.now_unix_nanos, &mut |step| {
            let now = stopwatch.nanos();
            *steps.entry(step.name()).or_insert(0) += now - lap;
            lap = now;
        }));
        let cycle = stopwatch.nanos();
        // What is done after the last step belongs to the cycle too.
        steps.insert("close", cycle - lap);
        if quickest.as_ref().is_none_or(|(best, _)| cycle < *best) {
            quickest = Some((cycle, steps));
        }
    }
    let decision = last.expect("at least one cycle was asked for");
    let stopwatch = Stopwatch::start();
    let answer = answer(&fleet, &decision);
    outside_ns.insert("report", stopwatch.nanos());
    let timings = quickest.map(|(cycle_ns, timings_ns)| Timings { cycle_ns, timings_ns, outside_ns });
    let printed = Printed { name, answer, timings: timings.filter(|_| args.timings) };
    if pretty {
        serde_json::to_writer_pretty(&mut *out, &printed).map_err(io::Error::from)?;
    } else {
        serde_json::to_writer(&mut *out, &printed).map_err(io::Error::from)?;
    }
    out.write_all(b"\n")?;
    Ok(())
}
