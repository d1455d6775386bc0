//! Modes and proposals: what is trusted to be done, what waits for a yes, and who may say it.

use std::collections::BTreeMap;

use bigfleet_engine::ActionKind;
use bigfleet_record::Decided;
use bigfleet_shard::{Mode, ModeOrder, PauseScope, Proposal, Shard, Standing, Step};
use tonic::Status;

use crate::commands::{author, check_texts, scope};
use crate::convert::{fate, kind};
use crate::decisions::{At, message, priority_of};
use crate::names::{find_cluster, need_ref};
use crate::pages::Pages;
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::as_of;
use crate::v1;

/// Proposals on one page.
const PAGE: usize = 500;

const KINDS: [ActionKind; 5] = [
    ActionKind::Bootstrap,
    ActionKind::Provision,
    ActionKind::Preempt,
    ActionKind::Reclaim,
    ActionKind::Delete,
];

pub(crate) fn mode(mode: Mode) -> v1::Mode {
    match mode {
        Mode::Auto => v1::Mode::Auto,
        Mode::Approve => v1::Mode::Approve,
        Mode::Observe => v1::Mode::Observe,
    }
}

fn mode_from(number: i32) -> Result<Option<Mode>, Status> {
    match v1::Mode::try_from(number) {
        Ok(v1::Mode::Unspecified) => Ok(None),
        Ok(v1::Mode::Auto) => Ok(Some(Mode::Auto)),
        Ok(v1::Mode::Approve) => Ok(Some(Mode::Approve)),
        Ok(v1::Mode::Observe) => Ok(Some(Mode::Observe)),
        Err(_) => Err(Status::invalid_argument(format!("mode: number {number} is unknown"))),
    }
}

fn order_view(scope: &PauseScope, order: &ModeOrder) -> v1::ModeView {
    v1::ModeView {
        cluster: scope.cluster.as_deref().unwrap_or_default().to_owned(),
        kind: scope.kind.map_or(v1::ActionKind::Unspecified, kind).into(),
        mode: mode(order.mode).into(),
        reason: order.reason.to_string(),
        author: order.author.to_string(),
        since_unix_nanos: order.since_unix_nanos,
    }
}

/// The strictest mode of all kinds of action in a cluster, or of what belongs to none, and whether they differ.
pub(crate) fn strictest(shard: &Shard, cluster: Option<&str>) -> (v1::Mode, bool) {
    if shard.modes().is_empty() {
        return (mode(shard.config().rails.mode), false);
    }
    let of = KINDS.map(|kind| shard.mode_of(Some(kind), cluster));
    let strictest = of.iter().copied().max().unwrap_or_default();
    (mode(strictest), of.iter().any(|other| *other != strictest))
}

/// Orders in force.
pub(crate) fn orders(shard: &Shard) -> Vec<v1::ModeView> {
    shard.modes().iter().map(|(scope, order)| order_view(scope, order)).collect()
}

fn waits(standing: &Standing, now: i64) -> bool {
    standing.proposal.approved.is_none() && now < standing.proposal.until_unix_nanos
}

/// How many proposals wait.
pub(crate) fn waiting(shard: &Shard, now: i64) -> u32 {
    shard.proposals().values().filter(|standing| waits(standing, now)).count() as u32
}

fn proposal(shard: &Shard, machine: &str, standing: &Standing) -> v1::Proposal {
    let Proposal { id, cycle, since_unix_nanos, until_unix_nanos, .. } = standing.proposal;
    let at = At { cycle, epoch: shard.config().epoch, unix_nanos: since_unix_nanos, other_edition: None };
    let decision = match &standing.ordered {
        Some(ordered) => message(at, &Decided::from(ordered)),
        // No cycle of this life has seen it yet.
        None => bare(at, machine, &standing.proposal),
    };
    let (approved_by, approved_unix_nanos) =
        standing.proposal.approved.as_ref().map_or(("", 0), |(author, at)| (author, *at));
    v1::Proposal {
        id: format!("{id:08x}"),
        decision: Some(decision),
        since_unix_nanos,
        until_unix_nanos,
        usd_per_hour: standing.proposal.usd_per_hour,
        approved_by: approved_by.to_owned(),
        approved_unix_nanos,
        begun: standing.proposal.begun,
    }
}

fn bare(at: At, machine: &str, proposal: &Proposal) -> v1::Decision {
    v1::Decision {
        cycle: at.cycle,
        epoch: at.epoch,
        unix_nanos: at.unix_nanos,
        kind: kind(proposal.kind).into(),
        machine: machine.to_owned(),
        cluster: proposal.cluster.as_deref().unwrap_or_default().to_owned(),
        need: proposal.need.as_ref().map(need_ref),
        priority: proposal.need.as_ref().map_or(0, |need| priority_of(&need.fingerprint)),
        fate: fate(bigfleet_shard::Fate::AwaitsApproval).into(),
        usd_per_hour: proposal.usd_per_hour,
        ..v1::Decision::default()
    }
}

/// Whether a proposal is in a scope: it takes a machine from the cluster or gives it one.
fn covers(scope: &PauseScope, proposal: &Proposal) -> bool {
    let gets = proposal.need.as_ref().map(|need| &*need.cluster);
    scope.covers(proposal.kind, proposal.cluster.as_deref()) || scope.covers(proposal.kind, gets)
}

