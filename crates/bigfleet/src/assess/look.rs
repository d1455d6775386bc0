//! Reading a cluster once, and what follows from it. Nothing is written.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::need::Need;
use bigfleet_model::resource::{ResourceName, ResourceVec};
use bigfleet_operator::demand::Demand;
use bigfleet_operator::fit::{Guest, Hole, place};
use bigfleet_operator_kube::{asked, counts_as_demand};
use bigfleet_pod_controller::translate::{ClassDefaults, Penalties, Policy, Translation, translate};
use bigfleet_proto::convert::resources::to_map;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{Api, ListParams};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Objects per page of a list.
const PAGE: u32 = 500;
/// Refusals told in full.
const MOST_REFUSED: usize = 20;

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Assessment {
    pub(super) nodes: Nodes,
    pub(super) pods: Pods,
    pub(super) needs: Vec<NeedSeen>,
    pub(super) packing: Packing,
    pub(super) brownfield: Brownfield,
    pub(super) losses: Vec<LossSeen>,
    pub(super) refused: Vec<String>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Nodes {
    pub(super) count: u64,
    pub(super) ready: u64,
    pub(super) allocatable: BTreeMap<String, String>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Pods {
    pub(super) count: u64,
    pub(super) asking: u64,
    pub(super) waiting: u64,
    pub(super) requested: BTreeMap<String, String>,
    /// Pods that ask for nothing, by reason.
    pub(super) skipped: BTreeMap<String, u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct NeedSeen {
    pub(super) pods: u64,
    pub(super) priority: i32,
    pub(super) aggregate: BTreeMap<String, String>,
    pub(super) min_unit: BTreeMap<String, String>,
    pub(super) requires: String,
    pub(super) gang: String,
}

/// What would do if pods could be moved freely.
#[derive(Debug, Serialize)]
pub(super) struct Packing {
    pub(super) nodes_used: u64,
    pub(super) pods_without_hole: u64,
}

/// What connecting the cluster with its nodes in place would mean, and the difference if they did not count.
#[derive(Debug, Serialize)]
pub(super) struct Brownfield {
    pub(super) pods_set_aside: u64,
    pub(super) asked_as_it_is: BTreeMap<String, String>,
    pub(super) asked_with_all: BTreeMap<String, String>,
    /// The nodes whose pods stay out of it, with what adopting each would add.
    pub(super) adoptable: Vec<Adoptable>,
}

/// A node that is not the fleet's.
#[derive(Debug, Serialize)]
pub(super) struct Adoptable {
    pub(super) node: String,
    pub(super) pods: u64,
    pub(super) adds: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
pub(super) struct LossSeen {
    pub(super) field: &'static str,
    pub(super) effect: &'static str,
    pub(super) pods: u64,
}

/// Everything of a kind, page by page.
async fn list<K>(client: &Client) -> kube::Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let api: Api<K> = Api::all(client.clone());
    let mut all = Vec::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = api.list(&params).await?;
        let next = page.metadata.continue_.filter(|token| !token.is_empty());
        all.extend(page.items);
        match next {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(all),
        }
    }
}

/// What was found, and the roll-ups that would be reported.
pub(crate) struct Looked {
    pub(super) assessment: Assessment,
    /// Pods on nodes that are there set aside, as an operator does it.
    pub(crate) as_it_is: Vec<Need>,
    /// All pods.
    pub(crate) with_all: Vec<Need>,
}

/// Looks.
pub(crate) async fn look(client: &Client) -> kube::Result<Looked> {
    let nodes = list::<Node>(client).await?;
    let pods = list::<Pod>(client).await?;
    let classes = list::<PriorityClass>(client).await?;
    Ok(assess(&nodes, &pods, &classes))
}

fn amounts_of(node: &Node) -> ResourceVec {
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    let read = allocatable.into_iter().flatten().filter_map(|(name, amount)| {
        let name = ResourceName::new(name).ok()?;
        let amount = name.parse_amount(&amount.0).ok()?;
        Some((name, amount))
    });
    ResourceVec::new(read).unwrap_or_default()
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

/// What follows from what a cluster holds.
fn assess(nodes: &[Node], pods: &[Pod], classes: &[PriorityClass]) -> Looked {
    let classes: BTreeMap<String, ClassDefaults> = classes
        .iter()
        .map(|class| {
            let penalties = Penalties::read(class.metadata.annotations.as_ref());
            (class.name_any(), ClassDefaults { penalties })
        })
        .collect();
    let policy = Policy::default();
    let (mut all, mut as_it_is) = (Demand::new(""), Demand::new(""));
    let mut seen = Pods { count: pods.len() as u64, ..Pods::default() };
    let mut losses: BTreeMap<(&'static str, &'static str), u64> = BTreeMap::new();
    let counted: BTreeSet<String> =
        nodes.iter().filter(|node| counts_as_demand(node)).map(ResourceExt::name_any).collect();
    let mut set_aside: BTreeMap<&str, (u64, ResourceVec)> = BTreeMap::new();
    let (mut refused, mut guests) = (Vec::new(), Vec::new());
    for pod in pods {
        let wanted = match translate(pod, &policy) {
            Translation::Skipped(skip) => {
                *seen.skipped.entry(skip.name().to_owned()).or_default() += 1;
                continue;
            }
            Translation::Wanted(wanted) => wanted,
        };
        seen.asking += 1;
        let name = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
        for loss in &wanted.losses {
            *losses.entry((loss.field, loss.effect.name())).or_default() += 1;
        }
        let class = wanted.class.as_ref().and_then(|class| classes.get(class));
        let asked = asked(&pod.namespace().unwrap_or_default(), &wanted.request(class));
        if let Err(bad) = all.put(&name, &asked)
            && refused.len() < MOST_REFUSED
        {
            refused.push(format!("{name}: {bad}"));
        }
        let unit = all.find(&name).map(|(_, unit)| unit.clone());
        if let Some(unit) = &unit {
            guests.push(Guest { request: unit.clone(), owner: 0, keeps_apart: false });
        }
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        seen.waiting += u64::from(node.is_none());
        match node.filter(|node| !counted.contains(*node)) {
            Some(node) => {
                let (pods, amounts) = set_aside.entry(node).or_default();
                *pods += 1;
                *amounts = amounts.add(&unit.unwrap_or_default());
            }
            // What it says was checked above.
            None => drop(as_it_is.put(&name, &asked)),
        }
    }
    let sum = |needs: &[Need]| needs.iter().fold(ResourceVec::ZERO, |sum, need| sum.add(&need.aggregate));
    let (with_all, as_it_is) = (all.rollup(|_| None), as_it_is.rollup(|_| None));
    let (asked_with_all, asked_as_it_is) = (sum(&with_all), sum(&as_it_is));
    seen.requested = written(&asked_with_all);
    let allocatable = nodes.iter().map(amounts_of).fold(ResourceVec::ZERO, |sum, node| sum.add(&node));
    let losses = losses.into_iter().map(|((field, effect), pods)| LossSeen { field, effect, pods });
    let assessment = Assessment {
        nodes: Nodes {
            count: nodes.len() as u64,
            ready: nodes.iter().filter(|node| is_ready(node)).count() as u64,
            allocatable: written(&allocatable),
        },
        pods: seen,
        packing: pack(nodes, guests),
        needs: needs(&mut all),
        brownfield: Brownfield {
            pods_set_aside: set_aside.values().map(|(pods, _)| pods).sum(),
            asked_as_it_is: written(&asked_as_it_is),
            asked_with_all: written(&asked_with_all),
            adoptable: set_aside
                .iter()
                .map(|(node, (pods, amounts))| Adoptable {
                    node: (*node).to_owned(),
                    pods: *pods,
                    adds: written(amounts),
                })
                .collect(),
        },
        losses: losses.collect(),
        refused,
    };
    Looked { assessment, as_it_is, with_all }
}

fn written(amounts: &ResourceVec) -> BTreeMap<String, String> {
    to_map(amounts).into_iter().collect()
}

fn needs(all: &mut Demand) -> Vec<NeedSeen> {
    let mut pods = Vec::new();
    let rollup = all.rollup(|row| {
        pods.push(row);
        None
    });
    let counts: Vec<u64> = pods.iter().map(|row| all.requests_of(*row)).collect();
    let mut needs: Vec<NeedSeen> = rollup
        .iter()
        .zip(counts)
        .map(|(need, pods)| NeedSeen {
            pods,
            priority: need.profile.priority(),
            aggregate: written(&need.aggregate),
            min_unit: written(&need.min_unit),
            requires: need
                .profile
                .requirements()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; "),
            gang: need.group.to_string(),
        })
        .collect();
    needs.sort_by_key(|need| (std::cmp::Reverse(need.priority), std::cmp::Reverse(need.pods)));
    needs
}

/// Largest pods first, onto as few of the largest nodes as take them.
fn pack(nodes: &[Node], mut guests: Vec<Guest>) -> Packing {
    let mut free: Vec<ResourceVec> = nodes.iter().map(amounts_of).collect();
    let cpus = |amounts: &ResourceVec| amounts.get(&ResourceName::CPU);
    free.sort_by_key(|node| std::cmp::Reverse(cpus(node)));
    guests.sort_by_key(|guest| std::cmp::Reverse(cpus(&guest.request)));
    let mut open: Vec<Hole> = Vec::new();
    let mut rest = free.into_iter();
    let mut without = 0;
    for guest in guests {
        if place(&mut open, std::slice::from_ref(&guest)) {
            continue;
        }
        let next = rest.by_ref().find(|node| node.covers(&guest.request));
        match next {
            Some(node) => {
                let mut hole = [Hole { free: node, ..Hole::default() }];
                place(&mut hole, &[guest]);
                open.extend(hole);
            }
            None => without += 1,
        }
    }
    Packing { nodes_used: open.len() as u64, pods_without_hole: without }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cluster_is_read_without_being_connected() {
        let node = |name: &str| -> Node {
            serde_json::from_value(json!({"metadata": {"name": name, "annotations": {}}, "status": {
                "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}]}}))
            .unwrap()
        };
        let pod = |name: &str, node: Option<&str>, port: Option<i32>| -> Pod {
            let ports = port.map(|port| json!([{"hostPort": port, "containerPort": port}]));
            serde_json::from_value(json!({"metadata": {"name": name, "namespace": "shop", "uid": name}, "spec": {
                "nodeName": node, "schedulerName": "default-scheduler", "containers": [
                    {"name": "c", "ports": ports, "resources": {"requests": {"cpu": "3", "memory": "1Gi"}}}]}}))
            .unwrap()
        };
        let nodes = [node("a"), node("b"), node("c")];
        let pods = [pod("1", Some("a"), None), pod("2", Some("b"), None), pod("3", None, Some(80))];
        let Looked { assessment: found, as_it_is, with_all } = assess(&nodes, &pods, &[]);
        assert_eq!((as_it_is.len(), with_all.len()), (1, 1));
        assert_eq!(
            (found.nodes.count, found.nodes.ready, found.pods.asking, found.pods.waiting),
            (3, 3, 3, 1)
        );
        assert_eq!(found.pods.requested["cpu"], "9");
        assert_eq!((found.packing.nodes_used, found.packing.pods_without_hole), (2, 0));
        assert_eq!(found.brownfield.pods_set_aside, 2);
        assert_eq!(found.brownfield.asked_as_it_is["cpu"], "3", "those that run stay out of it");
        let adoptable: Vec<_> = found.brownfield.adoptable.iter().map(|one| (&*one.node, one.pods)).collect();
        assert_eq!(adoptable, [("a", 1), ("b", 1)]);
        assert_eq!(found.brownfield.adoptable[0].adds["cpu"], "3");
        assert_eq!((found.needs.len(), found.needs[0].pods), (1, 3));
        assert_eq!(
            (found.losses[0].field, found.losses[0].effect),
            ("spec.containers.ports.hostPort", "Crowded")
        );

        // One of the fleet's, and one that it shall stand in for: the pods on them are demand.
        let mut nodes = nodes;
        for (node, annotation) in nodes.iter_mut().zip([("machine-id", "m-1"), ("adopt", "true")]) {
            node.annotations_mut()
                .insert(format!("bigfleet.lucy.sh/{}", annotation.0), annotation.1.to_owned());
        }
        let found = assess(&nodes, &pods, &[]).assessment.brownfield;
        assert_eq!((found.pods_set_aside, found.adoptable.len()), (0, 0));
        assert_eq!(found.asked_as_it_is["cpu"], "9");
    }
}
