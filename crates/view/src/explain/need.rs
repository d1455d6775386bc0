//! Why a need has what it has: what was considered, what each rule removed, who holds the rest, what would help.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_model::machine::MachineState;
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::resource::ResourceVec;
use bigfleet_shard::CycleRecord;
use tonic::Status;

use crate::convert;
use crate::decisions::Wanted;
use crate::known::Known;
use crate::names::find_need;
use crate::needs::{self, NeedRow};
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::{Past, Snapshot, Walk, blocking};
use crate::v1;

/// Machine names of each sort if nobody says how many.
const NAMES: u32 = 20;
/// Decisions and domains told.
const TOLD: usize = 20;

/// What the engine says of a need.
struct Answer {
    row: NeedRow,
    need: Need,
    message: v1::NeedExplanation,
    own: BTreeSet<Box<str>>,
    cheapest: Option<Box<str>>,
}

fn ask(snapshot: &Snapshot, request: &v1::ExplainNeedRequest) -> Result<Answer, Status> {
    let fleet = &snapshot.fleet;
    let key = find_need(fleet, &request.need)?;
    let (Some(demand), Some(row)) = (fleet.need(&key), needs::one(fleet, &key)) else {
        return Err(Status::not_found(format!("need {:?} has just been withdrawn", request.need)));
    };
    let names = if request.machines == 0 { NAMES } else { request.machines } as usize;
    let mut message = v1::NeedExplanation::default();
    let mut own = BTreeSet::new();
    if let Some(outcome) = fleet.outcome_of(&key) {
        let some = |ids: &[&str]| ids.iter().take(names).map(|id| (*id).to_owned()).collect::<Vec<_>>();
        message.credited = some(&outcome.credited);
        message.acquired = some(&outcome.acquired);
        message.in_flight = some(&outcome.in_flight);
        message.victims = some(&outcome.victims);
        own.extend(outcome.credited.iter().chain(&outcome.acquired).map(|id| Box::from(*id)));
        message.funnel = fleet.funnel(&key).as_ref().map(convert::funnel);
        if !request.without_remedies && outcome.reason.is_some() {
            let remedies = fleet.what_would_help(&key, &snapshot.options, snapshot.now_unix_nanos);
            message.remedies = remedies.unwrap_or_default().iter().map(convert::remedy).collect();
            message.remedies_tried = true;
        }
    }
    let free = fleet.available(&key);
    let cheapest = free.as_ref().and_then(|free| free.cheapest.as_ref()).map(|(_, id)| id.clone());
    message.free = free.map(|free| v1::FreeSupply {
        idle: free.idle as u32,
        speculative: free.speculative as u32,
        cheapest: cheapest.as_deref().unwrap_or_default().to_owned(),
        cheapest_usd_per_hour: free.cheapest.map_or(0.0, |(price, _)| price),
        price_source: None,
    });
    Ok(Answer { row, need: demand.need.clone(), message, own, cheapest })
}

impl<S: Shards> View<S> {
    pub(crate) async fn explain_need(
        &self,
        request: v1::ExplainNeedRequest,
    ) -> Result<v1::NeedExplanation, Status> {
        let snapshot = self.snapshot(request.at).await?;
        let (snapshot, answer) = blocking(move || {
            let answer = ask(&snapshot, &request);
            answer.map(|answer| (snapshot, answer))
        })
        .await?;
        let Answer { row, need, mut message, own, cheapest } = answer;
        let decided_as = row.decided_as.clone();
        // A gang that is served has its domain; looking at all of them is for one that is not.
        if need.profile.same().is_some() && !row.message.satisfied {
            message.domains = self.domains(snapshot.past.as_ref(), &need, &own).await?;
        }
        message.need = self.fill(&snapshot, vec![row]).await?.pop();
        if let (Some(id), Some(free)) = (cheapest, &mut message.free) {
            let machine = self.machines_named(&snapshot, vec![id]).await?.pop();
            free.price_source = machine.as_ref().map(Known::price_source);
        }
        if snapshot.past.is_none() {
            let recent = self.recent().await?;
            message.decisions = self.decisions_for(&recent, &decided_as, TOLD).await?;
            let last = recent.last().map_or(0, |record| record.cycle);
            message.withheld = message
                .decisions
                .iter()
                .filter(|d| d.cycle == last && d.fate() != v1::Fate::Begun)
                .cloned()
                .collect();
        }
        message.as_of = Some(snapshot.as_of);
        Ok(message)
    }

