//! `ShardRead.InspectNeeds`: the wire's own view of demand, for dashboards that know nothing else of us.
//!
//! The wire has fewer reasons than we do. A parked gang is told as one whose topology cannot be satisfied, which is why it
//! was parked; a need that waits for machines to drain is told as starved by whoever still has them.
//!
//! Counting what would do for a need looks at every machine. That is done for as many needs as is reasonable, in order;
//! beyond that the count says that it stopped early, and candidates are left out.

use std::collections::BTreeMap;

use bigfleet_engine::{ActionKind, Decision, DomainCoverage, Fleet};
use bigfleet_model::machine::MachineState;
use bigfleet_model::need::NeedKey;
use bigfleet_model::resource::ResourceVec;
use bigfleet_proto::v1alpha1::inspect_needs_response::Frame;
use bigfleet_proto::v1alpha1::{
    self as wire, InspectNeedsHeader, InspectNeedsRequest, InspectNeedsResponse, MatchingSupply, NeedView,
    PreemptionSummary, Resources, UnmetReason,
};
use bigfleet_shard::Shard;
use tonic::Status;

use crate::known::named;
use crate::needs::{self, NeedRow};
use crate::pages::Pages;
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::blocking;
use crate::v1;

/// Machines looked at to count what would do, over all needs.
const LOOKED_AT: usize = 5_000_000;
/// Candidate domains told for a gang.
const CANDIDATES: usize = 20;
/// Needs whose remaining facts are taken from the shard at once.
const PART: usize = 500;

/// A need on its way to the wire.
struct Row {
    view: NeedView,
    need: NeedRow,
    victims: Vec<Box<str>>,
}

fn reason(reason: v1::Reason) -> UnmetReason {
    match reason {
        v1::Reason::Unspecified => UnmetReason::Unspecified,
        v1::Reason::Parked | v1::Reason::TopologyUnsatisfiable => UnmetReason::TopologyUnsatisfiable,
        v1::Reason::NoMatchingSupply => UnmetReason::NoMatchingSupply,
        v1::Reason::PreemptionExhausted => UnmetReason::PreemptionExhausted,
        v1::Reason::InFlight | v1::Reason::PriorityStarved => UnmetReason::PriorityStarved,
    }
}

/// A count as the wire has it.
fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// What a decision binds and buys for each need.
fn acquisitions(decision: Option<&Decision>) -> BTreeMap<NeedKey, (i32, i32)> {
    let mut counts: BTreeMap<NeedKey, (i32, i32)> = BTreeMap::new();
    for action in decision.into_iter().flat_map(|decision| &decision.actions) {
        let Some(demand) = &action.need else { continue };
        match action.kind {
            ActionKind::Bootstrap => counts.entry(demand.need.key()).or_default().0 += 1,
            ActionKind::Provision => counts.entry(demand.need.key()).or_default().1 += 1,
            _ => {}
        }
    }
    counts
}

/// What could serve a need, by the state it is in.
fn matching(fleet: &Fleet, key: &NeedKey, may_look: bool) -> MatchingSupply {
    if may_look && let Some(funnel) = fleet.funnel(key) {
        let of = |state| count(funnel.useful.get(&state).copied().unwrap_or_default());
        let (idle, configured) = (of(MachineState::Idle), of(MachineState::Configured));
        return MatchingSupply {
            idle,
            configured,
            speculative: of(MachineState::Speculative),
            capped: false,
        };
    }
    let free = fleet.available(key).unwrap_or_default();
    MatchingSupply {
        idle: count(free.idle),
        configured: 0,
        speculative: count(free.speculative),
        capped: true,
    }
}

/// The domains that could carry a gang, the best first.
fn candidates(fleet: &Fleet, key: &NeedKey) -> Vec<wire::DomainCoverage> {
    let domains = fleet.domain_coverage(key).unwrap_or_default();
    let candidate = |domain: DomainCoverage| wire::DomainCoverage {
        domain: domain.domain.into(),
        coverage_per_mille: domain.per_mille.cast_signed(),
        satisfiable: domain.per_mille == 1000,
    };
    domains.into_iter().take(CANDIDATES).map(candidate).collect()
}

