//! Several shards instead of one: each has a zone of the simulated cloud, a coordinator beside them says which, and they help
//! each other over real sockets.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bigfleet_coordinator_server::store::{Embedded, Store};
use bigfleet_coordinator_server::{Running, Settings, start};
use bigfleet_model::label::ZONE;
use bigfleet_net::{Clock, SystemClock, dial};
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::AssignDomainRequest;
use bigfleet_shard_server::Reporting;
use tonic::Code;

use super::pace::Speed;
use super::stage::ZONES;

/// How often shards report, in real time.
const REPORT: Duration = Duration::from_millis(500);
/// How long laying the fleet out may take, and between two tries of one step. Real time.
const PATIENCE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(50);

/// The names of so many shards.
pub(crate) fn names(shards: usize) -> Vec<String> {
    match shards {
        1 => vec!["up".to_owned()],
        _ => (1..=shards).map(|number| format!("up-{number}")).collect(),
    }
}

/// A coordinator that keeps the fleet in a folder.
pub(crate) async fn coordinator(folder: &Path) -> anyhow::Result<Running> {
    let store = Embedded::open(folder).context("the coordinator's folder cannot be used")?;
    let settings = Settings {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        advertise: String::new(),
        http: None,
        tls: None,
        store: Store::Embedded(Arc::new(store)),
        tidies: false,
        export: None,
    };
    Ok(start(settings).await?)
}

/// Where a shard reports, and how often on its own clock.
pub(crate) fn reporting(coordinator: SocketAddr, speed: Speed) -> Reporting {
    Reporting { every: speed.simulated(REPORT), ..Reporting::to(format!("http://{coordinator}")) }
}

/// Gives each shard its zones, dealt out in turn. A fleet that was laid out before stays as it was.
pub(crate) async fn lay_out(coordinator: SocketAddr, shards: &[String]) -> anyhow::Result<()> {
    let mut client = transport::coordinator_client(dial(&format!("http://{coordinator}"), None)?);
    let clock = SystemClock::start();
    let begun = clock.now_unix_nanos();
    for (place, zone) in ZONES.into_iter().enumerate() {
        let request = AssignDomainRequest {
            topology_key: ZONE.into(),
            topology_value: zone.into(),
            shard_id: shards[place % shards.len()].clone(),
        };
        loop {
            match client.assign_domain(request.clone()).await {
                Ok(_) => break,
                Err(status) if status.code() == Code::AlreadyExists => break,
                // It does not lead yet, or the shard has not reported yet.
                Err(status) if clock.now_unix_nanos() - begun > bigfleet_net::nanos(PATIENCE) => {
                    return Err(status).context("the fleet cannot be laid out");
                }
                Err(_) => clock.sleep(AGAIN).await,
            }
        }
    }
    Ok(())
}

/// Ends when one of these ended that should not have.
pub(crate) async fn broken(shards: &mut [(String, bigfleet_shard_server::Running)]) -> anyhow::Error {
    let ((name, ended), rest) = match shards {
        [] => return std::future::pending().await,
        [(name, first), rest @ ..] => ((name, first.ended()), rest),
    };
    let ended = tokio::select! {
        ended = ended => ended,
        error = Box::pin(broken(rest)) => return error,
    };
    match ended {
        Ok(()) => anyhow::anyhow!("shard {name} has ended by itself"),
        Err(error) => error.into(),
    }
}
