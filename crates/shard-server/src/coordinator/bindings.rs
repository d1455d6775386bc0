//! Which clusters may speak to this shard. One that is bound to another shard is refused, and told where to go.
//!
//! Asked when an operator connects. A coordinator that does not answer refuses nobody: clusters must be served with it down.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bigfleet_net::Clock;
use bigfleet_proto::coordinator_v1::GetClusterRequest;
use bigfleet_proto::transport;
use tokio::sync::watch;
use tonic::Status;
use tonic::transport::Channel;

/// How long an operator waits for the coordinator's word.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is known of it.
#[derive(Clone)]
pub(crate) struct Bindings(Arc<Inner>);

struct Inner {
    shard: Arc<str>,
    leader: watch::Receiver<Channel>,
    clock: Arc<dyn Clock>,
    ours: Mutex<BTreeSet<String>>,
}

impl Bindings {
    pub(crate) fn new(shard: Arc<str>, leader: watch::Receiver<Channel>, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner { shard, leader, clock, ours: Mutex::default() }))
    }

    /// Takes in which clusters are bound to this shard. Those that were and are not any more.
    pub(super) fn set(&self, clusters: Vec<String>) -> BTreeSet<String> {
        let mut ours = self.0.ours.lock().expect("no holder panics");
        let before = std::mem::replace(&mut *ours, clusters.into_iter().collect());
        before.difference(&ours).cloned().collect()
    }

    /// Why a cluster may not speak to this shard.
    pub(crate) async fn refuse(&self, cluster: &str) -> Option<Status> {
        let Inner { shard, leader, clock, ours } = &*self.0;
        if ours.lock().expect("no holder panics").contains(cluster) {
            return None;
        }
        let channel = leader.borrow().clone();
        let mut client = transport::fleet_client(channel);
        let request = GetClusterRequest { cluster_id: cluster.into() };
        let bound = tokio::select! {
            bound = client.get_cluster(request) => bound.ok()?.into_inner(),
            () = clock.sleep(PATIENCE) => return None,
        };
        if bound.shard_id.is_empty() || *bound.shard_id == **shard {
            return None;
        }
        let (whose, at) = (&bound.shard_id, &bound.shard_address);
        Some(Status::failed_precondition(format!(
            "cluster {cluster} is bound to shard {whose} and not to {shard}; connect to {at}"
        )))
    }
}
