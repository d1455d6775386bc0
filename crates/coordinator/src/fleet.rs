//! The fleet as it is stored, in memory: tables that change by writes alone.

use std::collections::{BTreeMap, BTreeSet};

use crate::EDITION;
use crate::entry::{
    Cluster, Domain, Entry, Instruction, Meta, Order, Provider, Quota, Sequence, Shard, Step, Tenure,
    Transfer,
};
use crate::error::LoadError;
use crate::key::Key;
use crate::limits;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// This is there from now on.
    Put(Entry),
    /// Nothing is there from now on.
    Delete(Key),
}

impl Write {
    /// Where.
    pub fn key(&self) -> Key {
        match self {
            Self::Put(entry) => entry.key(),
            Self::Delete(key) => key.clone(),
        }
    }
}

/// Changes that belong together: all of them or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes(Vec<Write>);

impl Writes {
    /// In the order in which they were decided.
    pub fn as_slice(&self) -> &[Write] {
        &self.0
    }

    /// Whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one transaction still takes so many more.
    pub fn have_room(&self, more: usize) -> bool {
        self.0.len() + more <= limits::WRITES
    }

    /// Adds a change; a later one of the same key replaces an earlier one, because a store takes one per key.
    pub(crate) fn push(&mut self, write: Write) {
        let key = write.key();
        self.0.retain(|earlier| earlier.key() != key);
        self.0.push(write);
    }

    /// One entry alone.
    pub fn of(entry: Entry) -> Self {
        Self(vec![Write::Put(entry)])
    }

    /// Adds what was decided after.
    pub fn append(&mut self, later: &Self) {
        for write in later.as_slice() {
            self.push(write.clone());
        }
    }

    pub(crate) fn put(&mut self, entry: Entry) {
        self.push(Write::Put(entry));
    }

    pub(crate) fn delete(&mut self, key: Key) {
        self.push(Write::Delete(key));
    }
}

/// All tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fleet {
    meta: Option<Meta>,
    sequence: u64,
    shards: BTreeMap<Box<str>, Shard>,
    domains: BTreeMap<(Box<str>, Box<str>), Domain>,
    quotas: BTreeMap<Key, Quota>,
    providers: BTreeMap<Box<str>, Provider>,
    clusters: BTreeMap<Box<str>, Cluster>,
    transfers: BTreeMap<Box<str>, Transfer>,
    instructions: BTreeMap<(Box<str>, u64), Instruction>,
    /// Domains by holder, so that a shard's are at hand among a hundred thousand.
    held: BTreeSet<(Box<str>, Box<str>, Box<str>)>,
    /// Clusters by shard, for the same reason.
    bound: BTreeSet<(Box<str>, Box<str>)>,
}

