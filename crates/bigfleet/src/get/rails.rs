//! `bigfleet get rails`: what holds the shard back, and what it holds back now.

use std::io::Write;
use std::process::ExitCode;

use bigfleet_view::v1::{GetRailsRequest, Mode, Rails};

use super::listing::moment;
use super::providers::{brief, status};
use crate::at::At;
use crate::context::Reach;
use crate::exit::Failure;
use crate::output::{AnswerArgs, AnswerFormat, Shown, Story, Terminal, Tone, stdout, write_data};
use crate::reach::Shard;
use crate::sentence;
use crate::sentence::seen_at;
use crate::words::{clock_time, count, fate, hourly, kind, one_of, span, thousands};

/// The rails: caps, bounds, pauses, guards, and what they withhold now.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet get rails
  bigfleet get rails --at 14:02")]
pub(crate) struct Args {
    /// As it was: a cycle (1842), a time (14:02, 2026-11-15T14:02:10Z) or how long ago (10m)
    #[arg(long, value_name = "CYCLE|TIME")]
    at: Option<At>,
    #[command(flatten)]
    output: AnswerArgs,
    #[command(flatten)]
    reach: Reach,
}

/// Prints them.
pub(super) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let terminal = Terminal::of_stdout();
    let shard = Shard::new(&args.reach)?;
    let request = GetRailsRequest { at: moment(&shard, args.at.as_ref()).await? };
    let rails = shard.ask(|mut client| async move { client.get_rails(request).await }).await?;
    let mut out = stdout();
    match args.output.format(&terminal) {
        AnswerFormat::Text => story(&rails).write(&mut out, terminal.text_width(), terminal.paint)?,
        format => write_data(&mut out, &Shown::new("Rails", &rails), format, &terminal)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn story(rails: &Rails) -> Story {
    let mut story = Story::default();
    let as_of = rails.as_of.clone().unwrap_or_default();
    let now = seen_at(&as_of);
    let withheld: u64 = rails.withheld.iter().map(|cell| u64::from(cell.actions)).sum();
    let time = clock_time(as_of.cycle_unix_nanos, as_of.now_unix_nanos);
    let rules = as_of.recorded_edition.map_or_else(String::new, |edition| {
        format!(", decided under edition {edition} of the rules, which is not this shard's")
    });
    let then = format!("cycle {}, at {time}{rules}", as_of.cycle);
    let (heading, tone) = match (as_of.from_record, withheld) {
        (false, 0) => ("The rails withhold nothing now.".to_owned(), Tone::Good),
        (false, actions) => {
            (format!("The rails withhold {} of the last cycle.", count(actions, "action")), Tone::Warn)
        }
        (true, 0) => (format!("The rails withheld nothing of {then}."), Tone::Good),
        (true, actions) => {
            (format!("The rails withheld {} of {then}.", count(actions, "action")), Tone::Warn)
        }
    };
    story.heading(format!("{heading}{}", sentence::simulated(rails.as_of.as_ref())), tone);
    for cell in &rails.withheld {
        let words = format!("{} {}: {}", thousands(cell.actions.into()), kind(cell.kind), fate(cell.fate));
        story.say_toned("withheld", words, Tone::Warn);
    }
    if rails.dry_run {
        story.say_toned("dry run", "the whole shard rehearses: nothing is executed", Tone::Warn);
    }
    if !matches!(rails.mode(), Mode::Auto | Mode::Unspecified) {
        story.say_toned("mode", sentence::mode(rails.mode, false), Tone::Warn);
    }
    for order in &rails.modes {
        story.say("mode", sentence::mode_order(order, now));
    }
    if rails.proposals > 0 {
        let waiting = count(rails.proposals.into(), "action");
        story.say_toned("waiting", format!("{waiting} for a yes: bigfleet get proposals"), Tone::Warn);
    }
    for pause in &rails.pauses {
        story.say_toned("paused", sentence::pause(pause, now), Tone::Warn);
    }
    let percent = |share: f64| format!("{} %", (share * 1000.0).round() / 10.0);
    story.say(
        "reclaim cap",
        format!(
            "{} of a cluster's machines in {}",
            percent(rails.reclaim_fraction),
            span(rails.reclaim_window_nanos)
        ),
    );
    for cap in &rails.caps {
        let frees = match cap.frees_unix_nanos {
            0 => String::new(),
            time => format!("; the oldest leaves the window at {}", clock_time(time, now)),
        };
        story.say("reclaim cap", format!("{}: {} of {} used{frees}", cap.cluster, cap.used, cap.cap));
    }
    let bound = match rails.max_actions_per_cycle {
        0 => "no bound on actions in one cycle".into(),
        bound => format!("at most {} in one cycle", count(bound, "action")),
    };
    let moves =
        format!("{} of {} places for moves are taken", thousands(rails.moves), thousands(rails.max_moves));
    story.say("bounds", format!("{bound}; {moves}"));
    story.say(
        "guards",
        format!(
            "demand that falls by {} or supply that falls by {} at once must be seen {} before it counts",
            percent(rails.demand_drop),
            percent(rails.supply_drop),
            count(rails.confirmations.into(), "time")
        ),
    );
    if rails.purchase_window_nanos > 0 {
        story.say(
            "purchase rail",
            format!(
                "{} of what a suspicious listing takes away is replaced in {}, for at most {} in all",
                percent(rails.purchase_fraction),
                span(rails.purchase_window_nanos),
                hourly(rails.purchase_usd_per_hour)
            ),
        );
    }
    for loss in &rails.losses {
        story.say_toned(
            "purchase rail",
            format!(
                "{} lost {} ({}) by the word of provider {}, for {}: {} of {} listings agree; {} of {} replaced in this window; \
                 bigfleet resume --kind provision --cluster {} lets go",
                loss.cluster,
                count(loss.machines.into(), "machine"),
                hourly(loss.usd_per_hour),
                loss.provider,
                span(now.saturating_sub(loss.since_unix_nanos)),
                loss.seen,
                loss.of,
                loss.replaced,
                loss.may_replace,
                loss.cluster,
            ),
            Tone::Warn,
        );
    }
    for waiting in &rails.instructions {
        let words = format!("{}: {}", waiting.wants, waiting.reason);
        story.say_toned("coordinator", words, if waiting.ends { Tone::Plain } else { Tone::Warn });
    }
    for held in &rails.held_rollups {
        let since = span(now.saturating_sub(held.first_unix_nanos));
        story.say_toned(
            "held",
            format!("the roll-up of {}, for {since}: seen {} of {} times", held.cluster, held.seen, held.of),
            Tone::Warn,
        );
    }
    for provider in &rails.providers {
        story.say_toned(
            "held",
            format!("provider {}: {}", brief(provider).name, status(provider).text),
            Tone::Warn,
        );
    }
    if !rails.silent_clusters.is_empty() {
        let names = one_of(&rails.silent_clusters, 5);
        story.say_toned(
            "silent",
            format!("{names}: nothing is reclaimed before the first report"),
            Tone::Warn,
        );
    }
    story
}
