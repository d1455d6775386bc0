//! The indexes over the inventory, and how they follow it.
//!
//! Each index answers one question of a phase without looking at the fleet: what a cluster holds in keep
//! order, which free machines there are by class, price and domain, what is being created or drained for
//! whom, which idle machines fall due. Changes are applied one machine at a time; when most of the fleet
//! changed, or needs began to ask about a new key, everything is built anew in one pass over the ids.

use std::collections::BTreeSet;
use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::MachineState;

use crate::classes::{Classes, Interest};
use crate::intern::{Map, NONE};
use crate::inventory::{Inventory, Row};
use crate::lots::{Lots, Place, insert_by_id, remove_by_id};
use crate::vocab::Vocabulary;

/// A bound machine in its cluster's list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Held {
    pub(crate) machine: u32,
    pub(crate) class: u32,
}

/// What one cluster holds, each list in keep order.
#[derive(Clone, Default)]
pub(crate) struct Supply {
    pub(crate) configured: Vec<Held>,
    pub(crate) configuring: Vec<Held>,
    /// Grows whenever anything creditable to this cluster changes.
    pub(crate) version: u64,
}

/// Which of the two released capacity types a due list is for.
pub(crate) const RELEASED: [CapacityType; 2] = [CapacityType::OnDemand, CapacityType::Spot];

/// All indexes.
#[derive(Clone, Default)]
pub(crate) struct Index {
    pub(crate) classes: Arc<Classes>,
    supply: Vec<Arc<Supply>>,
    creating: Arc<Map<u32, Vec<u32>>>,
    draining: Arc<Map<u32, Vec<u32>>>,
    pub(crate) free: Arc<Lots>,
    /// Configured machines by what they are worth as victims; made when first needed.
    pub(crate) bound: Option<Arc<Lots>>,
    /// How many free machines there are of each class.
    free_count: Vec<u32>,
    /// Grows when a class gains its first free machine or loses its last.
    pub(crate) presence: u64,
    /// Idle machines by idle stamp, per released capacity type.
    due: Arc<[BTreeSet<(i64, u32)>; 2]>,
    /// The interest the classes were built for.
    interest: Option<u64>,
    version: u64,
    /// How often everything was built anew.
    pub(crate) generation: u64,
}

/// Marks a rank of free machines as Speculative.
const SPECULATIVE: u32 = 1;

/// The rank of a free machine: its terms, and whether it still has to be bought.
fn free_rank(row: &Row) -> u32 {
    row.terms << 1 | u32::from(row.state == Some(MachineState::Speculative))
}

/// Splits a free rank into terms and whether the machines are Speculative.
pub(crate) fn split_free_rank(rank: u32) -> (u32, bool) {
    (rank >> 1, rank & SPECULATIVE == SPECULATIVE)
}

impl Index {
    /// Catches up with the inventory. True if everything was built anew.
    pub(crate) fn settle(
        &mut self,
        inventory: &mut Inventory,
        vocab: &Vocabulary,
        interest: &Interest,
    ) -> bool {
        inventory.number_new_ids();
        let changes = inventory.take_changes();
        let stale = self.interest != Some(interest.revision()) || self.free.is_sparse();
        if stale || changes.len() > 1024 + inventory.len() / 8 {
            self.rebuild(inventory, vocab, interest);
            return true;
        }
        self.make_room(vocab);
        // All changed machines leave before any comes back: a place in keep order is found by looking at
        // rows, and a row that is already new would not stand where its old self was put.
        self.version += 1;
        for (machine, old) in &changes {
            self.drop_machine(*machine, old, inventory, vocab);
        }
        for (machine, _) in &changes {
            self.add_machine(*machine, inventory.row(*machine), inventory, vocab);
        }
        false
    }

    /// Brings the tables by cluster and class up to what the vocabulary knows.
    fn make_room(&mut self, vocab: &Vocabulary) {
        if self.supply.len() < vocab.cluster_count() {
            self.supply.resize_with(vocab.cluster_count(), Arc::default);
        }
        if self.classes.is_behind(vocab) {
            Arc::make_mut(&mut self.classes).extend(vocab);
        }
        self.free_count.resize(self.classes.len(), 0);
    }

