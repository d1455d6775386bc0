//! What is spoken for: machines by the cluster or the need they belong to, and idle ones by when they fall due.
//!
//! These lists depend on the machines alone, not on what needs ask about, so a new question never rebuilds
//! them.

use std::collections::BTreeSet;
use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::MachineState;

use crate::bits::Bits;
use crate::intern::{Map, NONE};
use crate::inventory::{Inventory, Row};
use crate::keys::cost_key;
use crate::lots::{insert_by_id, remove_by_id};
use crate::vocab::Vocabulary;

/// A machine in its cluster's lists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Held {
    pub(crate) machine: u32,
    pub(crate) kind: u32,
    /// The need it is stamped for, or [`NONE`].
    pub(crate) key: u32,
}

/// What one cluster holds or is about to, in the order needs look at it: Configured machines in keep order, Configuring ones
/// in keep order, then what is being created for it, by id.
#[derive(Clone, Default)]
pub(crate) struct Supply {
    held: Vec<Held>,
    /// The needs they are stamped for, side by side: who looks for a need's own machines reads nothing else.
    keys: Vec<u32>,
    configured: u32,
    bound: u32,
}

impl Supply {
    /// All machines, in the order needs look at them.
    pub(crate) fn all(&self) -> &[Held] {
        &self.held
    }

    /// Calls `visit` with the places of the machines stamped for a need, in order.
    pub(crate) fn each_of(&self, key: u32, mut visit: impl FnMut(u32)) {
        // So many at once are compared without a branch.
        const TOGETHER: usize = 16;
        for (start, keys) in (0..).step_by(TOGETHER).zip(self.keys.chunks(TOGETHER)) {
            if keys.iter().fold(0, |any, other| any | u32::from(*other == key)) != 0 {
                let places = (start..).zip(keys).filter(|(_, other)| **other == key);
                places.for_each(|(place, _)| visit(place));
            }
        }
    }

    /// Those that are Configuring or Creating.
    pub(crate) fn coming(&self) -> &[Held] {
        &self.held[self.configured as usize..]
    }

    /// How many are Configured: the first ones.
    pub(crate) fn configured(&self) -> u32 {
        self.configured
    }

    /// How many are Configured or Configuring: the first ones.
    pub(crate) fn bound(&self) -> u32 {
        self.bound
    }

    /// Where machines in a state stand.
    fn range(&self, state: MachineState) -> std::ops::Range<usize> {
        match state {
            MachineState::Configured => 0..self.configured as usize,
            MachineState::Configuring => self.configured as usize..self.bound as usize,
            _ => self.bound as usize..self.held.len(),
        }
    }

    fn insert(&mut self, at: usize, held: Held, state: MachineState) {
        self.held.insert(at, held);
        self.keys.insert(at, held.key);
        self.configured += u32::from(state == MachineState::Configured);
        self.bound += u32::from(matches!(state, MachineState::Configured | MachineState::Configuring));
    }

    /// Takes some machines out.
    fn remove(&mut self, leaving: &Bits) {
        let (mut position, mut configured, mut bound) = (0, self.configured, self.bound);
        self.held.retain(|held| {
            let leaves = leaving.contains(held.machine);
            configured -= u32::from(leaves && position < self.configured);
            bound -= u32::from(leaves && position < self.bound);
            position += 1;
            !leaves
        });
        self.keys.clear();
        self.keys.extend(self.held.iter().map(|held| held.key));
        (self.configured, self.bound) = (configured, bound);
    }
}

/// The cluster whose supply a machine is part of: the one it is bound to, or is being created for.
pub(crate) fn holder(row: &Row, vocab: &Vocabulary) -> Option<(u32, MachineState)> {
    let state = row.state?;
    let cluster = match state {
        MachineState::Configured | MachineState::Configuring => row.cluster,
        MachineState::Creating if row.key != NONE => vocab.cluster_of_key(row.key),
        _ => NONE,
    };
    (cluster != NONE).then_some((cluster, state))
}

/// Stands for the identities of machines that drain for somebody.
pub(crate) const DRAINING: u32 = NONE - 1;

/// Which of the two released capacity types a due list is for.
pub(crate) const RELEASED: [CapacityType; 2] = [CapacityType::OnDemand, CapacityType::Spot];

