//! A storm: every cluster reports again, and every roll-up differs from the last one.

use std::collections::BTreeMap;

use bigfleet_scenario::Scenario;
use bigfleet_scenario::seed::Seed;

use crate::change::{Change, pieces, resized, roll_ups, set_pieces};

/// The most a row changes by.
const SWING: f64 = 0.1;

/// A new roll-up for every cluster: each row's amount differs by up to a tenth, in whole pieces.
///
/// Gangs that were alike stay alike, so that they still fold together. At least one row of every cluster changes.
pub fn storm(scenario: &Scenario, seed: u64) -> Vec<Change> {
    let mut seed = Seed::new(seed);
    let roll_up = |(cluster, mut rows): (_, Vec<_>)| {
        let mut drawn = BTreeMap::new();
        let mut changed = false;
        for row in &mut rows {
            let before = pieces(row);
            let alike = (row.profile.fingerprint().to_owned(), before);
            let after = *drawn.entry(alike).or_insert_with(|| resized(before, SWING, &mut seed));
            changed |= after != before;
            set_pieces(row, after);
        }
        if let Some(first) = rows.first_mut().filter(|_| !changed) {
            set_pieces(first, pieces(first) + 1);
        }
        Change::Needs { cluster, rows }
    };
    roll_ups(scenario).into_iter().map(roll_up).collect()
}
