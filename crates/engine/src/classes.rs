//! Classes: machines no need can tell apart, and the requirement sets that choose among them.
//!
//! Half a million machines with labels are far too many to match against fifty thousand needs. But needs ask
//! about few keys. Machines that agree on those keys and on what they provide form a *class*; there are
//! hundreds or thousands of classes, and a requirement set is a bitmap over them, computed once. Keys that
//! no need mentions (a serial number, a host name) do not split classes. A key that only names domains (a
//! rack that gangs must share) counts as there or not there; its value matters to domains, not to matching.
//!
//! When a need arrives that asks about a new key, the classes are built anew.

use std::sync::OnceLock;

use bigfleet_model::requirement::Operator;

use crate::bits::Bits;
use crate::intern::{Map, NONE, Sym, Tuples};
use crate::vocab::{Dim, Moving, Vocabulary};

/// Stands for any value of a key whose values do not matter.
const PRESENT: u32 = NONE - 1;

/// The keys needs ask about. Only grows, until the fleet moves into new tables.
#[derive(Clone, Default)]
pub(crate) struct Interest {
    /// The keys, and whether their values matter to matching.
    keys: Vec<(Sym, bool)>,
    places: Map<Sym, u32>,
    /// Keys whose values are domains of a gang or a strict spread.
    domains: Vec<Sym>,
    /// By the place of a key, whether it is one of those.
    names_domains: Vec<bool>,
    revision: u64,
}

impl Interest {
    /// Takes note that a key is asked about.
    pub(crate) fn note(&mut self, key: Sym, values_matter: bool) {
        let next = self.keys.len() as u32;
        let place = *self.places.entry(key).or_insert(next);
        if place == next {
            self.keys.push((key, values_matter));
            self.names_domains.push(false);
            self.revision += 1;
        } else if values_matter && !self.keys[place as usize].1 {
            self.keys[place as usize].1 = true;
            self.revision += 1;
        }
    }

    /// Takes note that a key names domains.
    pub(crate) fn note_domain(&mut self, key: Sym) {
        self.note(key, false);
        let names_domains = &mut self.names_domains[self.places[&key] as usize];
        if !std::mem::replace(names_domains, true) {
            self.domains.push(key);
            self.revision += 1;
        }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }
}

/// The classes of the fleet under one interest.
#[derive(Clone, Default)]
pub(crate) struct Classes {
    keys: Vec<(Sym, bool)>,
    domains: Vec<Sym>,
    /// `[shape, value, value, …]`, one value per key; the number of a signature is its class.
    signatures: Tuples,
    of_kind: Vec<u32>,
    /// Per domain key, the domain of each kind, and the values domains stand for.
    domain_of_kind: Vec<Vec<u32>>,
    domain_values: Vec<Vec<Sym>>,
    domain_numbers: Vec<Map<Sym, u32>>,
    /// What machines of a class provide, `dims` amounts a class.
    rows: Vec<u64>,
    dims: usize,
    by_value: Map<(u32, Sym), Vec<u32>>,
    present: Vec<Bits>,
}

impl Classes {
    pub(crate) fn new(interest: &Interest) -> Self {
        Self {
            keys: interest.keys.clone(),
            domains: interest.domains.clone(),
            domain_of_kind: vec![Vec::new(); interest.domains.len()],
            domain_values: vec![Vec::new(); interest.domains.len()],
            domain_numbers: vec![Map::default(); interest.domains.len()],
            present: vec![Bits::default(); interest.keys.len()],
            ..Self::default()
        }
    }

    /// Whether the vocabulary knows kinds or resources these classes do not.
    pub(crate) fn is_behind(&self, vocab: &Vocabulary) -> bool {
        self.of_kind.len() < vocab.kind_count() || self.dims < vocab.dim_count()
    }