/// Machines by who they belong to.
#[derive(Clone, Default)]
pub(crate) struct Holdings {
    supply: Vec<Arc<Supply>>,
    /// By cluster, when anything creditable to it last changed; apart, because a cycle looks at all of them.
    versions: Vec<u64>,
    /// What the last changes touched, by cluster, and the versions of these clusters before.
    recent: Vec<(u32, u32)>,
    recent_versions: Map<u32, u64>,
    draining: Arc<Map<u32, Vec<u32>>>,
    /// Idle machines by idle stamp, per released capacity type.
    due: Arc<[BTreeSet<(i64, u32)>; 2]>,
    version: u64,
}

impl Holdings {
    /// Builds all lists in one pass over the ids.
    pub(crate) fn rebuild(&mut self, inventory: &Inventory, vocab: &Vocabulary) {
        self.version += 1;
        self.recent.clear();
        self.recent_versions.clear();
        let mut supply: Vec<[Vec<Held>; 3]> = Vec::new();
        supply.resize_with(vocab.cluster_count(), Default::default);
        self.versions = vec![self.version; vocab.cluster_count()];
        let mut draining: Map<_, Vec<u32>> = Map::default();
        let mut due = [Vec::new(), Vec::new()];
        for machine in inventory.in_id_order().iter().copied() {
            let row = inventory.row(machine);
            if let Some((cluster, state)) = holder(row, vocab) {
                let held = Held { machine, kind: row.kind, key: row.key };
                let list = match state {
                    MachineState::Configured => 0,
                    MachineState::Configuring => 1,
                    _ => 2,
                };
                supply[cluster as usize][list].push(held);
            } else if row.state == Some(MachineState::Draining) && row.draining_for != NONE {
                draining.entry(row.draining_for).or_default().push(machine);
            } else if let Some(list) = due_list(row) {
                due[list].push((row.idle_since, machine));
            }
        }
        let mut scratch = Vec::new();
        let supply = supply.into_iter().map(|[mut held, mut configuring, mut creating]| {
            sort_by_keep_order(&mut held, inventory, &mut scratch);
            sort_by_keep_order(&mut configuring, inventory, &mut scratch);
            let (configured, bound) = (held.len() as u32, (held.len() + configuring.len()) as u32);
            held.append(&mut configuring);
            held.append(&mut creating);
            let keys = held.iter().map(|held| held.key).collect();
            Arc::new(Supply { held, keys, configured, bound })
        });
        self.supply = supply.collect();
        self.draining = Arc::new(draining);
        self.due = Arc::new(due.map(BTreeSet::from_iter));
    }

    /// Follows some changes, each given with the row as it was.
    pub(crate) fn follow(&mut self, changes: &[(u32, Row)], inventory: &Inventory, vocab: &Vocabulary) {
        if self.supply.len() < vocab.cluster_count() {
            self.supply.resize_with(vocab.cluster_count(), Arc::default);
            self.versions.resize(vocab.cluster_count(), 0);
        }
        self.version += 1;
        self.recent.clear();
        self.recent_versions.clear();
        // All changed machines leave before any comes back: a place in keep order is found by looking at
        // rows, and a row that is already new would not stand where its old self was put. They leave a cluster
        // in one pass over it, however many they are.
        let (mut leaving, mut left) = (Bits::default(), Bits::default());
        for (machine, old) in changes {
            if let Some((cluster, _)) = holder(old, vocab) {
                leaving.insert(*machine);
                left.insert(cluster);
                self.touch(cluster, old.key);
            } else if old.state == Some(MachineState::Draining) && old.draining_for != NONE {
                self.touch(vocab.cluster_of_key(old.draining_for), DRAINING);
                unlist(Arc::make_mut(&mut self.draining), old.draining_for, *machine, inventory);
            } else if let Some(list) = due_list(old) {
                Arc::make_mut(&mut self.due)[list].remove(&(old.idle_since, *machine));
            }
        }
        for cluster in left.iter() {
            Arc::make_mut(&mut self.supply[cluster as usize]).remove(&leaving);
        }
        for (machine, _) in changes {
            self.add_machine(*machine, inventory.row(*machine), inventory, vocab);
        }
        self.recent.sort_unstable();
        self.recent.dedup();
    }

    /// Takes note that machines stamped with an identity came or went in a cluster.
    fn touch(&mut self, cluster: u32, key: u32) {
        let version = &mut self.versions[cluster as usize];
        if *version != self.version {
            self.recent_versions.insert(cluster, *version);
            *version = self.version;
        }
        self.recent.push((cluster, key));
    }

