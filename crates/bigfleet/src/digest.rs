//! `bigfleet digest`: a stretch of time on one page, each line with the command that says more.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use anyhow::anyhow;
use bigfleet_tell::words::{count, fate, kind, need_long, reason, rfc3339, span, thousands, usd_words};
use bigfleet_view::v1::moment::Moment::UnixNanos;
use bigfleet_view::v1::{
    Decision, Fate, Finding, GetCostsRequest, LintRequest, ListDecisionsRequest, ListShortfallsRequest,
    Severity, Shortfall,
};
use serde::Serialize;
use tokio_stream::StreamExt;

use crate::at::At;
use crate::context::Reach;
use crate::cost::curve;
use crate::exit::Failure;
use crate::output::{AnswerArgs, AnswerFormat, Progress, Story, Terminal, Tone, note, stdout, write_data};
use crate::reach::{Shard, block_on};

/// Needs are told about if they have been short for so long.
const LONG: i64 = 5 * 60_000_000_000;

/// Sum up what happened: money, decisions, what was withheld, who is short, what is doubtful.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet digest --since 24h
  bigfleet digest --since 2026-11-13T18:00:00Z --json")]
pub(crate) struct Args {
    /// From when on: a time (14:02) or how long ago (24h)
    #[arg(long, value_name = "TIME", default_value = "24h")]
    since: At,
    #[command(flatten)]
    output: AnswerArgs,
    #[command(flatten)]
    reach: Reach,
}

#[derive(Default, Serialize)]
struct Digest {
    from: String,
    to: String,
    usd: f64,
    usd_per_hour: f64,
    waste_usd: f64,
    /// Decisions begun, by kind.
    begun: BTreeMap<String, u64>,
    /// Decisions withheld, by why.
    withheld: BTreeMap<String, u64>,
    most_short_needs: u32,
    short_now: Vec<Short>,
    lint_errors: Vec<String>,
    lint_warnings: u64,
    #[serde(skip)]
    curve: String,
    #[serde(skip)]
    long: i64,
    #[serde(skip)]
    simulated: bool,
}

#[derive(Serialize)]
struct Short {
    need: String,
    name: String,
    reason: String,
    secs: i64,
}

