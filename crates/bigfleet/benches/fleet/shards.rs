//! Shards that are not there: what they would report, and how they would answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bigfleet_proto::coordinator_v1::{AnswerAskRequest, FollowRequest, Given};
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::{
    InstructAck, NodeSelectorRequirement, Resources, ShardReport, ShardSummary, Shortfall, instruct_ack,
};
use tonic::Status;
use tonic::transport::Channel;

/// Shortfalls of a report.
const SHORTFALLS: i32 = 100;
/// Instance types it counts.
const TYPES: i32 = 60;
/// Machines a shard gives in all.
const GIVES: usize = 20;

/// The name of the shard with this number.
pub(crate) fn name(number: usize) -> String {
    format!("shard-{number:03}")
}

/// One shard.
pub(crate) struct Shard {
    number: usize,
    cycle: i64,
    owed: Vec<InstructAck>,
}

/// What became of a shard's life.
pub(crate) struct Lived {
    /// How long reports took.
    pub(crate) reports: Vec<Duration>,
    pub(crate) asked: usize,
    pub(crate) given: usize,
}

impl Shard {
    pub(crate) fn new(number: usize) -> Self {
        Self { number, cycle: 0, owed: Vec::new() }
    }

    /// Reports once, and carries out at once what it is told.
    pub(crate) async fn report(&mut self, channel: &Channel) -> Result<(), Status> {
        self.cycle += 3;
        let report = self.text();
        let mut client = transport::coordinator_client(channel.clone());
        let ack = client.report_shard(report).await?.into_inner();
        self.owed = ack
            .instructions
            .into_iter()
            .map(|instruction| InstructAck {
                instruction_id: instruction.instruction_id,
                outcome: instruct_ack::Outcome::Accepted.into(),
                reason: String::new(),
            })
            .collect();
        Ok(())
    }

    fn text(&mut self) -> ShardReport {
        let counts = |count: i32, of: &str| -> BTreeMap<String, i32> {
            (0..count).map(|kind| (format!("{of}-{kind:02}"), 500_000 / count)).collect()
        };
        // One shard in five is short, and for long.
        let is_short = self.number.is_multiple_of(5);
        let requirement = |key: &str, values: &[&str]| NodeSelectorRequirement {
            key: key.into(),
            operator: 1,
            values: values.iter().map(ToString::to_string).collect(),
        };
        let shortfalls = (0..SHORTFALLS).map(|number| Shortfall {
            requirements: vec![
                requirement("kubernetes.io/arch", &["amd64"]),
                requirement("node.kubernetes.io/instance-type", &[&format!("type-{number:02}"), "other"]),
            ],
            deficit: Some(Resources { resources: [("cpu".to_owned(), format!("{}", 16 + number))].into() }),
            priority: 1000 * (number % 7),
            age_cycles: if is_short && number < 5 { 50 } else { 1 },
            interruption_penalty_bucket: 1,
        });
        ShardReport {
            shard_id: name(self.number),
            cycle: self.cycle,
            shard_epoch: 1,
            shard_address: format!("shard-{:03}.example:7780", self.number),
            summary: Some(ShardSummary {
                total_machines: 500_000,
                free_machines: 1000 + i32::try_from(self.number).unwrap_or(0),
                per_instance_type_counts: counts(TYPES, "type"),
                per_zone_counts: counts(3, "zone"),
                provider_address: "http://provider.example:9000".into(),
            }),
            shortfalls: shortfalls.collect(),
            instruction_acks: std::mem::take(&mut self.owed),
            ..ShardReport::default()
        }
    }

    /// Reports so many times, and answers what it is asked meanwhile.
    pub(crate) async fn live(
        mut self,
        channel: Channel,
        rounds: usize,
        period: Duration,
        offset: Duration,
    ) -> Lived {
        let counts = Arc::<Counts>::default();
        let answering = tokio::spawn(answer(channel.clone(), self.number, counts.clone()));
        let mut reports = Vec::with_capacity(rounds);
        tokio::time::sleep(offset).await;
        for _ in 0..rounds {
            let begun = Instant::now();
            self.report(&channel).await.expect("the leader takes it");
            reports.push(begun.elapsed());
            tokio::time::sleep(period.saturating_sub(begun.elapsed())).await;
        }
        answering.abort();
        let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
        Lived { reports, asked: count(&counts.asked), given: count(&counts.given) }
    }
}

/// What a shard was asked and gave.
#[derive(Default)]
struct Counts {
    asked: AtomicUsize,
    given: AtomicUsize,
}

/// Follows, and gives two machines to whoever asks first.
async fn answer(channel: Channel, number: usize, counts: Arc<Counts>) -> Result<(), Status> {
    let mut client = transport::fleet_client(channel);
    let mut charges = client.follow(FollowRequest { shard_id: name(number) }).await?.into_inner();
    let mut answered = BTreeSet::new();
    while let Some(charge) = charges.message().await? {
        for ask in charge.asks {
            if !answered.insert(ask.id) {
                continue;
            }
            counts.asked.fetch_add(1, Ordering::Relaxed);
            let gave = counts.given.load(Ordering::Relaxed);
            let machines: Vec<Given> = (gave..GIVES.min(gave + 2))
                .map(|place| Given { machine_id: format!("i-{number:03}-{place:05}"), domain: String::new() })
                .collect();
            counts.given.fetch_add(machines.len(), Ordering::Relaxed);
            let request = AnswerAskRequest { shard_id: name(number), ask_id: ask.id, machines };
            // It may have been given up meanwhile.
            let _ = client.answer_ask(request).await;
        }
    }
    Ok(())
}
