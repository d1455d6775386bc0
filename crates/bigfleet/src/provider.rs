//! `bigfleet provider`: the providers that come with the binary.

use std::process::ExitCode;

use bigfleet_provider_metal::cli as metal;
use bigfleet_provider_sim::cli as sim;
use clap::Subcommand;

use crate::exit::Failure;

/// Run a provider.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    provider: Which,
}

#[derive(Subcommand)]
enum Which {
    Sim(Box<sim::Args>),
    Metal(Box<metal::Args>),
}

/// Runs it until it is told to stop.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.provider {
        Which::Sim(args) => Ok(sim::run(args)?),
        Which::Metal(args) => Ok(metal::run(args)?),
    }
}
