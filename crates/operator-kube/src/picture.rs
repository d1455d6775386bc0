//! The cluster as the operator sees it: nodes, pods, and which machine of the fleet is behind which node.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::resource::ResourceVec;
use bigfleet_operator::drain::{Carried, Node, Pod, World};
use bigfleet_operator::reserve::Joined;
use bigfleet_proto::convert::resources;
use bigfleet_proto::v1alpha1::NodeStateUpdate;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::seen::{NodeSeen, PodSeen, UpcomingSeen};

/// What the cluster holds.
#[derive(Debug, Default)]
pub(crate) struct Picture {
    pub(crate) nodes: BTreeMap<String, NodeSeen>,
    by_provider_id: BTreeMap<String, String>,
    pods: HashMap<Box<str>, PodSeen, FixedState>,
    on_node: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    stuck: BTreeSet<Box<str>>,
    /// Machines as the shard last told of them.
    pub(crate) machines: BTreeMap<String, NodeStateUpdate>,
    /// `UpcomingNode`s as they lie in the cluster, by machine; known before the shard has spoken.
    pub(crate) upcoming: BTreeMap<String, UpcomingSeen>,
    machine_of_provider_id: BTreeMap<String, String>,
    /// Machines whose pods stay for a moment although they were asked back, and until when.
    pub(crate) held: BTreeMap<String, i64>,
}

impl Picture {
    /// A node is there or changed. True if that may matter to anybody.
    pub(crate) fn put_node(&mut self, name: &str, seen: NodeSeen) -> bool {
        let before = self.nodes.get(name);
        if before == Some(&seen) {
            return false;
        }
        if let Some(before) = before {
            self.by_provider_id.remove(&before.provider_id);
        }
        if !seen.provider_id.is_empty() {
            self.by_provider_id.insert(seen.provider_id.clone(), name.into());
        }
        self.nodes.insert(name.into(), seen);
        true
    }

    /// A node is gone.
    pub(crate) fn remove_node(&mut self, name: &str) {
        if let Some(gone) = self.nodes.remove(name)
            && self.by_provider_id.get(&gone.provider_id).is_some_and(|other| other == name)
        {
            self.by_provider_id.remove(&gone.provider_id);
        }
    }

    /// A pod is there or changed; one that has ended is not there.
    pub(crate) fn put_pod(&mut self, uid: &str, seen: Option<PodSeen>) {
        self.remove_pod(uid);
        let Some(seen) = seen else { return };
        let uid: Box<str> = uid.into();
        if !seen.node.is_empty() {
            self.on_node.entry(seen.node.clone()).or_default().insert(uid.clone());
        }
        if seen.is_stuck {
            self.stuck.insert(uid.clone());
        }
        self.pods.insert(uid, seen);
    }

    /// A pod is gone.
    pub(crate) fn remove_pod(&mut self, uid: &str) {
        let Some(gone) = self.pods.remove(uid) else { return };
        if let Some(there) = self.on_node.get_mut(&gone.node) {
            there.remove(uid);
            if there.is_empty() {
                self.on_node.remove(&gone.node);
            }
        }
        self.stuck.remove(uid);
    }

    /// Forgets pods that a new list does not hold.
    pub(crate) fn retain_pods(&mut self, stays: &BTreeSet<String>) {
        let gone: Vec<Box<str>> = self.pods.keys().filter(|uid| !stays.contains(&***uid)).cloned().collect();
        for uid in &gone {
            self.remove_pod(uid);
        }
    }

    /// A pod by its uid.
    pub(crate) fn pod(&self, uid: &str) -> Option<&PodSeen> {
        self.pods.get(uid)
    }

    /// Pods the scheduler has no place for, by uid.
    pub(crate) fn stuck(&self) -> impl Iterator<Item = (&str, &PodSeen)> {
        self.stuck.iter().filter_map(|uid| Some((&**uid, self.pods.get(uid)?)))
    }

    /// Whether the scheduler has no place for a pod.
    pub(crate) fn is_stuck(&self, uid: &str) -> bool {
        self.stuck.contains(uid)
    }

    /// The shard told of a machine.
    pub(crate) fn tell(&mut self, update: NodeStateUpdate) {
        if !update.provider_id.is_empty() {
            self.machine_of_provider_id.insert(update.provider_id.clone(), update.machine_id.clone());
        }
        self.machines.insert(update.machine_id.clone(), update);
    }

    /// An `UpcomingNode` lies in the cluster.
    pub(crate) fn put_upcoming(&mut self, seen: UpcomingSeen) {
        if !seen.provider_id.is_empty() {
            self.machine_of_provider_id.insert(seen.provider_id.clone(), seen.machine.clone());
        }
        self.upcoming.insert(seen.machine.clone(), seen);
    }

