//! `bigfleet plan`: what the next cycle would do, why, and what it would cost.

use std::io::Write;
use std::process::ExitCode;

use bigfleet_view::v1::{Decision, Fate, PlanAnswer, PlanRequest};

use crate::context::Reach;
use crate::exit::{FOUND, Failure};
use crate::flags::{Kind, numbers};
use crate::output::{
    AnswerArgs, AnswerFormat, Cell, Grid, Head, Shown, Story, Terminal, Tone, note, stdout, write_data,
};
use crate::reach::{Shard, block_on};
use crate::sentence;
use crate::words::{capacity_type, count, fate, hourly, kind, need, thousands, usd_change};

/// Show what the next cycle would do if it ran now, and why; nothing is done.
///
/// The engine decides on a copy of the fleet. Dollars an hour are of all hardware, now and when everything that the
/// rails do not withhold is done.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet plan
  bigfleet plan --cluster shop --kind reclaim
  bigfleet plan --check && echo nothing to do")]
pub(crate) struct Args {
    /// End with 1 if something would be done
    #[arg(long)]
    check: bool,
    /// Only actions of this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Only these kinds of action
    #[arg(long, value_enum, ignore_case = true, value_delimiter = ',')]
    kind: Vec<Kind>,
    /// At most so many actions; the totals count all
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    output: AnswerArgs,
    #[command(flatten)]
    reach: Reach,
}

/// Asks and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let answer = block_on(async {
        let shard = Shard::new(&args.reach)?;
        let request = PlanRequest {
            cluster: args.cluster.clone().unwrap_or_default(),
            kinds: numbers(&args.kind),
            limit: args.limit,
        };
        Ok(shard.ask(|mut client| async move { client.plan(request).await }).await?)
    })?;
    let terminal = Terminal::of_stdout();
    let mut out = stdout();
    match args.output.format(&terminal) {
        AnswerFormat::Text => {
            story(&answer).write(&mut out, terminal.text_width(), terminal.paint)?;
            actions(&mut out, &answer, &terminal)?;
        }
        format => write_data(&mut out, &Shown::new("PlanAnswer", &answer), format, &terminal)?,
    }
    out.flush()?;
    if args.check && begins(&answer) > 0 {
        note(&format!("{} would begin", count(begins(&answer), "action")));
        return Ok(ExitCode::from(FOUND));
    }
    Ok(ExitCode::SUCCESS)
}

/// How many actions would really be done.
fn begins(answer: &PlanAnswer) -> u64 {
    let begun = answer.totals.iter().filter(|cell| cell.fate() == Fate::Begun);
    begun.map(|cell| u64::from(cell.actions)).sum()
}

fn story(answer: &PlanAnswer) -> Story {
    let mut story = Story::default();
    let cycle = answer.as_of.as_ref().map_or(0, |as_of| as_of.cycle) + 1;
    let mark = sentence::simulated(answer.as_of.as_ref());
    let all: u64 = answer.totals.iter().map(|cell| u64::from(cell.actions)).sum();
    let heading = match (begins(answer), all) {
        (_, 0) => format!("Cycle {cycle} would do nothing."),
        (0, all) => format!("Cycle {cycle} would do nothing: {} withheld by rails.", count(all, "action")),
        (begun, all) if begun == all => format!("Cycle {cycle} would begin {}.", count(begun, "action")),
        (begun, all) => {
            format!(
                "Cycle {cycle} would begin {} and withhold {}.",
                count(begun, "action"),
                thousands(all - begun)
            )
        }
    };
    story.heading(format!("{heading}{mark}"), if begins(answer) > 0 { Tone::Warn } else { Tone::Good });
    for cell in &answer.totals {
        let rails = if cell.fate() == Fate::Begun {
            String::new()
        } else {
            format!(" withheld: {}", fate(cell.fate))
        };
        story.say("actions", format!("{} {}{rails}", thousands(cell.actions.into()), kind(cell.kind)));
    }
    let (before, after) = (answer.usd_per_hour_before, answer.usd_per_hour_after);
    let change =
        if before == after { "unchanged".into() } else { format!("{}/h", usd_change(after - before)) };
    story.say("cost", format!("{} now, {} after ({change})", hourly(before), hourly(after)));
    story.say("unmet needs", format!("{} now, {} after", answer.unmet_before, answer.unmet_after));
    story
}

fn actions(out: &mut impl Write, answer: &PlanAnswer, terminal: &Terminal) -> std::io::Result<()> {
    if answer.actions.is_empty() {
        return Ok(());
    }
    let heads = [
        ("ACTION", false, false),
        ("MACHINE", false, false),
        ("TYPE", false, true),
        ("CAPACITY", false, false),
        ("USD", true, false),
        ("CLUSTER", false, true),
        ("NEED", false, true),
        ("WHY", false, true),
    ];
    let heads = heads.map(|(title, right, shrinks)| {
        let keeps = title == "WHY";
        Head { title: title.into(), right, shrinks, keeps }
    });
    let rows: Vec<Vec<Cell>> = answer.actions.iter().map(row).collect();
    let grid = Grid::settle(&heads, &rows, terminal.width, terminal.paint);
    writeln!(out)?;
    grid.write_heads(out, &heads)?;
    for row in &rows {
        grid.write_row(out, row)?;
    }
    let all: u64 = answer.totals.iter().map(|cell| u64::from(cell.actions)).sum();
    let shown = answer.actions.len() as u64;
    if shown < all {
        writeln!(out, "and {} more (--limit)", thousands(all - shown))?;
    }
    Ok(())
}

fn row(decision: &Decision) -> Vec<Cell> {
    let tone = if sentence::withheld(decision) { Tone::Warn } else { Tone::Plain };
    let why = Cell::toned(sentence::why_and_fate(decision), tone);
    vec![
        kind(decision.kind).into(),
        decision.machine.clone().into(),
        decision.instance_type.clone().into(),
        capacity_type(decision.capacity_type).into(),
        hourly(decision.usd_per_hour).into(),
        decision.cluster.clone().into(),
        decision.need.as_ref().map(need).unwrap_or_default().into(),
        why,
    ]
}