/// Asks and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let (digest, target) = block_on(async {
        let shard = Shard::new(&args.reach)?.patient_for(std::time::Duration::from_mins(10));
        let _progress = Progress::begin("reading the record");
        let digest = gather(&shard, &args.since).await?;
        Ok((digest, shard.target.to_string()))
    })?;
    let terminal = Terminal::of_stdout();
    let mut out = stdout();
    match args.output.format(&terminal) {
        AnswerFormat::Text => {
            story(&digest).write(&mut out, terminal.text_width(), terminal.paint)?;
            out.flush()?;
            note(&target);
        }
        format => write_data(&mut out, &digest, format, &terminal)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

async fn gather(shard: &Shard, since: &At) -> Result<Digest, Failure> {
    let version = shard.version().await?;
    let now = version.now_unix_nanos;
    let Some(UnixNanos(from)) = since.moment(now).moment else {
        return Err(anyhow!("--since takes a time or how long ago, not a cycle").into());
    };
    // A digest of the whole record, if that is younger than what was asked for.
    let from = from.max(version.oldest_unix_nanos);
    let request = GetCostsRequest { from_unix_nanos: from, ..GetCostsRequest::default() };
    let costs = shard.ask(|mut client| async move { client.get_costs(request).await }).await?;
    let is_waste = |cause: &str| !matches!(cause, "used" | "idle_fixed");
    let waste =
        costs.parts.iter().filter(|part| is_waste(&part.cause)).map(|part| part.nano_usd).sum::<i64>();
    let mut digest = Digest {
        from: rfc3339(from),
        to: rfc3339(now),
        long: now - from,
        simulated: version.simulated,
        usd: costs.total_nano_usd as f64 / 1e9,
        usd_per_hour: costs.usd_per_hour,
        waste_usd: waste as f64 / 1e9,
        most_short_needs: costs.points.iter().map(|point| point.short_needs).max().unwrap_or(0),
        curve: curve(&costs.points, |point| point.usd_per_hour),
        ..Digest::default()
    };
    for decision in decisions(shard, from).await? {
        let (counts, name) = match decision.fate() {
            Fate::Begun => (&mut digest.begun, kind(decision.kind)),
            _ => (&mut digest.withheld, fate(decision.fate)),
        };
        *counts.entry(name).or_default() += 1;
    }
    digest.short_now = shorts(shard, now).await?;
    let lints = shard.ask(|mut client| async move { client.lint(LintRequest::default()).await }).await?;
    let (errors, warnings): (Vec<Finding>, Vec<Finding>) =
        lints.findings.into_iter().partition(|finding| finding.severity() == Severity::Error);
    digest.lint_errors =
        errors.iter().map(|one| format!("{} {}: {}", one.code, one.subject, one.found)).collect();
    digest.lint_warnings = warnings.len() as u64;
    Ok(digest)
}

async fn decisions(shard: &Shard, from: i64) -> Result<Vec<Decision>, Failure> {
    let request = ListDecisionsRequest {
        from_unix_nanos: from,
        from_record: true,
        limit: 100_000,
        fold: true,
        ..ListDecisionsRequest::default()
    };
    let mut pages = shard.ask(|mut client| async move { client.list_decisions(request).await }).await?;
    let mut all = Vec::new();
    while let Some(page) = pages.next().await {
        all.extend(page.map_err(|status| shard.trouble(&status))?.decisions);
    }
    Ok(all)
}

async fn shorts(shard: &Shard, now: i64) -> Result<Vec<Short>, Failure> {
    let request = ListShortfallsRequest::default();
    let mut pages = shard.ask(|mut client| async move { client.list_shortfalls(request).await }).await?;
    let mut all = Vec::new();
    while let Some(page) = pages.next().await {
        let is_long = |one: &Shortfall| one.since_unix_nanos > 0 && now - one.since_unix_nanos >= LONG;
        let page = page.map_err(|status| shard.trouble(&status))?;
        all.extend(page.shortfalls.into_iter().filter(is_long).map(|one| Short {
            need: one.need.as_ref().map(|need| need.id.clone()).unwrap_or_default(),
            name: one.need.as_ref().map(need_long).unwrap_or_default(),
            reason: reason(one.reason),
            secs: (now - one.since_unix_nanos) / 1_000_000_000,
        }));
    }
    Ok(all)
}

fn counts(map: &BTreeMap<String, u64>) -> String {
    let parts = map.iter().map(|(name, number)| format!("{} {name}", thousands(*number)));
    if map.is_empty() { "nothing".into() } else { parts.collect::<Vec<_>>().join(", ") }
}

fn story(digest: &Digest) -> Story {
    let mut story = Story::default();
    let mark = if digest.simulated { "  (simulated)" } else { "" };
    story.heading(format!("{} since {}.{mark}", span(digest.long), digest.from), Tone::Head);
    let waste = if digest.usd > 0.0 { 100.0 * digest.waste_usd / digest.usd } else { 0.0 };
    story.say(
        "money",
        format!(
            "{} in all, {}/h on average; {} of it ({waste:.1} %) served nobody. bigfleet cost --since {} --by cause",
            usd_words(digest.usd),
            usd_words(digest.usd_per_hour),
            usd_words(digest.waste_usd),
            digest.from
        ),
    );
    story.say("curve", format!("{}  $/h", digest.curve));
    story.say("begun", format!("{}. bigfleet get decisions --since {}", counts(&digest.begun), digest.from));
    story.say("withheld", format!("{}. bigfleet get rails", counts(&digest.withheld)));
    let most = count(digest.most_short_needs.into(), "need");
    story.say(
        "short",
        format!("{most} at the worst; {} for more than 5 min now", thousands(digest.short_now.len() as u64)),
    );
    for short in digest.short_now.iter().take(10) {
        let long = span(short.secs * 1_000_000_000);
        story.say_toned(
            "short",
            format!("{} for {long} ({}). bigfleet explain need {}", short.name, short.reason, short.need),
            Tone::Warn,
        );
    }
    let errors = count(digest.lint_errors.len() as u64, "error");
    story.say("lint", format!("{errors}, {}. bigfleet lint", count(digest.lint_warnings, "warning")));
    for error in digest.lint_errors.iter().take(5) {
        story.say_toned("lint", error.clone(), Tone::Bad);
    }
    story
}
