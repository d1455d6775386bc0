//! Resource names and resource vectors: how much of what.
//!
//! Demand and supply are compared dimension by dimension, millions of times a cycle in other systems of
//! this kind, usually on strings. Here an amount is an integer from the moment it passes the border: cpu
//! in thousandths, everything else in whole units, rounded up. Amounts are at most 2⁶³−1 and sums saturate
//! there; nothing wraps.
//!
//! A vector lists only the dimensions above zero, ordered by the bytes of their names. So equal demands are
//! equal values however they were spelled, and a missing dimension is a zero. Four dimensions fit without
//! an allocation, which covers nearly every machine and need there is.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;
use thiserror::Error;

use crate::quantity::{self, QuantityError};
use crate::text::Quoted;

/// The largest amount of one resource: 2⁶³−1. Sums saturate here.
pub const MAX_AMOUNT: u64 = i64::MAX as u64;

/// The names nearly all vectors are made of, in byte order, so that they are compared by one byte.
const KNOWN: [&str; 5] = ["cpu", "ephemeral-storage", "memory", "nvidia.com/gpu", "pods"];

/// The name of a resource, such as `cpu`, `memory` or `nvidia.com/gpu`.
///
/// Common names are interned as one byte; any other is a shared string, cheap to clone. Names order by
/// their bytes, whichever way they are kept.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResourceName(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Known(u8),
    Other(Arc<str>),
}

impl ResourceName {
    /// Processor time; the one resource kept in thousandths.
    pub const CPU: Self = Self(Repr::Known(0));
    /// Memory in bytes.
    pub const MEMORY: Self = Self(Repr::Known(2));

    /// The resource of this name. An empty name is refused: it could never be asked for on purpose.
    pub fn new(name: &str) -> Result<Self, ResourceError> {
        if name.is_empty() {
            return Err(ResourceError::EmptyName);
        }
        Ok(Self(match KNOWN.iter().position(|known| *known == name) {
            Some(index) => Repr::Known(index as u8),
            None => Repr::Other(name.into()),
        }))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Known(index) => KNOWN[*index as usize],
            Repr::Other(name) => name,
        }
    }

    /// Reads a Kubernetes quantity of this resource into engine units: thousandths for cpu, whole units for
    /// everything else, rounded up.
    pub fn parse_amount(&self, text: &str) -> Result<u64, ResourceError> {
        let parsed = if *self == Self::CPU {
            quantity::parse_milli_ceil(text)
        } else {
            quantity::parse_units_ceil(text)
        };
        parsed.map_err(|source| ResourceError::Amount { resource: self.clone(), source })
    }
}

impl Ord for ResourceName {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Known(a), Repr::Known(b)) => a.cmp(b),
            _ => self.as_str().cmp(other.as_str()),
        }
    }
}

impl PartialOrd for ResourceName {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a resource vector was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ResourceError {
    /// A resource without a name.
    #[error("a resource name is empty; name the resource, for example cpu or memory")]
    EmptyName,
    /// The same resource twice in one list.
    #[error("resource {} is listed twice; give each resource once", Quoted(.0.as_str()))]
    Duplicate(ResourceName),
    /// The amount is not a quantity we take.
    #[error("resource {}: {source}", Quoted(.resource.as_str()))]
    Amount {
        /// Which resource.
        resource: ResourceName,
        /// What is wrong with its amount.
        source: QuantityError,
    },
    /// An amount in engine units above [`MAX_AMOUNT`].
    #[error("resource {} is above 2^63-1; ask for less or use a larger unit", Quoted(.0.as_str()))]
    TooLarge(ResourceName),
}

/// Amounts of resources: canonical, sparse, ordered by name.
///
/// ```
/// use bigfleet_model::resource::ResourceVec;
/// let machine = ResourceVec::parse([("cpu", "16"), ("memory", "64Gi")]).unwrap();
/// let demand = ResourceVec::parse([("memory", "68719476736"), ("cpu", "20000m"), ("pods", "0")]).unwrap();
/// assert!(!machine.covers(&demand));
/// assert_eq!(demand.saturating_sub(&machine), ResourceVec::parse([("cpu", "4")]).unwrap());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct ResourceVec(SmallVec<[(ResourceName, u64); 4]>);

impl ResourceVec {
    /// The vector without any amount.
    pub const ZERO: Self = Self(SmallVec::new_const());

    /// A vector from amounts in engine units. Zeros are dropped, a name given twice is refused.
    pub fn new(amounts: impl IntoIterator<Item = (ResourceName, u64)>) -> Result<Self, ResourceError> {
        let mut entries: SmallVec<[(ResourceName, u64); 4]> = amounts.into_iter().collect();
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        if let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(ResourceError::Duplicate(pair[0].0.clone()));
        }
        if let Some((name, _)) = entries.iter().find(|(_, amount)| *amount > MAX_AMOUNT) {
            return Err(ResourceError::TooLarge(name.clone()));
        }
        entries.retain(|(_, amount)| *amount > 0);
        Ok(Self(entries))
    }

