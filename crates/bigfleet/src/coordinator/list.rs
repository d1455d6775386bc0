//! What a coordinator knows, as lists: `bigfleet get shards`, `domains`, `quotas`, `bindings`,
//! `registry`, `transfers`.

use std::io::Write as _;
use std::process::ExitCode;

use bigfleet_net::{Clock as _, SystemClock};
use bigfleet_proto::coordinator_v1::{
    ListClustersRequest, ListDomainsRequest, ListProvidersRequest, ListQuotasRequest, ListTransfersRequest,
    transfer,
};
use bigfleet_proto::v1alpha1::ListShardsRequest;
use serde_json::{Value, json};

use super::ask::{Coordinator, Whom};
use crate::exit::Failure;
use crate::output::{Cell, Grid, Head, Terminal, stdout, write_json_line};
use crate::words::age;

/// Which list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Shards that have reported.
    Shards,
    /// Domains with their holders.
    Domains,
    /// How much shards may hold.
    Quotas,
    /// Which shard a cluster talks to.
    Bindings,
    /// Where providers serve.
    Registry,
    /// Machines that were handed from one shard to another.
    Transfers,
}

/// The flags of these lists.
#[derive(clap::Args)]
pub(crate) struct ListArgs {
    /// Only what concerns this shard
    #[arg(value_name = "SHARD")]
    shard: Option<String>,
    /// One JSON object a line, as into a pipe
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    whom: Whom,
}

/// A list: the titles of its columns, and rows as cells and as data.
struct Rows {
    titles: &'static [&'static str],
    rows: Vec<(Vec<String>, Value)>,
}

