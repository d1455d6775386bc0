//! Names become dense numbers once, at the border; past it nothing compares strings.
//!
//! Both tables only grow, until the fleet moves into new ones (see [`crate::compact`]). Their numbers follow the order of arrival, so no decision may ever depend on one
//! being smaller than another: order always comes from the text or the value behind it.

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::sync::Arc;

/// A number that stands for a string.
pub(crate) type Sym = u32;

/// No string: a machine that lacks a key.
pub(crate) const NONE: u32 = u32::MAX;

/// A hash map with the engine's fixed hasher. Never iterated where order could show.
pub(crate) type Map<K, V> = hashbrown::HashMap<K, V, FixedState>;

/// The one hasher of the engine: fixed, so that a run can be repeated.
pub(crate) fn hash_one(value: &(impl std::hash::Hash + ?Sized)) -> u64 {
    FixedState::with_seed(0x5EED).hash_one(value)
}

/// Strings by number, in one buffer, so that a copy is a block copy.
#[derive(Clone, Default)]
pub(crate) struct Strings {
    bytes: String,
    ends: Vec<u32>,
    /// Half of each string's hash: a table that grows does not read all strings again, nor does one that takes them over.
    hashes: Vec<u32>,
    index: HashTable<Sym>,
}

/// Half of a value's hash.
fn half_hash(value: &(impl std::hash::Hash + ?Sized)) -> u32 {
    (hash_one(value) >> 32) as u32
}

/// A whole hash from half of one.
fn spread(half: u32) -> u64 {
    u64::from(half).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Strings {
    pub(crate) fn get(&self, sym: Sym) -> &str {
        let at = sym as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.bytes[start..self.ends[at] as usize]
    }

    /// A string with its hash, for a table that takes it over.
    pub(crate) fn get_hashed(&self, sym: Sym) -> Hashed<'_> {
        Hashed { text: self.get(sym), hash: self.hashes[sym as usize] }
    }

    pub(crate) fn lookup<'t>(&self, text: impl Into<Hashed<'t>>) -> Option<Sym> {
        let text = text.into();
        self.index.find(spread(text.hash), |sym| self.get(*sym) == text.text).copied()
    }

    pub(crate) fn intern<'t>(&mut self, text: impl Into<Hashed<'t>>) -> Sym {
        let text = text.into();
        self.lookup(text).unwrap_or_else(|| self.add(text))
    }

    /// The number of a string in a table that others may share: it becomes this one's own when it learns a word.
    pub(crate) fn intern_shared<'t>(table: &mut Arc<Self>, text: impl Into<Hashed<'t>>) -> Sym {
        let text = text.into();
        table.lookup(text).unwrap_or_else(|| Arc::make_mut(table).add(text))
    }

    /// Takes up a string that is not there.
    fn add(&mut self, text: Hashed<'_>) -> Sym {
        let sym = self.ends.len() as Sym;
        self.bytes.push_str(text.text);
        self.ends.push(u32::try_from(self.bytes.len()).expect("fewer than 4 GiB of distinct names"));
        self.hashes.push(text.hash);
        let hashes = &self.hashes;
        self.index.insert_unique(spread(text.hash), sym, |sym| spread(hashes[*sym as usize]));
        sym
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of all words, whatever room is kept for more.
    pub(crate) fn words_bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * 12
    }

    /// Bytes held, for the memory report.
    pub(crate) fn heap_bytes(&self) -> usize {
        let numbers = self.ends.capacity() + self.hashes.capacity();
        self.bytes.capacity() + numbers * 4 + self.index.allocation_size()
    }
}

/// A text and half of its hash, which need not be computed again.
#[derive(Clone, Copy)]
pub(crate) struct Hashed<'t> {
    text: &'t str,
    hash: u32,
}

impl<'t> From<&'t str> for Hashed<'t> {
    fn from(text: &'t str) -> Self {
        Self { text, hash: half_hash(text) }
    }
}

/// Tuples of numbers by number: label sets, shapes, stamps, prices.
#[derive(Clone, Default)]
pub(crate) struct Tuples {
    words: Vec<u32>,
    ends: Vec<u32>,
    /// Half of each tuple's hash, as with strings.
    hashes: Vec<u32>,
    index: HashTable<u32>,
}

impl Tuples {
    #[inline]
    pub(crate) fn get(&self, id: u32) -> &[u32] {
        let at = id as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.words[start..self.ends[at] as usize]
    }

    fn find(&self, hash: u32, tuple: &[u32]) -> Option<u32> {
        self.index.find(spread(hash), |id| self.get(*id) == tuple).copied()
    }

    pub(crate) fn intern(&mut self, tuple: &[u32]) -> u32 {
        let hash = half_hash(tuple);
        self.find(hash, tuple).unwrap_or_else(|| self.add(hash, tuple))
    }

    /// The number of a tuple in a table that others may share: it becomes this one's own when it learns a tuple.
    pub(crate) fn intern_shared(table: &mut Arc<Self>, tuple: &[u32]) -> u32 {
        let hash = half_hash(tuple);
        table.find(hash, tuple).unwrap_or_else(|| Arc::make_mut(table).add(hash, tuple))
    }

    /// Takes up a tuple that is not there.
    fn add(&mut self, hash: u32, tuple: &[u32]) -> u32 {
        let id = self.ends.len() as u32;
        self.words.extend_from_slice(tuple);
        self.ends.push(u32::try_from(self.words.len()).expect("fewer than 2^32 words of distinct tuples"));
        self.hashes.push(hash);
        let hashes = &self.hashes;
        self.index.insert_unique(spread(hash), id, |id| spread(hashes[*id as usize]));
        id
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of all words, whatever room is kept for more.
    pub(crate) fn words_bytes(&self) -> usize {
        self.words.len() * 4 + self.ends.len() * 12
    }

    /// Bytes held, for the memory report.
    pub(crate) fn heap_bytes(&self) -> usize {
        let numbers = self.words.capacity() + self.ends.capacity() + self.hashes.capacity();
        numbers * 4 + self.index.allocation_size()
    }
}

/// Splits a 64-bit value so that it can be part of a tuple.
pub(crate) fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

/// The value behind two halves.
pub(crate) fn whole(halves: &[u32]) -> u64 {
    u64::from(halves[0]) | u64::from(halves[1]) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_have_one_number_through_growth() {
        let mut names = Strings::default();
        let first: Vec<Sym> = (0..1000).map(|n| names.intern(&*format!("name-{n}"))).collect();
        let again: Vec<Sym> = (0..1000).map(|n| names.intern(&*format!("name-{n}"))).collect();
        assert_eq!((first, names.len()), (again, 1000));
        assert_eq!(names.get(17), "name-17");
        assert_eq!(names.lookup("nobody"), None);
    }

    #[test]
    fn tuples_of_different_length_stay_apart() {
        let mut tuples = Tuples::default();
        let ids = [tuples.intern(&[]), tuples.intern(&[1]), tuples.intern(&[1, 2]), tuples.intern(&[1])];
        assert_eq!(ids, [0, 1, 2, 1]);
        assert_eq!(tuples.get(2), &[1, 2]);
        assert_eq!(whole(&halves(u64::MAX - 5)), u64::MAX - 5);
    }
}
