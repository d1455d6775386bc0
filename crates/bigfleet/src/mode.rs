//! `bigfleet mode` and `bigfleet approve`: how much a shard does without asking, and the yes to what it asks.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use anyhow::anyhow;
use bigfleet_view::v1::{
    ActionKind, ApproveAnswer, ApproveRequest, Decision, Fate, GetModesRequest, ListDecisionsRequest, Mode,
    ModeView, Modes, SetModeAnswer, SetModeRequest,
};
use clap::ValueEnum;
use serde::Serialize;
use tokio_stream::StreamExt;

use crate::at::At;
use crate::context::Reach;
use crate::exit::{FOUND, Failure};
use crate::flags::Kind;
use crate::output::{AnswerArgs, AnswerFormat, Shown, Story, Terminal, Tone, note, stdout, write_data};
use crate::reach::{Shard, block_on};
use crate::sentence::{self, seen_at};
use crate::words::{count, hourly, kind, span, thousands, usd_change};

/// Show or set how much a shard does without asking: auto, approve, or observe; for everything, a cluster, a kind of action.
///
/// In auto it does what the rails let through. In approve each action waits as a proposal until somebody says yes
/// (`bigfleet get proposals`, `bigfleet approve`). In observe it executes nothing, and --report says what it would have done
/// and what that would have cost. The narrowest order counts; where two clusters are touched, the stricter. Orders outlive
/// restarts. What a provider was already told to do is seen through.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet mode
  bigfleet mode observe --cluster shop --reason 'first week'
  bigfleet mode --report --since 24h
  bigfleet mode approve --cluster shop --kind reclaim --reason 'second week'
  bigfleet mode inherit --cluster shop --kind reclaim")]
pub(crate) struct ModeArgs {
    /// The mode; without it, the modes in force are shown
    #[arg(value_enum, ignore_case = true, conflicts_with = "report")]
    mode: Option<Wanted>,
    /// Only this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Only this kind of action
    #[arg(long, value_enum, ignore_case = true)]
    kind: Option<Kind>,
    /// Why; whoever wonders will read it
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Who; by default the user of this machine
    #[arg(long, value_name = "NAME", env = "USER")]
    author: Option<String>,
    /// What would have been done, and at what cost
    #[arg(long)]
    report: bool,
    /// The report from here on: a time (14:02) or how long ago (24h); from where the record begins if nothing is said
    #[arg(long, value_name = "TIME", requires = "report")]
    since: Option<At>,
    #[command(flatten)]
    output: AnswerArgs,
    #[command(flatten)]
    reach: Reach,
}

/// A mode, or none of one's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Wanted {
    /// Do what the rails let through
    Auto,
    /// Do what somebody approved
    Approve,
    /// Do nothing, and say what would be done
    Observe,
    /// Take the order of exactly this scope back
    Inherit,
}

impl From<Wanted> for Mode {
    fn from(wanted: Wanted) -> Self {
        match wanted {
            Wanted::Auto => Self::Auto,
            Wanted::Approve => Self::Approve,
            Wanted::Observe => Self::Observe,
            Wanted::Inherit => Self::Unspecified,
        }
    }
}

/// Say yes to actions that wait.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet approve 0a1b2c3d 77aa
  bigfleet approve --all --cluster shop --kind provision")]
pub(crate) struct ApproveArgs {
    /// Proposals by their ids, or unambiguous beginnings of them; all are approved or none
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    ids: Vec<String>,
    /// Everything that waits
    #[arg(long)]
    all: bool,
    /// With --all: only what takes a machine from this cluster or gives it one
    #[arg(long, value_name = "NAME", requires = "all")]
    cluster: Option<String>,
    /// With --all: only this kind of action
    #[arg(long, value_enum, ignore_case = true, requires = "all")]
    kind: Option<Kind>,
    /// Who; by default the user of this machine
    #[arg(long, value_name = "NAME", env = "USER")]
    author: Option<String>,
    #[command(flatten)]
    output: AnswerArgs,
    #[command(flatten)]
    reach: Reach,
}

/// Shows modes, sets one, or reports.
pub(crate) fn run(args: &ModeArgs) -> Result<ExitCode, Failure> {
    block_on(async {
        let shard = Shard::new(&args.reach)?;
        match args.mode {
            Some(wanted) => set(args, wanted, &shard).await,
            None if args.report => report(args, &shard).await,
            None if args.kind.is_some() || args.reason.is_some() => {
                Err(Failure::Usage(anyhow!("say which mode: observe, approve, auto or inherit")))
            }
            None => show(args, &shard).await,
        }
    })
}

