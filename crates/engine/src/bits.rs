//! Sets of dense numbers as words.
//!
//! Classes, machines and positions are dense numbers, so sets of them are bitmaps, and the engine's inner
//! loops are a handful of word operations. No crate does this faster than a `Vec<u64>`.

/// A growable set of small numbers. Numbers beyond the words it holds are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// An empty set with room for numbers below `bound`.
    pub(crate) fn with_bound(bound: usize) -> Self {
        Self(vec![0; bound.div_ceil(64)])
    }

    /// Empties the set and makes room for numbers below `bound`.
    pub(crate) fn reset(&mut self, bound: usize) {
        self.0.clear();
        self.0.resize(bound.div_ceil(64), 0);
    }

    #[inline]
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Adds a number; true if it was not there.
    #[inline]
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        let word = number as usize / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        let bit = 1_u64 << (number % 64);
        let fresh = self.0[word] & bit == 0;
        self.0[word] |= bit;
        fresh
    }

    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        if let Some(word) = self.0.get_mut(number as usize / 64) {
            *word &= !(1_u64 << (number % 64));
        }
    }

    /// Adds or removes a number.
    pub(crate) fn set(&mut self, number: u32, is_in: bool) {
        if is_in {
            self.insert(number);
        } else {
            self.remove(number);
        }
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.0
    }

    /// Adds everything in `other`.
    pub(crate) fn union_with(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    /// Keeps only what is in `other` as well.
    pub(crate) fn intersect_with(&mut self, other: &Self) {
        self.0.truncate(other.0.len());
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= b);
    }

    /// Keeps only what is not in `other`.
    pub(crate) fn subtract(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= !b);
    }

    /// All numbers below `bound`.
    pub(crate) fn full(bound: usize) -> Self {
        let mut words = vec![u64::MAX; bound.div_ceil(64)];
        if let (Some(last), 1..) = (words.last_mut(), bound % 64) {
            *last = (1 << (bound % 64)) - 1;
        }
        Self(words)
    }

    /// The numbers in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().enumerate().flat_map(|(at, word)| ones(*word).map(move |bit| at as u32 * 64 + bit))
    }
}

impl FromIterator<u32> for Bits {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut bits = Self::default();
        numbers.into_iter().for_each(|number| {
            bits.insert(number);
        });
        bits
    }
}

/// The positions of the ones in a word, ascending.
pub(crate) fn ones(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_operations_agree_with_a_plain_list() {
        let evens: Vec<u32> = (0..200).filter(|n| n % 2 == 0).collect();
        let mut a = Bits::with_bound(10);
        assert!(evens.iter().all(|n| a.insert(*n)));
        assert!(!a.insert(4));
        assert_eq!(a.iter().collect::<Vec<_>>(), evens);
        let mut rest = Bits::full(201);
        assert_eq!(rest.iter().count(), 201);
        rest.subtract(&a);
        assert_eq!(
            rest.iter().filter(|n| *n < 200).collect::<Vec<_>>(),
            (0..200).filter(|n| n % 2 == 1).collect::<Vec<_>>()
        );
        a.intersect_with(&rest);
        assert_eq!(a.iter().count(), 0);
        a.union_with(&rest);
        assert_eq!(a, rest.iter().collect());
        a.remove(1);
        assert!(!a.contains(1) && a.contains(3) && !a.contains(100_000));
    }
}
