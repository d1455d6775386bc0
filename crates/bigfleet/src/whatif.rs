//! `bigfleet whatif`: what would be different if something else were.

mod edits;

use std::io::Write;
use std::process::ExitCode;

use bigfleet_tell::words::{count, need_long, reason, usd_change, usd_words};
use bigfleet_tell::{Shown, Story, Tone, sentence};
use bigfleet_view::v1::{
    ActionKind, FateCount, HoursAhead, VerdictChange, WhatIfAnswer, WhatIfRequest, WhatIfSide,
};

use crate::at::At;
use crate::context::Reach;
use crate::exit::Failure;
use crate::output::{AnswerArgs, AnswerFormat, Progress, Terminal, note, stdout, write_data};
use crate::reach::{Shard, block_on};

/// Show what would be different if a zone died, demand changed, or a price, priority or penalty did; nothing is done.
///
/// The engine decides on two copies of the fleet, one of them changed. Both settle: machines arrive at once, rails take no
/// part. With --for both also go on for some hours in the simulator, the shard with its rails and the providers with the
/// times they were seen to take, many times with different chances: demand and prices stay, and machines are lost as likely
/// as their providers say.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet whatif --zone-down zone-b
  bigfleet whatif --scale shop/77aa88bb=2
  bigfleet whatif --penalty batch=0 --for 24h
  bigfleet whatif --price capacity=spot,zone=zone-b:x2
  bigfleet whatif --add metal-01:4 --add aws-0031:10@0.19
  bigfleet whatif --add-need 'shop cpu=40 memory=160Gi unit.cpu=4 priority=1000'")]
pub(crate) struct Args {
    #[command(flatten)]
    edits: edits::Edits,
    /// Cycles in which both may settle
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=50))]
    cycles: u32,
    /// Also let both go on for so long: 6h, 24h, 7d
    #[arg(long = "for", value_name = "SPAN", value_parser = crate::at::nanos)]
    span: Option<i64>,
    /// How often that is tried, with different chances
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// The first chance; the same one gives the same answer
    #[arg(long, value_name = "NUMBER", default_value_t = 42)]
    seed: u64,
    /// From a moment gone by: a cycle (1842), a time (14:02) or how long ago (10m)
    #[arg(long, value_name = "CYCLE|TIME")]
    at: Option<At>,
    #[command(flatten)]
    output: AnswerArgs,
    #[command(flatten)]
    reach: Reach,
}

const HOUR: i64 = 3_600_000_000_000;

