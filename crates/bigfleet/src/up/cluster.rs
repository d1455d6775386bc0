//! One simulated cluster and what its operator would say: pods, nodes, cordons and evictions. No sockets, no clock.
//!
//! Nodes are there when the shard said so and the cloud agrees: a machine that is Configured on paper alone carries no
//! pods, and one whose host died loses them at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_model::machine::Machine;
use bigfleet_proto::convert::demand::Rollup;
use bigfleet_proto::v1alpha1::operator_message::Payload as Saying;
use bigfleet_proto::v1alpha1::shard_message::Payload as Heard;
use bigfleet_proto::v1alpha1::{
    BootstrapBlobResponse, ClusterCapacityNeeds, MachineState, NodeStateUpdate, ReclaimAck,
    ReclaimInstruction,
};
use bigfleet_provider_sim::admin::v1;
use bigfleet_sim::{ClusterPods, Random};

use super::cast::Part;
use super::life::Curve;

/// The nodes that are really there, as their machines know them.
pub(crate) trait Nodes: Send + Sync {
    /// The machines that are nodes of this cluster.
    fn of(&self, cluster: &str) -> BTreeSet<String>;
    /// What a machine is.
    fn machine(&self, id: &str) -> Option<Arc<Machine>>;
}

/// A cluster.
pub(crate) struct Cluster {
    pods: ClusterPods,
    spec: bigfleet_sim::Cluster,
    work: Vec<Work>,
    begun_unix_nanos: i64,
    /// Machines the shard says are nodes here, and when each takes pods.
    bound: BTreeMap<String, i64>,
    /// Machines that are being emptied: for which instruction, and when they are empty.
    emptying: BTreeMap<String, (String, i64)>,
}

struct Work {
    curve: Curve,
    dice: Random,
    /// Somebody said how many.
    fixed: Option<u64>,
    wanted: u64,
}

/// No simulated cluster wants more pods of a kind than this.
pub(crate) const MOST_PODS: u64 = 10_000;

impl Cluster {
    /// A cluster of a world that began then, with what was fixed by hand.
    pub(crate) fn new(part: Part, seed: u64, begun_unix_nanos: i64, fixed: &BTreeMap<String, u64>) -> Self {
        let Part { cluster: spec, curves } = part;
        let dice = Random::new(seed).fork(&spec.name);
        let work = spec.work.iter().zip(curves).map(|(work, curve)| Work {
            curve,
            dice: dice.fork(&work.name),
            fixed: fixed.get(&work.name).copied(),
            wanted: 0,
        });
        let work = work.collect();
        let pods = ClusterPods::new(&spec);
        Self { pods, spec, work, begun_unix_nanos, bound: BTreeMap::new(), emptying: BTreeMap::new() }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.spec.name
    }

    /// The place of a kind of work, or the names there are.
    pub(crate) fn find(&self, work: &str) -> Result<usize, Vec<String>> {
        let names = || self.spec.work.iter().map(|work| work.name.clone()).collect();
        self.spec.work.iter().position(|known| known.name == work).ok_or_else(names)
    }

    /// Fixes how many are wanted, or lets the curve decide again. Returns whether somebody had fixed it before.
    pub(crate) fn fix(&mut self, work: usize, count: Option<u64>, now: i64) -> bool {
        let before = std::mem::replace(&mut self.work[work].fixed, count);
        self.live(now);
        before.is_some()
    }

    /// Pods are made and ended as the time of day has it, and find places.
    fn live(&mut self, now: i64) {
        for (index, work) in self.work.iter_mut().enumerate() {
            let wanted = work.fixed.unwrap_or_else(|| work.curve.at(now, self.begun_unix_nanos, &work.dice));
            if wanted != std::mem::replace(&mut work.wanted, wanted) {
                self.pods.scale(index, wanted);
            }
        }
        self.pods.schedule();
    }

