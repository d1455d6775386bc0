//! The standard provider test binary: the simulated cloud by itself.

use std::process::ExitCode;

use bigfleet_provider_sim::cli::{Args, run};
use clap::Parser as _;

fn main() -> anyhow::Result<ExitCode> {
    run(&Args::parse())
}
