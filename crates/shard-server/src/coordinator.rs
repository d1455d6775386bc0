//! Reports to the coordinator, and what it says back. The shard never waits for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bigfleet_model::machine::MachineState;
use bigfleet_net::Clock;
use bigfleet_proto::convert::resources;
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::{ReportAck, Resources, ShardReport, ShardSummary, Shortfall};
use bigfleet_shard::Shard;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::core::{Core, Gone};
use crate::metrics::Metrics;

mod instructions;

use instructions::Instructions;

/// How long a report may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many machines are counted before others get a turn on the core thread.
const SLICE: usize = 8192;

/// Reports, for as long as the shard lives.
pub(crate) struct Reporter {
    pub(crate) shard_address: String,
    pub(crate) provider_addresses: String,
    pub(crate) every: Duration,
    pub(crate) channel: Channel,
    pub(crate) core: Core,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    /// The highest term heard, for acknowledgements to operators.
    pub(crate) term: Arc<AtomicU64>,
}

impl Reporter {
    /// Reports until the shard is gone.
    pub(crate) async fn run(self) {
        let mut instructions = Instructions::default();
        loop {
            let Ok(mut report) = self.report().await else { return };
            report.instruction_acks = instructions.acks();
            let sent = report.instruction_acks.len();
            match self.send(report).await {
                Ok(ack) => {
                    self.metrics.reported("ok");
                    instructions.sent(sent);
                    instructions.take(ack);
                    self.term.store(instructions.term().cast_unsigned(), Ordering::Relaxed);
                }
                Err(status) => {
                    self.metrics.reported(if status.code() == Code::FailedPrecondition {
                        "not_leader"
                    } else {
                        "failed"
                    });
                    tracing::info!(%status, "the coordinator did not take the report; the next one follows");
                }
            }
            self.clock.sleep(self.every).await;
        }
    }

    async fn send(&self, report: ShardReport) -> Result<ReportAck, Status> {
        let mut client = transport::coordinator_client(self.channel.clone());
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
