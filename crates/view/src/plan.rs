//! What the next cycle would do if it ran now: decided on a fork, with what the rails would make of it.

use std::collections::BTreeMap;

use bigfleet_engine::{Action, ActionKind, Decision, Fleet, Options};
use bigfleet_record::Decided;
use bigfleet_shard::{Fate, MachineFacts, Shard};
use tonic::Status;

use crate::convert::{is_unmet, kind, kind_from};
use crate::decisions::{At, machines_in, message, with_facts};
use crate::names::find_cluster;
use crate::rails::totals;
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::{Snapshot, blocking};
use crate::v1;

/// Actions told if nobody says how many.
const TOLD: u32 = 1000;

/// How often a plan is begun anew because a cycle ran meanwhile. The last try takes the rails as they are then.
const TRIES: u32 = 4;

/// For how many needs a runner-up is looked for.
const NEEDS_EXPLAINED: usize = 256;

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
        self.needs_life("a plan")?;
        for number in &request.kinds {
            kind_from(*number)?;
        }
        if !request.cluster.is_empty() {
            let name = request.cluster.clone();
            let look =
                move |shard: &Shard, _| find_cluster(&name, shard.clusters().keys().map(|name| &**name));
            self.shards.inspect(look).await??;
        }
        let mut tries = 0;
        loop {
            tries += 1;
            if let Some(plan) = self.plan_once(&request, tries == TRIES).await? {
                return Ok(plan);
            }
        }
    }

    /// A plan of the cycle after the last one. `None` if the next one ran meanwhile: its rails would be those of another
    /// instant than its decision.
    async fn plan_once(
        &self,
        request: &v1::PlanRequest,
        is_last_try: bool,
    ) -> Result<Option<v1::PlanAnswer>, Status> {
        let simulated = self.about.simulated;
        let look = move |shard: &Shard, now: i64| {
            let mut snapshot = Snapshot::live(shard, now, simulated);
            shard.park_on(&mut snapshot.fleet);
            (snapshot, shard.engine().fork(), shard.cycle() + 1, shard.money().spend().usd_per_hour())
        };
        let (snapshot, undecided, cycle, spend) = self.shards.inspect(look).await?;
        let Snapshot { as_of, mut fleet, options, now_unix_nanos, .. } = snapshot;
        let limit = if request.limit == 0 { TOLD } else { request.limit } as usize;
        let wanted = request.clone();
        let (decision, planned, unmet_before, unmet_after) = blocking(move || {
            let before = unmet(&undecided);
            let decision = fleet.cycle(&options, now_unix_nanos);
            let planned = Planned::new(&fleet, &options, &decision, &wanted, limit);
            let after = unmet(&fleet);
            Ok((decision, planned, before, after))
        })
        .await?;
        let rehearsed = decision.clone();
        let names = machines_in(planned.told.iter().map(|(_, one)| one));
        let look = move |shard: &Shard, now: i64| {
            if shard.cycle() + 1 != cycle && !is_last_try {
                return None;
            }
            let facts = names.into_iter().filter_map(|id| {
                let facts = MachineFacts::from(&**shard.machine(&id)?.machine);
                Some((id, facts))
            });
            Some((shard.rehearse(&rehearsed, now), facts.collect::<BTreeMap<_, _>>()))
        };
        let Some((fates, facts)) = self.shards.inspect(look).await? else { return Ok(None) };
        let at = At { cycle, epoch: as_of.epoch, unix_nanos: now_unix_nanos, other_edition: None };
        let actions = planned.told.into_iter().map(|(index, one)| {
            let one = Decided { fate: fates[index], ..one };
            message(at, &with_facts(one, |id| facts.get(id).cloned()))
        });
        let actions = actions.collect();
        let begun = |index: &usize| fates[*index] == Fate::Begun;
        let moved: f64 = planned.bill.iter().filter(|(index, _)| begun(index)).map(|(_, usd)| usd).sum();
        let kinds = planned.wanted.iter().map(|index| (decision.actions[*index].kind, fates[*index]));
        Ok(Some(v1::PlanAnswer {
            as_of: Some(as_of),
            actions,
            totals: totals(kinds),
            usd_per_hour_before: spend,
            usd_per_hour_after: spend + moved,
            unmet_before,
            unmet_after,
        }))
    }
}

/// What a cycle would do, as far as its decision says: fates come later, from the shard.
struct Planned {
    /// The places of the actions somebody asks about.
    wanted: Vec<usize>,
    /// The first of them, explained.
    told: Vec<(usize, Decided)>,
    /// What actions change on the bill.
    bill: Vec<(usize, f64)>,
}

impl Planned {
    fn new(
        fleet: &Fleet,
        options: &Options,
        decision: &Decision,
        request: &v1::PlanRequest,
        limit: usize,
    ) -> Self {
        let is_wanted = |action: &Action| {
            let gets = action.need.as_ref().map(|demand| &*demand.need.cluster);
            (request.kinds.is_empty() || request.kinds.contains(&kind(action.kind).into()))
                && (request.cluster.is_empty()
                    || action.cluster.as_deref() == Some(&*request.cluster)
                    || gets == Some(&*request.cluster))
        };
        let all = decision.actions.iter().enumerate();
        let wanted: Vec<usize> = all.clone().filter(|(_, one)| is_wanted(one)).map(|(at, _)| at).collect();
        let mut explainer = fleet.explainer(options);
        let told = wanted.iter().take(limit).map(|at| {
            let action = &decision.actions[*at];
            let within = explainer.needs_looked_at() < NEEDS_EXPLAINED;
            let why = if within { explainer.explain(action) } else { explainer.brief(action) };
            (*at, Decided::new(action, Fate::Begun, why))
        });
        let told = told.collect();
        let bill =
            all.filter_map(|(at, action)| Some((at, change(action.kind, fleet.price_of(&action.machine)?))));
        Self { wanted, told, bill: bill.filter(|(_, usd)| *usd != 0.0).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_buying_and_giving_back_change_the_bill() {
        assert_eq!((change(ActionKind::Provision, 2.0), change(ActionKind::Delete, 2.0)), (2.0, -2.0));
        for kind in [ActionKind::Bootstrap, ActionKind::Preempt, ActionKind::Reclaim] {
            assert_eq!(change(kind, 2.0), 0.0);
        }
    }
}
