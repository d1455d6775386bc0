//! `bigfleet why-not`: the first rule that keeps a need and a machine apart.

use std::process::ExitCode;

use bigfleet_view::v1::WhyNotRequest;

use super::{Common, Past};
use crate::exit::Failure;
use crate::reach::Shard;

/// Say why a need does not have a machine: the first rule that keeps the two apart.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet why-not ml/train-7 metal-07
  bigfleet why-not 77aa88bb aws-0031 --at 1842")]
pub(crate) struct Args {
    /// An id or its beginning, cluster/id, or cluster/gang
    #[arg(value_name = "NEED")]
    need: String,
    /// Its id, or an unambiguous beginning
    #[arg(value_name = "MACHINE")]
    machine: String,
    #[command(flatten)]
    past: Past,
    #[command(flatten)]
    common: Common,
}

pub(super) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let shard = Shard::new(&args.common.reach)?;
    let request = WhyNotRequest {
        need: args.need.clone(),
        machine: args.machine.clone(),
        at: args.past.moment(&shard).await?,
    };
    let answer = shard.ask(|mut client| async move { client.why_not(request).await }).await?;
    args.common.print("WhyNotAnswer", &answer, bigfleet_tell::explain::why_not::story)
}
