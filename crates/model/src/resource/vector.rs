//! Vectors: the amounts of common names by position, those of foreign names as a short sorted list.

use std::cmp::{Ordering, Reverse};
use std::fmt;

use smallvec::SmallVec;

use super::foreign::{self, Entries, Gathered};
use super::name::{KNOWN, KNOWN_COUNT};
use super::{MAX_AMOUNT, ResourceError, ResourceName};

/// Amounts of resources: canonical, so that equal amounts are equal values.
///
/// The amounts of common names lie side by side, which makes arithmetic on them a handful of instructions;
/// names of your own are allowed and a little slower. Nothing is allocated up to four of those.
///
/// ```
/// use bigfleet_model::resource::ResourceVec;
/// let machine = ResourceVec::parse([("cpu", "16"), ("memory", "64Gi")]).unwrap();
/// let demand = ResourceVec::parse([("memory", "68719476736"), ("cpu", "20000m"), ("pods", "0")]).unwrap();
/// assert!(!machine.covers(&demand));
/// assert_eq!(demand.saturating_sub(&machine), ResourceVec::parse([("cpu", "4")]).unwrap());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct ResourceVec {
    /// By [`ResourceName::known_index`]; each at most [`MAX_AMOUNT`].
    known: [u64; KNOWN_COUNT],
    /// Foreign names only, sorted and unique, each amount from 1 to [`MAX_AMOUNT`].
    foreign: Entries,
}

impl ResourceVec {
    /// The vector without any amount.
    pub const ZERO: Self = Self { known: [0; KNOWN_COUNT], foreign: SmallVec::new_const() };

    /// A vector from amounts in engine units. Zeros are dropped, a name given twice is refused.
    pub fn new(amounts: impl IntoIterator<Item = (ResourceName, u64)>) -> Result<Self, ResourceError> {
        let mut entries: Gathered = amounts.into_iter().collect();
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        if let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(ResourceError::Duplicate(pair[0].0.clone()));
        }
        if let Some((name, _)) = entries.iter().find(|(_, amount)| *amount > MAX_AMOUNT) {
            return Err(ResourceError::TooLarge(name.clone()));
        }
        let mut known = [0; KNOWN_COUNT];
        entries.retain(|(name, amount)| match name.known_index() {
            Some(index) => {
                known[index] = *amount;
                false
            }
            None => *amount > 0,
        });
        Ok(Self { known, foreign: entries.into_iter().collect() })
    }

    /// A vector from names and Kubernetes quantities.
    pub fn parse<N: AsRef<str>, Q: AsRef<str>>(
        quantities: impl IntoIterator<Item = (N, Q)>,
    ) -> Result<Self, ResourceError> {
        let mut amounts = Gathered::new();
        for (name, text) in quantities {
            let name = ResourceName::new(name.as_ref())?;
            let amount = name.parse_amount(text.as_ref())?;
            amounts.push((name, amount));
        }
        Self::new(amounts)
    }

    /// The amount of one resource; 0 if it is not listed.
    pub fn get(&self, name: &ResourceName) -> u64 {
        match name.known_index() {
            Some(index) => self.known[index],
            None => self.foreign.iter().find(|(n, _)| n == name).map_or(0, |(_, amount)| *amount),
        }
    }

    /// The amounts above zero, ordered by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&ResourceName, u64)> + '_ {
        Iter { known: &self.known, at: 0, foreign: &self.foreign }
    }

    /// How many dimensions are above zero.
    pub fn len(&self) -> usize {
        above_zero(&self.known) + self.foreign.len()
    }

    /// Whether nothing is asked for or offered.
    #[inline]
    pub fn is_zero(&self) -> bool {
        self.known == [0; KNOWN_COUNT] && self.foreign.is_empty()
    }

    /// Whether nothing is asked for or offered; the same as [`Self::is_zero`].
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.is_zero()
    }

    /// The sum, dimension by dimension, saturating at [`MAX_AMOUNT`].
    #[must_use]
    #[inline]
    pub fn add(&self, other: &Self) -> Self {
        // Two amounts of at most 2⁶³−1 cannot wrap 64 bits.
        self.merge(other, |a, b| (a + b).min(MAX_AMOUNT))
    }

    /// The larger amount of each dimension.
    #[must_use]
    #[inline]
    pub fn max(&self, other: &Self) -> Self {
        self.merge(other, Ord::max)
    }

    /// What is left of `self` after `other` is taken away; never below zero.
    #[must_use]
    #[inline]
    pub fn saturating_sub(&self, other: &Self) -> Self {
        self.merge(other, u64::saturating_sub)
    }

    /// Every amount `times` over, saturating at [`MAX_AMOUNT`].
    #[must_use]
    pub fn scale(&self, times: u64) -> Self {
        if times == 0 {
            return Self::ZERO;
        }
        let mut scaled = self.clone();
        let foreign = scaled.foreign.iter_mut().map(|(_, amount)| amount);
        for amount in scaled.known.iter_mut().chain(foreign) {
            *amount = amount.saturating_mul(times).min(MAX_AMOUNT);
        }
        scaled
    }

    /// Whether `self` holds at least as much of everything `demand` lists.
    #[inline]
    pub fn covers(&self, demand: &Self) -> bool {
        // Counted rather than searched: five comparisons without a branch beat one that is guessed wrong.
        let short = self.known.iter().zip(&demand.known).map(|(have, want)| u8::from(have < want));
        short.sum::<u8>() == 0
            && (demand.foreign.is_empty() || foreign::covers(&self.foreign, &demand.foreign))
    }

    /// Whether `self` has some of what `missing` still lists. A machine that has none is passed over.
    #[inline]
    pub fn contributes(&self, missing: &Self) -> bool {
        let both = self.known.iter().zip(&missing.known).fold(0, |some, (a, b)| some | (*a).min(*b));
        both > 0 || (!missing.foreign.is_empty() && foreign::contributes(&self.foreign, &missing.foreign))
    }

    /// Orders vectors dimension by dimension in name order, a missing one counting as 0.
    ///
    /// ```
    /// use bigfleet_model::resource::ResourceVec;
    /// let vector = |text: &[(&str, &str)]| ResourceVec::parse(text.iter().copied()).unwrap();
    /// let by_name = |a, b| vector(a).cmp_by_name(&vector(b));
    /// assert!(by_name(&[("cpu", "2")], &[("cpu", "1"), ("memory", "1Ti")]).is_gt());
    /// assert!(by_name(&[("memory", "1Ti")], &[("cpu", "1m")]).is_lt());
    /// ```
    pub fn cmp_by_name(&self, other: &Self) -> Ordering {
        // Where the lists part, the side with the earlier name has more of it than the other's zero.
        let rank = |(name, amount)| (Reverse(name), amount);
        self.iter().map(rank).cmp(other.iter().map(rank))
    }

    /// Combines two vectors dimension by dimension. `combine` must give 0 for two zeros.
    #[inline]
    fn merge(&self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        let known = std::array::from_fn(|index| combine(self.known[index], other.known[index]));
        if self.foreign.is_empty() && other.foreign.is_empty() {
            return Self { known, foreign: Entries::new() };
        }
        Self { known, foreign: foreign::merge(&self.foreign, &other.foreign, combine) }
    }
}

