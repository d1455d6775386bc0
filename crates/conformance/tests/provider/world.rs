//! The state of the provider, and the seven steps of a move with a place for each mistake.

use std::collections::BTreeMap;

use bigfleet_proto::v1alpha1::{HostRef, Machine, MachineState as State, TransitionAck};
use tonic::Status;

use crate::provider::defect::Defect;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Create,
    Configure,
    Drain,
    Delete,
}

impl Kind {
    /// Where it starts, what it looks like under way, and where it ends.
    pub(crate) fn states(self) -> [State; 3] {
        match self {
            Self::Create => [State::Speculative, State::Creating, State::Idle],
            Self::Configure => [State::Idle, State::Configuring, State::Configured],
            Self::Drain => [State::Configured, State::Draining, State::Idle],
            Self::Delete => [State::Idle, State::Deleting, State::Speculative],
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    pub(crate) id: String,
    pub(crate) shard: String,
    pub(crate) token: (i64, i64),
    pub(crate) cluster: String,
    pub(crate) metadata: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) machine: Machine,
    pub(crate) revision: u64,
    pub(crate) operations: BTreeMap<Kind, String>,
    pub(crate) hidden: Option<(String, BTreeMap<String, String>)>,
}

/// A mark's key: shard, machine, and the kind where a defect asks for it.
pub(crate) type MarkKey = (String, String, Option<Kind>);

pub(crate) struct World {
    pub(crate) defect: Option<Defect>,
    pub(crate) slots: BTreeMap<String, Slot>,
    pub(crate) marks: BTreeMap<MarkKey, (i64, i64)>,
    /// Marks that a restart forgets under one of the defects.
    pub(crate) moved_by_refusal: Vec<MarkKey>,
    pub(crate) next_operation: u64,
    next_host: u64,
    pub(crate) revision: u64,
    pub(crate) generation: u64,
    pub(crate) rotation: usize,
    pub(crate) creates: usize,
}

/// The refusal of a machine nobody knows. It repeats the id, however long that is, as many providers do.
pub(crate) fn unknown(id: &str) -> Status {
    Status::not_found(format!("no such machine: {id}"))
}

impl World {
    pub(crate) fn new(defect: Option<Defect>) -> Self {
        let mut world = Self {
            defect,
            slots: BTreeMap::new(),
            marks: BTreeMap::new(),
            moved_by_refusal: Vec::new(),
            next_operation: 1,
            next_host: 1,
            revision: 1,
            generation: 0,
            rotation: 0,
            creates: 0,
        };
        for number in 0..60 {
            let machine = world.offer(number);
            world.put(Slot { machine, revision: 0, operations: BTreeMap::new(), hidden: None });
        }
        world
    }

