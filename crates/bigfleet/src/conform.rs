//! `bigfleet conform`: holds any provider against the contract.

use std::io;
use std::process::ExitCode;

use bigfleet_conformance::cli::Conform;

use crate::exit::Failure;

/// Hold a provider, in any language, against the contract.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    conform: Conform,
}

/// Tries the behaviours and reports.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(ExitCode::from(runtime.block_on(args.conform.execute(&mut io::stdout()))?))
}