async fn show(args: &ModeArgs, shard: &Shard) -> Result<ExitCode, Failure> {
    let mut modes = shard.ask(|mut client| async move { client.get_modes(GetModesRequest {}).await }).await?;
    if let Some(name) = &args.cluster {
        modes.clusters.retain(|cluster| cluster.cluster == *name);
        modes.orders.retain(|order| order.cluster.is_empty() || order.cluster == *name);
        if modes.clusters.is_empty() {
            return Err(Failure::Usage(anyhow!(
                "there is no cluster {name:?}; `bigfleet get clusters` lists them ({})",
                shard.target.server
            )));
        }
    }
    print(args.output, "Modes", &modes, told)?;
    Ok(ExitCode::SUCCESS)
}

fn told(modes: &Modes) -> Story {
    let mut story = Story::default();
    let now = modes.as_of.as_ref().map_or(0, seen_at);
    let mark = sentence::simulated(modes.as_of.as_ref());
    let tone = if modes.mode() == Mode::Auto { Tone::Good } else { Tone::Warn };
    let heading = match modes.mode() {
        Mode::Observe => "The shard observes: it executes nothing.",
        Mode::Approve => "The shard asks first: it executes what somebody approves.",
        Mode::Auto | Mode::Unspecified => "The shard executes what the rails let through.",
    };
    story.heading(format!("{heading}{mark}"), tone);
    for order in &modes.orders {
        story.say("mode", sentence::mode_order(order, now));
    }
    for cluster in &modes.clusters {
        let mode = sentence::mode(cluster.mode, cluster.mixed);
        let tone = if cluster.mode() == Mode::Auto { Tone::Plain } else { Tone::Warn };
        story.say_toned("cluster", format!("{}: {mode}", cluster.cluster), tone);
    }
    if modes.waiting > 0 {
        let life = span(modes.proposal_life_nanos);
        story.say_toned(
            "waiting",
            format!(
                "{} for a yes, each for up to {life}: bigfleet get proposals",
                count(modes.waiting.into(), "action")
            ),
            Tone::Warn,
        );
    }
    story
}

