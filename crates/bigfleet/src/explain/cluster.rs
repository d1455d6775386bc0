//! `bigfleet explain cluster`.

use std::process::ExitCode;

use bigfleet_view::v1::ExplainClusterRequest;

use super::Common;
use crate::exit::Failure;
use crate::reach::Shard;

/// How a cluster stands: what it has, what it is short of, what was decided for it and what is withheld.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Its name
    #[arg(value_name = "CLUSTER")]
    cluster: String,
    #[command(flatten)]
    common: Common,
}

pub(super) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let shard = Shard::new(&args.common.reach)?;
    let request = ExplainClusterRequest { cluster: args.cluster.clone() };
    let answer = shard.ask(|mut client| async move { client.explain_cluster(request).await }).await?;
    args.common.print("ClusterExplanation", &answer, bigfleet_tell::explain::cluster::story)
}
