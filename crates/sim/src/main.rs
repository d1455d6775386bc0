//! The simulator as a program of its own; the same as `bigfleet sim`.

use std::process::ExitCode;

use bigfleet_sim::cli;
use clap::Parser;

fn main() -> anyhow::Result<ExitCode> {
    cli::run(&cli::Args::parse())
}
