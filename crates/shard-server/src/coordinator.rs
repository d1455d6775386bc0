//! What is between a shard and its coordinator: reports and the instructions that answer them, quotas, clusters that are bound
//! elsewhere, and what other shards ask for. The shard never waits for any of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bigfleet_model::machine::MachineState;
use bigfleet_net::Clock;
use bigfleet_proto::convert::resources;
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::{InstructAck, ReportAck, Resources, ShardReport, ShardSummary, Shortfall};
use bigfleet_shard::Shard;
use tokio::sync::Notify;
use tonic::{Code, Status};

use crate::core::{Core, Gone};
use crate::metrics::Metrics;

mod bindings;
mod follow;
mod instructions;
mod leader;

pub(crate) use bindings::Bindings;
pub(crate) use follow::Follower;
pub(crate) use leader::Leader;

/// How long a report may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How soon the next report follows if there is something to answer, something under way, or nobody took the last one.
const SOON: Duration = Duration::from_secs(2);
/// How many machines are counted before others get a turn on the core thread.
const SLICE: usize = 8192;

/// Reports, for as long as the shard lives.
pub(crate) struct Reporter {
    pub(crate) shard_address: String,
    pub(crate) provider_addresses: String,
    pub(crate) every: Duration,
    pub(crate) leader: Leader,
    pub(crate) core: Core,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    /// The highest term heard, for acknowledgements to operators.
    pub(crate) term: Arc<AtomicU64>,
    /// Somebody has a reason to report at once.
    pub(crate) hurry: Arc<Notify>,
}

impl Reporter {
    /// Reports until the shard is gone.
    pub(crate) async fn run(mut self) {
        let mut owed = Vec::new();
        while let Ok(wait) = self.round(&mut owed).await {
            tokio::select! {
                () = self.clock.sleep(wait) => {}
                () = self.hurry.notified() => {}
            }
        }
    }

    /// One report, and what follows from its answer. How long until the next.
    async fn round(&mut self, owed: &mut Vec<InstructAck>) -> Result<Duration, Gone> {
        let mut report = self.report().await?;
        report.instruction_acks.clone_from(owed);
        let sent = owed.len();
        let soon = SOON.min(self.every);
        match self.send(report).await {
            Ok(ack) => {
                self.metrics.reported("ok");
                owed.drain(..sent);
                let is_busy = self.obey(ack, owed).await?;
                Ok(if is_busy || !owed.is_empty() { soon } else { self.every })
            }
            Err(status) => {
                let is_follower = status.code() == Code::FailedPrecondition;
                self.metrics.reported(if is_follower { "not_leader" } else { "failed" });
                tracing::info!(%status, "the coordinator did not take the report; the next one follows");
                self.leader.refused(&status);
                Ok(soon)
            }
        }
    }

    /// Has the shard carry out what it is told. What it answers is on disk by then, and goes with the next report. Whether it is
    /// at something that ends by itself.
    async fn obey(&self, ack: ReportAck, owed: &mut Vec<InstructAck>) -> Result<bool, Gone> {
        let (term, orders) = instructions::read(ack);
        let answers = self.core.act(move |shard, now, step| {
            shard.reported(now);
            let answers = shard.instruct(term, &orders, now, step);
            (answers, shard.unanswered().iter().any(|waiting| waiting.ends), shard.coordinator_term())
        });
        let (answers, is_busy, highest) = answers.await?;
        self.term.store(highest.cast_unsigned(), Ordering::Relaxed);
        for answer in answers {
            if !owed.iter().any(|owed| *owed.instruction_id == *answer.id) {
                owed.push(instructions::ack(answer));
            }
        }
        Ok(is_busy)
    }

    async fn send(&self, report: ShardReport) -> Result<ReportAck, Status> {
        let mut client = transport::coordinator_client(self.leader.channel());
        tokio::select! {
            answer = client.report_shard(report) => answer.map(tonic::Response::into_inner),
            () = self.clock.sleep(PATIENCE) => Err(Status::deadline_exceeded(format!("no answer within {PATIENCE:?}"))),
        }
    }

    async fn report(&self) -> Result<ShardReport, Gone> {
        let mut report = self.core.look(head).await?;
        let (mut count, mut from) = (Count::default(), Some(0));
        while let Some(place) = from {
            (count, from) = self.core.look(move |shard, _| count.take(shard, place)).await?;
        }
        report.shard_address.clone_from(&self.shard_address);
        report.summary = Some(ShardSummary {
            total_machines: count.total,
            free_machines: count.free,
            per_instance_type_counts: count.by_type,
            per_zone_counts: count.by_zone,
            provider_address: self.provider_addresses.clone(),
        });
        Ok(report)
    }
}

/// Everything but the counts.
fn head(shard: &Shard, now: i64) -> ShardReport {
    let (config, cycle) = (shard.config(), shard.cycle());
    let shortfalls = shard.ledger().top(config.limits.reported_shortfalls).into_iter().map(|(_, short)| {
        let profile = &short.demand.need.profile;
        Shortfall {
            requirements: profile.requirements().iter().map(Into::into).collect(),
            deficit: Some(Resources { resources: resources::to_map(&short.missing) }),
            priority: profile.priority(),
            age_cycles: i32::try_from(cycle.saturating_sub(short.since.cycle)).unwrap_or(i32::MAX),
            interruption_penalty_bucket: profile.interruption().to_wire(),
        }
    });
    ShardReport {
        shard_id: config.shard_id.to_string(),
        cycle: cycle.cast_signed(),
        timestamp_unix_nanos: now,
        shard_epoch: config.epoch,
        shortfalls: shortfalls.collect(),
        ..ShardReport::default()
    }
}

#[derive(Default)]
struct Count {
    total: i32,
    free: i32,
    by_type: BTreeMap<String, i32>,
    by_zone: BTreeMap<String, i32>,
}

impl Count {
    fn take(mut self, shard: &Shard, from: u32) -> (Self, Option<u32>) {
        let bump = |map: &mut BTreeMap<String, i32>, name: &str| match map.get_mut(name) {
            Some(count) => *count += 1,
            None => drop(map.insert(name.into(), 1)),
        };
        let (mut next, mut taken) = (from, 0);
        for view in shard.machines_from(from).take(SLICE) {
            (next, taken) = (view.place + 1, taken + 1);
            let machine = view.machine;
            self.total += 1;
            self.free += i32::from(matches!(machine.state, MachineState::Idle | MachineState::Speculative));
            bump(&mut self.by_type, &machine.instance_type);
            bump(&mut self.by_zone, &machine.zone);
        }
        (self, (taken == SLICE).then_some(next))
    }
}
