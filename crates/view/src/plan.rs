//! What the next cycle would do if it ran now: decided on a fork, with what the rails would make of it.

use bigfleet_engine::{ActionKind, Decision, Fleet};
use bigfleet_model::need::NeedKey;
use bigfleet_record::Decided;
use bigfleet_shard::{Fate, PARK_AFTER_CYCLES, Shard, Stuck, TRY_EVERY_CYCLES};
use tonic::Status;

use crate::convert::{is_unmet, kind, kind_from};
use crate::decisions::{At, message};
use crate::names::find_cluster;
use crate::rails::totals;
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::{Snapshot, blocking};
use crate::v1;

/// Actions told if nobody says how many.
const TOLD: u32 = 1000;

/// For how many needs a runner-up is looked for.
const NEEDS_EXPLAINED: usize = 256;

/// Gangs that make no progress, as the next cycle will find them.
fn stuck(shard: &Shard) -> Vec<(NeedKey, Stuck)> {
    let gangs = shard.engine().short_needs().into_iter().map(|short| short.demand.need.key());
    gangs.filter_map(|key| shard.stuck(&key).copied().map(|stuck| (key, stuck))).collect()
}

/// Whether a gang will be parked in a cycle.
fn is_parked(stuck: Stuck, cycle: u64) -> bool {
    let parked = stuck.parked_cycle.or((cycle - stuck.since_cycle >= PARK_AFTER_CYCLES).then_some(cycle));
    parked.is_some_and(|at| cycle == at || !(cycle - at).is_multiple_of(TRY_EVERY_CYCLES))
}

/// Needs short for another reason than that machines are on their way.
fn unmet(fleet: &Fleet) -> u32 {
    fleet.short_needs().iter().filter(|short| is_unmet(short)).count() as u32
}

/// What an action does to the bill once it is done.
fn change(action: ActionKind, usd_per_hour: f64) -> f64 {
    match action {
        ActionKind::Provision => usd_per_hour,
        ActionKind::Delete => -usd_per_hour,
        ActionKind::Bootstrap | ActionKind::Preempt | ActionKind::Reclaim => 0.0,
    }
}

impl<S: Shards> View<S> {
    pub(crate) async fn plan(&self, request: v1::PlanRequest) -> Result<v1::PlanAnswer, Status> {
        for number in &request.kinds {
            kind_from(*number)?;
        }
        if !request.cluster.is_empty() {
            let name = request.cluster.clone();
            let look =
                move |shard: &Shard, _| find_cluster(&name, shard.clusters().keys().map(|name| &**name));
            self.shards.inspect(look).await??;
        }
        let Snapshot { as_of, mut fleet, options, now_unix_nanos, .. } = self.snapshot(None).await?;
        let (stuck, cycle, spend) = self
            .shards
            .inspect(|shard, _| (stuck(shard), shard.cycle() + 1, shard.money().spend().usd_per_hour()))
            .await?;
        let ran = options.clone();
        let (fleet, decision, unmet_before, unmet_after) = blocking(move || {
            let before = unmet(&fleet);
            for (key, stuck) in stuck {
                fleet.set_parked(&key, is_parked(stuck, cycle));
            }
            let decision = fleet.cycle(&ran, now_unix_nanos);
            let after = unmet(&fleet);
            Ok((fleet, decision, before, after))
        })
        .await?;
        let rehearsed = decision.clone();
        let fates = self.shards.inspect(move |shard, now| shard.rehearse(&rehearsed, now)).await?;
        let limit = if request.limit == 0 { TOLD } else { request.limit } as usize;
        let at = At { cycle, epoch: as_of.epoch, unix_nanos: now_unix_nanos, other_edition: None };
        let all: Vec<Decided> = decided(&decision, &fates);
        let wanted = |one: &Decided| {
            let gets = one.need.as_ref().map(|need| &*need.key.cluster);
            (request.kinds.is_empty() || request.kinds.contains(&kind(one.kind).into()))
                && (request.cluster.is_empty()
                    || one.cluster.as_deref() == Some(&*request.cluster)
                    || gets == Some(&*request.cluster))
        };
        let indexes: Vec<usize> = (0..all.len()).filter(|at| wanted(&all[*at])).collect();
        let told: Vec<usize> = indexes.iter().copied().take(limit).collect();
        let explained = blocking(move || {
            let mut explainer = fleet.explainer(&options);
            let mut why = |at: &usize| {
                let within = explainer.needs_looked_at() < NEEDS_EXPLAINED;
                within.then(|| explainer.explain(&decision.actions[*at])).flatten()
            };
            Ok(told.iter().map(|at| (*at, why(at))).collect::<Vec<_>>())
        })
        .await?;
        let actions =
            explained.into_iter().map(|(index, why)| message(at, &Decided { why, ..all[index].clone() }));
        let actions = self.described(actions.collect()).await?;
        let moved = self.bill_change(&all).await?;
        Ok(v1::PlanAnswer {
            as_of: Some(as_of),
            actions,
            totals: totals(indexes.iter().map(|index| (all[*index].kind, all[*index].fate))),
            usd_per_hour_before: spend,
            usd_per_hour_after: spend + moved,
            unmet_before,
            unmet_after,
        })
    }

    /// What the actions that are not withheld change on the bill, once they are done.
    async fn bill_change(&self, all: &[Decided]) -> Result<f64, Status> {
        let moving: Vec<(ActionKind, Box<str>)> = all
            .iter()
            .filter(|one| one.fate == Fate::Begun && change(one.kind, 1.0) != 0.0)
            .map(|one| (one.kind, one.machine.clone()))
            .collect();
        let mut sum = 0.0;
        for part in moving.chunks(crate::known::SLICE) {
            let part = part.to_vec();
            let look = move |shard: &Shard, _| -> f64 {
                let known = part.iter().filter_map(|(kind, id)| Some((*kind, shard.machine(id)?)));
                known.map(|(kind, view)| change(kind, view.machine.price_usd_per_hour)).sum()
            };
            sum += self.shards.inspect(look).await?;
        }
        Ok(sum)
    }
}

fn decided(decision: &Decision, fates: &[Fate]) -> Vec<Decided> {
    decision.actions.iter().zip(fates).map(|(action, fate)| Decided::new(action, *fate, None)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gang_is_parked_after_some_cycles_and_tries_now_and_then() {
        let stuck = |parked_cycle| Stuck { since_cycle: 10, parked_cycle };
        assert!(!is_parked(stuck(None), 17));
        assert!(is_parked(stuck(None), 18));
        assert!(is_parked(stuck(Some(18)), 19) && is_parked(stuck(Some(18)), 49));
        assert!(!is_parked(stuck(Some(18)), 50), "every 32nd cycle it may try");
    }

    #[test]
    fn only_buying_and_giving_back_change_the_bill() {
        assert_eq!((change(ActionKind::Provision, 2.0), change(ActionKind::Delete, 2.0)), (2.0, -2.0));
        for kind in [ActionKind::Bootstrap, ActionKind::Preempt, ActionKind::Reclaim] {
            assert_eq!(change(kind, 2.0), 0.0);
        }
    }
}
