//! What concerns one shard, told when it changes. Slow readers see the newest and skip what was between.

use std::collections::BTreeMap;

use bigfleet_proto::coordinator_v1::Charge;
use tokio::sync::watch;

use super::State;
use crate::convert;

/// Who listens.
#[derive(Debug, Default)]
pub(super) struct Followers {
    told: BTreeMap<Box<str>, watch::Sender<Charge>>,
}

impl Followers {
    /// A shard listens; what it heard before goes on being told to whoever asked before.
    pub(super) fn add(&mut self, state: &State, shard: Box<str>) -> watch::Receiver<Charge> {
        let charge = charge(state, &shard);
        let sender = self.told.entry(shard).or_insert_with(|| watch::Sender::new(charge));
        sender.subscribe()
    }

    /// Tells whom something new concerns.
    pub(super) fn tell(&mut self, state: &State) {
        self.told.retain(|_, sender| !sender.is_closed());
        for (shard, sender) in &self.told {
            let charge = charge(state, shard);
            sender.send_if_modified(|told| {
                let is_new = *told != charge;
                *told = charge;
                is_new
            });
        }
    }
}

fn charge(state: &State, shard: &str) -> Charge {
    let fleet = &state.fleet;
    let uses = |users: &[Box<str>]| users.is_empty() || users.iter().any(|user| **user == *shard);
    Charge {
        coordinator_term: fleet.term(),
        quotas: fleet.quotas_of(shard).map(convert::quota).collect(),
        providers: fleet
            .providers()
            .filter(|provider| uses(&provider.shards))
            .map(convert::provider)
            .collect(),
        cluster_ids: fleet.clusters_of(shard).map(str::to_owned).collect(),
        asks: state.help.asks().filter(|ask| *ask.donor == *shard).map(convert::ask).collect(),
    }
}
