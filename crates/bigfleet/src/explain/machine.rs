//! `bigfleet explain machine`.

use std::process::ExitCode;

use bigfleet_view::v1::ExplainMachineRequest;

use super::{Common, Past};
use crate::exit::Failure;
use crate::reach::Shard;

/// Why a machine is there, why it was chosen, why it is kept and what comes next.
#[derive(clap::Args)]
pub(super) struct Args {
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
    let request =
        ExplainMachineRequest { machine: args.machine.clone(), at: args.past.moment(&shard).await? };
    let answer = shard.ask(|mut client| async move { client.explain_machine(request).await }).await?;
    args.common.print("MachineExplanation", &answer, bigfleet_tell::explain::machine::story)
}
