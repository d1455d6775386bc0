//! A model cluster: pods, nodes and a scheduler. It knows nothing of the shard.
//!
//! Pods of one kind of work are alike, so only their numbers are kept: wanted, waiting, and how many on which node. A
//! gang is placed as a whole, in one domain, or waits. Pods whose node goes away wait again if somebody makes them
//! anew, and are gone if nobody does. Nodes come and go as machines really do, whatever anybody believes.

mod rollup;
mod schedule;

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::machine::Machine;
use bigfleet_model::need::Need;
use bigfleet_model::profile::Profile;
use bigfleet_model::resource::ResourceVec;

use crate::present::Pieces;
use crate::scenario;

pub(crate) use schedule::fits;

/// One cluster's pods and nodes.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "three of them say what changed, each read and cleared by another"
)]
pub struct Pods {
    name: Arc<str>,
    unmet_only: bool,
    work: Vec<Work>,
    nodes: BTreeMap<Box<str>, Node>,
    /// Pods that lost their node, ever.
    pub(crate) lost: u64,
    /// Whether the roll-up may say something new.
    demand_changed: bool,
    /// Whether a waiting pod might find a place.
    places_changed: bool,
    /// Whether pods came, went or moved.
    touched: bool,
}

/// One kind of pods.
#[derive(Clone, Debug)]
struct Work {
    name: String,
    profile: Arc<Profile>,
    /// For gangs: which nodes will do for one that fits a single node.
    alone: Arc<Profile>,
    unit: ResourceVec,
    /// The row it reports, where that is not worked out from its pods.
    asked: Option<Need>,
    /// Pods per gang; 0 for none.
    gang: u64,
    bare: bool,
    /// Pods wanted and not in a gang.
    wanted: u64,
    /// Of these, pods without a node.
    waiting: u64,
    /// Each gang: where its pods are; empty while it waits.
    gangs: BTreeMap<u64, Vec<(Box<str>, u64)>>,
    /// Number of the next gang.
    next_gang: u64,
}

/// One node.
#[derive(Clone, Debug)]
struct Node {
    machine: Arc<Machine>,
    free: ResourceVec,
    cordoned: bool,
    /// Pods of each kind of work, gangs not counted.
    pods: BTreeMap<usize, u64>,
    /// Members of gangs: (work, gang) and how many.
    members: BTreeMap<(usize, u64), u64>,
}

impl Pods {
    /// The cluster of a scenario, with nothing running.
    pub fn new(cluster: &scenario::Cluster) -> Self {
        let work = cluster.work.iter().map(|work| Work {
            name: work.name.clone(),
            profile: work.profile(),
            alone: work.profile().without_same().into(),
            unit: work.unit().expect("scenarios are checked"),
            asked: None,
            gang: work.gang as u64,
            bare: work.bare,
            wanted: 0,
            waiting: 0,
            gangs: BTreeMap::new(),
            next_gang: 0,
        });
        Self { unmet_only: cluster.unmet_only, ..Self::of(&cluster.name, work.collect()) }
    }

