//! `bigfleet fault`: makes a running simulated cloud go wrong, and right again.

use std::process::ExitCode;

use crate::exit::Failure;

pub(crate) use bigfleet_provider_sim::cli::fault::Args;

/// Does it.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    Ok(bigfleet_provider_sim::cli::fault::run(args)?)
}