/// How many amounts are above zero.
fn above_zero(amounts: &[u64]) -> usize {
    amounts.iter().filter(|amount| **amount > 0).count()
}

/// The two halves of a vector in one order.
struct Iter<'a> {
    known: &'a [u64; KNOWN_COUNT],
    /// The first common name not yet given out.
    at: usize,
    foreign: &'a [(ResourceName, u64)],
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a ResourceName, u64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while self.known.get(self.at) == Some(&0) {
            self.at += 1;
        }
        let common = KNOWN.get(self.at);
        match (common, self.foreign) {
            (None, []) => None,
            (Some(name), []) => Some(self.common(name)),
            (Some(name), [(first, _), ..]) if name < first => Some(self.common(name)),
            (_, [(name, amount), rest @ ..]) => {
                self.foreign = rest;
                Some((name, *amount))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = above_zero(&self.known[self.at..]) + self.foreign.len();
        (left, Some(left))
    }
}

impl<'a> Iter<'a> {
    #[inline]
    fn common(&mut self, name: &'a ResourceName) -> (&'a ResourceName, u64) {
        let amount = self.known[self.at];
        self.at += 1;
        (name, amount)
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl fmt::Debug for ResourceVec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Lists amounts as `cpu 4000m, memory 17179869184`; `nothing` for the zero vector.
impl fmt::Display for ResourceVec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("nothing");
        }
        for (index, (name, amount)) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            let unit = if *name == ResourceName::CPU { "m" } else { "" };
            write!(f, "{separator}{name} {amount}{unit}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(quantities: &[(&str, &str)]) -> ResourceVec {
        ResourceVec::parse(quantities.iter().copied()).unwrap()
    }

    fn name(text: &str) -> ResourceName {
        ResourceName::new(text).unwrap()
    }

    #[test]
    fn common_and_foreign_names_come_in_one_order() {
        let all = vector(&[
            ("pods", "7"),
            ("a.org/x", "1"),
            ("memory", "5"),
            ("hugepages-2Mi", "4"),
            ("zz", "8"),
            ("cpu", "2m"),
            ("d", "3"),
            ("nvidia.com/gpu", "6"),
        ]);
        let expected =
            ["a.org/x", "cpu", "d", "hugepages-2Mi", "memory", "nvidia.com/gpu", "pods", "zz"].map(name);
        assert!(all.iter().eq(expected.iter().zip(1..)));
        assert_eq!(all.len(), 8);
        let mut rest = all.iter();
        for left in (0..8).rev() {
            rest.next();
            assert_eq!(rest.len(), left);
        }
        assert_eq!(rest.next(), None);
        assert_eq!(all.get(&name("d")), 3);
        assert_eq!(all.get(&name("e")), 0);
        assert_eq!(all.get(&ResourceName::MEMORY), 5);
    }