    /// A cluster that reports these rows whatever happens, with pods that come to them and nothing running.
    pub(crate) fn asking<'a>(name: &str, rows: impl Iterator<Item = (&'a Need, Pieces)>) -> Self {
        let work = rows.map(|(row, pieces)| {
            let amounts = row.aggregate.iter().map(|(name, amount)| (name.clone(), amount / pieces.count));
            Work {
                name: row.profile.fingerprint().into(),
                profile: row.profile.clone(),
                alone: row.profile.without_same().into(),
                unit: ResourceVec::new(amounts).expect("names of a vector differ, and parts are no larger"),
                asked: Some(Need { first_seen_unix_nanos: 0, ..row.clone() }),
                gang: if pieces.is_gang { pieces.count } else { 0 },
                bare: false,
                wanted: 0,
                waiting: 0,
                gangs: BTreeMap::new(),
                next_gang: 0,
            }
        });
        Self::of(name, work.collect())
    }

    fn of(name: &str, work: Vec<Work>) -> Self {
        Self {
            name: name.into(),
            unmet_only: false,
            work,
            nodes: BTreeMap::new(),
            lost: 0,
            demand_changed: true,
            places_changed: false,
            touched: true,
        }
    }

    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Scales one kind of work to this many pods, or gangs. What waits goes first.
    pub fn scale(&mut self, index: usize, target: u64) {
        let work = &mut self.work[index];
        if work.gang > 0 {
            while (work.gangs.len() as u64) < target {
                work.gangs.insert(work.next_gang, Vec::new());
                work.next_gang += 1;
            }
            while self.work[index].gangs.len() as u64 > target {
                let gangs = &self.work[index].gangs;
                let waiting = gangs.iter().rev().find(|(_, places)| places.is_empty());
                let gang = *waiting.or(gangs.iter().next_back()).expect("there is one").0;
                self.unplace_gang(index, gang);
                self.work[index].gangs.remove(&gang);
            }
        } else if target > work.wanted {
            work.waiting += target - work.wanted;
            work.wanted = target;
        } else {
            let mut surplus = work.wanted - target;
            work.wanted = target;
            let idle = surplus.min(work.waiting);
            work.waiting -= idle;
            surplus -= idle;
            self.remove_placed(index, surplus);
        }
        self.demand_changed = true;
        self.places_changed = true;
        self.touched = true;
    }

    /// Ends pods and makes them again, as roll-outs do: their number stays, their places do not.
    pub fn churn(&mut self, index: usize, pods: u64) {
        if self.work[index].gang > 0 {
            let placed: Vec<u64> =
                self.work[index].gangs.iter().filter(|(_, p)| !p.is_empty()).map(|(gang, _)| *gang).collect();
            for gang in placed.into_iter().take(pods as usize) {
                self.unplace_gang(index, gang);
            }
        } else {
            let bound = self.work[index].wanted - self.work[index].waiting;
            let pods = pods.min(bound);
            self.remove_placed(index, pods);
            self.work[index].waiting += pods;
        }
        self.demand_changed |= self.unmet_only;
        self.places_changed = true;
        self.touched = true;
    }

    /// Takes pods off their nodes, last node first.
    fn remove_placed(&mut self, index: usize, mut pods: u64) {
        let unit = &self.work[index].unit;
        for node in self.nodes.values_mut().rev() {
            let Some(held) = node.pods.get_mut(&index) else { continue };
            let taken = pods.min(*held);
            *held -= taken;
            pods -= taken;
            node.free = node.free.add(&unit.scale(taken));
            if *held == 0 {
                node.pods.remove(&index);
            }
            if pods == 0 {
                return;
            }
        }
    }

    fn unplace_gang(&mut self, index: usize, gang: u64) {
        let Some(places) = self.work[index].gangs.get_mut(&gang) else { return };
        let places = std::mem::take(places);
        for (id, members) in places {
            let Some(node) = self.nodes.get_mut(&id) else { continue };
            node.members.remove(&(index, gang));
            node.free = node.free.add(&self.work[index].unit.scale(members));
        }
        self.places_changed = true;
        self.touched = true;
        self.demand_changed |= self.unmet_only;
    }

    /// A machine has become a node that takes pods.
    pub fn join(&mut self, machine: Arc<Machine>) {
        let free = machine.provides().clone();
        let node = Node { free, machine, cordoned: false, pods: BTreeMap::new(), members: BTreeMap::new() };
        self.leave(&node.machine.id.clone());
        self.nodes.insert(node.machine.id.clone(), node);
        self.places_changed = true;
        self.touched = true;
    }

    /// A node is gone and its pods with it. Returns how many pods lost their place.
    pub fn leave(&mut self, id: &str) -> u64 {
        let lost = self.evict(id);
        self.nodes.remove(id);
        lost
    }

    /// No pod may come any more. False if there is no such node.
    pub fn cordon(&mut self, id: &str) -> bool {
        let node = self.nodes.get_mut(id);
        node.map(|node| node.cordoned = true).is_some()
    }

    /// Pods may come again.
    pub fn uncordon(&mut self, id: &str) {
        if let Some(node) = self.nodes.get_mut(id).filter(|node| node.cordoned) {
            node.cordoned = false;
            self.places_changed = true;
        }
    }

    /// All pods leave a node. Returns how many.
    pub fn evict(&mut self, id: &str) -> u64 {
        let Some(node) = self.nodes.get_mut(id) else { return 0 };
        let pods = std::mem::take(&mut node.pods);
        let members: Vec<(usize, u64)> = node.members.keys().copied().collect();
        node.free = node.machine.provides().clone();
        let mut lost = 0;
        for (index, count) in pods {
            let work = &mut self.work[index];
            lost += count;
            if work.bare {
                work.wanted -= count;
                self.demand_changed = true;
            } else {
                work.waiting += count;
            }
        }
        for (index, gang) in members {
            // A gang is one job: without one of its members all of them begin again.
            lost += self.work[index].gang;
            self.unplace_gang(index, gang);
            if self.work[index].bare {
                self.work[index].gangs.remove(&gang);
                self.demand_changed = true;
            }
        }
        if let Some(node) = self.nodes.get_mut(id) {
            node.members.clear();
            node.free = node.machine.provides().clone();
        }
        self.lost += lost;
        self.places_changed = true;
        self.touched = true;
        self.demand_changed |= self.unmet_only && lost > 0;
        lost
    }

    /// Whether numbers of pods may have changed since this was last asked.
    pub fn take_touched(&mut self) -> bool {
        std::mem::take(&mut self.touched)
    }

    /// The nodes there are.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(|id| &**id)
    }

    /// Pods that wait, the highest priority first: what a scheduler makes small in this order.
    fn waits_by_priority(&self) -> Vec<u64> {
        let mut waits: BTreeMap<std::cmp::Reverse<i32>, u64> = BTreeMap::new();
        for work in &self.work {
            let gangs = work.gangs.values().filter(|places| places.is_empty()).count() as u64;
            *waits.entry(std::cmp::Reverse(work.profile.priority())).or_default() +=
                work.waiting + work.gang * gangs;
        }
        waits.into_values().collect()
    }

    /// Pods wanted, and of these, pods that wait.
    pub fn count(&self) -> (u64, u64) {
        let mut total = (0, 0);
        for work in &self.work {
            let waiting = work.gangs.values().filter(|places| places.is_empty()).count() as u64;
            total.0 += work.wanted + work.gang * work.gangs.len() as u64;
            total.1 += work.waiting + work.gang * waiting;
        }
        total
    }

    /// Kinds of work with pods that wait although machines enough should be there, and how many pods. A strict spread
    /// explains itself and whatever it crowds out: the shard spreads machines, the scheduler pods.
    pub fn unexplained(&self) -> Vec<(&str, u64)> {
        if self.work.iter().any(|work| work.wanted > 0 && work.profile.strict_spread().is_some()) {
            return Vec::new();
        }
        let each = self.work.iter().map(|work| {
            let gangs = work.gangs.values().filter(|places| places.is_empty()).count() as u64;
            (work.name.as_str(), work.waiting + work.gang * gangs)
        });
        each.filter(|(_, waiting)| *waiting > 0).collect()
    }
}

#[cfg(test)]
mod tests;
