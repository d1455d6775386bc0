//! Short lists of amounts by name, sorted: the part of a vector that has names of its own.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::ResourceName;

/// Amounts by name. One fits without an allocation: most vectors have none, every machine has two vectors, and room that
/// is empty costs as much as room that is used.
pub(super) type Entries = SmallVec<[(ResourceName, u64); 1]>;
/// Amounts of all names while they are gathered.
pub(super) type Gathered = SmallVec<[(ResourceName, u64); 8]>;

/// Both lists sorted by name; `combine` gets 0 for a name that is missing on one side. Zeros are dropped.
pub(super) fn merge(
    mut a: &[(ResourceName, u64)],
    mut b: &[(ResourceName, u64)],
    combine: impl Fn(u64, u64) -> u64,
) -> Entries {
    let mut merged = Entries::new();
    let mut push = |name: &ResourceName, amount| {
        if amount > 0 {
            merged.push((name.clone(), amount));
        }
    };
    loop {
        match (a, b) {
            ([], []) => return merged,
            ([(name, amount), rest @ ..], []) => {
                push(name, combine(*amount, 0));
                a = rest;
            }
            ([], [(name, amount), rest @ ..]) => {
                push(name, combine(0, *amount));
                b = rest;
            }
            ([(left, x), rest_a @ ..], [(right, y), rest_b @ ..]) => {
                let order = left.cmp(right);
                let (name, x) = if order.is_le() { (left, *x) } else { (right, 0) };
                push(name, combine(x, if order.is_ge() { *y } else { 0 }));
                a = if order.is_le() { rest_a } else { a };
                b = if order.is_ge() { rest_b } else { b };
            }
        }
    }
}

/// Whether every name of `demand` is among `have`, with no smaller an amount; both sorted by name.
pub(super) fn covers(have: &[(ResourceName, u64)], demand: &[(ResourceName, u64)]) -> bool {
    let mut have = have.iter();
    demand.iter().all(|(name, wanted)| {
        let found = have.by_ref().map(|(n, amount)| (n.cmp(name), amount)).find(|(order, _)| order.is_ge());
        found.is_some_and(|(order, amount)| order.is_eq() && amount >= wanted)
    })
}

/// Whether some name is on both lists; both sorted by name.
pub(super) fn contributes(mut have: &[(ResourceName, u64)], mut missing: &[(ResourceName, u64)]) -> bool {
    while let ([(a, _), rest_a @ ..], [(b, _), rest_b @ ..]) = (have, missing) {
        match a.cmp(b) {
            Ordering::Less => have = rest_a,
            Ordering::Greater => missing = rest_b,
            Ordering::Equal => return true,
        }
    }
    false
}
