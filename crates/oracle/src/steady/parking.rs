//! Parking, as a shard keeps it: gangs that get nowhere stop trying for a while.

use std::collections::BTreeMap;

use bigfleet_model::need::{Need, NeedKey};
use bigfleet_scenario::Answer;
use bigfleet_scenario::answer::ActionKind;

/// After how many cycles without progress a gang is parked.
pub(super) const PATIENCE: usize = 8;
/// How often a parked gang may try again.
const RETRY_EVERY: usize = 32;

/// How long each gang has got nowhere.
#[derive(Default)]
pub(super) struct Parking(BTreeMap<NeedKey, usize>);

impl Parking {
    /// Stamps the gangs that are parked in this cycle.
    pub(super) fn stamp(&self, needs: &mut [Need], cycle: usize) {
        for need in needs {
            let stuck = self.0.get(&need.key()).copied().unwrap_or(0);
            need.parked = stuck >= PATIENCE && !cycle.is_multiple_of(RETRY_EVERY);
        }
    }

    /// Learns from an answer: a gang that is unsatisfied, acquired nothing and has no domain that covers it got
    /// nowhere. Everything else is progress, folding included.
    pub(super) fn learn(&mut self, needs: &[Need], answer: &Answer) {
        let mut stuck: BTreeMap<NeedKey, usize> = BTreeMap::new();
        for domain in answer.domains.iter().filter(|domain| !domain.covers) {
            let row = &answer.normalized_needs[domain.need as usize];
            let acquired = answer.actions.iter().any(|action| {
                action.need == Some(domain.need)
                    && matches!(action.kind, ActionKind::Bootstrap | ActionKind::Provision)
            });
            if acquired || answer.deficits[domain.need as usize].is_empty() {
                continue;
            }
            let gang = needs.iter().map(Need::key).find(|key| {
                *key.cluster == *row.cluster
                    && *key.fingerprint == *row.fingerprint
                    && *key.group == *row.group
            });
            let key = gang.expect("a need with a domain is one of those asked for");
            let before = self.0.get(&key).copied().unwrap_or(0);
            stuck.insert(key, before + 1);
        }
        self.0 = stuck;
    }
}