    fn rebuild(&mut self, inventory: &Inventory, vocab: &Vocabulary, interest: &Interest) {
        let mut classes = Classes::new(interest);
        classes.extend(vocab);
        self.version += 1;
        self.generation += 1;
        self.interest = Some(interest.revision());
        self.presence += 1;
        self.free_count = vec![0; classes.len()];
        self.bound = None;
        let mut supply: Vec<Supply> = Vec::new();
        supply.resize_with(vocab.cluster_count(), || Supply { version: self.version, ..Supply::default() });
        let (mut creating, mut draining): (Map<_, Vec<u32>>, Map<_, Vec<u32>>) = Default::default();
        let mut free = Vec::new();
        let mut due = [Vec::new(), Vec::new()];
        for machine in inventory.in_id_order().iter().copied() {
            let row = inventory.row(machine);
            let Some(state) = row.state else { continue };
            let class = classes.of_kind(row.kind);
            match state {
                MachineState::Idle | MachineState::Speculative => {
                    free.push((machine, Place { class, rank: free_rank(row), kind: row.kind }));
                    self.free_count[class as usize] += 1;
                    if let Some(list) = due_list(row) {
                        due[list].push((row.idle_since, machine));
                    }
                }
                MachineState::Configured if row.cluster != NONE => {
                    supply[row.cluster as usize].configured.push(Held { machine, class });
                }
                MachineState::Configuring if row.cluster != NONE => {
                    supply[row.cluster as usize].configuring.push(Held { machine, class });
                }
                MachineState::Creating if row.key != NONE => {
                    creating.entry(row.key).or_default().push(machine)
                }
                MachineState::Draining if row.draining_for != NONE => {
                    draining.entry(row.draining_for).or_default().push(machine);
                }
                _ => {}
            }
        }
        for cluster in &mut supply {
            sort_by_keep_order(&mut cluster.configured, inventory);
            sort_by_keep_order(&mut cluster.configuring, inventory);
        }
        self.supply = supply.into_iter().map(Arc::new).collect();
        self.creating = Arc::new(creating);
        self.draining = Arc::new(draining);
        self.free = Arc::new(Lots::build(&free, &classes));
        self.due = Arc::new(due.map(BTreeSet::from_iter));
        self.classes = Arc::new(classes);
    }

    /// Makes the index of bound machines by worth, unless it is there.
    pub(crate) fn ensure_bound(&mut self, inventory: &Inventory) {
        if self.bound.is_some() {
            return;
        }
        let mut bound = Vec::new();
        for machine in inventory.in_id_order().iter().copied() {
            let row = inventory.row(machine);
            if row.state == Some(MachineState::Configured) && row.cluster != NONE {
                let class = self.classes.of_kind(row.kind);
                bound.push((machine, Place { class, rank: row.worth, kind: row.kind }));
            }
        }
        self.bound = Some(Arc::new(Lots::build(&bound, &self.classes)));
    }

    fn drop_machine(&mut self, machine: u32, row: &Row, inventory: &Inventory, vocab: &Vocabulary) {
        let Some(state) = row.state else { return };
        let class = self.classes.of_kind(row.kind);
        match state {
            MachineState::Idle | MachineState::Speculative => {
                let place = Place { class, rank: free_rank(row), kind: row.kind };
                Arc::make_mut(&mut self.free).remove(machine, place, &self.classes, inventory);
                let count = &mut self.free_count[class as usize];
                *count -= 1;
                self.presence += u64::from(*count == 0);
                if let Some(list) = due_list(row) {
                    Arc::make_mut(&mut self.due)[list].remove(&(row.idle_since, machine));
                }
            }
            MachineState::Configured | MachineState::Configuring if row.cluster != NONE => {
                let supply = self.touch(row.cluster);
                let list = supply.list_mut(state);
                let at = list.iter().position(|held| held.machine == machine);
                list.remove(at.expect("a held machine is in its cluster's list"));
                if let (Some(bound), MachineState::Configured) = (&mut self.bound, state) {
                    let place = Place { class, rank: row.worth, kind: row.kind };
                    Arc::make_mut(bound).remove(machine, place, &self.classes, inventory);
                }
            }
            MachineState::Creating if row.key != NONE => {
                unlist(Arc::make_mut(&mut self.creating), row.key, machine, inventory);
                self.touch(vocab.cluster_of_key(row.key));
            }
            MachineState::Draining if row.draining_for != NONE => {
                unlist(Arc::make_mut(&mut self.draining), row.draining_for, machine, inventory);
            }
            _ => {}
        }
    }