    /// The `UpcomingNode` of this name is gone.
    pub(crate) fn remove_upcoming(&mut self, name: &str) {
        let machine = self.upcoming.keys().find(|machine| crate::upcoming::name_of(machine) == name).cloned();
        let Some(machine) = machine else { return };
        let gone = self.upcoming.remove(&machine);
        if !self.machines.contains_key(&machine)
            && let Some(gone) = gone
        {
            self.machine_of_provider_id.remove(&gone.provider_id);
        }
    }

    /// A machine is nothing to this cluster any more.
    pub(crate) fn forget_machine(&mut self, machine: &str) {
        self.held.remove(machine);
        if let Some(gone) = self.machines.remove(machine) {
            self.machine_of_provider_id.remove(&gone.provider_id);
        }
        if let Some(gone) = self.upcoming.remove(machine) {
            self.machine_of_provider_id.remove(&gone.provider_id);
        }
    }

    /// The machine behind a node: by provider id, then by what an `UpcomingNode` says.
    pub(crate) fn machine_of(&self, name: &str, node: &NodeSeen) -> Option<&str> {
        if let Some(machine) = self.machine_of_provider_id.get(&node.provider_id) {
            return Some(machine);
        }
        self.upcoming.values().find(|upcoming| upcoming.node == name).map(|upcoming| &*upcoming.machine)
    }

    /// The node of a machine: by provider id, then by what its `UpcomingNode` says, then by the name the shard knows.
    pub(crate) fn node_name(&self, machine: &str) -> Option<&str> {
        let told = self.machines.get(machine);
        let upcoming = self.upcoming.get(machine);
        let ids = told.map(|told| &told.provider_id).into_iter().chain(upcoming.map(|u| &u.provider_id));
        let mut by_id = ids.filter_map(|id| self.by_provider_id.get(id));
        if let Some(name) = by_id.next() {
            return Some(name);
        }
        let names = upcoming.map(|u| &u.node).into_iter().chain(told.map(|told| &told.node_name));
        names.filter_map(|name| self.nodes.get_key_value(name)).map(|(name, _)| &**name).next()
    }

    /// The machine's node, if it takes pods.
    pub(crate) fn ready_node(&self, machine: &str) -> Option<(&str, &NodeSeen)> {
        let name = self.node_name(machine)?;
        let node = self.nodes.get(name)?;
        (node.is_ready && !node.is_cordoned).then_some((name, node))
    }

    /// A joined machine as the rule for stuck pods wants it.
    pub(crate) fn joined(&self, machine: &str) -> Option<Joined> {
        let (name, node) = self.ready_node(machine)?;
        let mut taken = ResourceVec::ZERO;
        let mut carried = ResourceVec::ZERO;
        let mut pods = 0;
        for uid in self.on_node.get(name).into_iter().flatten() {
            let Some(pod) = self.pods.get(uid) else { continue };
            pods += 1;
            taken = taken.add(&pod.request);
            if pod.carried != Carried::ByItself {
                carried = carried.add(&pod.request);
            }
        }
        // What the shard counts is what it told; a node may offer a little more or less.
        let told = self.machines.get(machine).and_then(|told| told.resources.as_ref());
        let counts = told.and_then(|told| resources::from_map(&told.resources).ok());
        let count = |pods: u64| ResourceVec::parse([("pods", pods.to_string())]).unwrap_or_default();
        Some(Joined {
            allocatable: counts.unwrap_or_else(|| node.allocatable.clone()),
            free: node.allocatable.saturating_sub(&taken).saturating_sub(&count(pods)),
            bare: node.allocatable.saturating_sub(&carried),
        })
    }

    /// Whose pods are on a machine's node.
    pub(crate) fn owners_on(&self, machine: &str) -> BTreeSet<u64> {
        let uids = self.node_name(machine).into_iter().flat_map(|node| self.uids_on(node));
        uids.filter_map(|uid| self.pods.get(uid)).map(|pod| pod.owner).collect()
    }

    /// Pods without a node, by uid.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &str> {
        self.pods.iter().filter(|(_, pod)| pod.node.is_empty()).map(|(uid, _)| &**uid)
    }

    /// Nodes that no machine of the fleet is behind.
    pub(crate) fn foreign_nodes(&self) -> impl Iterator<Item = (&str, &NodeSeen)> {
        let nodes = self.nodes.iter().filter(|(name, node)| self.machine_of(name, node).is_none());
        nodes.map(|(name, node)| (&**name, node))
    }

    /// Pods on a node, by uid.
    pub(crate) fn uids_on(&self, node: &str) -> impl Iterator<Item = &str> {
        self.on_node.get(node).into_iter().flatten().map(|uid| &**uid)
    }
}

