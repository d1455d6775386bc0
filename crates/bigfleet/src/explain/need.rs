//! `bigfleet explain need`.

use std::process::ExitCode;

use bigfleet_view::v1::ExplainNeedRequest;

use super::{Common, Past};
use crate::exit::Failure;
use crate::reach::Shard;

/// Why a need is covered, waits or is short, and what would help it.
#[derive(clap::Args)]
pub(super) struct Args {
    /// An id or its beginning, cluster/id, or cluster/gang; see `bigfleet get needs`
    #[arg(value_name = "NEED")]
    need: String,
    /// Do not look for what would help
    #[arg(long)]
    no_remedies: bool,
    /// Try every change that might help, however long it takes; on a very large and scarce fleet not all are
    /// tried within the time of an ordinary answer
    #[arg(long, conflicts_with = "no_remedies")]
    thorough: bool,
    #[command(flatten)]
    past: Past,
    #[command(flatten)]
    common: Common,
}

pub(super) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let shard = Shard::new(&args.common.reach)?;
    let request = ExplainNeedRequest {
        need: args.need.clone(),
        at: args.past.moment(&shard).await?,
        without_remedies: args.no_remedies,
        machines: 20,
        patience_millis: if args.thorough { u32::MAX } else { 0 },
    };
    let answer = shard.ask(|mut client| async move { client.explain_need(request).await }).await?;
    args.common.print("NeedExplanation", &answer, bigfleet_tell::explain::need::story)
}
