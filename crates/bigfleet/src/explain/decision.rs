//! `bigfleet explain decision`.

use std::process::ExitCode;

use anyhow::anyhow;
use bigfleet_view::v1::ExplainDecisionRequest;

use super::Common;
use crate::exit::Failure;
use crate::reach::Shard;

/// Why a cycle decided what it did about one machine.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet explain decision 1842/aws-0031
  bigfleet explain decision 1842 aws-0031
  bigfleet get decisions -o name --limit 1 | xargs bigfleet explain decision")]
pub(super) struct Args {
    /// The cycle, or cycle/machine as `bigfleet get decisions -o name` prints it
    #[arg(value_name = "CYCLE[/MACHINE]")]
    decision: String,
    /// The machine, if it was not given with the cycle
    #[arg(value_name = "MACHINE")]
    machine: Option<String>,
    #[command(flatten)]
    common: Common,
}

pub(super) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let (cycle, machine) = parse(args)?;
    let shard = Shard::new(&args.common.reach)?;
    let request = ExplainDecisionRequest { cycle, machine };
    let answer = shard.ask(|mut client| async move { client.explain_decision(request).await }).await?;
    args.common.print("DecisionExplanation", &answer, bigfleet_tell::explain::decision::story)
}

fn parse(args: &Args) -> anyhow::Result<(u64, String)> {
    let (cycle, machine) = match (args.decision.split_once('/'), &args.machine) {
        (Some((cycle, machine)), None) => (cycle, machine.to_owned()),
        (None, Some(machine)) => (&*args.decision, machine.clone()),
        _ => {
            return Err(anyhow!(
                "a decision is named by its cycle and its machine, as in 1842/aws-0031; see `bigfleet get decisions -o name`"
            ));
        }
    };
    let number = cycle.trim_start_matches('#').parse();
    Ok((number.map_err(|_| anyhow!("{cycle:?} is not the number of a cycle; write 1842/aws-0031"))?, machine))
}
