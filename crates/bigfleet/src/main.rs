//! `bigfleet`: one binary for everything.
//!
//! Answers go to standard output, messages to standard error. Exit codes: 0 fine, 1 found something, 2 bad
//! usage or input, 3 cannot reach.

mod clock;
mod conform;
mod cycle;
mod exit;
mod fault;
mod provider;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use exit::Failure;

// Fleets are built from many small lists, which this allocator is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A fleet-level infrastructure autoscaler.
///
/// Many clusters report how much capacity they want; BigFleet compares that with one pool of machines and
/// says what to bind, buy, preempt, reclaim and give back.
#[derive(Parser)]
#[command(name = "bigfleet", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Cycle(cycle::Args),
    Provider(provider::Args),
    Conform(Box<conform::Args>),
    Fault(fault::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Cycle(args) => cycle::run(&args),
        Command::Provider(args) => provider::run(&args),
        Command::Conform(args) => conform::run(&args),
        Command::Fault(args) => fault::run(&args),
    };
    done.unwrap_or_else(Failure::report)
}
