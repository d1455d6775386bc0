//! Arithmetic of what is still missing, dimension by dimension.

use bigfleet_model::resource::MAX_AMOUNT;

use crate::vocab::{Amounts, Dim};

/// Whether nothing is missing any more.
#[inline]
pub(crate) fn is_zero(missing: &[(Dim, u64)]) -> bool {
    missing.iter().all(|(_, amount)| *amount == 0)
}

/// Whether a machine has some of what is still missing.
#[inline]
pub(crate) fn contributes(provides: &[u64], missing: &[(Dim, u64)]) -> bool {
    missing.iter().any(|(dim, amount)| *amount > 0 && provides[*dim as usize] > 0)
}

/// Takes a whole machine off what is missing; true if nothing is left.
#[inline]
pub(crate) fn subtract(missing: &mut [(Dim, u64)], provides: &[u64]) -> bool {
    let mut left = 0;
    for (dim, amount) in missing {
        *amount = amount.saturating_sub(provides[*dim as usize]);
        left |= *amount;
    }
    left == 0
}

/// The sum of two lists of the same dimensions in the same order.
pub(crate) fn add_same_dims(sum: &mut Amounts, other: &[(Dim, u64)]) {
    for ((dim, amount), (other_dim, more)) in sum.iter_mut().zip(other) {
        assert_eq!(dim, other_dim, "amounts of one shape list the same dimensions");
        *amount = amount.saturating_add(*more).min(MAX_AMOUNT);
    }
}
