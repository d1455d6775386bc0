//! Where providers serve, as shards are told.

use std::process::ExitCode;

use bigfleet_proto::coordinator_v1::{Provider, RemoveProviderRequest, SetProviderRequest};

use super::ask::{Coordinator, Whom};
use crate::exit::Failure;
use crate::output::note;
use crate::reach::block_on;

/// Say where a provider serves: shards that use it dial it there, without a restart.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet set-provider aws https://aws-provider:9000
  bigfleet set-provider aws https://aws-provider:9000 --shard eu-1 --shard eu-2
  bigfleet get registry")]
pub(crate) struct SetProviderArgs {
    /// Its name, as shards have it in --provider NAME=URL
    #[arg(value_name = "NAME")]
    name: String,
    /// Where it serves
    #[arg(value_name = "URL")]
    address: String,
    /// A shard that uses it; may be repeated. All, if nothing is said
    #[arg(long = "shard", value_name = "SHARD")]
    shards: Vec<String>,
    #[command(flatten)]
    whom: Whom,
}

/// Take a provider out of the registry; shards go on dialling it where they last did.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet remove-provider aws")]
pub(crate) struct RemoveProviderArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    whom: Whom,
}

pub(crate) fn set_provider(args: &SetProviderArgs) -> Result<ExitCode, Failure> {
    block_on(async {
        let provider = Provider {
            name: args.name.clone(),
            address: args.address.clone(),
            shard_ids: args.shards.clone(),
        };
        let coordinator = Coordinator::new(&args.whom)?;
        coordinator
            .ask(|mut client| {
                let request = SetProviderRequest { provider: Some(provider.clone()) };
                async move { client.set_provider(request).await }
            })
            .await?;
        note(&format!("{} serves at {}; shards that use it follow", args.name, args.address));
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn remove_provider(args: &RemoveProviderArgs) -> Result<ExitCode, Failure> {
    block_on(async {
        let request = RemoveProviderRequest { name: args.name.clone() };
        let coordinator = Coordinator::new(&args.whom)?;
        coordinator
            .ask(|mut client| {
                let request = request.clone();
                async move { client.remove_provider(request).await }
            })
            .await?;
        note(&format!("{} is in the registry no more", args.name));
        Ok(ExitCode::SUCCESS)
    })
}
