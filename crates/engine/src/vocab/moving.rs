//! Moving words from some dictionaries into others: what nobody asks to move is left behind.
//!
//! A fleet moves into new tables this way, and what a roll-up says moves from a draft's into the fleet's.

use crate::intern::{NONE, Strings, Tuples};

use super::{Amounts, Dim, Vocabulary};

/// A move in progress. Each word is looked up once, whoever uses it.
pub(crate) struct Moving<'a> {
    from: &'a Vocabulary,
    pub(crate) to: &'a mut Vocabulary,
    dims: Moved,
    clusters: Moved,
    strings: Moved,
    shapes: Moved,
    kinds: Moved,
    terms: Moved,
    worths: Moved,
    keys: Moved,
}

/// New numbers by old ones; [`NONE`] for words not moved yet.
struct Moved(Vec<u32>);

impl Moved {
    fn none_of(words: usize) -> Self {
        Self(vec![NONE; words])
    }

    fn get(&self, old: u32) -> Option<u32> {
        Some(self.0[old as usize]).filter(|new| *new != NONE)
    }

    fn put(&mut self, old: u32, new: u32) -> u32 {
        self.0[old as usize] = new;
        new
    }
}

impl<'a> Moving<'a> {
    /// Nothing is moved yet.
    pub(crate) fn new(from: &'a Vocabulary, to: &'a mut Vocabulary) -> Self {
        let of = |table: &Tuples| Moved::none_of(table.len());
        Self {
            from,
            to,
            dims: Moved::none_of(from.dims.len()),
            clusters: Moved::none_of(from.clusters.len()),
            strings: Moved::none_of(from.strings.len()),
            shapes: of(&from.shapes),
            kinds: of(&from.kinds),
            terms: of(&from.terms),
            worths: of(&from.worths),
            keys: of(&from.keys),
        }
    }

    /// Moves a cluster, or the absence of one.
    pub(crate) fn cluster(&mut self, old: u32) -> u32 {
        if old == NONE {
            return NONE;
        }
        if let Some(new) = self.clusters.get(old) {
            return new;
        }
        let new = self.to.cluster(self.from.cluster_name(old));
        self.clusters.put(old, new)
    }

    /// Moves a string, or the absence of one.
    pub(crate) fn string(&mut self, old: u32) -> u32 {
        if old == NONE {
            return NONE;
        }
        if let Some(new) = self.strings.get(old) {
            return new;
        }
        let new = Strings::intern_shared(&mut self.to.strings, self.from.strings.get_hashed(old));
        self.strings.put(old, new)
    }

    fn dim(&mut self, old: Dim) -> Dim {
        if let Some(new) = self.dims.get(u32::from(old)) {
            return new as Dim;
        }
        let new = self.to.dim(self.from.dim_name(old));
        self.dims.put(u32::from(old), u32::from(new));
        new
    }

    /// Moves amounts, where they are.
    pub(crate) fn amounts(&mut self, amounts: &mut Amounts) {
        amounts.iter_mut().for_each(|(dim, _)| *dim = self.dim(*dim));
    }

    /// Moves the identity of a need, or the absence of one.
    pub(crate) fn key(&mut self, old: u32) -> u32 {
        if old == NONE {
            return NONE;
        }
        if let Some(new) = self.keys.get(old) {
            return new;
        }
        let [cluster, fingerprint, group] = *self.from.keys.get(old) else {
            unreachable!("an identity has three parts")
        };
        let tuple = [self.cluster(cluster), self.string(fingerprint), self.string(group)];
        let new = Tuples::intern_shared(&mut self.to.keys, &tuple);
        self.keys.put(old, new)
    }

    /// Moves a kind of machine.
    pub(crate) fn kind(&mut self, old: u32) -> u32 {
        if let Some(new) = self.kinds.get(old) {
            return new;
        }
        let [facts, shape] = *self.from.kinds.get(old) else { unreachable!("a kind has two parts") };
        let facts: Vec<u32> = self.from.facts.get(facts).iter().map(|word| self.string(*word)).collect();
        let facts = Tuples::intern_shared(&mut self.to.facts, &facts);
        let shape = self.shape(shape);
        let new = Tuples::intern_shared(&mut self.to.kinds, &[facts, shape]);
        self.kinds.put(old, new)
    }

    fn shape(&mut self, old: u32) -> u32 {
        if let Some(new) = self.shapes.get(old) {
            return new;
        }
        let mut tuple = self.from.shapes.get(old).to_vec();
        for entry in tuple.chunks_exact_mut(3) {
            entry[0] = u32::from(self.dim(entry[0] as Dim));
        }
        let new = Tuples::intern_shared(&mut self.to.shapes, &tuple);
        self.shapes.put(old, new)
    }

    /// Moves a price and its risk.
    pub(crate) fn terms(&mut self, old: u32) -> u32 {
        if let Some(new) = self.terms.get(old) {
            return new;
        }
        let new = Tuples::intern_shared(&mut self.to.terms, self.from.terms.get(old));
        self.terms.put(old, new)
    }

    /// Moves what a machine was worth when it was bound.
    pub(crate) fn worth(&mut self, old: u32) -> u32 {
        if let Some(new) = self.worths.get(old) {
            return new;
        }
        let new = Tuples::intern_shared(&mut self.to.worths, self.from.worths.get(old));
        self.worths.put(old, new)
    }
}
