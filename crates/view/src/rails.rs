//! The rails and what they hold back now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_engine::ActionKind;
use bigfleet_shard::{Cluster, Fate, Order, Ordered, Purchases, Settings, Shard, Unanswered};
use tonic::Status;

use crate::clusters::{held_rollup, provider};
use crate::convert::{fate, kind, pause};
use crate::decisions::{self, message};
use crate::modes;
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::as_of;
use crate::v1;

/// Withheld actions told one by one.
const TOLD: usize = 1000;

/// How many machines a cluster may lose, and has lost lately.
pub(crate) fn reclaim_cap(shard: &Shard, name: &str, cluster: &Cluster, now: i64) -> v1::ReclaimCap {
    let cap = shard.reclaim_cap(cluster, now);
    v1::ReclaimCap {
        cluster: name.to_owned(),
        configured: cap.configured as u32,
        cap: cap.most,
        used: cap.used,
        frees_unix_nanos: cap.frees_unix_nanos.unwrap_or_default(),
    }
}

/// Adds up actions by kind and fate.
pub(crate) fn totals(actions: impl Iterator<Item = (ActionKind, Fate)>) -> Vec<v1::FateCount> {
    let mut counts: BTreeMap<(ActionKind, Fate), u32> = BTreeMap::new();
    for one in actions {
        *counts.entry(one).or_default() += 1;
    }
    let count = |((k, f), actions)| v1::FateCount { kind: kind(k).into(), fate: fate(f).into(), actions };
    counts.into_iter().map(count).collect()
}

impl<S: Shards> View<S> {
    pub(crate) async fn rails(&self) -> Result<v1::Rails, Status> {
        let simulated = self.about.simulated;
        // A cycle may have withheld as much as there is: it is read through elsewhere, not on the shard's thread.
        let last = self.shards.inspect(|shard, _| shard.recent().next_back().cloned()).await?;
        let held: Vec<&Ordered> = last.iter().flat_map(|record| decisions::withheld(record)).collect();
        let capped: BTreeSet<Arc<str>> = held
            .iter()
            .filter(|ordered| ordered.fate == Fate::Capped)
            .filter_map(|ordered| ordered.action.cluster.clone())
            .collect();
        let mut rails = self.shards.inspect(move |shard, now| look(shard, now, simulated, &capped)).await?;
        rails.withheld = totals(held.iter().map(|ordered| (ordered.action.kind, ordered.fate)));
        let told = last.iter().flat_map(|record| {
            decisions::withheld(record).take(TOLD).map(|ordered| message((&**record).into(), &ordered.into()))
        });
        rails.withheld_actions = told.collect();
        Ok(rails)
    }
}

fn look(shard: &Shard, now: i64, simulated: bool, capped: &BTreeSet<Arc<str>>) -> v1::Rails {
    let config = shard.config();
    let books = shard.purchases(now);
    let since = now - config.rails.reclaim_window;
    let reclaimed = |cluster: &Cluster| cluster.reclaims.iter().any(|(at, _)| *at > since);
    let caps = shard.clusters().iter().filter(|(name, cluster)| reclaimed(cluster) || capped.contains(*name));
    let providers = (0..shard.providers().len()).map(|index| provider(shard, index, now));
    v1::Rails {
        as_of: Some(as_of(shard, now, simulated)),
        reclaim_fraction: config.rails.reclaim_fraction,
        reclaim_window_nanos: config.rails.reclaim_window,
        max_actions_per_cycle: config.rails.max_actions_per_cycle as u64,
        dry_run: config.rails.dry_run,
        max_moves: config.limits.flights as u64,
        moves: shard.queues().calling as u64,
        caps: caps.map(|(name, cluster)| reclaim_cap(shard, name, cluster, now)).collect(),
        pauses: shard.pauses().iter().map(|(number, p)| pause(*number, p)).collect(),
        held_rollups: shard.clusters().iter().filter_map(|(name, c)| held_rollup(shard, name, c)).collect(),
        providers: providers
            .filter(|p| p.held || p.brief.as_ref().is_some_and(|brief| brief.stale))
            .collect(),
        silent_clusters: shard
            .clusters()
            .iter()
            .filter(|(_, cluster)| !cluster.has_reported())
            .map(|(name, _)| name.to_string())
            .collect(),
        withheld: Vec::new(),
        withheld_actions: Vec::new(),
        demand_drop: config.guard.demand_drop,
        supply_drop: config.guard.supply_drop,
        confirmations: config.guard.confirmations,
        purchase_fraction: config.rails.purchase_fraction,
        purchase_window_nanos: config.rails.purchase_window,
        purchase_usd_per_hour: config.rails.purchase_usd_per_hour,
        replacements_usd_per_hour: books.usd_per_hour,
        losses: losses(&books, &shard.settings()),
        mode: modes::strictest(shard, None).0.into(),
        modes: modes::orders(shard),
        proposals: modes::waiting(shard, now),
        instructions: shard.unanswered().iter().map(instruction).collect(),
    }
}

/// What a coordinator wants that was not done.
fn instruction(waiting: &Unanswered) -> v1::WaitingInstruction {
    let wants = match &waiting.instruction.order {
        Some(Order::Take((key, value))) => format!("take domain {key}={value}"),
        Some(Order::LetGo((key, value))) => format!("let go of domain {key}={value}"),
        Some(Order::Transfer { machines, from, to }) => {
            format!("hand {} machines from {from} to {to}", machines.len())
        }
        None => "nothing this build knows".into(),
    };
    v1::WaitingInstruction {
        instruction_id: waiting.instruction.id.to_string(),
        coordinator_term: waiting.instruction.term,
        wants,
        reason: waiting.why.clone(),
        ends: waiting.ends,
    }
}

/// Losses that are not believed yet, now or in a record.
pub(crate) fn losses(books: &Purchases, settings: &Settings) -> Vec<v1::SuspiciousLoss> {
    let name =
        |place: u16| settings.providers.get(usize::from(place)).map(|provider| provider.name.to_string());
    let each = books.losses.iter().map(|loss| v1::SuspiciousLoss {
        cluster: loss.cluster.to_string(),
        provider: name(loss.provider).unwrap_or_default(),
        since_unix_nanos: loss.since_unix_nanos,
        machines: loss.machines,
        usd_per_hour: loss.usd_per_hour,
        seen: loss.seen,
        of: settings.confirmations,
        may_replace: loss.may_replace,
        replaced: loss.replaced,
    });
    each.collect()
}
