//! List, with a place for each mistake.

use bigfleet_proto::v1alpha1::{ListFilter, Machine, MachineList, MachineState as State};
use tonic::Status;

use crate::provider::defect::Defect;
use crate::provider::world::World;

impl World {
    pub(crate) fn list(&mut self, mut filter: ListFilter) -> Result<MachineList, Status> {
        match self.defect {
            Some(Defect::StatesIgnored) => filter.states.clear(),
            Some(Defect::OnlyFirstState) => filter.states.truncate(1),
            Some(Defect::RevisionMovesByReading) => self.revision += 1,
            _ => {}
        }
        let since = self.since(&filter.since_revision)?;
        let cap = usize::try_from(filter.max_results).ok().filter(|cap| *cap > 0);
        let cap = if self.has(Defect::NegativeCapEmpty) && filter.max_results < 0 { Some(0) } else { cap };
        let wanted = |m: &Machine| filter.states.is_empty() || filter.states.contains(&m.state);
        let changed = self.slots.values().filter(|slot| since.is_none_or(|since| slot.revision > since));
        let mut machines: Vec<Machine> = changed.map(|slot| slot.machine.clone()).collect();
        if self.has(Defect::DeletedMachineVanishes) {
            machines.retain(|m| {
                m.state() != State::Deleting && !(m.state() == State::Speculative && since.is_some())
            });
        }
        if self.has(Defect::ListLosesMachines) && machines.iter().any(|m| m.state() == State::Creating) {
            machines.pop();
            machines.retain(|m| m.state() != State::Creating);
        }
        if cap.is_some() && !machines.is_empty() && !self.has(Defect::SortedCappedList) {
            self.rotation = (self.rotation + 1) % machines.len();
            machines.rotate_left(self.rotation);
        }
        if let Some(cap) = cap.filter(|_| self.has(Defect::CapBeforeStates)) {
            machines.truncate(cap);
        }
        machines.retain(wanted);
        if let Some(cap) = cap {
            machines.truncate(if self.has(Defect::CapExceeded) { cap + 1 } else { cap });
        }
        Ok(MachineList { machines, revision: self.revision.to_string().into_bytes() })
    }

    /// The revision a cursor stands for; none means everything.
    fn since(&self, cursor: &[u8]) -> Result<Option<u64>, Status> {
        if cursor.is_empty() || self.has(Defect::CursorIgnored) {
            return Ok(None);
        }
        let number = std::str::from_utf8(cursor).ok().and_then(|text| text.parse::<u64>().ok());
        match number {
            None if self.has(Defect::GarbageCursorError) => Err(Status::invalid_argument("bad cursor")),
            None if self.has(Defect::UnknownCursorEmpty) => Ok(Some(u64::MAX)),
            Some(ahead) if ahead > self.revision && !self.has(Defect::FutureCursorEmpty) => Ok(None),
            number => Ok(number),
        }
    }
}
