//! Amounts that many requests share, kept once.

use bigfleet_model::resource::ResourceVec;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// A unit somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct UnitId(u32);

/// All units somebody asks for.
#[derive(Debug, Default)]
pub(super) struct Units {
    ids: HashMap<ResourceVec, UnitId, FixedState>,
    /// Each with how many requests ask for it.
    list: Vec<(ResourceVec, u32)>,
    free: Vec<UnitId>,
}

impl Units {
    /// One more request asks for this.
    pub(super) fn add(&mut self, amounts: &ResourceVec) -> UnitId {
        if let Some(id) = self.ids.get(amounts) {
            self.list[id.0 as usize].1 += 1;
            return *id;
        }
        let id = self.free.pop().unwrap_or(UnitId(self.list.len() as u32));
        match self.list.get_mut(id.0 as usize) {
            Some(place) => *place = (amounts.clone(), 1),
            None => self.list.push((amounts.clone(), 1)),
        }
        self.ids.insert(amounts.clone(), id);
        id
    }

    /// One request less asks for this.
    pub(super) fn drop_one(&mut self, id: UnitId) {
        let (amounts, count) = &mut self.list[id.0 as usize];
        *count -= 1;
        if *count == 0 {
            self.ids.remove(amounts);
            self.free.push(id);
        }
    }

    /// The amounts.
    pub(super) fn get(&self, id: UnitId) -> &ResourceVec {
        &self.list[id.0 as usize].0
    }

    /// The unit with these amounts, if somebody asks for it.
    pub(super) fn find(&self, amounts: &ResourceVec) -> Option<UnitId> {
        self.ids.get(amounts).copied()
    }
}
