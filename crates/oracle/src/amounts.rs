//! Sums and comparisons of amounts. Only what is above zero is listed; a missing dimension is 0.

use bigfleet_scenario::answer::Amounts;

/// The largest amount of one resource; sums stop here.
const MAX_AMOUNT: u64 = (1 << 63) - 1;

/// Whether `have` holds at least as much of everything in `demand`.
pub(crate) fn covers(have: &Amounts, demand: &Amounts) -> bool {
    demand.iter().all(|(name, wanted)| amount(have, name) >= *wanted)
}

/// Whether `have` has a positive amount of something that is still missing.
pub(crate) fn contributes(have: &Amounts, missing: &Amounts) -> bool {
    missing.keys().any(|name| have.contains_key(name))
}

/// How much there is of one resource.
pub(crate) fn amount(of: &Amounts, name: &str) -> u64 {
    of.get(name).copied().unwrap_or(0)
}

/// Adds `more` to `sum`.
pub(crate) fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let total = sum.entry(name.clone()).or_insert(0);
        *total = total.saturating_add(*amount).min(MAX_AMOUNT);
    }
}

/// What is left of `missing` without `taken`, never below 0.
pub(crate) fn less(missing: &Amounts, taken: &Amounts) -> Amounts {
    let left =
        missing.iter().map(|(name, wanted)| (name.clone(), wanted.saturating_sub(amount(taken, name))));
    left.filter(|(_, left)| *left > 0).collect()
}