    #[test]
    fn bad_lists_are_refused_by_name() {
        for (amounts, error) in [
            (vec![("cpu", 1), ("memory", 1), ("cpu", 0)], ResourceError::Duplicate(name("cpu"))),
            (vec![("x", 1), ("x", 1)], ResourceError::Duplicate(name("x"))),
            (vec![("x", MAX_AMOUNT + 1), ("a", 1)], ResourceError::TooLarge(name("x"))),
            (vec![("cpu", u64::MAX)], ResourceError::TooLarge(name("cpu"))),
        ] {
            let amounts = amounts.into_iter().map(|(text, amount)| (name(text), amount));
            assert_eq!(ResourceVec::new(amounts), Err(error));
        }
        assert_eq!(ResourceVec::parse([("", "1")]), Err(ResourceError::EmptyName));
        let error = ResourceVec::parse([("cpu", "1"), ("cpu", "2")]).unwrap_err();
        assert_eq!(error.to_string(), "resource \"cpu\" is listed twice; give each resource once");
        assert!(matches!(ResourceVec::parse([("x", "one")]), Err(ResourceError::Amount { .. })));
    }

    #[test]
    fn arithmetic_on_the_smallest_cases() {
        let (a, b) = (vector(&[("cpu", "3m"), ("x", "1")]), vector(&[("cpu", "1m"), ("x", "2"), ("y", "5")]));
        assert_eq!(a.add(&b), vector(&[("cpu", "4m"), ("x", "3"), ("y", "5")]));
        assert_eq!(a.max(&b), vector(&[("cpu", "3m"), ("x", "2"), ("y", "5")]));
        assert_eq!(a.saturating_sub(&b), vector(&[("cpu", "2m")]));
        assert_eq!(b.saturating_sub(&a), vector(&[("x", "1"), ("y", "5")]));
        assert_eq!(a.scale(3), vector(&[("cpu", "9m"), ("x", "3")]));
        assert_eq!(a.scale(0), ResourceVec::ZERO);
        assert!(a.saturating_sub(&a).is_zero() && a.saturating_sub(&a).is_empty());
    }

    #[test]
    fn sums_and_products_stop_at_the_limit() {
        for text in ["cpu", "x"] {
            let most = ResourceVec::new([(name(text), MAX_AMOUNT)]).unwrap();
            let one = ResourceVec::new([(name(text), 1)]).unwrap();
            assert_eq!(most.add(&most), most);
            assert_eq!(most.add(&one), most);
            assert_eq!(one.scale(u64::MAX), most);
            assert_eq!(most.scale(2), most);
        }
    }

    #[test]
    fn covering_and_contributing_on_the_smallest_cases() {
        let (cpu, gpu, x, y) = (("cpu", "1"), ("nvidia.com/gpu", "1"), ("x", "1"), ("y", "1"));
        // Has, wants, covers, contributes.
        for (has, wants, covers, contributes) in [
            (&[][..], &[][..], true, false),
            (&[cpu], &[], true, false),
            (&[], &[cpu], false, false),
            (&[cpu], &[cpu], true, true),
            (&[cpu], &[("cpu", "2")], false, true),
            (&[cpu], &[cpu, gpu], false, true),
            (&[cpu, gpu], &[gpu], true, true),
            (&[cpu], &[gpu], false, false),
            (&[x], &[y], false, false),
            (&[x], &[x, y], false, true),
            (&[x, y], &[y], true, true),
            (&[y], &[x], false, false),
            (&[cpu, y], &[cpu, x], false, true),
            (&[cpu, y], &[gpu, y], false, true),
        ] {
            let (has, wants) = (vector(has), vector(wants));
            assert_eq!(has.covers(&wants), covers, "{has} covers {wants}");
            assert_eq!(has.contributes(&wants), contributes, "{has} contributes to {wants}");
        }
    }

    #[test]
    fn people_read_cpu_in_thousandths() {
        let vector = vector(&[("memory", "1Ki"), ("cpu", "1.5"), ("b", "2")]);
        assert_eq!(vector.to_string(), "b 2, cpu 1500m, memory 1024");
        assert_eq!(format!("{vector:?}"), "{b: 2, cpu: 1500, memory: 1024}");
        assert_eq!(ResourceVec::ZERO.to_string(), "nothing");
    }
}
