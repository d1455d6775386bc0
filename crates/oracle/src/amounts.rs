//! Sums and comparisons of amounts. Only what is above zero is listed; a missing dimension is 0.

use bigfleet_scenario::answer::Amounts;

/// The largest amount of one resource; sums stop here.
const MAX_AMOUNT: u64 = (1 << 63) - 1;

/// Whether `have` holds at least as much of everything in `demand`.
pub(crate) fn covers(have: &Amounts, demand: &Amounts) -> bool {
    demand.iter().all(|(name, wanted)| have.get(name).copied().unwrap_or(0) >= *wanted)
}

/// Whether `have` has a positive amount of something that is still missing.
pub(crate) fn contributes(have: &Amounts, missing: &Amounts) -> bool {
    missing.keys().any(|name| have.contains_key(name))
}

/// Adds `more` to `sum`.
pub(crate) fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let total = sum.entry(name.clone()).or_insert(0);
        *total = total.saturating_add(*amount).min(MAX_AMOUNT);
    }
}

/// Takes `taken` away from `missing`, never below 0.
pub(crate) fn subtract(missing: &mut Amounts, taken: &Amounts) {
    for (name, amount) in taken {
        if let Some(left) = missing.get_mut(name) {
            *left = left.saturating_sub(*amount);
        }
    }
    missing.retain(|_, left| *left > 0);
}
