//! `bigfleet replay`: a recorded stretch decided again, by this program, by other options or by another program.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, anyhow, bail};
use bigfleet_engine::Options;
use bigfleet_model::release::ReleasePolicy;
use bigfleet_record::replay::{Difference, ReplayReport, replay, replay_with};
use bigfleet_record::tape::Reader;
use bigfleet_tell::words::{count, thousands};
use serde::Serialize;

use crate::exit::{FOUND, Failure};
use crate::output::{AnswerArgs, AnswerFormat, Progress, Terminal, note, stdout, write_data};
use crate::reach::record_folder;

/// Decide a recorded stretch again and compare: bit for bit, or with --with or --binary whatever comes out differently.
///
/// What was observed and asked for then is taken as it was. Ends with 0 if every decision is the same, with 1 if not.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet replay ./fleet
  bigfleet replay ./yesterday --with hold.spot=5m --with weight.drain=0.5
  bigfleet replay ./yesterday --binary ./bigfleet-next")]
pub(crate) struct Args {
    /// A data folder of a shard, or the record in it
    #[arg(value_name = "RECORD")]
    record: PathBuf,
    /// Under other options: hold.spot, hold.on-demand (a span), weight.priority, weight.drain, weight.interruption,
    /// weight.reclamation (a number), drain (a span)
    #[arg(long, value_name = "OPTION=VALUE", conflicts_with = "binary")]
    with: Vec<String>,
    /// By another bigfleet program, which must know `replay` too
    #[arg(long, value_name = "PROGRAM")]
    binary: Option<PathBuf>,
    /// At most so many differences are listed; all are counted
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    output: AnswerArgs,
}

#[derive(Serialize)]
struct Told {
    cycles: u64,
    actions: u64,
    /// Records no full state leads to.
    unanchored: u64,
    unreadable: Vec<String>,
    differing_cycles: u64,
    differences: u64,
    listed: Vec<Listed>,
}

#[derive(Serialize)]
struct Listed {
    cycle: u64,
    unix_nanos: i64,
    says: String,
}

impl From<&Difference> for Listed {
    fn from(difference: &Difference) -> Self {
        Self { cycle: difference.cycle, unix_nanos: difference.now_unix_nanos, says: difference.to_string() }
    }
}

/// Changes options as asked.
fn change(options: &mut Options, name: &str, value: &str) -> anyhow::Result<()> {
    let span = || crate::at::nanos(value).and_then(|nanos| u64::try_from(nanos).map_err(Into::into));
    let number = || value.parse::<f64>().map_err(|_| anyhow!("{value:?} is not a number"));
    let hold = |kept: Option<std::num::NonZeroU64>| kept.map_or(0, std::num::NonZeroU64::get);
    let ReleasePolicy { on_demand_hold_nanos, spot_hold_nanos, .. } = options.release;
    match name {
        "hold.spot" => options.release = ReleasePolicy::from_nanos(hold(on_demand_hold_nanos), span()?),
        "hold.on-demand" => options.release = ReleasePolicy::from_nanos(span()?, hold(spot_hold_nanos)),
        "weight.priority" => options.weights.priority = number()?,
        "weight.drain" => options.weights.drain_speed = number()?,
        "weight.interruption" => options.weights.interruption = number()?,
        "weight.reclamation" => options.weights.reclamation = number()?,
        "drain" => options.estimated_drain_nanos = span()?,
        other => bail!(
            "there is no option {other:?}; there are hold.spot, hold.on-demand, weight.priority, weight.drain, \
             weight.interruption, weight.reclamation and drain"
        ),
    }
    Ok(())
}

/// Replays and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let folder = record_folder(&args.record)?;
    if let Some(binary) = &args.binary {
        return Ok(by_another(binary, args)?);
    }
    let mut changes = Vec::new();
    for text in &args.with {
        let (name, value) = text.split_once('=').with_context(|| format!("{text:?} is not OPTION=VALUE"))?;
        change(&mut Options::default(), name, value).with_context(|| format!("--with {text}"))?;
        changes.push((name.to_owned(), value.to_owned()));
    }
    let reader = Reader::open(&folder).map_err(anyhow::Error::from)?;
    let progress = Progress::begin("deciding again");
    let report = if changes.is_empty() {
        replay(reader.records())
    } else {
        replay_with(reader.records(), |options| {
            for (name, value) in &changes {
                // It was tried above, so it goes.
                let _ = change(options, name, value);
            }
        })
    };
    drop(progress);
    let told = told(&report, args.limit);
    let terminal = Terminal::of_stdout();
    let mut out = stdout();
    match args.output.format(&terminal) {
        AnswerFormat::Text => {
            for listed in &told.listed {
                writeln!(out, "{}", bigfleet_model::text::shown(&listed.says))?;
            }
            for lost in &told.unreadable {
                writeln!(out, "could not be read: {}", bigfleet_model::text::shown(lost))?;
            }
        }
        format => write_data(&mut out, &told, format, &terminal)?,
    }
    out.flush()?;
    let same = match told.differences {
        0 => "every decision is the same".to_owned(),
        differences => {
            format!("{} in {} of them", count(differences, "difference"), thousands(told.differing_cycles))
        }
    };
    let (cycles, actions) = (count(told.cycles, "cycle"), count(told.actions, "action"));
    note(&format!("{cycles} with {actions} decided again; {same}"));
    if told.unanchored > 0 {
        note(&format!(
            "{} could not be compared: no full state leads to them",
            count(told.unanchored, "cycle")
        ));
    }
    Ok(if told.differences > 0 { ExitCode::from(FOUND) } else { ExitCode::SUCCESS })
}

fn told(report: &ReplayReport, limit: usize) -> Told {
    let others = &report.other_rules;
    let first = report.first_difference.as_ref();
    let all = first.into_iter().chain(&others.differences);
    Told {
        cycles: report.cycles,
        actions: report.actions,
        unanchored: report.unanchored,
        unreadable: report.lost.iter().map(ToString::to_string).collect(),
        differing_cycles: others.differing_cycles + u64::from(first.is_some()),
        differences: others.differences_in_all + u64::from(first.is_some()),
        listed: all.take(limit).map(Listed::from).collect(),
    }
}

/// Lets another program replay; what it says and how it ends is ours.
fn by_another(binary: &std::path::Path, args: &Args) -> anyhow::Result<ExitCode> {
    let terminal = Terminal::of_stdout();
    let form = match args.output.format(&terminal) {
        AnswerFormat::Text => "text",
        AnswerFormat::Json => "json",
        AnswerFormat::Yaml => "yaml",
    };
    let status = Command::new(binary)
        .arg("replay")
        .arg(&args.record)
        .args(["--limit", &args.limit.to_string(), "-o", form])
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("{} could not be run", binary.display()))?;
    let code = status.code().with_context(|| format!("{} was ended by a signal", binary.display()))?;
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_changed_by_name_and_unknown_ones_refused() {
        let mut options = Options::default();
        change(&mut options, "hold.spot", "5m").unwrap();
        assert_eq!(options.release.spot_hold_nanos.unwrap().get(), 300_000_000_000);
        assert_eq!(options.release.on_demand_hold_nanos, Options::default().release.on_demand_hold_nanos);
        change(&mut options, "weight.drain", "0.5").unwrap();
        assert_eq!(options.weights.drain_speed, 0.5);
        assert!(change(&mut options, "colour", "1").unwrap_err().to_string().contains("hold.spot"));
        assert!(change(&mut options, "weight.drain", "much").is_err());
    }
}