/// The numbers of proposals by their beginnings.
fn find(shard: &Shard, now: i64, names: &[String]) -> Result<Vec<u32>, Status> {
    let all = shard.proposals().values().filter(|standing| waits(standing, now));
    let all: BTreeMap<String, u32> =
        all.map(|standing| (format!("{:08x}", standing.proposal.id), standing.proposal.id)).collect();
    let one = |name: &String| {
        let name = name.to_ascii_lowercase();
        let mut found = all.range(name.clone()..).take_while(|(id, _)| id.starts_with(&name));
        match (found.next(), found.next()) {
            (Some((_, id)), None) if !name.is_empty() => Ok(*id),
            (Some((first, _)), Some((second, _))) => Err(Status::invalid_argument(format!(
                "proposal {name} may be {first} or {second}; write more of it"
            ))),
            _ => Err(Status::not_found(format!(
                "no proposal {name} waits: it was approved, is no longer wanted, or its time is over; \
                 `bigfleet get proposals` shows those that wait"
            ))),
        }
    };
    names.iter().map(one).collect()
}

impl<S: Shards> View<S> {
    pub(crate) async fn modes(&self, _: v1::GetModesRequest) -> Result<v1::Modes, Status> {
        self.needs_life("modes")?;
        let simulated = self.about.simulated;
        let look = move |shard: &Shard, now: i64| {
            let clusters = shard.clusters().keys().map(|name| {
                let (mode, mixed) = strictest(shard, Some(name));
                v1::ClusterMode { cluster: name.to_string(), mode: mode.into(), mixed }
            });
            let (mode, mixed) = strictest(shard, None);
            v1::Modes {
                as_of: Some(as_of(shard, now, simulated)),
                mode: mode.into(),
                mixed,
                orders: orders(shard),
                clusters: clusters.collect(),
                waiting: waiting(shard, now),
                proposal_life_nanos: shard.config().rails.proposal_life,
            }
        };
        Ok(self.shards.inspect(look).await?)
    }

    pub(crate) async fn set_mode(
        &self,
        request: v1::SetModeRequest,
        role: &str,
    ) -> Result<v1::SetModeAnswer, Status> {
        self.needs_life("a mode")?;
        check_texts(&request.reason, &request.author)?;
        let scope = scope(&request.cluster, request.kind)?;
        let mode = mode_from(request.mode)?;
        let author = author(&request.author, role);
        let order = move |shard: &mut Shard, now: i64, step: &mut Step| {
            if let (Some(cluster), Some(_)) = (&scope.cluster, mode) {
                // A mode of a cluster nobody knows would bind nobody, and whoever asked would not notice.
                find_cluster(cluster, shard.clusters().keys().map(|name| &**name))?;
            }
            let was = shard.modes().get(&scope).map(|order| order_view(&scope, order));
            let order = mode.map(|mode| ModeOrder {
                mode,
                reason: request.reason.trim().into(),
                author: author.into(),
                since_unix_nanos: now,
            });
            let is = order.as_ref().map(|order| order_view(&scope, order));
            shard
                .set_mode(&scope, order, step)
                .map_err(|error| Status::invalid_argument(error.to_string()))?;
            Ok(v1::SetModeAnswer { was, is })
        };
        self.shards.command(order).await?
    }

    pub(crate) async fn approve(
        &self,
        request: v1::ApproveRequest,
        role: &str,
    ) -> Result<v1::ApproveAnswer, Status> {
        self.needs_life("an approval")?;
        check_texts("", &request.author)?;
        let scope = scope(&request.cluster, request.kind)?;
        if request.everything != request.ids.is_empty() {
            return Err(Status::invalid_argument("say which proposals, or everything"));
        }
        let author = author(&request.author, role);
        let order = move |shard: &mut Shard, now: i64, step: &mut Step| {
            let ids = if request.everything {
                let all = shard.proposals().values();
                let all = all.filter(|one| waits(one, now) && covers(&scope, &one.proposal));
                all.map(|standing| standing.proposal.id).collect()
            } else {
                find(shard, now, &request.ids)?
            };
            let machines = shard
                .approve(&ids, &author, now, step)
                .map_err(|error| Status::not_found(error.to_string()))?;
            let approved = machines
                .iter()
                .filter_map(|machine| Some(proposal(shard, machine, shard.proposals().get(machine)?)));
            Ok(v1::ApproveAnswer { approved: approved.collect() })
        };
        self.shards.command(order).await?
    }

    pub(crate) async fn list_proposals(
        &self,
        request: v1::ListProposalsRequest,
        pages: Pages<v1::ProposalPage>,
    ) -> Result<(), Status> {
        self.needs_life("proposals")?;
        let scope = scope(&request.cluster, request.kind)?;
        let simulated = self.about.simulated;
        let look = move |shard: &Shard, now: i64| {
            if let Some(cluster) = &scope.cluster {
                find_cluster(cluster, shard.clusters().keys().map(|name| &**name))?;
            }
            let all = shard
                .proposals()
                .iter()
                .filter(|(_, one)| (request.all || waits(one, now)) && covers(&scope, &one.proposal));
            let all: Vec<v1::Proposal> = all.map(|(machine, one)| proposal(shard, machine, one)).collect();
            Ok::<_, Status>((as_of(shard, now, simulated), all))
        };
        let (as_of, mut all) = self.shards.inspect(look).await??;
        // The oldest first: it runs out first.
        all.sort_by(|a, b| (a.since_unix_nanos, &a.id).cmp(&(b.since_unix_nanos, &b.id)));
        let mut parts: Vec<Vec<v1::Proposal>> = all.chunks(PAGE).map(<[_]>::to_vec).collect();
        if parts.is_empty() {
            parts.push(Vec::new());
        }
        for proposals in parts {
            pages.send(v1::ProposalPage { as_of: Some(as_of.clone()), proposals }).await?;
        }
        Ok(())
    }
}
