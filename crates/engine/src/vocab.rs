//! The fleet's dictionaries: everything that is a string or a bundle of values outside is a number inside.
//!
//! A *kind* is everything requirements and amounts can see of a machine: its facts (type, zone, labels) and
//! its shape (what it provides). Machines of one kind differ only in price, state and history.

mod moving;
mod recognise;

use std::sync::Arc;

use bigfleet_model::label::{INSTANCE_TYPE, ZONE};
use bigfleet_model::machine::Machine;
use bigfleet_model::need::NeedKey;
use bigfleet_model::resource::{ResourceName, ResourceVec};
use smallvec::SmallVec;

use crate::intern::{Map, NONE, Strings, Sym, Tuples, halves, whole};

pub(crate) use moving::Moving;

/// The position of a resource in the fleet's vectors.
pub(crate) type Dim = u16;

/// Amounts of a need, in the byte order of the resource names. Zeros may stay in place.
pub(crate) type Amounts = SmallVec<[(Dim, u64); 4]>;

/// What a bound machine was worth when it was bound: what the victim score reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Worth {
    pub(crate) priority: i32,
    pub(crate) interruption_usd: f64,
    pub(crate) reclamation_usd: f64,
}

/// All dictionaries. Each is shared between forks until one of them learns a new word.
#[derive(Clone)]
pub(crate) struct Vocabulary {
    strings: Arc<Strings>,
    clusters: Arc<Strings>,
    /// `[type, zone, key, value, key, value, …]`
    facts: Arc<Tuples>,
    /// `[dim, low, high, …]`
    shapes: Arc<Tuples>,
    /// `[facts, shape]`
    kinds: Arc<Tuples>,
    /// `[price low, high, probability low, high]`
    terms: Arc<Tuples>,
    /// `[priority, interruption low, high, reclamation low, high]`
    worths: Arc<Tuples>,
    /// `[cluster, fingerprint, group]`
    keys: Arc<Tuples>,
    dims: Arc<Vec<ResourceName>>,
    dim_numbers: Arc<Map<ResourceName, Dim>>,
    instance_type: Sym,
    zone: Sym,
}

impl Default for Vocabulary {
    fn default() -> Self {
        let mut strings = Strings::default();
        let (instance_type, zone) = (strings.intern(INSTANCE_TYPE), strings.intern(ZONE));
        let (clusters, facts, shapes, kinds) = Default::default();
        let (terms, worths, keys, dims, dim_numbers) = Default::default();
        Self {
            strings: Arc::new(strings),
            clusters,
            facts,
            shapes,
            kinds,
            terms,
            worths,
            keys,
            dims,
            dim_numbers,
            instance_type,
            zone,
        }
    }
}

impl Vocabulary {
    pub(crate) fn string(&mut self, text: &str) -> Sym {
        Strings::intern_shared(&mut self.strings, text)
    }

    pub(crate) fn text(&self, sym: Sym) -> &str {
        self.strings.get(sym)
    }

    pub(crate) fn cluster(&mut self, name: &str) -> u32 {
        Strings::intern_shared(&mut self.clusters, name)
    }

    pub(crate) fn find_cluster(&self, name: &str) -> Option<u32> {
        self.clusters.lookup(name)
    }

    pub(crate) fn cluster_name(&self, cluster: u32) -> &str {
        self.clusters.get(cluster)
    }

    pub(crate) fn cluster_count(&self) -> usize {
        self.clusters.len()
    }

    pub(crate) fn dim_count(&self) -> usize {
        self.dims.len()
    }

    pub(crate) fn dim_name(&self, dim: Dim) -> &ResourceName {
        &self.dims[dim as usize]
    }

    fn dim(&mut self, name: &ResourceName) -> Dim {
        if let Some(known) = self.dim_numbers.get(name) {
            return *known;
        }
        let dim = self.dims.len() as Dim;
        Arc::make_mut(&mut self.dims).push(name.clone());
        Arc::make_mut(&mut self.dim_numbers).insert(name.clone(), dim);
        dim
    }

    /// Amounts by dimension, in name order.
    pub(crate) fn amounts(&mut self, vector: &ResourceVec) -> Amounts {
        vector.iter().map(|(name, amount)| (self.dim(name), amount)).collect()
    }

    /// The vector behind amounts.
    pub(crate) fn vector(&self, amounts: &[(Dim, u64)]) -> ResourceVec {
        ResourceVec::new(amounts.iter().map(|(dim, amount)| (self.dim_name(*dim).clone(), *amount)))
            .expect("amounts that came from a vector make a vector")
    }

    fn facts(&mut self, machine: &Machine) -> u32 {
        let mut tuple = SmallVec::<[u32; 32]>::new();
        for field in [&machine.instance_type, &machine.zone] {
            tuple.push(if field.is_empty() { NONE } else { self.string(field) });
        }
        for (key, value) in machine.labels.iter() {
            tuple.extend([self.string(key), self.string(value)]);
        }
        Tuples::intern_shared(&mut self.facts, &tuple)
    }