impl World for Picture {
    fn node_of(&self, machine: &str) -> Option<Node> {
        let name = self.node_name(machine)?;
        let node = self.nodes.get(name)?;
        Some(Node { name: name.into(), is_cordoned: node.is_cordoned, mark: node.mark.clone() })
    }

    fn pods_on(&self, node: &str) -> Vec<Pod> {
        let uids = self.on_node.get(node).into_iter().flatten();
        uids.filter_map(|uid| {
            let pod = self.pods.get(uid)?;
            Some(Pod {
                namespace: pod.namespace.to_string(),
                name: pod.name.to_string(),
                uid: uid.to_string(),
                carried: pod.carried,
                is_terminating: pod.is_terminating,
                grace_secs: pod.grace_secs,
            })
        })
        .collect()
    }

    fn is_held(&self, machine: &str) -> bool {
        self.held.contains_key(machine)
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_proto::v1alpha1::MachineState;

    use super::*;

    fn node(provider_id: &str) -> NodeSeen {
        NodeSeen {
            uid: String::new(),
            provider_id: provider_id.into(),
            is_ready: true,
            is_cordoned: false,
            mark: None,
            allocatable: ResourceVec::parse([("cpu", "8"), ("pods", "110")]).unwrap(),
            is_adopted: false,
            created_unix_nanos: 0,
            says_machine: false,
        }
    }

    fn pod(on: &str, cpu: &str, carried: Carried) -> PodSeen {
        PodSeen {
            namespace: "shop".into(),
            name: "web".into(),
            node: on.into(),
            request: ResourceVec::parse([("cpu", cpu)]).unwrap(),
            carried,
            is_terminating: false,
            grace_secs: 30,
            is_stuck: on.is_empty(),
            owner: 0,
        }
    }

    fn told(machine: &str, provider_id: &str) -> NodeStateUpdate {
        NodeStateUpdate {
            machine_id: machine.into(),
            provider_id: provider_id.into(),
            state: MachineState::Configured.into(),
            ..NodeStateUpdate::default()
        }
    }

    #[test]
    fn a_machine_is_found_by_provider_id_then_by_its_upcoming_node() {
        let mut picture = Picture::default();
        picture.put_node("n1", node("sim://1"));
        picture.put_node("n2", node(""));
        picture.tell(told("m1", "sim://1"));
        assert_eq!(picture.node_name("m1"), Some("n1"));
        assert_eq!(picture.node_name("m2"), None);
        assert_eq!(picture.foreign_nodes().map(|(name, _)| name).collect::<Vec<_>>(), ["n2"]);
        let upcoming = UpcomingSeen {
            machine: "m2".into(),
            provider_id: "sim://2".into(),
            node: "n2".into(),
            started_unix_nanos: 0,
        };
        picture.put_upcoming(upcoming);
        assert_eq!(picture.node_name("m2"), Some("n2"), "its object names the node");
        assert_eq!(picture.foreign_nodes().count(), 0);
        picture.remove_node("n1");
        assert_eq!(picture.node_name("m1"), None);
    }

    #[test]
    fn holes_are_what_pods_left() {
        let mut picture = Picture::default();
        picture.put_node("n1", node("sim://1"));
        picture.tell(told("m1", "sim://1"));
        picture.put_pod("a", Some(pod("n1", "3", Carried::ByItself)));
        picture.put_pod("d", Some(pod("n1", "1", Carried::ByDaemonSet)));
        picture.put_pod("w", Some(pod("", "5", Carried::ByItself)));
        let joined = picture.joined("m1").unwrap();
        assert_eq!(joined.free, ResourceVec::parse([("cpu", "4"), ("pods", "108")]).unwrap());
        assert_eq!(joined.bare, ResourceVec::parse([("cpu", "7"), ("pods", "110")]).unwrap());
        assert_eq!(picture.stuck().map(|(uid, _)| uid).collect::<Vec<_>>(), ["w"]);
        picture.put_pod("a", None);
        picture.put_pod("w", Some(pod("n1", "5", Carried::ByItself)));
        assert_eq!(
            picture.joined("m1").unwrap().free.get(&bigfleet_model::resource::ResourceName::CPU),
            2000
        );
        assert_eq!(picture.stuck().count(), 0);
        picture.retain_pods(&BTreeSet::from(["d".to_owned()]));
        assert_eq!((picture.pods.len(), picture.pods_on("n1").len()), (1, 1));
    }
}
