//! Needs as clusters reported them, each with the verdict of the last cycle.
//!
//! A gang that fits one machine is decided as part of a plain need. It is listed under its own name all the same, with
//! the verdict on what it became part of.

use std::sync::Arc;

use bigfleet_engine::{Demand, Fleet, Outcome};
use bigfleet_model::need::NeedKey;
use tonic::Status;

use crate::convert::{amounts, reason};
use crate::names::need_ref;
use crate::pages::Pages;
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::blocking;
use crate::utilisation::lines;
use crate::v1;

/// Needs on one page.
const PAGE: usize = 200;

/// A need on its way to a message: what only the shard knows is still missing.
pub(crate) struct NeedRow {
    pub(crate) message: v1::Need,
    /// The machines it has, to add up what they cost.
    pub(crate) machines: Vec<Box<str>>,
    /// The machines that drain for it.
    pub(crate) in_flight: Vec<Box<str>>,
    /// The identity it was decided under.
    pub(crate) decided_as: NeedKey,
}

/// A map from identity to verdict.
type ByKey<'a> = std::collections::BTreeMap<(&'a str, &'a str, &'a str), &'a Outcome<'a>>;

/// All needs in demand order.
pub(crate) fn all(fleet: &Fleet) -> Vec<NeedRow> {
    chosen(fleet, &|_| true)
}

/// Those needs a filter on what was reported lets through, in demand order.
fn chosen(fleet: &Fleet, wanted: &dyn Fn(&Demand) -> bool) -> Vec<NeedRow> {
    let mut reported: Vec<&Arc<Demand>> = fleet.needs().filter(|demand| wanted(demand)).collect();
    reported.sort_by(|a, b| a.need.cmp_demand(&b.need));
    let outcomes = fleet.outcomes();
    let by_key: ByKey<'_> = outcomes
        .iter()
        .filter(|outcome| !outcome.demand.folded)
        .map(|outcome| {
            let need = &outcome.demand.need;
            ((&*need.cluster, need.profile.fingerprint(), &*need.group), outcome)
        })
        .collect();
    let row = |demand: &Arc<Demand>| {
        let need = &demand.need;
        match by_key.get(&(&*need.cluster, need.profile.fingerprint(), &*need.group)) {
            Some(outcome) => NeedRow::new(demand, Some(outcome)),
            None => NeedRow::new(demand, fleet.outcome_of(&need.key()).as_ref()),
        }
    };
    reported.into_iter().map(row).collect()
}

/// One need.
pub(crate) fn one(fleet: &Fleet, key: &NeedKey) -> Option<NeedRow> {
    let demand = fleet.need(key)?;
    Some(NeedRow::new(demand, fleet.outcome_of(key).as_ref()))
}

/// What a need asks for of what the machines it claims provide.
pub(crate) fn used(fleet: &Fleet, key: &NeedKey) -> Vec<v1::ResourceUse> {
    let Some(outcome) = fleet.outcome_of(key) else { return Vec::new() };
    lines(&outcome.demand.need.aggregate, &fleet.provided_by(outcome.credited.iter().copied()))
}

/// A need as it was asked for, whatever became of it.
pub(crate) fn asked(demand: &Demand) -> v1::Need {
    NeedRow::new(demand, None).message
}

impl NeedRow {
    fn new(demand: &Demand, outcome: Option<&Outcome<'_>>) -> Self {
        let need = &demand.need;
        let key = need.key();
        let mut message = v1::Need {
            key: Some(need_ref(&key)),
            spec: Some(need.into()),
            first_seen_unix_nanos: need.first_seen_unix_nanos,
            parked: need.parked,
            domain_key: need.profile.same().map_or_else(String::new, |same| same.key().to_owned()),
            ..v1::Need::default()
        };
        // Reported since the last cycle: nobody has decided anything about it yet.
        let Some(outcome) = outcome else {
            return Self { message, machines: Vec::new(), in_flight: Vec::new(), decided_as: key };
        };
        message.satisfied = outcome.reason.is_none();
        message.reason = reason(outcome.reason).into();
        message.deficit = amounts(&outcome.deficit);
        message.unresolved = outcome.unresolved.as_ref().map(amounts).unwrap_or_default();
        message.credited = outcome.credited.len() as u32;
        message.acquired = outcome.acquired.len() as u32;
        message.in_flight = outcome.in_flight.len() as u32;
        message.victims = outcome.victims.len() as u32;
        message.folded = outcome.demand.folded;
        if let Some(domain) = outcome.domain {
            domain.value.clone_into(&mut message.domain);
            message.domain_covers = domain.covers;
        }
        let names = |ids: &[&str]| ids.iter().map(|id| Box::from(*id)).collect();
        let (machines, in_flight) = (names(&outcome.credited), names(&outcome.in_flight));
        Self { message, machines, in_flight, decided_as: outcome.demand.need.key() }
    }
}

impl<S: Shards> View<S> {
    pub(crate) async fn list_needs(
        &self,
        request: v1::ListNeedsRequest,
        pages: Pages<v1::NeedPage>,
    ) -> Result<(), Status> {
        let snapshot = self.snapshot(request.at).await?;
        if !request.cluster.is_empty() {
            self.check_cluster(&snapshot, &request.cluster).await?;
        }
        let (limit, skip) = (request.limit, request.skip as usize);
        let is_live = snapshot.past.is_none();
        let (as_of, mut rows, total) = blocking(move || {
            let mut rows = chosen(&snapshot.fleet, &|demand| {
                let need = &demand.need;
                (request.cluster.is_empty() || *need.cluster == *request.cluster)
                    && request.min_priority.is_none_or(|least| need.profile.priority() >= least)
                    && (!request.gangs_only || need.profile.same().is_some())
                    && (request.resource.is_empty()
                        || need.aggregate.iter().any(|(name, _)| name.as_str() == request.resource))
            });
            rows.retain(|row| {
                (!request.short_only || !row.message.satisfied)
                    && (request.reason == 0 || row.message.reason == request.reason)
            });
            if request.short_first {
                rows.sort_by_key(|row| row.message.satisfied);
            }
            let total = rows.len();
            let most = if limit == 0 { total } else { (limit as usize).min(total) };
            let rows = rows.into_iter().skip(skip).take(most).map(|row| snapshot.fill(row));
            let rows: Vec<v1::Need> = rows.collect();
            Ok((snapshot.as_of, rows, total))
        })
        .await?;
        if is_live {
            self.own_clusters.add_to(&mut rows);
        }
        let mut rows = rows.into_iter().peekable();
        let mut first = true;
        while first || rows.peek().is_some() {
            let page = v1::NeedPage {
                as_of: Some(as_of.clone()),
                needs: rows.by_ref().take(PAGE).collect(),
                total: first.then_some(total as u64),
            };
            pages.send(page).await?;
            first = false;
        }
        Ok(())
    }
}
