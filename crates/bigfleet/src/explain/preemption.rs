//! `bigfleet explain preemption`.

use std::process::ExitCode;

use bigfleet_view::v1::ExplainPreemptionRequest;

use super::Common;
use crate::exit::Failure;
use crate::reach::Shard;

/// Who was preempted for whom, by which score, and how long the grace was.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet explain preemption
  bigfleet explain preemption aws-0031
  bigfleet explain preemption --need ml/train-7")]
pub(super) struct Args {
    /// A machine that was preempted; without it and --need, the newest of all
    #[arg(value_name = "MACHINE")]
    machine: Option<String>,
    /// A need that gained or lost by it
    #[arg(long, value_name = "NEED", conflicts_with = "machine")]
    need: Option<String>,
    /// At most so many, the newest
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    limit: u32,
    #[command(flatten)]
    common: Common,
}

pub(super) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let shard = Shard::new(&args.common.reach)?;
    let request = ExplainPreemptionRequest {
        machine: args.machine.clone().unwrap_or_default(),
        need: args.need.clone().unwrap_or_default(),
        limit: args.limit,
    };
    let answer = shard.ask(|mut client| async move { client.explain_preemption(request).await }).await?;
    args.common.print("PreemptionExplanation", &answer, bigfleet_tell::explain::preemption::story)
}
