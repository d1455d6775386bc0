//! What admins change: whose a domain is, how much a shard may hold, whom a cluster talks to.

use std::process::ExitCode;

use bigfleet_proto::coordinator_v1::{BindClusterRequest, Quota, SetQuotaRequest, UnbindClusterRequest};
use bigfleet_proto::v1alpha1::{AssignDomainRequest, RemoveShardRequest, UnassignDomainRequest};

use super::ask::{Coordinator, Whom};
use crate::exit::Failure;
use crate::flags::Capacity;
use crate::output::note;
use crate::reach::block_on;

/// A domain as people write it: the label's key and value.
#[derive(Clone, Debug)]
struct Domain {
    key: String,
    value: String,
}

fn domain(text: &str) -> Result<Domain, String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => {
            Ok(Domain { key: key.into(), value: value.into() })
        }
        _ => Err("a domain is KEY=VALUE, such as topology.kubernetes.io/zone=eu-west-1a".into()),
    }
}

/// Give a topology domain to a shard.
///
/// One that another shard holds must be unassigned first; it moves when that shard has let go. All domains of a fleet have
/// one key.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet assign topology.kubernetes.io/zone=eu-west-1a --to eu-1
  bigfleet get domains")]
pub(crate) struct AssignArgs {
    /// The domain
    #[arg(value_name = "KEY=VALUE", value_parser = domain)]
    domain: Domain,
    /// The shard that gets it
    #[arg(long, value_name = "SHARD")]
    to: String,
    #[command(flatten)]
    whom: Whom,
}

/// Take a topology domain from its shard.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet unassign topology.kubernetes.io/zone=eu-west-1a
  bigfleet get domains")]
pub(crate) struct UnassignArgs {
    /// The domain
    #[arg(value_name = "KEY=VALUE", value_parser = domain)]
    domain: Domain,
    #[command(flatten)]
    whom: Whom,
}

/// Bound how many machines of a kind a shard may hold.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet quota --shard eu-1 --provider aws --type m6i.4xlarge --zone eu-west-1a --capacity spot 200
  bigfleet quota --shard eu-1 --provider aws --none
  bigfleet get quotas")]
pub(crate) struct QuotaArgs {
    /// The shard
    #[arg(long, value_name = "SHARD")]
    shard: String,
    /// The provider
    #[arg(long, value_name = "NAME")]
    provider: String,
    /// Of this instance type; all together if nothing is said
    #[arg(long = "type", value_name = "TYPE", default_value = "", hide_default_value = true)]
    instance_type: String,
    /// In this zone; all together if nothing is said
    #[arg(long, value_name = "ZONE", default_value = "", hide_default_value = true)]
    zone: String,
    /// Of this capacity type; all together if nothing is said
    #[arg(long, value_enum, ignore_case = true)]
    capacity: Option<Capacity>,
    /// How many
    #[arg(value_name = "MACHINES", required_unless_present = "none")]
    machines: Option<u32>,
    /// Lift the bound
    #[arg(long, conflicts_with = "machines")]
    none: bool,
    #[command(flatten)]
    whom: Whom,
}

/// Bind a cluster to a shard: every other shard refuses it and names this one.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet bind shop --to eu-1
  bigfleet get bindings")]
pub(crate) struct BindArgs {
    /// The cluster
    #[arg(value_name = "CLUSTER")]
    cluster: String,
    /// The shard
    #[arg(long, value_name = "SHARD")]
    to: String,
    #[command(flatten)]
    whom: Whom,
}

/// Let any shard serve a cluster again.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet unbind shop")]
pub(crate) struct UnbindArgs {
    /// The cluster
    #[arg(value_name = "CLUSTER")]
    cluster: String,
    #[command(flatten)]
    whom: Whom,
}