    /// The newest decisions for a need.
    pub(crate) async fn decisions_for(
        &self,
        recent: &[Arc<CycleRecord>],
        key: &NeedKey,
        most: usize,
    ) -> Result<Vec<v1::Decision>, Status> {
        let wanted = Wanted { need: Some(key.clone()), ..Wanted::default() };
        self.described(wanted.of_recent(recent, most)).await
    }

    /// How far each domain could carry a gang, the best first.
    pub(crate) async fn domains(
        &self,
        past: Option<&Arc<Past>>,
        need: &Need,
        own: &BTreeSet<Box<str>>,
    ) -> Result<Vec<v1::DomainCoverage>, Status> {
        let mut domains = Domains::new(need);
        let mut walk = Walk::begin(past);
        while let Some(slice) = self.next_slice(&mut walk).await? {
            for one in &slice {
                domains.count(one, own);
            }
        }
        Ok(domains.best(TOLD))
    }
}

/// Adds up, domain by domain, what could serve a gang.
pub(crate) struct Domains<'a> {
    need: &'a Need,
    sums: BTreeMap<String, Sum>,
}

#[derive(Default)]
struct Sum {
    all: ResourceVec,
    machines: u32,
    reachable: ResourceVec,
    reachable_machines: u32,
}

impl<'a> Domains<'a> {
    pub(crate) fn new(need: &'a Need) -> Self {
        Self { need, sums: BTreeMap::new() }
    }

    /// Counts a machine if it could ever serve the gang; `own` are those it has or gets.
    pub(crate) fn count(&mut self, one: &Known, own: &BTreeSet<Box<str>>) {
        let (machine, profile) = (&*one.machine, &self.need.profile);
        let Some(same) = profile.same() else { return };
        let is_dead = matches!(machine.state, MachineState::Deleting | MachineState::Failed);
        if is_dead
            || !one.counts
            || !self.need.fits_on(machine.provides())
            || !profile.matches(machine.facts())
        {
            return;
        }
        let Some(domain) = machine.facts().value(same.key()) else { return };
        if !self.sums.contains_key(domain) {
            self.sums.insert(domain.to_owned(), Sum::default());
        }
        let sum = self.sums.get_mut(domain).expect("it was just put there");
        sum.all = sum.all.add(machine.provides());
        sum.machines += 1;
        let is_free = matches!(machine.state, MachineState::Idle | MachineState::Speculative);
        if is_free || own.contains(&machine.id) {
            sum.reachable = sum.reachable.add(machine.provides());
            sum.reachable_machines += 1;
        }
    }

    /// The best domains: by what is within reach, then by what there is, then by name.
    pub(crate) fn best(self, most: usize) -> Vec<v1::DomainCoverage> {
        let per_mille = |sum: &ResourceVec| {
            let parts = self.need.aggregate.iter().filter(|(_, amount)| *amount > 0).map(|(name, amount)| {
                let part = u128::from(sum.get(name)) * 1000 / u128::from(amount);
                part.min(1000) as u32
            });
            parts.min().unwrap_or(1000)
        };
        let mut all: Vec<v1::DomainCoverage> = self
            .sums
            .iter()
            .map(|(domain, sum)| v1::DomainCoverage {
                domain: domain.clone(),
                coverage_per_mille: per_mille(&sum.all),
                machines: sum.machines,
                reachable_machines: sum.reachable_machines,
                reachable_per_mille: per_mille(&sum.reachable),
            })
            .collect();
        all.sort_by(|a, b| {
            let rank = |d: &v1::DomainCoverage| (d.reachable_per_mille, d.coverage_per_mille);
            rank(b).cmp(&rank(a)).then_with(|| a.domain.cmp(&b.domain))
        });
        all.truncate(most);
        all
    }
}