/// Prints a list.
pub(crate) async fn list(kind: Kind, args: &ListArgs) -> Result<ExitCode, Failure> {
    let coordinator = Coordinator::new(&args.whom)?;
    let shard = args.shard.clone().unwrap_or_default();
    let now = SystemClock::start().now_unix_nanos();
    let Rows { titles, rows } = match kind {
        Kind::Shards => shards(&coordinator, &shard, now).await?,
        Kind::Domains => domains(&coordinator, &shard, now).await?,
        Kind::Quotas => quotas(&coordinator, &shard).await?,
        Kind::Bindings => bindings(&coordinator, &shard).await?,
        Kind::Registry => registry(&coordinator, &shard).await?,
        Kind::Transfers => transfers(&coordinator, &shard, now).await?,
    };
    let (terminal, mut out) = (Terminal::of_stdout(), stdout());
    if args.json || !terminal.interactive {
        for (_, data) in &rows {
            write_json_line(&mut out, data)?;
        }
    } else {
        let heads: Vec<Head> = titles
            .iter()
            .map(|title| Head {
                title: (*title).into(),
                right: *title == "MACHINES",
                shrinks: true,
                keeps: false,
            })
            .collect();
        let cells: Vec<Vec<Cell>> =
            rows.iter().map(|(row, _)| row.iter().map(|cell| Cell::from(cell.as_str())).collect()).collect();
        let grid = Grid::settle(&heads, &cells, terminal.width, terminal.paint);
        grid.write_heads(&mut out, &heads)?;
        for row in &cells {
            grid.write_row(&mut out, row)?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn is_of(wanted: &str, shard: &str) -> bool {
    wanted.is_empty() || wanted == shard
}

/// A name, or that anything will do.
fn or_any(name: &str) -> String {
    if name.is_empty() { "any".into() } else { name.into() }
}

async fn shards(coordinator: &Coordinator, wanted: &str, now: i64) -> Result<Rows, Failure> {
    let answer =
        coordinator.ask_wire(|mut client| async move { client.list_shards(ListShardsRequest {}).await });
    let rows = answer.await?.shards.into_iter().filter(|shard| is_of(wanted, &shard.shard_id)).map(|shard| {
        let cells = vec![
            shard.shard_id.clone(),
            shard.address.clone(),
            age(shard.last_heartbeat_unix_ns, now),
            age(shard.registered_at_unix_ns, now),
        ];
        let data = json!({
            "shard": shard.shard_id,
            "address": shard.address,
            "last_report_unix_nanos": shard.last_heartbeat_unix_ns,
            "registered_unix_nanos": shard.registered_at_unix_ns,
        });
        (cells, data)
    });
    Ok(Rows { titles: &["SHARD", "ADDRESS", "REPORTED", "KNOWN"], rows: rows.collect() })
}

async fn domains(coordinator: &Coordinator, wanted: &str, now: i64) -> Result<Rows, Failure> {
    let request = ListDomainsRequest { shard_id: wanted.into() };
    let answer = coordinator.ask(|mut client| {
        let request = request.clone();
        async move { client.list_domains(request).await }
    });
    let rows = answer.await?.domains.into_iter().map(|domain| {
        let standing = match (domain.is_arriving, domain.is_leaving, domain.next_shard_id.as_str()) {
            (true, _, _) => "was told to take it".to_owned(),
            (_, true, "") => "was told to let go".to_owned(),
            (_, true, next) => format!("was told to let go; then {next}"),
            _ => "holds it".to_owned(),
        };
        let name = format!("{}={}", domain.topology_key, domain.topology_value);
        let cells = vec![name, domain.shard_id.clone(), standing, age(domain.since_unix_nanos, now)];
        let data = json!({
            "key": domain.topology_key,
            "value": domain.topology_value,
            "shard": domain.shard_id,
            "arriving": domain.is_arriving,
            "leaving": domain.is_leaving,
            "next": domain.next_shard_id,
            "since_unix_nanos": domain.since_unix_nanos,
        });
        (cells, data)
    });
    Ok(Rows { titles: &["DOMAIN", "SHARD", "STANDING", "SINCE"], rows: rows.collect() })
}

async fn quotas(coordinator: &Coordinator, wanted: &str) -> Result<Rows, Failure> {
    let request = ListQuotasRequest { shard_id: wanted.into() };
    let answer = coordinator.ask(|mut client| {
        let request = request.clone();
        async move { client.list_quotas(request).await }
    });
    let rows = answer.await?.quotas.into_iter().map(|quota| {
        let machines = quota.machines.unwrap_or_default();
        let cells = vec![
            quota.shard_id.clone(),
            quota.provider.clone(),
            or_any(&quota.instance_type),
            or_any(&quota.zone),
            or_any(&quota.capacity_type),
            machines.to_string(),
        ];
        let data = json!({
            "shard": quota.shard_id,
            "provider": quota.provider,
            "instance_type": quota.instance_type,
            "zone": quota.zone,
            "capacity_type": quota.capacity_type,
            "machines": machines,
        });
        (cells, data)
    });
    Ok(Rows { titles: &["SHARD", "PROVIDER", "TYPE", "ZONE", "CAPACITY", "MACHINES"], rows: rows.collect() })
}

async fn bindings(coordinator: &Coordinator, wanted: &str) -> Result<Rows, Failure> {
    let request = ListClustersRequest { shard_id: wanted.into() };
    let answer = coordinator.ask(|mut client| {
        let request = request.clone();
        async move { client.list_clusters(request).await }
    });
    let rows = answer.await?.clusters.into_iter().map(|cluster| {
        let cells = vec![cluster.cluster_id.clone(), cluster.shard_id.clone(), cluster.shard_address.clone()];
        let data = json!({
            "cluster": cluster.cluster_id,
            "shard": cluster.shard_id,
            "address": cluster.shard_address,
        });
        (cells, data)
    });
    Ok(Rows { titles: &["CLUSTER", "SHARD", "ADDRESS"], rows: rows.collect() })
}

async fn registry(coordinator: &Coordinator, wanted: &str) -> Result<Rows, Failure> {
    let answer =
        coordinator.ask(|mut client| async move { client.list_providers(ListProvidersRequest {}).await });
    let uses = |shards: &[String]| {
        wanted.is_empty() || shards.is_empty() || shards.iter().any(|shard| shard == wanted)
    };
    let providers = answer.await?.providers.into_iter().filter(|provider| uses(&provider.shard_ids));
    let rows = providers.map(|provider| {
        let cells =
            vec![provider.name.clone(), provider.address.clone(), or_any(&provider.shard_ids.join(", "))];
        let data = json!({
            "provider": provider.name,
            "address": provider.address,
            "shards": provider.shard_ids,
        });
        (cells, data)
    });
    Ok(Rows { titles: &["PROVIDER", "ADDRESS", "SHARDS"], rows: rows.collect() })
}

async fn transfers(coordinator: &Coordinator, wanted: &str, now: i64) -> Result<Rows, Failure> {
    let request = ListTransfersRequest { shard_id: wanted.into() };
    let answer = coordinator.ask(|mut client| {
        let request = request.clone();
        async move { client.list_transfers(request).await }
    });
    let rows = answer.await?.transfers.into_iter().map(|transfer| {
        let step = match transfer.step() {
            transfer::Step::Unspecified => "unknown",
            transfer::Step::Leaving => "leaving",
            transfer::Step::Arriving => "arriving",
            transfer::Step::Arrived => "arrived",
        };
        let cells = vec![
            transfer.machine_id.clone(),
            transfer.from_shard_id.clone(),
            transfer.to_shard_id.clone(),
            step.into(),
            age(transfer.since_unix_nanos, now),
            transfer.reason.clone(),
        ];
        let data = json!({
            "machine": transfer.machine_id,
            "domain": transfer.domain,
            "from": transfer.from_shard_id,
            "to": transfer.to_shard_id,
            "step": step,
            "since_unix_nanos": transfer.since_unix_nanos,
            "reason": transfer.reason,
        });
        (cells, data)
    });
    Ok(Rows { titles: &["MACHINE", "FROM", "TO", "STEP", "SINCE", "WHY"], rows: rows.collect() })
}
