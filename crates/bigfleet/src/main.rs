//! `bigfleet`: one binary for everything.
//!
//! Answers go to standard output, messages to standard error. Exit codes: 0 fine, 1 found something, 2 bad
//! usage or input, 3 cannot reach.

mod assess;
mod at;
mod clock;
mod conform;
mod context;
mod coordinator;
mod cost;
mod crds;
mod cycle;
mod daemon;
mod demand;
mod diff;
mod digest;
mod doctor;
mod exit;
mod explain;
mod fault;
mod flag_list;
mod flags;
mod get;
mod lint;
mod mode;
mod observe;
mod operator;
mod output;
mod pause;
mod plan;
mod pod_controller;
mod preview;
mod provider;
mod reach;
mod record;
mod replay;
mod rollback;
mod shard;
mod shell;
mod suggest;
mod support_bundle;
mod top;
mod up;
mod version;
mod web;
mod whatif;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

// One renderer of words and sentences, here and on the page.
use bigfleet_tell::{sentence, words};
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
    Up(up::Args),
    Get(Box<get::Args>),
    Explain(Box<explain::Args>),
    WhyNot(explain::WhyNotArgs),
    Plan(plan::Args),
    Whatif(Box<whatif::Args>),
    Preview(preview::Args),
    Cost(cost::Args),
    Digest(digest::Args),
    Diff(diff::Args),
    Replay(replay::Args),
    Record(record::Args),
    Lint(lint::Args),
    Top(top::Args),
    Pause(pause::PauseArgs),
    Resume(pause::ResumeArgs),
    Mode(mode::ModeArgs),
    Rollback(rollback::Args),
    Approve(mode::ApproveArgs),
    Cycle(cycle::Args),
    Shard(Box<shard::Args>),
    Web(Box<web::Args>),
    Operator(Box<operator::Args>),
    Coordinator(Box<coordinator::Args>),
    Assign(coordinator::AssignArgs),
    Unassign(coordinator::UnassignArgs),
    Quota(coordinator::QuotaArgs),
    Bind(coordinator::BindArgs),
    Unbind(coordinator::UnbindArgs),
    RemoveShard(coordinator::RemoveShardArgs),
    SetProvider(coordinator::SetProviderArgs),
    RemoveProvider(coordinator::RemoveProviderArgs),
    Provider(provider::Args),
    PodController(Box<pod_controller::Args>),
    Crds(crds::Args),
    Assess(assess::Args),
    Observe(Box<observe::Args>),
    Conform(Box<conform::Args>),
    Demand(demand::Args),
    Fault(fault::Args),
    Sim(Box<bigfleet_sim::cli::Args>),
    Doctor(doctor::Args),
    SupportBundle(support_bundle::Args),
    Context(context::Args),
    Version(version::Args),
    Completions(shell::CompletionsArgs),
    Man(shell::ManArgs),
    Flags(flag_list::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Up(args) => up::run(&args),
        Command::Get(args) => get::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::WhyNot(args) => explain::run_why_not(&args),
        Command::Top(args) => top::execute(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Whatif(args) => whatif::run(&args),
        Command::Preview(args) => preview::run(&args),
        Command::Cost(args) => cost::run(&args),
        Command::Digest(args) => digest::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Record(args) => record::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Pause(args) => pause::pause(&args),
        Command::Resume(args) => pause::resume(&args),
        Command::Rollback(args) => rollback::run(&args),
        Command::Mode(args) => mode::run(&args),
        Command::Approve(args) => mode::approve(&args),
        Command::Cycle(args) => cycle::run(&args),
        Command::Shard(args) => shard::run(&args),
        Command::Web(args) => web::run(&args),
        Command::Operator(args) => operator::run(&args),
        Command::Coordinator(args) => coordinator::run(&args),
        Command::Assign(args) => coordinator::assign(&args),
        Command::Unassign(args) => coordinator::unassign(&args),
        Command::Quota(args) => coordinator::quota(&args),
        Command::Bind(args) => coordinator::bind(&args),
        Command::Unbind(args) => coordinator::unbind(&args),
        Command::RemoveShard(args) => coordinator::remove_shard(&args),
        Command::SetProvider(args) => coordinator::set_provider(&args),
        Command::RemoveProvider(args) => coordinator::remove_provider(&args),
        Command::Provider(args) => provider::run(&args),
        Command::PodController(args) => pod_controller::run(&args),
        Command::Crds(args) => crds::run(&args),
        Command::Assess(args) => assess::run(&args),
        Command::Observe(args) => observe::run(&args),
        Command::Conform(args) => conform::run(&args),
        Command::Demand(args) => demand::run(&args),
        Command::Fault(args) => fault::run(&args),
        Command::Sim(args) => bigfleet_sim::cli::run(&args).map_err(Failure::from),
        Command::Doctor(args) => doctor::run(&args),
        Command::SupportBundle(args) => support_bundle::run(&args),
        Command::Context(args) => context::run(&args),
        Command::Version(args) => version::run(&args),
        Command::Completions(args) => shell::completions(&args, Cli::command()),
        Command::Man(args) => shell::man(&args, Cli::command()),
        Command::Flags(args) => flag_list::run(&args, Cli::command()),
    };
    done.unwrap_or_else(Failure::report)
}