    /// What is due by now happens: nodes join and vanish, evictions end. Returns what there is to say about it.
    pub(crate) fn look(&mut self, now: i64, nodes: &dyn Nodes) -> Vec<Saying> {
        let real = nodes.of(&self.spec.name);
        let there: BTreeSet<String> = self.pods.nodes().map(String::from).collect();
        for machine in &there {
            if !self.bound.contains_key(machine) || !real.contains(machine) {
                self.pods.leave(machine);
            }
        }
        for (machine, takes_pods) in &self.bound {
            let is_new = !there.contains(machine) && !self.emptying.contains_key(machine);
            if is_new
                && *takes_pods <= now
                && real.contains(machine)
                && let Some(node) = nodes.machine(machine)
            {
                self.pods.join(node);
            }
        }
        let empty: Vec<String> = self
            .emptying
            .iter()
            .filter(|(_, (_, at))| *at <= now)
            .map(|(machine, _)| machine.clone())
            .collect();
        let mut said = Vec::new();
        for machine in empty {
            self.pods.leave(&machine);
            if let Some((instruction_id, _)) = self.emptying.remove(&machine) {
                // It stays cordoned until the shard says that it is a node again.
                self.bound.remove(&machine);
                said.push(Saying::ReclaimAck(ReclaimAck { instruction_id, nodes_started: 1 }));
            }
        }
        self.live(now);
        said
    }

    /// When something is due next, if anything is.
    pub(crate) fn next_due(&self) -> Option<i64> {
        self.emptying.values().map(|(_, at)| *at).min()
    }

    /// The shard said something. Returns what there is to answer.
    pub(crate) fn hear(&mut self, heard: Heard, now: i64) -> Option<Saying> {
        match heard {
            Heard::BootstrapRequest(request) => Some(Saying::BootstrapResponse(BootstrapBlobResponse {
                request_id: request.request_id,
                user_data: format!("simulated: join {}", self.spec.name).into_bytes(),
                ttl_seconds: 600,
                error: String::new(),
            })),
            Heard::ReclaimInstruction(instruction) => self.let_go(instruction, now),
            Heard::NodeStateUpdate(update) => {
                self.be_told(&update, now);
                None
            }
            Heard::Ack(_) | Heard::AvailableCapacity(_) => None,
        }
    }

    /// A new connection: the shard tells again what is bound, so what it does not repeat is gone.
    pub(crate) fn connected(&mut self) {
        self.bound.clear();
        self.emptying.clear();
    }

    fn be_told(&mut self, update: &NodeStateUpdate, now: i64) {
        let machine = update.machine_id.clone();
        match update.state() {
            MachineState::Configured => {
                self.bound.entry(machine).or_insert(now + self.spec.join.nanos());
            }
            // Its pods stay until they are evicted or the host goes.
            MachineState::Draining => {}
            _ => {
                self.bound.remove(&machine);
                self.emptying.remove(&machine);
                self.pods.leave(&machine);
            }
        }
    }

    /// Cordons, and evicts within the grace.
    fn let_go(&mut self, instruction: ReclaimInstruction, now: i64) -> Option<Saying> {
        let ReclaimInstruction { instruction_id, nodes, grace_period_seconds, .. } = instruction;
        let grace = grace_period_seconds.max(0).saturating_mul(1_000_000_000);
        let empty_at = now.saturating_add(self.spec.evict.nanos().min(grace));
        let mut nodes_started = 0;
        for machine in nodes {
            self.pods.cordon(&machine);
            nodes_started += 1;
            self.emptying.insert(machine, (instruction_id.clone(), empty_at));
        }
        (nodes_started > 0).then_some(Saying::ReclaimAck(ReclaimAck { instruction_id, nodes_started }))
    }

    /// The whole demand.
    pub(crate) fn rollup(&self, now: i64) -> ClusterCapacityNeeds {
        let rollup =
            Rollup { cluster: self.pods.name().clone(), taken_unix_nanos: now, needs: self.pods.rollup() };
        ClusterCapacityNeeds::from(&rollup)
    }

    /// Its work, as people are told.
    pub(crate) fn work(&self) -> Vec<v1::Work> {
        let pods = self.pods.work().map(|(_, wanted, waiting)| (wanted, waiting));
        let row =
            |((spec, work), (pods, waiting_pods)): ((&bigfleet_sim::Work, &Work), (u64, u64))| v1::Work {
                cluster: self.spec.name.clone(),
                name: spec.name.clone(),
                wanted: work.wanted,
                running_pods: pods.saturating_sub(waiting_pods),
                waiting_pods,
                gang: spec.gang as u64,
                priority: spec.priority,
                unit: spec.unit.clone(),
                fixed: work.fixed.is_some(),
                curve: work.curve.words(),
            };
        self.spec.work.iter().zip(&self.work).zip(pods).map(row).collect()
    }
}

#[cfg(test)]
mod tests;