async fn set(args: &ModeArgs, wanted: Wanted, shard: &Shard) -> Result<ExitCode, Failure> {
    let reason = args.reason.clone().unwrap_or_default();
    if wanted != Wanted::Inherit && reason.trim().is_empty() {
        return Err(Failure::Usage(anyhow!("say why: --reason 'first week'; whoever wonders will read it")));
    }
    let request = SetModeRequest {
        cluster: args.cluster.clone().unwrap_or_default(),
        kind: args.kind.map_or(0, Into::into),
        mode: Mode::from(wanted).into(),
        reason,
        author: args.author.clone().unwrap_or_default(),
    };
    let answer = shard.ask(|mut client| async move { client.set_mode(request).await }).await?;
    print(args.output, "SetModeAnswer", &answer, |answer: &SetModeAnswer| {
        let mut story = Story::default();
        let now = |order: &ModeView| order.since_unix_nanos;
        match (&answer.is, &answer.was) {
            (Some(is), _) => story.heading(sentence::mode_order(is, now(is)), Tone::Good),
            (None, Some(was)) => {
                story.heading(format!("taken back: {}", sentence::mode_order(was, now(was))), Tone::Good)
            }
            (None, None) => story.heading("nothing was ordered", Tone::Warn),
        };
        if let (Some(_), Some(was)) = (&answer.is, &answer.was) {
            story.say("before", sentence::mode_order(was, now(was)));
        }
        story
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What a stretch of observing would have come to.
#[derive(Default, Serialize)]
struct Report {
    /// Actions that would have been begun, each counted once however often it was decided, by kind.
    actions: BTreeMap<String, u64>,
    /// What purchases would have added to the price of an hour.
    usd_per_hour_more: f64,
    /// What machines given back would have taken off it.
    usd_per_hour_less: f64,
    usd_per_hour_change: f64,
    /// Proposals nobody said yes to, by kind.
    not_approved: BTreeMap<String, u64>,
    simulated: bool,
    #[serde(skip)]
    examples: Vec<String>,
    #[serde(skip)]
    clusters: BTreeMap<String, u64>,
}

impl Report {
    fn add(&mut self, decision: &Decision) {
        let name = kind(decision.kind);
        if decision.fate() == Fate::AwaitsApproval {
            *self.not_approved.entry(name).or_default() += 1;
            return;
        }
        match decision.kind() {
            ActionKind::Provision => self.usd_per_hour_more += decision.usd_per_hour,
            ActionKind::Delete => self.usd_per_hour_less += decision.usd_per_hour,
            _ => {}
        }
        self.usd_per_hour_change = self.usd_per_hour_more - self.usd_per_hour_less;
        if !decision.cluster.is_empty() {
            *self.clusters.entry(decision.cluster.clone()).or_default() += 1;
        }
        if self.examples.len() < 10 {
            self.examples.push(sentence::action(decision));
        }
        *self.actions.entry(name).or_default() += 1;
    }
}

async fn report(args: &ModeArgs, shard: &Shard) -> Result<ExitCode, Failure> {
    let version = shard.version().await?;
    let from = match args.since.as_ref().map(|at| at.moment(version.now_unix_nanos).moment) {
        None => 0,
        Some(Some(bigfleet_view::v1::moment::Moment::UnixNanos(time))) => time,
        Some(_) => return Err(anyhow!("--since takes a time or how long ago, not a cycle").into()),
    };
    let request = ListDecisionsRequest {
        cluster: args.cluster.clone().unwrap_or_default(),
        kinds: args.kind.map(Into::into).into_iter().collect(),
        fates: vec![Fate::Observed.into(), Fate::AwaitsApproval.into()],
        from_unix_nanos: from,
        from_record: version.recording,
        fold: true,
        limit: 100_000,
        ..ListDecisionsRequest::default()
    };
    let mut pages = shard.ask(|mut client| async move { client.list_decisions(request).await }).await?;
    let mut report = Report { simulated: version.simulated, ..Report::default() };
    while let Some(page) = pages.next().await {
        let page = page.map_err(|status| shard.trouble(&status))?;
        page.decisions.iter().for_each(|decision| report.add(decision));
    }
    let terminal = Terminal::of_stdout();
    let mut out = stdout();
    match args.output.format(&terminal) {
        AnswerFormat::Text => {
            report_story(&report).write(&mut out, terminal.text_width(), terminal.paint)?;
            out.flush()?;
            note(&shard.target.to_string());
        }
        format => write_data(&mut out, &report, format, &terminal)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn report_story(report: &Report) -> Story {
    let mut story = Story::default();
    let all: u64 = report.actions.values().sum();
    let mark = if report.simulated { "  (simulated)" } else { "" };
    let heading = match all {
        0 => "Nothing would have been done.".to_owned(),
        all => format!("{} would have been begun, and none was.", count(all, "action")),
    };
    story.heading(format!("{heading}{mark}"), Tone::Good);
    for (kind, actions) in &report.actions {
        story.say("actions", format!("{} {kind}", thousands(*actions)));
    }
    for (cluster, actions) in &report.clusters {
        story.say("clusters", format!("{cluster}: {}", thousands(*actions)));
    }
    if all > 0 {
        story.say(
            "cost",
            format!(
                "{} more by purchases, {} less by giving back: {}/h",
                hourly(report.usd_per_hour_more),
                hourly(report.usd_per_hour_less),
                usd_change(report.usd_per_hour_change)
            ),
        );
    }
    for (kind, actions) in &report.not_approved {
        story.say("not approved", format!("{} {kind}", thousands(*actions)));
    }
    for example in &report.examples {
        story.say("such as", example.clone());
    }
    story
}

/// Approves. Ends with 1 if nothing waited.
pub(crate) fn approve(args: &ApproveArgs) -> Result<ExitCode, Failure> {
    block_on(async {
        let shard = Shard::new(&args.reach)?;
        let request = ApproveRequest {
            ids: args.ids.clone(),
            everything: args.all,
            cluster: args.cluster.clone().unwrap_or_default(),
            kind: args.kind.map_or(0, Into::into),
            author: args.author.clone().unwrap_or_default(),
        };
        let answer = shard.ask(|mut client| async move { client.approve(request).await }).await?;
        print(args.output, "ApproveAnswer", &answer, |answer: &ApproveAnswer| {
            let mut story = Story::default();
            let bought = answer.approved.iter().filter(|one| {
                one.decision.as_ref().is_some_and(|decision| decision.kind() == ActionKind::Provision)
            });
            let usd: f64 = bought.map(|one| one.usd_per_hour).sum();
            let heading = match answer.approved.len() as u64 {
                0 => "Nothing waits for a yes.".to_owned(),
                all if usd > 0.0 => {
                    format!("Approved {}: {} more.", count(all, "action"), hourly(usd))
                }
                all => format!("Approved {}.", count(all, "action")),
            };
            story.heading(heading, Tone::Good);
            for proposal in &answer.approved {
                let decision = proposal.decision.clone().unwrap_or_default();
                story.say("approved", format!("{}  {}", proposal.id, sentence::action(&decision)));
            }
            story
        })?;
        Ok(if answer.approved.is_empty() { ExitCode::from(FOUND) } else { ExitCode::SUCCESS })
    })
}

fn print<M: prost::Message>(
    output: AnswerArgs,
    name: &str,
    answer: &M,
    story: impl FnOnce(&M) -> Story,
) -> Result<(), Failure> {
    let terminal = Terminal::of_stdout();
    let mut out = stdout();
    match output.format(&terminal) {
        AnswerFormat::Text => {
            story(answer).write(&mut out, terminal.text_width(), terminal.paint)?;
        }
        format => write_data(&mut out, &Shown::new(name, answer), format, &terminal)?,
    }
    out.flush()?;
    Ok(())
}
