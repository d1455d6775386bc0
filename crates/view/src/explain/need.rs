//! Why a need has what it has: what was considered, what each rule removed, who holds the rest, what would help.

use std::collections::BTreeSet;

use bigfleet_engine::{Change, Remedy, Tried};
use bigfleet_model::need::NeedKey;
use bigfleet_net::{Clock as _, SystemClock};
use bigfleet_shard::Shard;
use tonic::Status;

use crate::convert;
use crate::decisions::Wanted;
use crate::known::Known;
use crate::names::find_need;
use crate::needs::{self, NeedRow};
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::{Snapshot, blocking};
use crate::truth::{is_coming, last_of};
use crate::v1;

/// Machine names of each sort if nobody says how many.
const NAMES: u32 = 20;
/// How long changes that might help are tried if nobody says.
const PATIENCE_MILLIS: u32 = 50;
/// Machines of a need looked at to say when the last of them comes.
const COMING: usize = 2000;
/// Decisions and domains told.
const TOLD: usize = 20;
/// Machines named of each gift.
const EXAMPLES: usize = 5;

/// What the engine says of a need.
struct Answer {
    row: NeedRow,
    message: v1::NeedExplanation,
    cheapest: Option<Box<str>>,
    /// What it has or is given, on its way or there.
    machines: Vec<Box<str>>,
}

fn ask(snapshot: &Snapshot, request: &v1::ExplainNeedRequest) -> Result<Answer, Status> {
    let fleet = &snapshot.fleet;
    let key = find_need(fleet, &request.need)?;
    let Some(row) = needs::one(fleet, &key) else {
        return Err(Status::not_found(format!("need {:?} has just been withdrawn", request.need)));
    };
    let names = if request.machines == 0 { NAMES } else { request.machines } as usize;
    let mut message = v1::NeedExplanation::default();
    let mut machines = Vec::new();
    if let Some(outcome) = fleet.outcome_of(&key) {
        let some = |ids: &[&str]| ids.iter().take(names).map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let comes_or_is_there = outcome.credited.iter().chain(&outcome.in_flight);
        machines.extend(comes_or_is_there.take(COMING).map(|id| Box::from(*id)));
        message.credited = some(&outcome.credited);
        message.acquired = some(&outcome.acquired);
        message.in_flight = some(&outcome.in_flight);
        message.victims = some(&outcome.victims);
        let funnel = fleet.funnel(&key);
        message.funnel = funnel.as_ref().map(convert::funnel);
        if !request.without_remedies && outcome.reason.is_some() {
            let changes = fleet.changes_worth_trying(&key, funnel.as_ref()).unwrap_or_default();
            try_out(snapshot, &key, changes, request.patience_millis, &mut message);
        }
    }
    message.origins = fleet.origins(&key).as_ref().map(convert::origins);
    if !row.message.domain.is_empty() {
        let choice = fleet.explain_domain(&key, &snapshot.options, snapshot.now_unix_nanos);
        message.domain_choice = choice.map(convert::domain_choice);
    }
    // A gang that is served has its domain; looking at all of them is for one that is not.
    if !row.message.satisfied {
        let domains = fleet.domain_coverage(&key).unwrap_or_default();
        message.domains = domains.into_iter().take(TOLD).map(convert::domain).collect();
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
    Ok(Answer { row, message, cheapest, machines })
}

/// Tries changes to a need, one after another, for as long as whoever asked has patience.
fn try_out(
    snapshot: &Snapshot,
    key: &NeedKey,
    changes: Vec<Change>,
    patience_millis: u32,
    message: &mut v1::NeedExplanation,
) {
    message.remedies_tried = true;
    if changes.is_empty() {
        return;
    }
    let patience = if patience_millis == 0 { PATIENCE_MILLIS } else { patience_millis };
    let clock = SystemClock::start();
    let until = clock.now_unix_nanos().saturating_add(i64::from(patience) * 1_000_000);
    let trials = snapshot.fleet.trials(&snapshot.options, snapshot.now_unix_nanos);
    for (at, change) in changes.into_iter().enumerate() {
        if at > 0 && clock.now_unix_nanos() >= until {
            message.remedies_untried += 1;
        } else if let Some(tried) = snapshot.fleet.try_change(&trials, key, &change)
            && tried.satisfied
        {
            let Tried { acquires, preempts, .. } = tried;
            message.remedies.push(convert::remedy(&Remedy { change, acquires, preempts }));
        }
    }
}

/// Which of these machines other shards gave.
fn help(shard: &Shard, machines: &[Box<str>]) -> Vec<v1::HelpGiven> {
    if shard.gifts().len() == 0 {
        return Vec::new();
    }
    let machines: BTreeSet<&str> = machines.iter().map(|id| &**id).collect();
    let each = shard.gifts().filter_map(|gift| {
        let has: Vec<&str> =
            gift.machines.iter().map(|id| &**id).filter(|id| machines.contains(id)).collect();
        (!has.is_empty()).then(|| v1::HelpGiven {
            shard_id: gift.from.to_string(),
            unix_nanos: gift.at_unix_nanos,
            machines: has.len() as u32,
            examples: has.iter().take(EXAMPLES).map(|id| (*id).to_owned()).collect(),
        })
    });
    each.collect()
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
        let Answer { row, mut message, cheapest, machines } = answer;
        let decided_as = row.decided_as.clone();
        let mut need = snapshot.fill(row);
        if snapshot.past.is_none() {
            let (key, has) = (decided_as.clone(), machines.clone());
            let help = self.shards.inspect(move |shard, _| (shard.asked_for_help(&key), help(shard, &has)));
            let (asked, given) = help.await?;
            message.asked_for_help_unix_nanos = asked.unwrap_or_default();
            message.help = given;
        }
        let machines = self.machines_named(&snapshot, machines).await?;
        let coming = self.expectations(machines, snapshot.now_unix_nanos).await?;
        for (known, expected) in coming {
            need.coming += u32::from(is_coming(&known));
            if let Some(this) = expected {
                need.expected = Some(last_of(need.expected, this));
            }
        }
        if snapshot.past.is_none() {
            self.own_clusters.add_to(std::slice::from_mut(&mut need));
        }
        message.need = Some(need);
        if let (Some(id), Some(free)) = (cheapest, &mut message.free) {
            // Who said a price and when is asked for after the rest: the price itself is of the moment of the answer.
            let machine = self.machines_named(&snapshot, vec![id]).await?.pop();
            free.price_source = machine.as_ref().map(Known::price_source);
        }
        if snapshot.past.is_none() {
            let recent = &snapshot.beside.recent;
            let wanted = Wanted { need: Some(decided_as), ..Wanted::default() };
            message.decisions = wanted.of_recent_folded(recent, TOLD);
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
}