    /// Puts every kind the vocabulary knows into its class.
    pub(crate) fn extend(&mut self, vocab: &Vocabulary) {
        self.widen(vocab);
        // Where each key stands, by its number, so that one pass over a kind's labels finds all values.
        let mut places = vec![NONE; self.keys.iter().map(|(key, _)| *key as usize + 1).max().unwrap_or(0)];
        (0..).zip(&self.keys).for_each(|(place, (key, _))| places[*key as usize] = place);
        let domain_places: Vec<usize> =
            self.domains.iter().map(|key| places[*key as usize] as usize).collect();
        let mut values = vec![NONE; self.keys.len()];
        let mut signature = Vec::with_capacity(self.keys.len() + 1);
        for kind in self.of_kind.len() as u32..vocab.kind_count() as u32 {
            values.fill(NONE);
            vocab.each_value_of_kind(kind, |key, value| {
                if let Some(place) = places.get(key as usize).filter(|place| **place != NONE) {
                    values[*place as usize] = value;
                }
            });
            signature.clear();
            signature.push(vocab.shape_of_kind(kind));
            signature.extend(
                self.keys.iter().zip(&values).map(
                    |((_, matter), value)| {
                        if *value == NONE || *matter { *value } else { PRESENT }
                    },
                ),
            );
            let known = self.len();
            let class = self.signatures.intern(&signature);
            if class as usize == known {
                self.enter(class, &signature, vocab);
            }
            self.of_kind.push(class);
            for domain in 0..self.domains.len() {
                let number = self.number_domain(domain, values[domain_places[domain]]);
                self.domain_of_kind[domain].push(number);
            }
        }
    }

    /// The number of a domain, given on first sight.
    fn number_domain(&mut self, domain: usize, value: Sym) -> u32 {
        if value == NONE {
            return NONE;
        }
        let values = &mut self.domain_values[domain];
        *self.domain_numbers[domain].entry(value).or_insert_with(|| {
            values.push(value);
            values.len() as u32 - 1
        })
    }

    /// Takes a new class into the tables.
    fn enter(&mut self, class: u32, signature: &[u32], vocab: &Vocabulary) {
        self.rows.resize(self.rows.len() + self.dims, 0);
        let row = &mut self.rows[class as usize * self.dims..];
        vocab.shape(signature[0]).for_each(|(dim, amount)| row[dim as usize] = amount);
        for ((at, (_, matter)), value) in (0..).zip(&self.keys).zip(&signature[1..]) {
            if *value == NONE {
                continue;
            }
            self.present[at as usize].insert(class);
            if *matter {
                self.by_value.entry((at, *value)).or_default().push(class);
            }
        }
    }

    /// Makes room for resources that were not known when the rows were laid out.
    fn widen(&mut self, vocab: &Vocabulary) {
        let dims = vocab.dim_count();
        if dims == self.dims {
            return;
        }
        let mut rows = vec![0; self.len() * dims];
        for class in 0..self.len() {
            let old = &self.rows[class * self.dims..(class + 1) * self.dims];
            rows[class * dims..][..self.dims].copy_from_slice(old);
        }
        (self.rows, self.dims) = (rows, dims);
    }

    pub(crate) fn len(&self) -> usize {
        self.signatures.len()
    }

    #[inline]
    pub(crate) fn of_kind(&self, kind: u32) -> u32 {
        self.of_kind[kind as usize]
    }

    /// The shape of a class: classes of one shape provide the same.
    #[inline]
    pub(crate) fn shape(&self, class: u32) -> u32 {
        self.signatures.get(class)[0]
    }

    /// The shape of a class as one of 64 bits: classes with different bits are of different shapes.
    #[inline]
    pub(crate) fn shape_bit(&self, class: u32) -> u64 {
        1 << (self.shape(class) % 64)
    }

    /// All classes, shape by shape.
    pub(crate) fn by_shape(&self) -> Vec<u32> {
        let mut classes: Vec<u32> = (0..self.len() as u32).collect();
        classes.sort_by_cached_key(|class| self.shape(*class));
        classes
    }

    /// What a machine of this class provides, by dimension.
    #[inline]
    pub(crate) fn provides(&self, class: u32) -> &[u64] {
        let start = class as usize * self.dims;
        &self.rows[start..start + self.dims]
    }

