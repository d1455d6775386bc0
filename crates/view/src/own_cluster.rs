//! What a cluster hears about its own needs, and says about its own nodes.
//!
//! Verdicts are worked out once per cycle for everybody who watches. What a cluster says about its nodes is kept as it came, one
//! report per cluster, within bounds; nothing in the shard depends on it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bigfleet_engine::Fleet;
use bigfleet_model::need::NeedKey;
use bigfleet_shard::Shard;
use tonic::{Request, Response, Status};

use crate::needs::{self, NeedRow};
use crate::pages::{Pages, Stream, stream};
use crate::roles::{Right, check_own};
use crate::service::View;
use crate::shards::{Gone, Shards};
use crate::snapshot::{as_of, blocking};
use crate::v1;

/// Nodes in one report.
const MOST_NODES: usize = 50_000;
/// Needs with something to say in one report, and pods named for one.
const MOST_WAITING: usize = 50_000;
const MOST_EXAMPLES: usize = 50;
/// The longest text in a report.
const LONGEST_BYTES: usize = 1024;
/// The time between two answers if nobody says, and the least.
const MILLIS: u32 = 1000;
const LEAST_MILLIS: u32 = 100;

/// Verdicts by cluster, and the cycle they are of.
type Told = (v1::AsOf, Arc<BTreeMap<String, Vec<v1::Verdict>>>);

/// What clusters hear and say.
#[derive(Debug, Default)]
pub(crate) struct OwnClusters {
    /// Held while they are worked out: of many who ask after a cycle one does it.
    verdicts: tokio::sync::Mutex<Option<((u64, i64), Told)>>,
    nodes: Mutex<BTreeMap<String, Arc<v1::NodeReport>>>,
}

fn verdict(row: NeedRow) -> v1::Verdict {
    let NeedRow { message, machines, .. } = row;
    v1::Verdict {
        decided: message.satisfied || message.reason != 0,
        satisfied: message.satisfied,
        reason: message.reason,
        deficit: message.deficit,
        short_since_unix_nanos: message.short_since_unix_nanos,
        aggregate: message.spec.map(|spec| spec.aggregate_resources).unwrap_or_default(),
        machines: machines.into_iter().map(String::from).collect(),
        acquired: message.acquired,
        in_flight: message.in_flight,
        domain: message.domain,
        parked: message.parked,
        key: message.key,
    }
}

/// All verdicts by cluster; those that are short with the identity they were decided under.
fn verdicts(fleet: &Fleet) -> (Vec<v1::Verdict>, Vec<(usize, NeedKey)>) {
    let mut short = Vec::new();
    let mut all = Vec::new();
    for row in needs::all(fleet) {
        if !row.message.satisfied {
            short.push((all.len(), row.decided_as.clone()));
        }
        all.push(verdict(row));
    }
    (all, short)
}

impl<S: Shards> View<S> {
    /// The verdicts of the last cycle.
    async fn told(&self) -> Result<Told, Status> {
        let mut cached = self.own_clusters.verdicts.lock().await;
        let have = cached.as_ref().map(|(of, _)| *of);
        let simulated = self.about.simulated;
        let look = move |shard: &Shard, now: i64| {
            let of = (shard.cycle(), shard.last_cycle_unix_nanos().unwrap_or_default());
            (have != Some(of)).then(|| (of, shard.engine().fork(), as_of(shard, now, simulated)))
        };
        let Some((of, fleet, as_of)) = self.shards.inspect(look).await? else {
            return cached.as_ref().map(|(_, told)| told.clone()).ok_or_else(|| Gone.into());
        };
        let (mut all, short) = blocking(move || Ok(verdicts(&fleet))).await?;
        let look = move |shard: &Shard, _| {
            for (at, key) in &short {
                if let Some(shortfall) = shard.ledger().get(key) {
                    all[*at].short_since_unix_nanos = shortfall.since.unix_nanos;
                }
            }
            all
        };
        let all = self.shards.inspect(look).await?;
        let mut by_cluster: BTreeMap<String, Vec<v1::Verdict>> = BTreeMap::new();
        for verdict in all {
            let cluster = verdict.key.as_ref().map(|key| key.cluster.clone()).unwrap_or_default();
            by_cluster.entry(cluster).or_default().push(verdict);
        }
        let told = (as_of, Arc::new(by_cluster));
        *cached = Some((of, told.clone()));
        Ok(told)
    }

    async fn watch_own(
        &self,
        request: v1::WatchVerdictsRequest,
        pages: Pages<v1::Verdicts>,
    ) -> Result<(), Status> {
        let millis = if request.min_interval_millis == 0 { MILLIS } else { request.min_interval_millis };
        let interval = Duration::from_millis(millis.max(LEAST_MILLIS).into());
        let mut cycles = self.shards.cycles();
        let mut last: Option<Vec<v1::Verdict>> = None;
        loop {
            cycles.mark_unchanged();
            let (as_of, by_cluster) = self.told().await?;
            let needs = by_cluster.get(&request.cluster_id).cloned().unwrap_or_default();
            if last.as_ref() != Some(&needs) {
                pages.send(v1::Verdicts { as_of: Some(as_of), needs: needs.clone() }).await?;
                last = Some(needs);
            }
            tokio::select! {
                () = self.about.clock.sleep(interval) => {}
                () = pages.closed() => return Ok(()),
            }
            tokio::select! {
                changed = cycles.changed() => if changed.is_err() { return Err(Gone.into()) },
                () = pages.closed() => return Ok(()),
            }
        }
    }

