//! `bigfleet pause` and `bigfleet resume`: the switch that stops a shard from acting, now.

use std::io::Write;
use std::process::ExitCode;

use anyhow::anyhow;
use bigfleet_model::text::shown_lines;
use bigfleet_net::Clock;
use bigfleet_view::v1::{GetRailsRequest, PauseAnswer, PauseRequest, ResumeAnswer, ResumeRequest};

use crate::context::Reach;
use crate::exit::{FOUND, Failure};
use crate::flags::Kind;
use crate::output::{AnswerArgs, AnswerFormat, Shown, Terminal, note, stdout, write_data};
use crate::reach::{Shard, block_on};
use crate::sentence;

/// Stop a shard from acting: everything, one cluster, one kind of action, or both.
///
/// The shard goes on deciding and recording; it executes nothing that a pause covers. Moves already under way are
/// finished. A pause outlives restarts, works without the coordinator, and ends by itself.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet pause --for 30m --reason 'network maintenance'
  bigfleet pause --cluster shop --kind reclaim --for 2h --reason 'launch day'
  bigfleet pause --kind preempt --until-resumed --reason 'incident 4711'
  bigfleet get rails")]
pub(crate) struct PauseArgs {
    /// Only this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Only this kind of action
    #[arg(long, value_enum, ignore_case = true)]
    kind: Option<Kind>,
    /// Everything; the same as naming neither a cluster nor a kind
    #[arg(long, conflicts_with_all = ["cluster", "kind"])]
    all: bool,
    /// For how long: 90s, 30m, 1h30m, 2d; or --until-resumed
    #[arg(long = "for", value_name = "SPAN", value_parser = crate::at::nanos)]
    span: Option<i64>,
    /// Until somebody resumes
    #[arg(long, conflicts_with = "span")]
    until_resumed: bool,
    /// Why; whoever wonders will read it
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: String,
    /// Who; by default the user of this machine
    #[arg(long, value_name = "NAME", env = "USER")]
    author: Option<String>,
    /// Count what would be done as a rehearsal
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: AnswerArgs,
    #[command(flatten)]
    reach: Reach,
}

/// Let a paused shard act again.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet resume 3
  bigfleet resume --cluster shop --kind reclaim
  bigfleet resume --cluster shop --kind provision   (also lets go of what the purchase rail holds for it)
  bigfleet resume --all")]
pub(crate) struct ResumeArgs {
    /// The number of one pause, as `bigfleet get rails` shows it
    #[arg(value_name = "PAUSE", conflicts_with_all = ["cluster", "kind", "all"], value_parser = clap::value_parser!(u64).range(1..))]
    number: Option<u64>,
    /// The pauses of exactly this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// The pauses of exactly this kind of action
    #[arg(long, value_enum, ignore_case = true)]
    kind: Option<Kind>,
    /// All pauses there are
    #[arg(long, conflicts_with_all = ["cluster", "kind"])]
    all: bool,
    #[command(flatten)]
    output: AnswerArgs,
    #[command(flatten)]
    reach: Reach,
}

/// Pauses.
pub(crate) fn pause(args: &PauseArgs) -> Result<ExitCode, Failure> {
    if args.span.is_none() && !args.until_resumed {
        return Err(Failure::Usage(anyhow!(
            "say for how long: --for 30m (or 90s, 1h30m, 2d), or --until-resumed to let it last until `bigfleet resume`"
        )));
    }
    block_on(async {
        let shard = Shard::new(&args.reach)?;
        let request = PauseRequest {
            cluster: args.cluster.clone().unwrap_or_default(),
            kind: args.kind.map_or(0, Into::into),
            dry_run: args.dry_run,
            reason: args.reason.clone(),
            author: args.author.clone().unwrap_or_default(),
            for_nanos: args.span.unwrap_or(0),
        };
        let answer = shard.ask(|mut client| async move { client.pause(request).await }).await?;
        let text = |answer: &PauseAnswer| {
            let pause = answer.pause.clone().unwrap_or_default();
            let now = if pause.since_unix_nanos > 0 {
                pause.since_unix_nanos
            } else {
                shard.clock().now_unix_nanos()
            };
            format!("paused {}\nbigfleet resume {} ends it", sentence::pause(&pause, now), pause.number)
        };
        print(args.output, "PauseAnswer", &answer, text)?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Resumes. Ends with 1 if there was nothing to resume.
pub(crate) fn resume(args: &ResumeArgs) -> Result<ExitCode, Failure> {
    block_on(async {
        let shard = Shard::new(&args.reach)?;
        let request = ResumeRequest {
            number: args.number.unwrap_or(0),
            cluster: args.cluster.clone().unwrap_or_default(),
            kind: args.kind.map_or(0, Into::into),
            everything: args.all,
        };
        let answer = shard.ask(|mut client| async move { client.resume(request).await }).await?;
        if answer.ended.is_empty() && answer.released.is_empty() {
            return nothing_to_resume(&shard).await;
        }
        let text = |answer: &ResumeAnswer| {
            let ended = answer.ended.iter().map(|pause| {
                let kind = sentence::pause_scope(pause);
                format!("resumed {kind}: {}  [pause {}]", pause.reason, pause.number)
            });
            let released = answer
                .released
                .iter()
                .map(|cluster| format!("replacements for {cluster} are bought at once"));
            ended.chain(released).collect::<Vec<_>>().join("\n")
        };
        print(args.output, "ResumeAnswer", &answer, text)?;
        Ok(ExitCode::SUCCESS)
    })
}

async fn nothing_to_resume(shard: &Shard) -> Result<ExitCode, Failure> {
    let rails =
        shard.ask(|mut client| async move { client.get_rails(GetRailsRequest::default()).await }).await?;
    let now = rails.as_of.as_ref().map_or(0, |as_of| as_of.now_unix_nanos);
    if rails.pauses.is_empty() {
        note("nothing is paused");
    } else {
        note("no pause has exactly this scope; there are:");
        for pause in &rails.pauses {
            note(&format!("  {}", sentence::pause(pause, now)));
        }
        note("end one by its number, as in `bigfleet resume 3`, or all with --all");
    }
    Ok(ExitCode::from(FOUND))
}

fn print<M: prost::Message>(
    output: AnswerArgs,
    name: &str,
    answer: &M,
    text: impl FnOnce(&M) -> String,
) -> Result<(), Failure> {
    let terminal = Terminal::of_stdout();
    let mut out = stdout();
    match output.format(&terminal) {
        AnswerFormat::Text => writeln!(out, "{}", shown_lines(&text(answer)))?,
        format => write_data(&mut out, &Shown::new(name, answer), format, &terminal)?,
    }
    out.flush()?;
    Ok(())
}