    /// What a machine of this kind provides, by dimension.
    #[inline]
    pub(crate) fn provides_kind(&self, kind: u32) -> &[u64] {
        self.provides(self.of_kind(kind))
    }

    /// Whether a machine of this class holds at least these amounts.
    #[inline]
    pub(crate) fn covers(&self, class: u32, amounts: &[(Dim, u64)]) -> bool {
        let row = self.provides(class);
        amounts.iter().all(|(dim, amount)| row[*dim as usize] >= *amount)
    }

    /// Where a domain key stands among the domain keys.
    pub(crate) fn domain(&self, key: Sym) -> usize {
        self.domains.iter().position(|known| *known == key).expect("a domain key in use is among the domains")
    }

    pub(crate) fn domains(&self) -> &[Sym] {
        &self.domains
    }

    /// How many domains a key has.
    pub(crate) fn domain_len(&self, domain: usize) -> usize {
        self.domain_values[domain].len()
    }

    /// The value a domain stands for.
    pub(crate) fn domain_value(&self, domain: usize, number: u32) -> Sym {
        self.domain_values[domain][number as usize]
    }

    /// The domain a machine of this kind lies in, or [`NONE`].
    #[inline]
    pub(crate) fn domain_of_kind(&self, domain: usize, kind: u32) -> u32 {
        self.domain_of_kind[domain][kind as usize]
    }

    /// The classes that meet one requirement, encoded as in [`RequirementSets`].
    fn meeting(&self, requirement: &EncodedRequirement<'_>) -> Bits {
        let at = self.keys.iter().position(|(key, _)| *key == requirement.key);
        let at = at.expect("a key in use is among the keys");
        let listed = || {
            let mut bits = Bits::with_bound(self.len());
            let lists = requirement.values.iter().filter_map(|value| self.by_value.get(&(at as u32, *value)));
            lists.flatten().for_each(|class| {
                bits.insert(*class);
            });
            bits
        };
        let without = |taken: &Bits| {
            let mut bits = Bits::full(self.len());
            bits.subtract(taken);
            bits
        };
        match requirement.operator {
            Operator::Unspecified => Bits::with_bound(self.len()),
            Operator::In => listed(),
            Operator::NotIn => without(&listed()),
            Operator::Same if !requirement.values.is_empty() => listed(),
            Operator::Exists | Operator::Same => self.present[at].clone(),
            Operator::DoesNotExist => without(&self.present[at]),
        }
    }

    /// Bytes held, for the memory report.
    pub(crate) fn heap_bytes(&self) -> usize {
        let values: usize = self.by_value.values().map(|list| list.capacity() * 4 + 40).sum();
        let domains: usize = self.domain_of_kind.iter().map(|list| list.capacity() * 4).sum();
        let domains = domains + self.domain_values.iter().map(|list| list.capacity() * 16).sum::<usize>();
        self.signatures.heap_bytes()
            + self.of_kind.capacity() * 4
            + self.rows.capacity() * 8
            + values
            + domains
    }
}

/// One requirement of a set, in numbers.
struct EncodedRequirement<'a> {
    /// All of it.
    words: &'a [u32],
    key: Sym,
    operator: Operator,
    values: &'a [Sym],
}

/// The requirements of a set, as its words say them.
fn encoded(mut words: &[u32]) -> impl Iterator<Item = EncodedRequirement<'_>> {
    std::iter::from_fn(move || {
        let [key, operator, count, rest @ ..] = words else { return None };
        let (all, others) = words.split_at(3 + *count as usize);
        let values = &rest[..*count as usize];
        words = others;
        Some(EncodedRequirement {
            words: all,
            key: *key,
            operator: Operator::ALL[*operator as usize],
            values,
        })
    })
}

/// Requirement sets by number, each with the classes it admits.
#[derive(Clone, Default)]
pub(crate) struct RequirementSets {
    /// `[key, operator, count, value, …]` for each requirement.
    encoded: Tuples,
    admits: Vec<Bits>,
    /// The [`Classes::shape_bit`]s of the classes each admits, once asked for.
    shape_bits: Vec<OnceLock<u64>>,
    /// How many classes the bitmaps know.
    evaluated: usize,
}

