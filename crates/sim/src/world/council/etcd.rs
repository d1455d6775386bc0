//! What etcd promises, as far as a coordinator builds on it: one order of all transactions, each carried out whole or not at
//! all, only while its condition holds; a key under a lease goes with the lease; without a majority nothing happens.

use std::collections::BTreeMap;

use bigfleet_coordinator::{Fleet, Write, Writes};

/// The leader's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lead {
    pub(super) replica: usize,
    /// The revision in which it was made: who holds it says so with every transaction.
    pub(super) made: i64,
    expires: i64,
}

/// The store.
#[derive(Debug, Default)]
pub(super) struct Etcd {
    entries: BTreeMap<String, Vec<u8>>,
    revision: i64,
    lead: Option<Lead>,
    pub(super) is_down: bool,
    /// A planted bug: conditions are not looked at.
    pub(super) is_unfenced: bool,
}

impl Etcd {
    /// An empty one.
    pub(super) fn new(is_unfenced: bool) -> Self {
        Self { is_unfenced, ..Self::default() }
    }

    /// Leases end, if there is a majority to see it.
    pub(super) fn pass_to(&mut self, now: i64) {
        if !self.is_down && self.lead.is_some_and(|lead| lead.expires <= now) {
            self.lead = None;
        }
    }

    /// Who leads.
    pub(super) fn lead(&self) -> Option<Lead> {
        self.lead
    }

    /// Makes the leader's key unless there is one.
    pub(super) fn campaign(&mut self, replica: usize, now: i64, lease: i64) -> Option<i64> {
        if self.is_down || self.lead.is_some() {
            return None;
        }
        self.revision += 1;
        self.lead = Some(Lead { replica, made: self.revision, expires: now + lease });
        Some(self.revision)
    }

    /// Whether the lease goes on.
    pub(super) fn keep_alive(&mut self, made: i64, now: i64, lease: i64) -> Option<bool> {
        if self.is_down {
            return None;
        }
        let own = self.lead.as_mut().filter(|lead| lead.made == made);
        Some(own.map(|lead| lead.expires = now + lease).is_some())
    }

    /// A transaction, on the condition that the key of this revision is still there.
    pub(super) fn commit(&mut self, made: i64, writes: &Writes) -> bool {
        let leads = self.lead.is_some_and(|lead| lead.made == made);
        if self.is_down || !leads && !self.is_unfenced {
            return false;
        }
        self.revision += 1;
        for write in writes.as_slice() {
            let key = write.key().to_string();
            match write {
                Write::Put(entry) => drop(self.entries.insert(key, entry.encode())),
                Write::Delete(_) => drop(self.entries.remove(&key)),
            }
        }
        true
    }

    /// All that is stored.
    pub(super) fn load(&self) -> Fleet {
        let entries = self.entries.iter().map(|(key, value)| (key.as_str(), value.as_slice()));
        Fleet::load(entries).expect("a coordinator stores what it can read")
    }
}
