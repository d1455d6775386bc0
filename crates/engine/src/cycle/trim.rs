//! Giving back what turned out not to be needed.

use crate::vocab::Dim;

/// Given picks that cover what was missing, drops, last first, each pick without which the others still cover it.
/// What is dropped is handed to `give_back`.
pub(crate) fn trim<'a, T: Copy>(
    picked: &mut Vec<T>,
    missing: &[(Dim, u64)],
    provides: impl Fn(T) -> &'a [u64],
    mut give_back: impl FnMut(T),
) {
    if picked.len() < 2 {
        // One pick that contributed cannot be spared.
        return;
    }
    let amount = |pick: T, dim: Dim| u128::from(provides(pick)[dim as usize]);
    let mut spare: smallvec::SmallVec<[(Dim, u128); 4]> = missing
        .iter()
        .map(|(dim, amount_missing)| {
            let total: u128 = picked.iter().map(|pick| amount(*pick, *dim)).sum();
            debug_assert!(total >= u128::from(*amount_missing), "only what covers is trimmed");
            (*dim, total - u128::from(*amount_missing))
        })
        .collect();
    let mut dropped = 0;
    for at in (0..picked.len()).rev() {
        let pick = picked[at];
        if spare.iter().all(|(dim, spare)| amount(pick, *dim) <= *spare) {
            spare.iter_mut().for_each(|(dim, spare)| *spare -= amount(pick, *dim));
            picked.remove(at);
            give_back(pick);
            dropped += 1;
        }
    }
    debug_assert!(dropped == 0 || !picked.is_empty() || missing.iter().all(|(_, amount)| *amount == 0));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trimmed(machines: &[[u64; 2]], missing: [u64; 2]) -> (Vec<usize>, Vec<usize>) {
        let mut picked: Vec<usize> = (0..machines.len()).collect();
        let mut given_back = Vec::new();
        let missing = [(0, missing[0]), (1, missing[1])];
        trim(&mut picked, &missing, |at| &machines[at][..], |at| given_back.push(at));
        (picked, given_back)
    }

    #[test]
    fn the_last_superfluous_pick_goes_first() {
        assert_eq!(trimmed(&[[4, 0], [4, 0], [4, 0]], [8, 0]), (vec![0, 1], vec![2]));
        assert_eq!(trimmed(&[[2, 0], [1, 0], [8, 0]], [8, 0]), (vec![2], vec![1, 0]));
    }

    #[test]
    fn what_one_dimension_needs_stays() {
        assert_eq!(trimmed(&[[4, 1], [4, 0], [4, 0]], [8, 1]), (vec![0, 1], vec![2]));
        assert_eq!(trimmed(&[[9, 1], [0, 9]], [9, 9]), (vec![0, 1], vec![]));
        assert_eq!(trimmed(&[[u64::MAX >> 1, 0], [u64::MAX >> 1, 1]], [5, 1]), (vec![1], vec![0]));
    }
}