    fn add_machine(&mut self, machine: u32, row: &Row, inventory: &Inventory, vocab: &Vocabulary) {
        let Some(state) = row.state else { return };
        let class = self.classes.of_kind(row.kind);
        match state {
            MachineState::Idle | MachineState::Speculative => {
                let place = Place { class, rank: free_rank(row), kind: row.kind };
                Arc::make_mut(&mut self.free).insert(machine, place, &self.classes, inventory);
                let count = &mut self.free_count[class as usize];
                *count += 1;
                self.presence += u64::from(*count == 1);
                if let Some(list) = due_list(row) {
                    Arc::make_mut(&mut self.due)[list].insert((row.idle_since, machine));
                }
            }
            MachineState::Configured | MachineState::Configuring if row.cluster != NONE => {
                let list = self.touch(row.cluster).list_mut(state);
                let at = list.partition_point(|held| inventory.row(held.machine).cmp_keep(row).is_lt());
                list.insert(at, Held { machine, class });
                if let (Some(bound), MachineState::Configured) = (&mut self.bound, state) {
                    let place = Place { class, rank: row.worth, kind: row.kind };
                    Arc::make_mut(bound).insert(machine, place, &self.classes, inventory);
                }
            }
            MachineState::Creating if row.key != NONE => {
                insert_by_id(
                    Arc::make_mut(&mut self.creating).entry(row.key).or_default(),
                    machine,
                    inventory,
                );
                self.touch(vocab.cluster_of_key(row.key));
            }
            MachineState::Draining if row.draining_for != NONE => {
                let list = Arc::make_mut(&mut self.draining).entry(row.draining_for).or_default();
                insert_by_id(list, machine, inventory);
            }
            _ => {}
        }
    }

    /// A cluster's supply, about to change.
    fn touch(&mut self, cluster: u32) -> &mut Supply {
        let supply = Arc::make_mut(&mut self.supply[cluster as usize]);
        supply.version = self.version;
        supply
    }

    /// What a cluster holds.
    pub(crate) fn supply(&self, cluster: u32) -> &Supply {
        &self.supply[cluster as usize]
    }

    /// Our own machines being created under an identity, by id.
    pub(crate) fn creating(&self, key: u32) -> &[u32] {
        self.creating.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The machines draining on behalf of an identity, by id.
    pub(crate) fn draining(&self, key: u32) -> &[u32] {
        self.draining.get(&key).map_or(&[], Vec::as_slice)
    }

    /// How many free machines there are of a class.
    #[inline]
    pub(crate) fn free_count(&self, class: u32) -> u32 {
        self.free_count[class as usize]
    }

    /// The lot a free machine is in.
    pub(crate) fn free_lot(&self, class: u32, row: &Row) -> u32 {
        self.free.find(class, free_rank(row)).expect("a free machine is in a lot")
    }

    /// Idle machines of a released capacity type by idle stamp.
    pub(crate) fn due(&self, list: usize) -> &BTreeSet<(i64, u32)> {
        &self.due[list]
    }

    /// Bytes held, for the memory report.
    pub(crate) fn heap_bytes(&self) -> usize {
        let held = |s: &Arc<Supply>| (s.configured.capacity() + s.configuring.capacity()) * 8 + 96;
        let bound = self.bound.as_ref().map_or(0, |bound| bound.heap_bytes());
        let due: usize = self.due.iter().map(|set| set.len() * 20).sum();
        self.classes.heap_bytes()
            + self.supply.iter().map(held).sum::<usize>()
            + self.free.heap_bytes()
            + bound
            + due
    }
}

impl Supply {
    fn list_mut(&mut self, state: MachineState) -> &mut Vec<Held> {
        if state == MachineState::Configured { &mut self.configured } else { &mut self.configuring }
    }
}

/// The due list an idle machine belongs to, if it may ever be released.
fn due_list(row: &Row) -> Option<usize> {
    let stamped = row.state == Some(MachineState::Idle) && row.stamped;
    RELEASED.iter().position(|capacity| stamped && *capacity == row.capacity)
}

/// Sorts a list that is in id order into keep order.
fn sort_by_keep_order(list: &mut [Held], inventory: &Inventory) {
    list.sort_by(|a, b| inventory.row(a.machine).cmp_keep(inventory.row(b.machine)));
}

fn unlist(lists: &mut Map<u32, Vec<u32>>, key: u32, machine: u32, inventory: &Inventory) {
    let list = lists.get_mut(&key).expect("an indexed machine has a list");
    remove_by_id(list, machine, inventory);
    if list.is_empty() {
        lists.remove(&key);
    }
}