    async fn check_known(&self, cluster: &str) -> Result<(), Status> {
        let name = cluster.to_owned();
        if self.shards.inspect(move |shard, _| shard.clusters().contains_key(&*name)).await? {
            return Ok(());
        }
        let cluster = bigfleet_model::text::Quoted(cluster);
        Err(Status::not_found(format!("no cluster {cluster} has a session here; open one first")))
    }
}

/// Refuses a report that nobody could have meant.
fn check_report(report: &v1::NodeReport) -> Result<(), Status> {
    if report.nodes.len() > MOST_NODES {
        let count = report.nodes.len();
        return Err(Status::invalid_argument(format!(
            "nodes: {count} of them; at most {MOST_NODES} are taken"
        )));
    }
    for (at, node) in report.nodes.iter().enumerate() {
        for (field, text) in [
            ("machine_id", &node.machine_id),
            ("node_name", &node.node_name),
            ("provider_id", &node.provider_id),
            ("drain", &node.drain),
            ("blocked_example", &node.blocked_example),
        ] {
            if text.len() > LONGEST_BYTES {
                let bytes = text.len();
                return Err(Status::invalid_argument(format!(
                    "nodes[{at}].{field}: {bytes} bytes; at most {LONGEST_BYTES} are taken"
                )));
            }
        }
        let amounts = node.allocatable.iter();
        if node.allocatable.len() > 64
            || amounts.map(|(name, amount)| name.len() + amount.len()).any(|bytes| bytes > LONGEST_BYTES)
        {
            return Err(Status::invalid_argument(format!("nodes[{at}].allocatable: too many or too long")));
        }
    }
    if report.waiting.len() > MOST_WAITING {
        let count = report.waiting.len();
        return Err(Status::invalid_argument(format!(
            "waiting: {count} needs; at most {MOST_WAITING} are taken"
        )));
    }
    for (at, need) in report.waiting.iter().enumerate() {
        let amounts = need.reserved.iter().map(|(name, amount)| name.len() + amount.len());
        let names = [&need.fingerprint, &need.group].into_iter().map(|text| text.len() / 64);
        let texts = need.examples.iter().map(String::len);
        if need.examples.len() > MOST_EXAMPLES
            || need.reserved.len() > 64
            || amounts.chain(names).chain(texts).any(|bytes| bytes > LONGEST_BYTES)
        {
            return Err(Status::invalid_argument(format!("waiting[{at}]: too many texts, or too long")));
        }
    }
    Ok(())
}

impl OwnClusters {
    /// Adds to needs what their clusters say about them.
    pub(crate) fn add_to(&self, needs: &mut [v1::Need]) {
        let reports = self.nodes.lock().expect("no holder panics");
        for need in needs {
            let Some(key) = &need.key else { continue };
            let report = reports.get(&key.cluster);
            let mut waiting = report.into_iter().flat_map(|report| &report.waiting);
            let of = waiting.find(|of| of.fingerprint == key.fingerprint && of.group == key.group);
            if let Some(of) = of {
                need.pods_waiting = of.pods;
                need.pods_waiting_examples.clone_from(&of.examples);
                need.reserved.clone_from(&of.reserved);
            }
        }
    }
}

#[tonic::async_trait]
impl<S: Shards> v1::cluster_view_server::ClusterView for View<S> {
    type WatchVerdictsStream = Stream<v1::Verdicts>;

    async fn watch_verdicts(
        &self,
        request: Request<v1::WatchVerdictsRequest>,
    ) -> Result<Response<Self::WatchVerdictsStream>, Status> {
        check_own(request.extensions(), Right::Read, &request.get_ref().cluster_id)?;
        let (view, request) = (self.clone(), request.into_inner());
        Ok(stream(|pages| async move { view.watch_own(request, pages).await }))
    }

    async fn report_nodes(
        &self,
        request: Request<v1::NodeReport>,
    ) -> Result<Response<v1::ReportNodesAnswer>, Status> {
        check_own(request.extensions(), Right::Command, &request.get_ref().cluster_id)?;
        let report = request.into_inner();
        check_report(&report)?;
        self.check_known(&report.cluster_id).await?;
        let mut nodes = self.own_clusters.nodes.lock().expect("no holder panics");
        nodes.insert(report.cluster_id.clone(), Arc::new(report));
        Ok(Response::new(v1::ReportNodesAnswer {}))
    }

    async fn get_nodes(
        &self,
        request: Request<v1::GetNodesRequest>,
    ) -> Result<Response<v1::NodeReport>, Status> {
        check_own(request.extensions(), Right::Read, &request.get_ref().cluster_id)?;
        let cluster_id = request.into_inner().cluster_id;
        let known = self.own_clusters.nodes.lock().expect("no holder panics").get(&cluster_id).cloned();
        let report = known.map(|report| v1::NodeReport::clone(&report));
        Ok(Response::new(report.unwrap_or(v1::NodeReport { cluster_id, ..v1::NodeReport::default() })))
    }
}