/// Asks and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let (answer, target) = block_on(async {
        let shard = Shard::new(&args.reach)?.patient_for(std::time::Duration::from_mins(10));
        let at = match &args.at {
            Some(at) => Some(at.moment(shard.version().await?.now_unix_nanos)),
            None => None,
        };
        let hours = args.span.map_or(0, |span| (span + HOUR - 1) / HOUR);
        let request = WhatIfRequest {
            edits: args.edits.messages(&shard).await?,
            cycles: args.cycles,
            limit: 0,
            at,
            hours: u32::try_from(hours).unwrap_or(u32::MAX),
            seeds: args.runs,
            seed: args.seed,
        };
        let _progress = Progress::begin("deciding on copies");
        let answer = shard.ask(|mut client| async move { client.what_if(request).await }).await?;
        Ok((answer, shard.target.to_string()))
    })?;
    let terminal = Terminal::of_stdout();
    let mut out = stdout();
    match args.output.format(&terminal) {
        AnswerFormat::Text => {
            story(&answer).write(&mut out, terminal.text_width(), terminal.paint)?;
            out.flush()?;
            let cycle = answer.as_of.as_ref().map_or(0, |as_of| as_of.cycle);
            note(&format!("from cycle {cycle}, seed {}, {target}", args.seed));
        }
        format => write_data(&mut out, &Shown::new("WhatIfAnswer", &answer), format, &terminal)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn story(answer: &WhatIfAnswer) -> Story {
    let mut story = Story::default();
    let (before, after) =
        (answer.before.clone().unwrap_or_default(), answer.after.clone().unwrap_or_default());
    let mark = sentence::simulated(answer.as_of.as_ref());
    let change = after.usd_per_hour - before.usd_per_hour;
    let money = if change.abs() < 1e-9 {
        "It would cost the same".to_owned()
    } else {
        format!("{}/h", usd_change(change))
    };
    let unmet = i64::from(after.unmet) - i64::from(before.unmet);
    let needs = match unmet {
        0 => "as many needs would be unmet as now".to_owned(),
        more if more > 0 => format!("{} more would be unmet", count(more.unsigned_abs(), "need")),
        less => format!("{} fewer would be unmet", count(less.unsigned_abs(), "need")),
    };
    story.heading(format!("{money}; {needs}.{mark}"), if unmet > 0 { Tone::Bad } else { Tone::Head });
    let touched = format!(
        "{} and {} changed",
        count(answer.edited_needs, "need"),
        count(answer.edited_machines, "machine")
    );
    story.say("edits", touched);
    story.columns("settled", &rows(&before, &after), &[1, 2, 3]);
    if let (Some(before), Some(after)) = (&before.ahead, &after.ahead) {
        story.columns("ahead", &ahead(before, after), &[1, 2, 3]);
        let (hours, runs) = (count(after.hours.into(), "hour"), count(after.runs.into(), "run"));
        story.say(
            "ahead",
            format!("{hours} in the simulator, {runs}; demand and prices as now, losses as providers say"),
        );
    }
    if !(before.settled && after.settled) {
        let most = before.cycles.max(after.cycles);
        story.say("settled", format!("not within {}; --cycles allows more", count(most.into(), "cycle")));
    }
    for need in answer.needs.iter().take(10) {
        story.say("needs", verdict(need));
    }
    let more = answer.needs.len().saturating_sub(10);
    if more > 0 {
        story.say("needs", format!("and {more} more; --json has them"));
    }
    story
}

fn line(name: &str, before: f64, after: f64, show: impl Fn(f64) -> String) -> Vec<String> {
    let change = after - before;
    let sign = if change > 0.0 { "+" } else { "" };
    let change = if change == 0.0 { String::new() } else { format!("{sign}{}", show(change)) };
    vec![name.to_owned(), show(before), show(after), change]
}

/// Acquisitions or losses of one side, all cycles together.
fn actions(counts: &[FateCount], kind: ActionKind) -> f64 {
    counts.iter().filter(|cell| cell.kind() == kind).map(|cell| f64::from(cell.actions)).sum()
}

fn rows(before: &WhatIfSide, after: &WhatIfSide) -> Vec<Vec<String>> {
    let whole = |figure: f64| format!("{figure:.0}");
    let percent = |figure: f64| format!("{:.0} %", 100.0 * figure);
    let mut rows = vec![
        vec![String::new(), "now".into(), "changed".into(), "difference".into()],
        line("$ an hour", before.usd_per_hour, after.usd_per_hour, usd_words),
        line("$ a day", 24.0 * before.usd_per_hour, 24.0 * after.usd_per_hour, usd_words),
        line("bound machines", before.bound_machines.into(), after.bound_machines.into(), whole),
        line("spot share", before.spot_share, after.spot_share, percent),
        line(
            "interruptions/day",
            24.0 * before.interruptions_per_hour,
            24.0 * after.interruptions_per_hour,
            |figure| format!("{figure:.2}"),
        ),
        line("unmet needs", before.unmet.into(), after.unmet.into(), whole),
    ];
    for (name, kind) in [
        ("provisions", ActionKind::Provision),
        ("bootstraps", ActionKind::Bootstrap),
        ("preemptions", ActionKind::Preempt),
        ("reclaims", ActionKind::Reclaim),
    ] {
        rows.push(line(name, actions(&before.actions, kind), actions(&after.actions, kind), whole));
    }
    rows
}

fn ahead(before: &HoursAhead, after: &HoursAhead) -> Vec<Vec<String>> {
    let two = |figure: f64| format!("{figure:.2}");
    vec![
        vec![String::new(), "now".into(), "changed".into(), "difference".into()],
        line("$ in all", before.usd, after.usd, usd_words),
        vec![
            "  spread".into(),
            format!("±{}", usd_words(before.usd_spread)),
            format!("±{}", usd_words(after.usd_spread)),
            String::new(),
        ],
        line("interruptions", before.interruptions, after.interruptions, two),
        vec![
            "  spread".into(),
            format!("±{:.2}", before.interruptions_spread),
            format!("±{:.2}", after.interruptions_spread),
            String::new(),
        ],
        line("preemptions", before.preemptions, after.preemptions, two),
        line("provisions", before.provisions, after.provisions, two),
        line("unmet need-hours", before.unmet_need_hours, after.unmet_need_hours, two),
        vec![
            "  spread".into(),
            format!("±{:.2}", before.unmet_need_hours_spread),
            format!("±{:.2}", after.unmet_need_hours_spread),
            String::new(),
        ],
    ]
}

fn verdict(change: &VerdictChange) -> String {
    let said = |satisfied: bool, code: i32| {
        if satisfied { "covered".to_owned() } else { format!("short, {}", reason(code)) }
    };
    let name = change.need.as_ref().map(need_long).unwrap_or_default();
    format!(
        "{name}: {} now, {} then ({} machines, then {})",
        said(change.satisfied_before, change.reason_before),
        said(change.satisfied_after, change.reason_after),
        change.machines_before,
        change.machines_after
    )
}
