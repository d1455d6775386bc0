//! `bigfleet explain` and `bigfleet why-not`: the reasons behind what a shard does, in sentences with numbers.

mod cluster;
mod decision;
mod machine;
mod need;
mod pod;
mod preemption;
mod why_not;

use std::io::Write;
use std::process::ExitCode;

use bigfleet_view::v1::Moment;
use clap::Subcommand;
use prost::Message;

use crate::at::At;
use crate::context::Reach;
use crate::exit::Failure;
use crate::output::{AnswerArgs, AnswerFormat, Shown, Story, Terminal, stdout, write_data};
use crate::reach::{Shard, block_on};

pub(crate) use why_not::Args as WhyNotArgs;

/// Say why: what was considered, what each rule removed, who has it, what would change the answer.
///
/// Remedies are not guessed: the engine decides on a changed copy of the fleet, and only what really helps is named.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet explain pod ml/train-7
  bigfleet explain need 77aa88bb
  bigfleet explain need ml/train-7 --at 1842
  bigfleet explain machine aws-0031
  bigfleet explain decision 1842/aws-0031
  bigfleet explain preemption --need ml/train-7
  bigfleet explain cluster shop --json")]
pub(crate) struct Args {
    #[command(subcommand)]
    thing: Thing,
}

#[derive(Subcommand)]
enum Thing {
    #[command(visible_alias = "pods")]
    Pod(Box<pod::Args>),
    #[command(visible_alias = "needs")]
    Need(need::Args),
    #[command(visible_alias = "machines")]
    Machine(machine::Args),
    #[command(visible_alias = "decisions")]
    Decision(decision::Args),
    #[command(visible_alias = "preemptions")]
    Preemption(preemption::Args),
    #[command(visible_alias = "clusters")]
    Cluster(cluster::Args),
}

/// The flags of every explanation.
#[derive(Clone, Debug, clap::Args)]
struct Common {
    #[command(flatten)]
    output: AnswerArgs,
    #[command(flatten)]
    reach: Reach,
}

/// A moment in the past, where an explanation can look back.
#[derive(Clone, Debug, clap::Args)]
struct Past {
    /// As it was: a cycle (1842), a time (14:02, 2026-11-15T14:02:10Z) or how long ago (10m)
    #[arg(long, visible_alias = "cycle", value_name = "CYCLE|TIME")]
    at: Option<At>,
}

impl Past {
    async fn moment(&self, shard: &Shard) -> Result<Option<Moment>, Failure> {
        Ok(match &self.at {
            None => None,
            Some(at) if at.needs_now() => Some(at.moment(shard.version().await?.now_unix_nanos)),
            Some(at) => Some(at.moment(0)),
        })
    }
}

/// Explains.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    block_on(async {
        match &args.thing {
            Thing::Pod(args) => pod::run(args).await,
            Thing::Need(args) => need::run(args).await,
            Thing::Machine(args) => machine::run(args).await,
            Thing::Decision(args) => decision::run(args).await,
            Thing::Preemption(args) => preemption::run(args).await,
            Thing::Cluster(args) => cluster::run(args).await,
        }
    })
}

/// Says why a need does not have a machine.
pub(crate) fn run_why_not(args: &WhyNotArgs) -> Result<ExitCode, Failure> {
    block_on(why_not::run(args))
}

impl Common {
    /// Prints an answer, as sentences or as the data they were made from.
    fn print<M: Message>(
        &self,
        name: &str,
        answer: &M,
        story: impl FnOnce(&M) -> Story,
    ) -> Result<ExitCode, Failure> {
        let terminal = Terminal::of_stdout();
        let mut out = stdout();
        match self.output.format(&terminal) {
            AnswerFormat::Text => story(answer).write(&mut out, terminal.text_width(), terminal.paint)?,
            format => write_data(&mut out, &Shown::new(name, answer), format, &terminal)?,
        }
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    }
}