    pub(crate) fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    pub(crate) fn new_host(&mut self) -> HostRef {
        self.next_host += 1;
        HostRef { provider: "test".into(), r#ref: format!("host-{}", self.next_host) }
    }

    pub(crate) fn put(&mut self, mut slot: Slot) {
        if !self.has(Defect::RevisionStuck) {
            self.revision += 1;
        }
        slot.revision = self.revision;
        self.slots.insert(slot.machine.id.clone(), slot);
    }

    /// Steps 3 to 7. A move that has begun is given back as `true`.
    pub(crate) fn ask(&mut self, call: &Call) -> Result<(TransitionAck, bool), Status> {
        if self.has(Defect::FenceAfterNotFound) || self.has(Defect::FenceAfterIdempotency) {
            self.find(call)?;
        }
        if self.has(Defect::FenceAfterIdempotency)
            && let Some(ack) = self.repeated(call)
        {
            return Ok((ack, false));
        }
        self.fence(call)?;
        let decided = self.find(call).and_then(|()| self.decide(call));
        if decided.is_err()
            || self.has(Defect::MarkNotMovedOnRepeat) && decided.as_ref().is_ok_and(|(_, begun)| !begun)
        {
            self.after_refusal(call);
        }
        decided
    }

    /// Steps 5 to 7.
    fn decide(&mut self, call: &Call) -> Result<(TransitionAck, bool), Status> {
        if let Some(ack) = self.repeated(call) {
            return Ok((ack, false));
        }
        self.position(call)?;
        Ok((self.begin(call), true))
    }

    fn key(&self, call: &Call) -> MarkKey {
        let mut shard = call.shard.clone();
        if self.has(Defect::ShardIdFolded) {
            shard = shard.trim().trim_end_matches('\0').to_lowercase();
        }
        match self.defect {
            Some(Defect::FencePerShard) => (shard, String::new(), None),
            Some(Defect::FencePerMachineOnly) => (String::new(), call.id.clone(), None),
            Some(Defect::FencePerKind) => (shard, call.id.clone(), Some(call.kind)),
            _ => (shard, call.id.clone(), None),
        }
    }

    fn fence(&mut self, call: &Call) -> Result<(), Status> {
        let (epoch, sequence) = call.token;
        let (is_zero, is_nameless) = (call.token == (0, 0), call.shard.is_empty());
        let unfenced = match self.defect {
            Some(Defect::ZeroTokenIsNoToken) => is_zero,
            Some(Defect::NamelessTokenIsNoToken) => is_nameless,
            Some(Defect::DeleteNotFenced) if call.kind == Kind::Delete => true,
            _ => is_zero && is_nameless,
        };
        if unfenced {
            return Ok(());
        }
        if self.has(Defect::NegativeEpochRefused) && (epoch < 0 || sequence < 0) {
            return Err(Status::invalid_argument("negative token"));
        }
        let key = self.key(call);
        let token = call.token;
        let above = |mark: (i64, i64)| match self.defect {
            Some(Defect::UsedTokenPasses) => token >= mark,
            Some(Defect::EpochIgnored) => sequence > mark.1,
            Some(Defect::UnsignedTokens) => {
                (epoch.cast_unsigned(), sequence.cast_unsigned())
                    > (mark.0.cast_unsigned(), mark.1.cast_unsigned())
            }
            _ => token > mark,
        };
        if self.marks.get(&key).is_some_and(|mark| !above(*mark)) {
            if self.has(Defect::MarkMovedByFencedCall) {
                self.marks.insert(key, token);
            }
            if !self.has(Defect::FencedCallObeyed) {
                return Err(Status::failed_precondition("fenced: a newer token was seen"));
            }
            // Refuses in words, and does it all the same.
            if self.find(call).and_then(|()| self.position(call)).is_ok() {
                self.begin(call);
            }
            return Err(Status::failed_precondition("fenced: a newer token was seen"));
        }
        self.marks.insert(key, token);
        while self.has(Defect::FewMarksKept) && self.marks.len() > 500 {
            // Forgets the marks of machines that exist first: their ids are the greatest.
            self.marks.pop_last();
        }
        Ok(())
    }

    fn after_refusal(&mut self, call: &Call) {
        let key = self.key(call);
        if self.has(Defect::MarkNotMovedOnRefusal) || self.has(Defect::MarkNotMovedOnRepeat) {
            self.marks.remove(&key);
        } else {
            self.moved_by_refusal.push(key);
        }
    }

    fn find(&mut self, call: &Call) -> Result<(), Status> {
        if self.slots.contains_key(&call.id) {
            return Ok(());
        }
        if self.has(Defect::UnknownMachineInvented) {
            let machine = Machine { id: call.id.clone(), ..self.offer(1) };
            self.put(Slot { machine, revision: 0, operations: BTreeMap::new(), hidden: None });
        }
        if call.kind == Kind::Delete && self.has(Defect::UnknownDeleteWrongCode) {
            return Err(Status::internal("no such machine"));
        }
        Err(unknown(&call.id))
    }

    /// Step 5.
    fn repeated(&mut self, call: &Call) -> Option<TransitionAck> {
        let [_, during, to] = call.kind.states();
        let fresh = self.has(Defect::NewIdOnRepeat).then(|| self.mint(call));
        let slot = self.slots.get_mut(&call.id)?;
        let state = slot.machine.state();
        let recorded = match self.defect {
            Some(Defect::KeyedByTargetState) => {
                slot.operations.iter().find(|(kind, _)| kind.states()[2] == to).map(|(_, id)| id.clone())
            }
            Some(Defect::DrainOnIdleNewOperation) if call.kind == Kind::Drain && state == State::Idle => {
                self.next_operation += 1;
                Some(format!("op-{}", self.next_operation))
            }
            _ => slot.operations.get(&call.kind).cloned(),
        };
        let recorded = recorded.filter(|_| state == during || state == to)?;
        if self.defect == Some(Defect::ReconfigureRebinds) && call.kind == Kind::Configure {
            slot.machine.cluster.clone_from(&call.cluster);
            slot.machine.shard_metadata.clone_from(&call.metadata);
        }
        if self.defect == Some(Defect::RepeatRestarts) && call.kind == Kind::Configure {
            slot.machine.state = during as i32;
        }
        Some(TransitionAck { operation_id: fresh.unwrap_or(recorded), machine: Some(slot.machine.clone()) })
    }

    /// Step 6.
    pub(crate) fn position(&mut self, call: &Call) -> Result<(), Status> {
        let slot = self.slots.get_mut(&call.id).ok_or_else(|| unknown(&call.id))?;
        let state = slot.machine.state();
        let [from, ..] = call.kind.states();
        let obeyed = match self.defect {
            Some(Defect::CreateOnConfiguredObeyed) => call.kind == Kind::Create && state == State::Configured,
            Some(Defect::ConfigureWhileDraining) => call.kind == Kind::Configure && state == State::Draining,
            Some(Defect::FailedCanBeCreated) => call.kind == Kind::Create && state == State::Failed,
            _ => false,
        };
        if call.kind == Kind::Configure
            && call.cluster.is_empty()
            && self.defect != Some(Defect::EmptyClusterBound)
        {
            return Err(Status::invalid_argument("Configure needs a cluster"));
        }
        if state == from || obeyed {
            return Ok(());
        }
        if self.defect == Some(Defect::RefusedConfigureBinds) && call.kind == Kind::Configure {
            slot.machine.cluster.clone_from(&call.cluster);
            slot.machine.shard_metadata.clone_from(&call.metadata);
        }
        let words = format!("{:?} is not possible while {}", call.kind, state.as_str_name());
        Err(match self.defect {
            Some(Defect::IllegalMoveSaysFenced) => Status::failed_precondition(words),
            Some(Defect::IllegalMoveSaysNotFound) => Status::not_found(words),
            _ => Status::internal(words),
        })
    }

    fn mint(&mut self, call: &Call) -> String {
        if self.has(Defect::OneIdPerMachineAndKind) {
            return format!("op-{}-{:?}", call.id, call.kind);
        }
        self.next_operation += 1;
        format!("op-{}", self.next_operation)
    }

    /// Step 7.
    pub(crate) fn begin(&mut self, call: &Call) -> TransitionAck {
        let operation_id = self.mint(call);
        let mut slot = self.slots[&call.id].clone();
        let before = slot.machine.clone();
        let [_, during, _] = call.kind.states();
        slot.operations.insert(call.kind, operation_id.clone());
        slot.machine.state = during as i32;
        match call.kind {
            Kind::Create => {
                self.creates += 1;
                slot.machine.last_error.clear();
                if self.has(Defect::HostWhileCreating) {
                    slot.machine.host = Some(self.new_host());
                }
            }
            Kind::Configure => self.bind(&mut slot, call),
            Kind::Drain if self.has(Defect::ClusterGoneWhileDraining) => slot.machine.cluster.clear(),
            Kind::Drain | Kind::Delete => {}
        }
        let machine = if self.has(Defect::AckBeforeMove) { before } else { slot.machine.clone() };
        self.put(slot);
        TransitionAck {
            operation_id: if self.has(Defect::AckWithoutId) { String::new() } else { operation_id },
            machine: (!self.has(Defect::AckWithoutMachine)).then_some(machine),
        }
    }

    fn bind(&self, slot: &mut Slot, call: &Call) {
        let notes = call.metadata.clone();
        let notes: BTreeMap<String, String> = match self.defect {
            Some(Defect::MetadataLost) => BTreeMap::new(),
            Some(Defect::MetadataTrimmed) => {
                notes.into_iter().map(|(key, value)| (key.trim().into(), value.trim().into())).collect()
            }
            Some(Defect::NulValuesDropped) => {
                notes.into_iter().filter(|(_, value)| !value.contains('\0')).collect()
            }
            Some(Defect::EmptyValuesDropped) => {
                notes.into_iter().filter(|(_, value)| !value.is_empty()).collect()
            }
            _ => notes,
        };
        if self.has(Defect::MetadataInLabels) {
            slot.machine.labels.extend(notes.clone());
        }
        if self.has(Defect::ClusterLate) {
            slot.hidden = Some((call.cluster.clone(), notes));
            return;
        }
        slot.machine.cluster.clone_from(&call.cluster);
        if self.has(Defect::MetadataMerged) {
            let old = slot.hidden.take().map(|(_, notes)| notes).unwrap_or_default();
            slot.machine.shard_metadata = old.into_iter().chain(notes).collect();
            slot.hidden = Some((String::new(), slot.machine.shard_metadata.clone()));
        } else {
            slot.machine.shard_metadata = notes;
        }
    }
}
