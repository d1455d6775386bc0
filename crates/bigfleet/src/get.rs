//! `bigfleet get`: lists of what a shard knows.

mod clusters;
mod column;
mod decisions;
mod listing;
mod machines;
mod needs;
mod offers;
mod print;
mod proposals;
mod providers;
mod rails;
mod sessions;
mod shortfalls;
mod truth;
mod watch;

use std::process::ExitCode;

use clap::Subcommand;

use crate::coordinator;
use crate::exit::Failure;
use crate::reach::block_on;

/// List what a shard knows.
///
/// A table on a terminal, one JSON object a line into a pipe. Lists are streamed: half a million machines flow through
/// without being held, unless they are to be sorted. Money is dollars an hour; ages are by the server's clock.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet get needs --unmet
  bigfleet get machines --cluster shop --state idle --sort=-usd
  bigfleet get machines -o name --label topology/rack=rack-2
  bigfleet get decisions --kind preempt --since 1h
  bigfleet get needs --at 14:02 -o json | jq .reason")]
pub(crate) struct Args {
    #[command(subcommand)]
    thing: Thing,
}

#[derive(Subcommand)]
enum Thing {
    #[command(visible_alias = "need")]
    Needs(needs::Args),
    #[command(visible_alias = "machine")]
    Machines(machines::Args),
    #[command(visible_alias = "cluster")]
    Clusters(clusters::Args),
    #[command(visible_alias = "decision")]
    Decisions(decisions::Args),
    #[command(visible_alias = "offer")]
    Offers(offers::Args),
    #[command(visible_alias = "provider")]
    Providers(providers::Args),
    #[command(visible_alias = "session")]
    Sessions(sessions::Args),
    #[command(visible_alias = "shortfall")]
    Shortfalls(shortfalls::Args),
    #[command(visible_alias = "rail")]
    Rails(rails::Args),
    #[command(visible_alias = "proposal")]
    Proposals(proposals::Args),
    Truth(truth::Args),
    /// The shards of a coordinator
    Shards(coordinator::ListArgs),
    /// Topology domains and who holds them
    Domains(coordinator::ListArgs),
    /// How many machines of a kind shards may hold
    Quotas(coordinator::ListArgs),
    /// Which shard a cluster talks to
    Bindings(coordinator::ListArgs),
    /// Where providers serve, of the coordinator
    Registry(coordinator::ListArgs),
    /// Machines that were handed from one shard to another
    Transfers(coordinator::ListArgs),
}

/// Prints the list.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    block_on(async {
        match &args.thing {
            Thing::Needs(args) => watch::run(args, &args.list).await,
            Thing::Machines(args) => watch::run(args, &args.list).await,
            Thing::Clusters(args) => watch::run(args, &args.list).await,
            Thing::Decisions(args) => watch::run(args, &args.list).await,
            Thing::Offers(args) => watch::run(args, &args.list).await,
            Thing::Providers(args) => watch::run(args, &args.list).await,
            Thing::Sessions(args) => watch::run(args, &args.list).await,
            Thing::Shortfalls(args) => watch::run(args, &args.list).await,
            Thing::Truth(args) => watch::run(args, &args.list).await,
            Thing::Proposals(args) => watch::run(args, &args.list).await,
            Thing::Rails(args) => rails::run(args).await,
            Thing::Shards(args) => coordinator::list(coordinator::Kind::Shards, args).await,
            Thing::Domains(args) => coordinator::list(coordinator::Kind::Domains, args).await,
            Thing::Quotas(args) => coordinator::list(coordinator::Kind::Quotas, args).await,
            Thing::Bindings(args) => coordinator::list(coordinator::Kind::Bindings, args).await,
            Thing::Registry(args) => coordinator::list(coordinator::Kind::Registry, args).await,
            Thing::Transfers(args) => coordinator::list(coordinator::Kind::Transfers, args).await,
        }
    })
}