impl Fleet {
    /// Reads all that a store holds.
    pub fn load<'a>(stored: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<Self, LoadError> {
        let mut fleet = Self::default();
        for (key, value) in stored {
            fleet.put(Entry::decode(key, value)?);
        }
        match &fleet.meta {
            Some(meta) if meta.edition > EDITION => Err(LoadError::Newer(meta.edition)),
            _ => Ok(fleet),
        }
    }

    /// What a leader writes first: in which term, always higher than before, whatever store it was moved from.
    pub fn begin(&self, term: i64) -> Writes {
        let mut writes = Writes::default();
        let term = term.max(self.term() + 1);
        writes.put(Entry::Meta(Meta { edition: EDITION, term }));
        writes
    }

    /// Takes in what was stored.
    pub fn apply(&mut self, writes: &Writes) {
        for write in writes.as_slice() {
            self.apply_one(write.clone());
        }
    }

    /// Takes in one change, as a follower hears of it.
    pub fn apply_one(&mut self, write: Write) {
        match write {
            Write::Put(entry) => self.put(entry),
            Write::Delete(key) => self.delete(&key),
        }
        debug_assert_eq!(self.held.len(), self.domains.len(), "the index lists every domain once");
        debug_assert_eq!(self.bound.len(), self.clusters.len(), "the index lists every cluster once");
    }

    /// Everything, as it is stored.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let sequence = (self.sequence > 0).then_some(Entry::Sequence(Sequence { last: self.sequence }));
        let meta = self.meta.iter().cloned().map(Entry::Meta);
        meta.chain(sequence)
            .chain(self.shards.values().cloned().map(Entry::Shard))
            .chain(self.domains.values().cloned().map(Entry::Domain))
            .chain(self.quotas.values().cloned().map(Entry::Quota))
            .chain(self.providers.values().cloned().map(Entry::Provider))
            .chain(self.clusters.values().cloned().map(Entry::Cluster))
            .chain(self.transfers.values().cloned().map(Entry::Transfer))
            .chain(self.instructions.values().cloned().map(Entry::Instruction))
    }

    /// The highest term this fleet was led in.
    pub fn term(&self) -> i64 {
        self.meta.as_ref().map_or(0, |meta| meta.term)
    }

    /// A shard that is registered, also one that is being removed.
    pub fn shard(&self, id: &str) -> Option<&Shard> {
        self.shards.get(id)
    }

    /// All of them by id.
    pub fn shards(&self) -> impl ExactSizeIterator<Item = &Shard> {
        self.shards.values()
    }

    /// A domain that has a holder.
    pub fn domain(&self, key: &str, value: &str) -> Option<&Domain> {
        self.domains.get(&(Box::from(key), Box::from(value)))
    }

    /// Who holds the domain with this value of the one key that all domains have.
    pub(crate) fn holder_of_value(&self, value: &str) -> Option<&str> {
        self.tenure_of_value(value).map(Tenure::holder)
    }

    /// How that domain is held.
    pub(crate) fn tenure_of_value(&self, value: &str) -> Option<&Tenure> {
        let key = &self.domains().next()?.key;
        Some(&self.domain(key, value)?.tenure)
    }

    /// All of them by key and value.
    pub fn domains(&self) -> impl ExactSizeIterator<Item = &Domain> {
        self.domains.values()
    }

    /// Those that a shard holds, also what it is about to let go.
    pub fn domains_of<'a>(&'a self, shard: &'a str) -> impl Iterator<Item = &'a Domain> {
        let from = (Box::from(shard), Box::default(), Box::default());
        let held = self.held.range(from..).take_while(move |(holder, ..)| &**holder == shard);
        held.map(|(_, key, value)| &self.domains[&(key.clone(), value.clone())])
    }

    /// All quotas.
    pub fn quotas(&self) -> impl ExactSizeIterator<Item = &Quota> {
        self.quotas.values()
    }

    /// Those of a shard.
    pub fn quotas_of<'a>(&'a self, shard: &'a str) -> impl Iterator<Item = &'a Quota> {
        let any = Box::default;
        let from = Key::Quota(shard.into(), any(), any(), any(), any());
        self.quotas.range(from..).map(|(_, quota)| quota).take_while(move |quota| &*quota.shard == shard)
    }

    pub(crate) fn quota(&self, key: &Key) -> Option<&Quota> {
        self.quotas.get(key)
    }

    /// A provider.
    pub fn provider(&self, name: &str) -> Option<&Provider> {
        self.providers.get(name)
    }

    /// All of them by name.
    pub fn providers(&self) -> impl ExactSizeIterator<Item = &Provider> {
        self.providers.values()
    }

    /// A cluster that is bound to a shard.
    pub fn cluster(&self, id: &str) -> Option<&Cluster> {
        self.clusters.get(id)
    }

    /// All of them by id.
    pub fn clusters(&self) -> impl ExactSizeIterator<Item = &Cluster> {
        self.clusters.values()
    }

    /// Those that are bound to a shard.
    pub fn clusters_of<'a>(&'a self, shard: &'a str) -> impl Iterator<Item = &'a str> {
        let bound = self.bound.range((Box::from(shard), Box::default())..);
        bound.take_while(move |(to, _)| &**to == shard).map(|(_, cluster)| &**cluster)
    }

    /// A machine that goes or went from one shard to another.
    pub fn transfer(&self, machine: &str) -> Option<&Transfer> {
        self.transfers.get(machine)
    }

    /// All of them by machine.
    pub fn transfers(&self) -> impl ExactSizeIterator<Item = &Transfer> {
        self.transfers.values()
    }

    /// What a shard has not answered, in order.
    pub fn instructions_of<'a>(&'a self, shard: &'a str) -> impl Iterator<Item = &'a Instruction> {
        let orders = self.instructions.range((Box::from(shard), 0)..);
        orders.take_while(move |((to, _), _)| &**to == shard).map(|(_, order)| order)
    }

    /// The one with this number, if the shard has not answered it.
    pub(crate) fn instruction(&self, shard: &str, number: u64) -> Option<&Instruction> {
        self.instructions.get(&(Box::from(shard), number))
    }

    /// All of them.
    pub fn instructions(&self) -> impl ExactSizeIterator<Item = &Instruction> {
        self.instructions.values()
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether a shard waits for this order already.
    pub(crate) fn is_ordered(&self, shard: &str, order: &Order) -> bool {
        self.instructions_of(shard).any(|pending| pending.order == *order)
    }

    /// Who alone may act on a machine with this label value of the fleet's domain key, once it has taken it. Nobody, if
    /// it is unassigned.
    pub fn owner<'a>(&'a self, machine: &str, domain: Option<(&str, &str)>) -> Option<&'a str> {
        if let Some(transfer) = self.transfers.get(machine) {
            return match transfer.step {
                Step::Leaving => Some(&transfer.from),
                Step::Arriving | Step::Arrived => Some(&transfer.to),
            };
        }
        let (key, value) = domain?;
        self.domain(key, value).map(|domain| domain.tenure.holder())
    }

    fn put(&mut self, entry: Entry) {
        match entry {
            Entry::Meta(meta) => self.meta = Some(meta),
            Entry::Sequence(sequence) => self.sequence = sequence.last,
            Entry::Shard(shard) => drop(self.shards.insert(shard.id.clone(), shard)),
            Entry::Domain(domain) => {
                let (key, value) = (domain.key.clone(), domain.value.clone());
                let holder = Box::from(domain.tenure.holder());
                if let Some(old) = self.domains.insert((key.clone(), value.clone()), domain) {
                    self.held.remove(&(old.tenure.holder().into(), key.clone(), value.clone()));
                }
                self.held.insert((holder, key, value));
            }
            Entry::Quota(quota) => drop(self.quotas.insert(quota.key(), quota)),
            Entry::Provider(provider) => drop(self.providers.insert(provider.name.clone(), provider)),
            Entry::Cluster(cluster) => {
                let place = (cluster.shard.clone(), cluster.id.clone());
                if let Some(old) = self.clusters.insert(cluster.id.clone(), cluster) {
                    self.bound.remove(&(old.shard, old.id));
                }
                self.bound.insert(place);
            }
            Entry::Transfer(transfer) => drop(self.transfers.insert(transfer.machine.clone(), transfer)),
            Entry::Instruction(order) => {
                drop(self.instructions.insert((order.shard.clone(), order.number), order));
            }
        }
    }

    fn delete(&mut self, key: &Key) {
        match key {
            Key::Meta => self.meta = None,
            Key::Sequence => self.sequence = 0,
            Key::Shard(id) => drop(self.shards.remove(id)),
            Key::Domain(key, value) => {
                if let Some(old) = self.domains.remove(&(key.clone(), value.clone())) {
                    self.held.remove(&(old.tenure.holder().into(), key.clone(), value.clone()));
                }
            }
            Key::Quota(..) => drop(self.quotas.remove(key)),
            Key::Provider(name) => drop(self.providers.remove(name)),
            Key::Cluster(id) => {
                if let Some(old) = self.clusters.remove(id) {
                    self.bound.remove(&(old.shard, old.id));
                }
            }
            Key::Transfer(id) => drop(self.transfers.remove(id)),
            Key::Instruction(shard, number) => drop(self.instructions.remove(&(shard.clone(), *number))),
        }
    }
}