    /// A vector from names and Kubernetes quantities.
    pub fn parse<N: AsRef<str>, Q: AsRef<str>>(
        quantities: impl IntoIterator<Item = (N, Q)>,
    ) -> Result<Self, ResourceError> {
        let mut amounts = SmallVec::<[(ResourceName, u64); 4]>::new();
        for (name, text) in quantities {
            let name = ResourceName::new(name.as_ref())?;
            let amount = name.parse_amount(text.as_ref())?;
            amounts.push((name, amount));
        }
        Self::new(amounts)
    }

    /// The amount of one resource; 0 if it is not listed.
    pub fn get(&self, name: &ResourceName) -> u64 {
        self.0.iter().find(|(n, _)| n == name).map_or(0, |(_, amount)| *amount)
    }

    /// The amounts above zero, ordered by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&ResourceName, u64)> + '_ {
        self.0.iter().map(|(name, amount)| (name, *amount))
    }

    /// How many dimensions are above zero.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is asked for or offered.
    #[inline]
    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether nothing is asked for or offered; the same as [`Self::is_zero`].
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.is_zero()
    }

    /// The sum, dimension by dimension, saturating at [`MAX_AMOUNT`].
    #[must_use]
    pub fn add(&self, other: &Self) -> Self {
        self.merge(other, |a, b| a.saturating_add(b).min(MAX_AMOUNT))
    }

    /// The larger amount of each dimension.
    #[must_use]
    pub fn max(&self, other: &Self) -> Self {
        self.merge(other, Ord::max)
    }

    /// What is left of `self` after `other` is taken away; never below zero.
    #[must_use]
    pub fn saturating_sub(&self, other: &Self) -> Self {
        self.merge(other, u64::saturating_sub)
    }

    /// Every amount `times` over, saturating at [`MAX_AMOUNT`].
    #[must_use]
    pub fn scale(&self, times: u64) -> Self {
        let mut scaled = self.clone();
        if times == 0 {
            return Self::ZERO;
        }
        for (_, amount) in &mut scaled.0 {
            *amount = amount.saturating_mul(times).min(MAX_AMOUNT);
        }
        scaled
    }

    /// Whether `self` holds at least as much of everything `demand` lists.
    #[inline]
    pub fn covers(&self, demand: &Self) -> bool {
        let mut have = self.0.iter();
        'demand: for (name, wanted) in &demand.0 {
            for (n, amount) in have.by_ref() {
                match n.cmp(name) {
                    Ordering::Less => {}
                    Ordering::Equal if amount >= wanted => continue 'demand,
                    _ => return false,
                }
            }
            return false;
        }
        true
    }

    /// Whether `self` has some of what `missing` still lists. A machine that has none is passed over.
    #[inline]
    pub fn contributes(&self, missing: &Self) -> bool {
        let (mut i, mut j) = (0, 0);
        while i < self.0.len() && j < missing.0.len() {
            match self.0[i].0.cmp(&missing.0[j].0) {
                Ordering::Less => i += 1,
                Ordering::Greater => j += 1,
                Ordering::Equal => return true,
            }
        }
        false
    }

    /// Orders vectors dimension by dimension in name order, a missing one counting as 0.
    pub fn cmp_by_name(&self, other: &Self) -> Ordering {
        let (mut i, mut j) = (0, 0);
        loop {
            match (self.0.get(i), other.0.get(j)) {
                (None, None) => return Ordering::Equal,
                (Some(_), None) => return Ordering::Greater,
                (None, Some(_)) => return Ordering::Less,
                (Some(a), Some(b)) => match a.0.cmp(&b.0) {
                    // The side that lists the earlier name has more of it than the other's zero.
                    Ordering::Less => return Ordering::Greater,
                    Ordering::Greater => return Ordering::Less,
                    Ordering::Equal if a.1 == b.1 => {
                        i += 1;
                        j += 1;
                    }
                    Ordering::Equal => return a.1.cmp(&b.1),
                },
            }
        }
    }

    /// Combines two vectors dimension by dimension; zeros of the result are dropped.
    #[inline]
    fn merge(&self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        let mut out = SmallVec::new();
        let mut push = |name: &ResourceName, amount: u64| {
            if amount > 0 {
                out.push((name.clone(), amount));
            }
        };
        let (mut i, mut j) = (0, 0);
        while i < self.0.len() && j < other.0.len() {
            let (a, b) = (&self.0[i], &other.0[j]);
            match a.0.cmp(&b.0) {
                Ordering::Less => {
                    push(&a.0, combine(a.1, 0));
                    i += 1;
                }
                Ordering::Greater => {
                    push(&b.0, combine(0, b.1));
                    j += 1;
                }
                Ordering::Equal => {
                    push(&a.0, combine(a.1, b.1));
                    i += 1;
                    j += 1;
                }
            }
        }
        self.0[i..].iter().for_each(|(name, amount)| push(name, combine(*amount, 0)));
        other.0[j..].iter().for_each(|(name, amount)| push(name, combine(0, *amount)));
        Self(out)
    }
}

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