    /// The kind of a machine.
    pub(crate) fn kind(&mut self, machine: &Machine) -> u32 {
        let facts = self.facts(machine);
        let mut tuple = SmallVec::<[u32; 16]>::new();
        for (name, amount) in machine.provides().iter() {
            let [low, high] = halves(amount);
            tuple.extend([u32::from(self.dim(name)), low, high]);
        }
        let shape = Tuples::intern_shared(&mut self.shapes, &tuple);
        Tuples::intern_shared(&mut self.kinds, &[facts, shape])
    }

    pub(crate) fn kind_count(&self) -> usize {
        self.kinds.len()
    }

    pub(crate) fn shape_of_kind(&self, kind: u32) -> u32 {
        self.kinds.get(kind)[1]
    }

    /// The amounts of a shape, in name order.
    pub(crate) fn shape(&self, shape: u32) -> impl Iterator<Item = (Dim, u64)> + '_ {
        self.shapes.get(shape).chunks_exact(3).map(|entry| (entry[0] as Dim, whole(&entry[1..])))
    }

    /// Calls `visit` with every key a machine of this kind has and its value; fields before labels, so the
    /// first word on a key counts.
    pub(crate) fn each_value_of_kind(&self, kind: u32, mut visit: impl FnMut(Sym, Sym)) {
        let facts = self.facts.get(self.kinds.get(kind)[0]);
        for pair in facts[2..].chunks_exact(2) {
            let field = match pair[0] {
                key if key == self.instance_type => facts[0],
                key if key == self.zone => facts[1],
                _ => NONE,
            };
            if field == NONE {
                visit(pair[0], pair[1]);
            }
        }
        for (key, field) in [(self.instance_type, facts[0]), (self.zone, facts[1])] {
            if field != NONE {
                visit(key, field);
            }
        }
    }

    /// The instance type, zone and labels of a kind, for people.
    pub(crate) fn describe_kind(&self, kind: u32) -> (&str, &str, impl Iterator<Item = (&str, &str)> + '_) {
        let facts = self.facts.get(self.kinds.get(kind)[0]);
        let field = |sym: u32| if sym == NONE { "" } else { self.text(sym) };
        let labels = facts[2..].chunks_exact(2).map(|pair| (self.text(pair[0]), self.text(pair[1])));
        (field(facts[0]), field(facts[1]), labels)
    }

    pub(crate) fn terms(&mut self, price: f64, probability: f64) -> u32 {
        let ([a, b], [c, d]) = (halves(price.to_bits()), halves(probability.to_bits()));
        Tuples::intern_shared(&mut self.terms, &[a, b, c, d])
    }

    /// Price and interruption probability behind terms.
    pub(crate) fn price_and_probability(&self, terms: u32) -> (f64, f64) {
        let tuple = self.terms.get(terms);
        (f64::from_bits(whole(&tuple[..2])), f64::from_bits(whole(&tuple[2..])))
    }

    pub(crate) fn worth(&mut self, worth: Worth) -> u32 {
        let ([a, b], [c, d]) =
            (halves(worth.interruption_usd.to_bits()), halves(worth.reclamation_usd.to_bits()));
        Tuples::intern_shared(&mut self.worths, &[worth.priority.cast_unsigned(), a, b, c, d])
    }

    /// How many terms are known.
    pub(crate) fn terms_count(&self) -> usize {
        self.terms.len()
    }

    /// How many identities are known.
    pub(crate) fn key_count(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn worth_count(&self) -> u32 {
        self.worths.len() as u32
    }

    pub(crate) fn worth_of(&self, worth: u32) -> Worth {
        let tuple = self.worths.get(worth);
        Worth {
            priority: tuple[0].cast_signed(),
            interruption_usd: f64::from_bits(whole(&tuple[1..3])),
            reclamation_usd: f64::from_bits(whole(&tuple[3..])),
        }
    }

    /// The number of a need's identity.
    pub(crate) fn key(&mut self, cluster: &str, fingerprint: &str, group: &str) -> u32 {
        let tuple = [self.cluster(cluster), self.string(fingerprint), self.string(group)];
        Tuples::intern_shared(&mut self.keys, &tuple)
    }

    /// The identity behind a number.
    pub(crate) fn need_key(&self, key: u32) -> NeedKey {
        let tuple = self.keys.get(key);
        NeedKey {
            cluster: self.cluster_name(tuple[0]).into(),
            fingerprint: self.text(tuple[1]).into(),
            group: self.text(tuple[2]).into(),
        }
    }

    /// The cluster of an identity.
    pub(crate) fn cluster_of_key(&self, key: u32) -> u32 {
        self.keys.get(key)[0]
    }

    fn tuples(&self) -> [&Tuples; 6] {
        [&self.facts, &self.shapes, &self.kinds, &self.terms, &self.worths, &self.keys]
    }

    /// Bytes of all words, whatever room is kept for more.
    pub(crate) fn words_bytes(&self) -> usize {
        let strings = self.strings.words_bytes() + self.clusters.words_bytes();
        strings + self.tuples().iter().map(|table| table.words_bytes()).sum::<usize>()
    }

    /// Bytes held, for the memory report.
    pub(crate) fn heap_bytes(&self) -> usize {
        let strings = self.strings.heap_bytes() + self.clusters.heap_bytes();
        strings + self.tuples().iter().map(|table| table.heap_bytes()).sum::<usize>()
    }
}