/// Say that a shard is gone for good: what it owned is nobody's.
///
/// Only for a shard that has stopped. One that still runs would go on acting on its domains until it hears of it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet remove-shard eu-1")]
pub(crate) struct RemoveShardArgs {
    /// The shard
    #[arg(value_name = "SHARD")]
    shard: String,
    #[command(flatten)]
    whom: Whom,
}

pub(crate) fn assign(args: &AssignArgs) -> Result<ExitCode, Failure> {
    let Domain { key, value } = &args.domain;
    block_on(async {
        let request = AssignDomainRequest {
            topology_key: key.clone(),
            topology_value: value.clone(),
            shard_id: args.to.clone(),
        };
        let coordinator = Coordinator::new(&args.whom)?;
        coordinator
            .ask_wire(|mut client| {
                let request = request.clone();
                async move { client.assign_domain(request).await }
            })
            .await?;
        note(&format!("{key}={value} goes to {}; `bigfleet get domains` shows when it is there", args.to));
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn unassign(args: &UnassignArgs) -> Result<ExitCode, Failure> {
    let Domain { key, value } = &args.domain;
    block_on(async {
        let request = UnassignDomainRequest { topology_key: key.clone(), topology_value: value.clone() };
        let coordinator = Coordinator::new(&args.whom)?;
        coordinator
            .ask_wire(|mut client| {
                let request = request.clone();
                async move { client.unassign_domain(request).await }
            })
            .await?;
        note(&format!(
            "{key}={value} is nobody's once its shard has let go; `bigfleet get domains` shows when"
        ));
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn quota(args: &QuotaArgs) -> Result<ExitCode, Failure> {
    block_on(async {
        let capacity = args.capacity.map_or("", |capacity| match capacity {
            Capacity::BareMetal => "bare_metal",
            Capacity::Reserved => "reserved",
            Capacity::OnDemand => "on_demand",
            Capacity::Spot => "spot",
        });
        let quota = Quota {
            shard_id: args.shard.clone(),
            provider: args.provider.clone(),
            instance_type: args.instance_type.clone(),
            zone: args.zone.clone(),
            capacity_type: capacity.into(),
            machines: args.machines,
        };
        let coordinator = Coordinator::new(&args.whom)?;
        coordinator
            .ask(|mut client| {
                let request = SetQuotaRequest { quota: Some(quota.clone()) };
                async move { client.set_quota(request).await }
            })
            .await?;
        note(&match args.machines {
            Some(machines) => format!("{} may hold {machines} of these at {}", args.shard, args.provider),
            None => format!("{} may hold any number of these at {}", args.shard, args.provider),
        });
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn bind(args: &BindArgs) -> Result<ExitCode, Failure> {
    block_on(async {
        let request = BindClusterRequest { cluster_id: args.cluster.clone(), shard_id: args.to.clone() };
        let coordinator = Coordinator::new(&args.whom)?;
        coordinator
            .ask(|mut client| {
                let request = request.clone();
                async move { client.bind_cluster(request).await }
            })
            .await?;
        note(&format!("{} talks to {}; every other shard refuses it", args.cluster, args.to));
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn unbind(args: &UnbindArgs) -> Result<ExitCode, Failure> {
    block_on(async {
        let request = UnbindClusterRequest { cluster_id: args.cluster.clone() };
        let coordinator = Coordinator::new(&args.whom)?;
        coordinator
            .ask(|mut client| {
                let request = request.clone();
                async move { client.unbind_cluster(request).await }
            })
            .await?;
        note(&format!("{} may talk to any shard", args.cluster));
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn remove_shard(args: &RemoveShardArgs) -> Result<ExitCode, Failure> {
    block_on(async {
        let request = RemoveShardRequest { shard_id: args.shard.clone() };
        let coordinator = Coordinator::new(&args.whom)?;
        coordinator
            .ask_wire(|mut client| {
                let request = request.clone();
                async move { client.remove_shard(request).await }
            })
            .await?;
        note(&format!("{} is being forgotten; what it owned is nobody's from now on", args.shard));
        Ok(ExitCode::SUCCESS)
    })
}
