//! Counters: what happened since the start of this life.

use std::collections::BTreeMap;

use bigfleet_engine::ActionKind;

use crate::tape::Fate;

/// Everything that is counted. Only ever grows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cycles.
    pub cycles: u64,
    /// Cycles in which the engine had nothing new to look at.
    pub quiet_cycles: u64,
    /// Cycles by reason; one cycle may have several.
    pub cycle_reasons: BTreeMap<&'static str, u64>,
    /// Decided actions by what became of them.
    pub actions: BTreeMap<(ActionKind, Fate), u64>,
    /// Machines that were bound on arrival for the need they were bought for, as the second half of their Provision.
    pub carried_on: u64,
    /// Moves that ended, by kind and outcome.
    pub flights: BTreeMap<(ActionKind, &'static str), u64>,
    /// Records of machines that were refused, by what is wrong with them.
    pub bad_records: BTreeMap<&'static str, u64>,
    /// Stamps that could not be read.
    pub bad_stamps: u64,
    /// Records of machines outside the domains of this shard.
    pub foreign_records: u64,
    /// Records that were read although their digest said that nothing changed.
    pub read_again: u64,
    /// Those of them that did not say what we held.
    pub read_otherwise: u64,
    /// Machines of one id listed by two providers.
    pub claimed_twice: u64,
    /// Bound machines that were lost without our order, by what became of them.
    pub lost: BTreeMap<&'static str, u64>,
    /// Machines bought in place of others whose loss was not believed yet.
    pub replaced_under_rail: u64,
    /// Times a listing took back what its provider had answered about a machine.
    pub disputes: u64,
    /// Moves nobody ordered.
    pub unsolicited: u64,
    /// Roll-ups by reception.
    pub rollups: BTreeMap<&'static str, u64>,
    /// Listings by outcome.
    pub listings: BTreeMap<&'static str, u64>,
    /// Clusters that were forgotten because nothing was left of them.
    pub clusters_forgotten: u64,
    /// Machines that were too long in transition.
    pub overdue: u64,
    /// Machines put into quarantine.
    pub quarantined: u64,
    /// Calls that were answered by a newer owner's fence.
    pub fenced: u64,
    /// Times an operator refused or failed to give a blob.
    pub blob_failures: u64,
    /// Answers nobody waited for any more.
    pub late_answers: u64,
    /// Drains the cluster agreed to before the grace was over.
    pub early_drains: u64,
    /// Reclaims that were taken back because the demand returned.
    pub taken_back: u64,
}

impl Tally {
    pub(crate) fn bump<K: Ord>(map: &mut BTreeMap<K, u64>, key: K) {
        *map.entry(key).or_default() += 1;
    }
}
