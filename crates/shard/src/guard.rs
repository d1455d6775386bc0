//! The roll-up guard: a report that erases most of a cluster's demand is not believed at once.
//!
//! One truncated report must not drain a cluster. A suspicious report is held, the demand before it stays, and only
//! when enough further reports agree is it taken. Confirmations must lie apart in time and come over one connection: an
//! operator that crashes and reports nothing each time it comes up confirms nothing.

use crate::config::GuardConfig;
use crate::event::SessionId;
use crate::memory::HeldRollup;
use crate::rollup::Totals;

/// Demand as the guard sees it: how many rows, and how much in all.
#[derive(Clone, Copy)]
pub(crate) struct Sum<'t> {
    pub(crate) rows: usize,
    pub(crate) totals: &'t Totals,
}

/// What is suspicious about a report that replaces `accepted`, if anything.
pub(crate) fn suspicion(config: &GuardConfig, accepted: Sum<'_>, reported: Sum<'_>) -> Option<String> {
    if accepted.rows == 0 {
        return None;
    }
    let keeps = 1.0 - config.demand_drop;
    if (reported.rows as f64) < keeps * accepted.rows as f64 {
        return Some(format!("it has {} rows where {} were accepted", reported.rows, accepted.rows));
    }
    let (before, after) = (accepted.totals, reported.totals);
    before.iter().find_map(|(name, amount)| {
        let (amount, left) = (*amount, after.get(name).copied().unwrap_or(0));
        ((left as f64) < keeps * amount as f64)
            .then(|| format!("it asks for {left} {name} in all where {amount} were accepted"))
    })
}

/// Counts a suspicious report. The held report after it, and whether it is believed now.
pub(crate) fn confirm(
    config: &GuardConfig,
    held: Option<&HeldRollup>,
    same_session: bool,
    now: i64,
) -> (HeldRollup, bool) {
    let held = HeldRollup::after(held, same_session, config.spacing, now);
    (held, held.seen >= config.confirmations)
}

/// Whether a held report and a new one came over the same connection.
pub(crate) fn is_same_session(pending: Option<SessionId>, session: SessionId) -> bool {
    pending == Some(session)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bigfleet_model::need::Need;
    use bigfleet_model::penalty::PenaltyBucket;
    use bigfleet_model::profile::Profile;
    use bigfleet_model::resource::ResourceVec;

    use super::*;
    use crate::config::SECOND;
    use crate::rollup::Rollup;

    fn row(priority: i32, cpu: &str) -> Need {
        let profile = Profile::new(vec![], vec![], priority, PenaltyBucket::ZERO, PenaltyBucket::ZERO);
        Need::of_unit("shop", Arc::new(profile), ResourceVec::parse([("cpu", cpu)]).unwrap())
    }

    #[test]
    fn a_report_is_suspicious_by_rows_or_by_amounts_however_small_the_cluster() {
        let config = GuardConfig::default();
        let accepted = [row(1, "10"), row(2, "10")];
        let suspicion = |accepted: &[Need], reported: &[Need]| {
            let [before, after] = [accepted, reported].map(|rows| {
                let (cluster, needs) = ("shop".into(), rows.to_vec());
                Rollup { cluster, taken_unix_nanos: 0, needs }.prepare().unwrap()
            });
            let [accepted, reported] =
                [&before, &after].map(|rollup| Sum { rows: rollup.needs.len(), totals: &rollup.totals });
            super::suspicion(&config, accepted, reported)
        };
        let why = |reported: &[Need]| suspicion(&accepted, reported);
        assert_eq!(why(&[]).unwrap(), "it has 0 rows where 2 were accepted");
        assert_eq!(why(&[row(1, "10")]), None, "half of it is not most of it");
        assert_eq!(why(&[row(1, "9")]).unwrap(), "it asks for 9000 cpu in all where 20000 were accepted");
        assert_eq!(
            why(&[row(8, "10"), row(9, "10")]),
            None,
            "other rows of the same size replace, not erase"
        );
        assert_eq!(suspicion(&[], &[]), None, "nothing was accepted before");
        assert!(suspicion(&[row(1, "1")], &[]).is_some(), "a single row is worth as much");
    }

    #[test]
    fn confirmations_lie_apart_in_time_and_come_over_one_connection() {
        let config = GuardConfig::default();
        let (held, believed) = confirm(&config, None, false, 0);
        assert_eq!((held.seen, believed), (1, false));
        let (held, _) = confirm(&config, Some(&held), true, SECOND);
        assert_eq!(held.seen, 1, "too soon to count");
        let (held, _) = confirm(&config, Some(&held), true, 6 * SECOND);
        assert_eq!(held.seen, 2);
        let (again, believed) = confirm(&config, Some(&held), false, 60 * SECOND);
        assert_eq!((again.seen, believed), (1, false), "a new connection starts over");
        assert_eq!(again.first_unix_nanos, 0, "but it is known since when");
        let (held, believed) = confirm(&config, Some(&held), true, 12 * SECOND);
        assert_eq!((held.seen, believed), (3, true));
    }
}
