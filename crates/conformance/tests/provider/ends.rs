//! How moves end: well, badly, or by a crash.

use bigfleet_proto::v1alpha1::MachineState as State;

use crate::provider::defect::Defect;
use crate::provider::world::{Kind, Slot, World};

impl World {
    /// The end of a move that was under way in this generation.
    pub(crate) fn end(&mut self, id: &str, kind: Kind, generation: u64) {
        let [_, during, to] = kind.states();
        let Some(mut slot) = self.slots.get(id).cloned() else { return };
        if self.generation != generation || slot.machine.state() != during {
            return;
        }
        if kind == Kind::Create && slot.machine.labels.contains_key("conformance.fault/create") {
            self.fail(slot);
            return;
        }
        slot.machine.state = to as i32;
        match kind {
            Kind::Create if self.has(Defect::NoHostAtIdle) => {}
            Kind::Create => slot.machine.host = Some(self.new_host()),
            Kind::Configure => {
                if let Some((cluster, notes)) =
                    slot.hidden.take_if(|_| self.defect == Some(Defect::ClusterLate))
                {
                    slot.machine.cluster = cluster;
                    slot.machine.shard_metadata = notes;
                }
                if self.has(Defect::HostChanges) {
                    slot.machine.host = Some(self.new_host());
                }
            }
            Kind::Drain => {
                slot.machine.cluster.clear();
                if !self.has(Defect::MetadataKeptAtIdle) {
                    slot.machine.shard_metadata.clear();
                }
            }
            Kind::Delete if self.has(Defect::HostKeptAtSpeculative) => {}
            Kind::Delete => slot.machine.host = None,
        }
        if self.has(Defect::DeltaMissesEnds) {
            self.slots.insert(id.to_owned(), slot);
        } else {
            self.put(slot);
        }
    }

    fn fail(&mut self, mut slot: Slot) {
        if self.has(Defect::FaultNeverEnds) {
            return;
        }
        slot.machine.state = State::Failed as i32;
        if !self.has(Defect::LastErrorEmpty) {
            slot.machine.last_error = "the cloud said no".into();
        }
        self.put(slot);
        if self.has(Defect::FaultSpreads) {
            for slot in self.slots.values_mut().filter(|slot| slot.machine.state() == State::Idle) {
                slot.machine.last_error = "a neighbour failed".into();
            }
        }
    }

    /// A crash and a start from what was stored.
    pub(crate) fn restart(&mut self) {
        self.generation += 1;
        let stuck = self.has(Defect::RestartLeavesMovesStuck);
        for (_, mut slot) in self.slots.clone() {
            let under_way = [State::Creating, State::Configuring, State::Draining, State::Deleting];
            if under_way.contains(&slot.machine.state()) && !stuck {
                slot.machine.state = State::Failed as i32;
                if !self.has(Defect::RestartFailsSilently) {
                    slot.machine.last_error = "the provider restarted in the middle of it".into();
                }
                slot.machine.cluster.clear();
                slot.machine.shard_metadata.clear();
                self.put(slot);
            }
        }
        match self.defect {
            Some(Defect::RestartForgetsMarks) => self.marks.clear(),
            Some(Defect::RestartForgetsRefusedMarks) => {
                let moved = std::mem::take(&mut self.moved_by_refusal);
                self.marks.retain(|key, _| !moved.contains(key));
            }
            Some(Defect::RestartReusesIds) => self.next_operation = 1,
            Some(Defect::RestartForgetsInventory) => self.slots = Self::new(self.defect).slots,
            _ => {}
        }
        for slot in self.slots.values_mut() {
            match self.defect {
                Some(Defect::RestartForgetsBindings) if slot.machine.state() == State::Configured => {
                    slot.machine.state = State::Idle as i32;
                    slot.machine.cluster.clear();
                    slot.machine.shard_metadata.clear();
                }
                Some(Defect::RestartForgetsMetadata) => slot.machine.shard_metadata.clear(),
                Some(Defect::RestartForgetsOperations) => slot.operations.clear(),
                Some(Defect::RestartRevivesFailed) if slot.machine.state() == State::Failed => {
                    slot.machine.state = State::Speculative as i32;
                    slot.machine.host = None;
                    slot.machine.last_error.clear();
                }
                _ => {}
            }
        }
    }
}