    /// The identities of the machines that came or went in a cluster since a version of it: [`NONE`] for machines without a stamp,
    /// [`DRAINING`] for machines that drain for somebody there. `None` if that is not known any more.
    pub(crate) fn touched_since(&self, cluster: u32, version: u64) -> Option<&[(u32, u32)]> {
        if self.versions[cluster as usize] == version {
            return Some(&[]);
        }
        if self.recent_versions.get(&cluster) != Some(&version) {
            return None;
        }
        let start = self.recent.partition_point(|(other, _)| *other < cluster);
        let len = self.recent[start..].partition_point(|(other, _)| *other == cluster);
        Some(&self.recent[start..start + len])
    }

    fn add_machine(&mut self, machine: u32, row: &Row, inventory: &Inventory, vocab: &Vocabulary) {
        if let Some((cluster, state)) = holder(row, vocab) {
            self.touch(cluster, row.key);
            let supply = Arc::make_mut(&mut self.supply[cluster as usize]);
            let by_id = state == MachineState::Creating;
            let range = supply.range(state);
            let at = supply.held[range.clone()].partition_point(|held| {
                let other = inventory.row(held.machine);
                if by_id { other.order < row.order } else { other.cmp_keep(row).is_lt() }
            });
            supply.insert(range.start + at, Held { machine, kind: row.kind, key: row.key }, state);
        } else if row.state == Some(MachineState::Draining) && row.draining_for != NONE {
            self.touch(vocab.cluster_of_key(row.draining_for), DRAINING);
            let list = Arc::make_mut(&mut self.draining).entry(row.draining_for).or_default();
            insert_by_id(list, machine, inventory);
        } else if let Some(list) = due_list(row) {
            Arc::make_mut(&mut self.due)[list].insert((row.idle_since, machine));
        }
    }

    /// Grows whenever anything creditable to a cluster changes.
    pub(crate) fn version(&self, cluster: u32) -> u64 {
        self.versions[cluster as usize]
    }

    /// What a cluster holds.
    pub(crate) fn supply(&self, cluster: u32) -> &Supply {
        &self.supply[cluster as usize]
    }

    /// The same where the cluster may be newer than these lists.
    pub(crate) fn find_supply(&self, cluster: u32) -> Option<&Supply> {
        self.supply.get(cluster as usize).map(|supply| &**supply)
    }

    /// The machines draining on behalf of an identity, by id.
    pub(crate) fn draining(&self, key: u32) -> &[u32] {
        self.draining.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Whether any machine drains on behalf of anybody.
    pub(crate) fn is_any_draining(&self) -> bool {
        !self.draining.is_empty()
    }

    /// Idle machines of a released capacity type by idle stamp.
    pub(crate) fn due(&self, list: usize) -> &BTreeSet<(i64, u32)> {
        &self.due[list]
    }

    /// Bytes held, for the memory report.
    pub(crate) fn heap_bytes(&self) -> usize {
        let held = |s: &Arc<Supply>| {
            s.held.capacity() * size_of::<Held>() + s.keys.capacity() * 4 + size_of::<Supply>() + 24
        };
        let due: usize = self.due.iter().map(|set| set.len() * 20).sum();
        self.supply.iter().map(held).sum::<usize>() + due
    }
}

/// The due list an idle machine belongs to, if it may ever be released.
fn due_list(row: &Row) -> Option<usize> {
    let stamped = row.state == Some(MachineState::Idle) && row.stamped;
    RELEASED.iter().position(|capacity| stamped && *capacity == row.capacity)
}

/// Sorts a list that is in id order into keep order.
fn sort_by_keep_order(list: &mut Vec<Held>, inventory: &Inventory, scratch: &mut Vec<(u64, u64, u32)>) {
    // The keys are laid out side by side first: comparing rows where they lie would miss the cache each time.
    scratch.clear();
    scratch.extend((0..).zip(&*list).map(|(place, held)| {
        let row = inventory.row(held.machine);
        (cost_key(row.price), !cost_key(row.reclamation_usd), place)
    }));
    if !scratch.is_sorted() {
        scratch.sort_unstable();
        *list = scratch.iter().map(|(_, _, place)| list[*place as usize]).collect();
    }
}

fn unlist(lists: &mut Map<u32, Vec<u32>>, key: u32, machine: u32, inventory: &Inventory) {
    let list = lists.get_mut(&key).expect("an indexed machine has a list");
    remove_by_id(list, machine, inventory);
    if list.is_empty() {
        lists.remove(&key);
    }
}