impl RequirementSets {
    /// The number of a set of requirements; takes note of the keys it asks about.
    pub(crate) fn intern(
        &mut self,
        requirements: &[bigfleet_model::requirement::Requirement],
        vocab: &mut Vocabulary,
        interest: &mut Interest,
    ) -> u32 {
        let mut words = Vec::with_capacity(requirements.len() * 5);
        for requirement in requirements {
            let values = requirement.values();
            let key = vocab.string(requirement.key());
            words.extend([key, requirement.operator() as u32, values.len() as u32]);
            words.extend(values.iter().map(|value| vocab.string(value)));
        }
        self.intern_encoded(&words, interest)
    }

    fn intern_encoded(&mut self, words: &[u32], interest: &mut Interest) -> u32 {
        for requirement in encoded(words) {
            // Whether a key is there is seen without its values: racks do not split classes because gangs name them.
            let values_matter = match requirement.operator {
                Operator::In | Operator::NotIn => true,
                Operator::Same => !requirement.values.is_empty(),
                Operator::Exists | Operator::DoesNotExist | Operator::Unspecified => false,
            };
            interest.note(requirement.key, values_matter);
        }
        self.encoded.intern(words)
    }

    /// Takes a set over from others, whose words are moved; takes note of the keys it asks about.
    pub(crate) fn take_over(
        &mut self,
        others: &Self,
        set: u32,
        moving: &mut Moving<'_>,
        interest: &mut Interest,
    ) -> u32 {
        let mut words = others.encoded.get(set).to_vec();
        let mut rest = &mut words[..];
        while let [key, _, count, more @ ..] = rest {
            *key = moving.string(*key);
            let (values, others) = more.split_at_mut(*count as usize);
            for value in values {
                *value = moving.string(*value);
            }
            rest = others;
        }
        self.intern_encoded(&words, interest)
    }

    /// How many sets there are.
    pub(crate) fn len(&self) -> usize {
        self.encoded.len()
    }

    /// Brings all bitmaps up to the classes there are now. `fresh`: the classes were built anew.
    pub(crate) fn evaluate(&mut self, classes: &Classes, fresh: bool) {
        if fresh || self.evaluated != classes.len() {
            self.admits.clear();
            self.shape_bits.clear();
            self.evaluated = classes.len();
        }
        // Sets are put together from few requirements.
        let mut known: Map<&[u32], Bits> = Map::default();
        for set in self.admits.len() as u32..self.encoded.len() as u32 {
            let mut admitted = Bits::full(classes.len());
            for requirement in encoded(self.encoded.get(set)) {
                let meeting = known.entry(requirement.words).or_insert_with(|| classes.meeting(&requirement));
                admitted.intersect_with(meeting);
            }
            self.shape_bits.push(OnceLock::new());
            self.admits.push(admitted);
        }
    }

    /// Bytes of all sets, their bitmaps counted as those of a fleet of a few thousand classes.
    pub(crate) fn words_bytes(&self) -> usize {
        const BITMAP_BYTES: usize = 512;
        self.encoded.words_bytes() + self.encoded.len() * BITMAP_BYTES
    }

    /// Bytes held, for the memory report.
    pub(crate) fn heap_bytes(&self) -> usize {
        let bitmaps: usize = self.admits.iter().map(|bits| bits.words().len() * 8 + 24).sum();
        self.encoded.heap_bytes() + bitmaps
    }

    /// Whether a set may admit a class of a shape with one of these bits; if not, it admits none.
    #[inline]
    pub(crate) fn may_admit(&self, set: u32, shape_bits: u64, classes: &Classes) -> bool {
        let admitted = || self.admits(set).iter().fold(0, |all, class| all | classes.shape_bit(class));
        self.shape_bits[set as usize].get_or_init(admitted) & shape_bits != 0
    }

    /// The classes a set admits.
    #[inline]
    pub(crate) fn admits(&self, set: u32) -> &Bits {
        &self.admits[set as usize]
    }
}