fn rows(fleet: &Fleet, decision: Option<&Decision>, cluster: &str, limit: usize) -> (Vec<Row>, usize) {
    let acquired = acquisitions(decision);
    let mut all = needs::all(fleet);
    all.retain(|row| {
        cluster.is_empty() || row.message.key.as_ref().is_some_and(|key| key.cluster == cluster)
    });
    let total = all.len();
    let most_looks = LOOKED_AT / fleet.machine_count().max(1);
    let (mut looks, mut gang_looks) = (most_looks, most_looks);
    let row = |mut row: NeedRow| {
        let mut message = std::mem::take(&mut row.message);
        let key = message.key.take().unwrap_or_default();
        let own = NeedKey {
            cluster: key.cluster.as_str().into(),
            fingerprint: key.fingerprint.as_str().into(),
            group: key.group.as_str().into(),
        };
        let why = message.reason();
        let (bootstrap_count, provision_count) = acquired.get(&row.decided_as).copied().unwrap_or_default();
        let residual = if message.unresolved.is_empty() { message.deficit } else { message.unresolved };
        let outcome = fleet.outcome_of(&own).filter(|_| !message.satisfied);
        let victims = outcome.map_or_else(Vec::new, |o| {
            o.victims.iter().chain(&o.in_flight).map(|id| Box::from(*id)).collect()
        });
        let supply = (!message.satisfied).then(|| {
            let may_look = looks > 0;
            looks = looks.saturating_sub(1);
            matching(fleet, &own, may_look)
        });
        let is_gang = fleet.need(&own).is_some_and(|demand| demand.need.profile.same().is_some());
        let candidates = if is_gang && gang_looks > 0 {
            gang_looks -= 1;
            candidates(fleet, &own)
        } else {
            Vec::new()
        };
        let view = NeedView {
            need: message.spec,
            cluster_id: key.cluster,
            arrival_unix_nanos: message.first_seen_unix_nanos,
            profile_fingerprint: key.fingerprint,
            satisfied: message.satisfied,
            residual_deficit: (!message.satisfied).then_some(Resources { resources: residual }),
            claimed_machine_count: message.credited.cast_signed(),
            bootstrap_count,
            provision_count,
            same_domain: message.domain,
            same_satisfiable: message.domain_covers,
            acquisition_parked: message.parked,
            parked_age_cycles: 0,
            age_cycles_unmet: 0,
            unmet_reason: if message.satisfied { 0 } else { reason(why).into() },
            matching_supply: supply,
            preemption: None,
            same_candidates: candidates,
        };
        Row { view, need: row, victims }
    };
    (all.into_iter().take(limit).map(row).collect(), total)
}

impl<S: Shards> View<S> {
    pub(crate) async fn inspect_needs(
        &self,
        request: InspectNeedsRequest,
        pages: Pages<InspectNeedsResponse>,
    ) -> Result<(), Status> {
        let snapshot = self.snapshot(None).await?;
        let decision = self.shards.inspect(|shard, _| shard.decision().cloned()).await?;
        let cycle = i64::try_from(snapshot.as_of.cycle).unwrap_or(i64::MAX);
        let mut header = InspectNeedsHeader {
            cycle,
            computed_at_unix_nanos: snapshot.as_of.cycle_unix_nanos,
            total_needs: 0,
        };
        if cycle == 0 {
            return pages.send(InspectNeedsResponse { frame: Some(Frame::Header(header)) }).await;
        }
        let limit = usize::try_from(request.limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        let (cluster, fleet) = (request.cluster_id, snapshot.fleet);
        let (rows, total) = blocking(move || Ok(rows(&fleet, decision.as_deref(), &cluster, limit))).await?;
        header.total_needs = count(total);
        pages.send(InspectNeedsResponse { frame: Some(Frame::Header(header)) }).await?;
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let part: Vec<Row> = rows.by_ref().take(PART).collect();
            for view in self.finish(part, snapshot.as_of.cycle).await? {
                pages.send(InspectNeedsResponse { frame: Some(Frame::Need(view)) }).await?;
            }
        }
        Ok(())
    }

    /// Adds ages and what preemption freed.
    async fn finish(&self, rows: Vec<Row>, cycle: u64) -> Result<Vec<NeedView>, Status> {
        let exhausted = UnmetReason::PreemptionExhausted as i32;
        let victims =
            rows.iter().filter(|row| row.view.unmet_reason == exhausted).flat_map(|row| &row.victims);
        let machines = named(&*self.shards, victims.cloned().collect()).await?;
        let provides: BTreeMap<&str, &ResourceVec> =
            machines.iter().map(|known| (&*known.machine.id, known.machine.provides())).collect();
        let mut rows = rows;
        for row in rows.iter_mut().filter(|row| row.view.unmet_reason == exhausted) {
            let freed = row.victims.iter().filter_map(|id| provides.get(&**id));
            let freed = freed.fold(ResourceVec::ZERO, |sum, amount| sum.add(amount));
            row.view.preemption = Some(PreemptionSummary {
                victims_found: count(row.victims.len()),
                capacity_freed: Some(Resources::from(&freed)),
            });
        }
        let look = move |shard: &Shard, _| -> Vec<NeedView> {
            let age = |since: u64| i32::try_from(cycle.saturating_sub(since)).unwrap_or(i32::MAX);
            for row in &mut rows {
                if let Some(shortfall) = shard.ledger().get(&row.need.decided_as) {
                    row.view.age_cycles_unmet = age(shortfall.since.cycle);
                }
                let parked = shard.stuck(&row.need.decided_as).and_then(|stuck| stuck.parked_cycle);
                if let Some(parked) = parked.filter(|_| row.view.acquisition_parked) {
                    row.view.parked_age_cycles = age(parked);
                }
            }
            rows.into_iter().map(|row| row.view).collect()
        };
        Ok(self.shards.inspect(look).await?)
    }
}
