//! The metal provider by itself, for tests of it as a process.

use std::process::ExitCode;

use bigfleet_provider_metal::cli::{Args, run};
use clap::Parser as _;

fn main() -> anyhow::Result<ExitCode> {
    run(&Args::parse())
}
