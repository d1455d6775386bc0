//! `bigfleet record`: what lies in a decision record, a part of it somewhere else, and less of it.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use bigfleet_record::tape::Reader;
use bigfleet_tell::words::{count, rfc3339, span, thousands};
use clap::Subcommand;
use serde::Serialize;

use crate::at::At;
use crate::exit::Failure;
use crate::output::{AnswerArgs, AnswerFormat, Terminal, note, stdout, write_json_line, write_yaml};
use crate::reach::record_folder;

/// Look at a decision record on this disk, copy a part of it, or trim it; no server is asked.
///
/// Other commands read such a record too: `bigfleet get machines --record FOLDER`, `bigfleet explain need ID --record FOLDER`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet record list ./fleet
  bigfleet record export ./fleet ./yesterday --since 2026-11-15T00:00:00Z --until 2026-11-16T00:00:00Z
  bigfleet record trim ./fleet --keep 7d")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List its segments: cycles, times, sizes
    List {
        /// A data folder, or the record in it
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
        #[command(flatten)]
        output: AnswerArgs,
    },
    /// Copy whole segments into a new folder, which is a record of its own
    Export {
        /// A data folder, or the record in it
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
        /// Where to; must not exist
        #[arg(value_name = "TO")]
        to: PathBuf,
        /// Only segments that reach to this time or later
        #[arg(long, value_name = "CYCLE|TIME")]
        since: Option<At>,
        /// Only segments that begin before this time
        #[arg(long, value_name = "CYCLE|TIME")]
        until: Option<At>,
    },
    /// Delete whole segments that are older
    Trim {
        /// A data folder, or the record in it
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
        /// How much of its end is kept: 24h, 7d
        #[arg(long, value_name = "SPAN", value_parser = crate::at::nanos)]
        keep: i64,
    },
}

/// One file of a record.
#[derive(Clone, Debug, Serialize)]
struct Segment {
    file: String,
    bytes: u64,
    first_cycle: u64,
    first: String,
    last_cycle: u64,
    last: String,
    cycles: u64,
    #[serde(skip)]
    first_unix_nanos: i64,
    #[serde(skip)]
    last_unix_nanos: i64,
}

fn segments(folder: &std::path::Path) -> anyhow::Result<Vec<Segment>> {
    let reader = Reader::open(folder).with_context(|| format!("the record in {}", folder.display()))?;
    let mut all = Vec::new();
    for (path, entries) in reader.segments()? {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { continue };
        all.push(Segment {
            file: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            bytes: fs::metadata(&path).map_or(0, |about| about.len()),
            first_cycle: first.cycle,
            first: rfc3339(first.now_unix_nanos),
            last_cycle: last.cycle,
            last: rfc3339(last.now_unix_nanos),
            cycles: entries.len() as u64,
            first_unix_nanos: first.now_unix_nanos,
            last_unix_nanos: last.now_unix_nanos,
        });
    }
    Ok(all)
}

/// Does it.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.action {
        Action::List { folder, output } => list(&record_folder(folder)?, *output),
        Action::Export { folder, to, since, until } => {
            Ok(export(&record_folder(folder)?, to, since.as_ref(), until.as_ref())?)
        }
        Action::Trim { folder, keep } => Ok(trim(&record_folder(folder)?, *keep)?),
    }
}

fn list(folder: &std::path::Path, output: AnswerArgs) -> Result<ExitCode, Failure> {
    let all = segments(folder)?;
    let terminal = Terminal::of_stdout();
    let mut out = stdout();
    match output.format(&terminal) {
        AnswerFormat::Json => all.iter().try_for_each(|segment| write_json_line(&mut out, segment))?,
        AnswerFormat::Yaml => write_yaml(&mut out, &all)?,
        AnswerFormat::Text => {
            for one in &all {
                let cycles = format!("{} to {}", thousands(one.first_cycle), thousands(one.last_cycle));
                let bytes = thousands(one.bytes);
                writeln!(
                    out,
                    "{}  cycles {cycles:<16}  {} to {}  {bytes} bytes",
                    one.file, one.first, one.last
                )?;
            }
        }
    }
    out.flush()?;
    let bytes: u64 = all.iter().map(|segment| segment.bytes).sum();
    let long = match (all.first(), all.last()) {
        (Some(first), Some(last)) => span(last.last_unix_nanos - first.first_unix_nanos),
        _ => "nothing".into(),
    };
    note(&format!("{}, {} bytes, {long}", count(all.len() as u64, "segment"), thousands(bytes)));
    Ok(ExitCode::SUCCESS)
}

/// Whether a segment ends before a moment, or begins after it.
fn before(segment: &Segment, at: &At, now: i64) -> bool {
    match at.moment(now).moment {
        Some(bigfleet_view::v1::moment::Moment::Cycle(cycle)) => segment.last_cycle < cycle,
        Some(bigfleet_view::v1::moment::Moment::UnixNanos(time)) => segment.last_unix_nanos < time,
        None => false,
    }
}

fn after(segment: &Segment, at: &At, now: i64) -> bool {
    match at.moment(now).moment {
        Some(bigfleet_view::v1::moment::Moment::Cycle(cycle)) => segment.first_cycle > cycle,
        Some(bigfleet_view::v1::moment::Moment::UnixNanos(time)) => segment.first_unix_nanos >= time,
        None => false,
    }
}

fn export(
    folder: &std::path::Path,
    to: &std::path::Path,
    since: Option<&At>,
    until: Option<&At>,
) -> anyhow::Result<ExitCode> {
    let all = segments(folder)?;
    let now = all.last().map_or(0, |last| last.last_unix_nanos);
    let is_wanted = |segment: &&Segment| {
        !since.is_some_and(|at| before(segment, at, now)) && !until.is_some_and(|at| after(segment, at, now))
    };
    let wanted: Vec<&Segment> = all.iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        bail!("no segment lies in that span; `bigfleet record list` shows those there are");
    }
    fs::create_dir(to).with_context(|| to.display().to_string())?;
    for segment in &wanted {
        let (from, to) = (folder.join(&segment.file), to.join(&segment.file));
        fs::copy(&from, &to).with_context(|| from.display().to_string())?;
    }
    note(&format!("{} copied to {}", count(wanted.len() as u64, "segment"), to.display()));
    Ok(ExitCode::SUCCESS)
}

fn trim(folder: &std::path::Path, keep: i64) -> anyhow::Result<ExitCode> {
    let all = segments(folder)?;
    let Some((newest, older)) = all.split_last() else { return Err(anyhow!("the record is empty")) };
    let from = newest.last_unix_nanos.saturating_sub(keep);
    let mut trimmed = 0;
    // The newest segment stays, whoever writes it; and what is left must hang together, so deleting stops at the first to keep.
    for segment in older.iter().take_while(|segment| segment.last_unix_nanos < from) {
        let path = folder.join(&segment.file);
        fs::remove_file(&path).with_context(|| path.display().to_string())?;
        trimmed += 1;
    }
    note(&format!("{} deleted, {} kept", count(trimmed, "segment"), all.len() as u64 - trimmed));
    Ok(ExitCode::SUCCESS)
}
