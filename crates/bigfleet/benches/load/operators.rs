//! Thousands of operators in one process: each has a connection of its own and changes one row of its demand each time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::operator_message::Payload as Says;
use bigfleet_proto::v1alpha1::shard_message::Payload as Hears;
use bigfleet_proto::v1alpha1::{
    BootstrapBlobResponse, CapacityNeed, ClusterCapacityNeeds, Hello, NodeSelectorRequirement,
    OperatorMessage, ReclaimAck,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;

const TYPES: [&str; 5] = ["std-4", "std-8", "arm-8", "mem-8", "infer-8"];
const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];

#[derive(Default)]
struct Shared {
    latencies: Mutex<Vec<f64>>,
    rollups: AtomicU64,
}

/// All operators.
pub(crate) struct Operators {
    shared: Arc<Shared>,
    tasks: Vec<tokio::task::AbortHandle>,
}

impl Operators {
    pub(crate) fn start(shard: &str, sessions: usize, rows: usize, period: Duration) -> Self {
        let shared = Arc::new(Shared::default());
        let start = |number: usize| {
            // Spread over one period, as clusters of the world are.
            let delay = period.mul_f64(number as f64 / sessions as f64);
            let life = live(shard.to_owned(), number, rows, period, delay, shared.clone());
            tokio::spawn(life).abort_handle()
        };
        Self { tasks: (0..sessions).map(start).collect(), shared }
    }

    pub(crate) fn forget_latencies(&self) {
        self.shared.latencies.lock().unwrap().clear();
    }

    pub(crate) fn rollups_sent(&self) -> u64 {
        self.shared.rollups.load(Ordering::Relaxed)
    }

    /// From hearing that a machine is being bound to hearing that it serves.
    pub(crate) fn latencies(&self) -> Latencies {
        let mut all = self.shared.latencies.lock().unwrap().clone();
        all.sort_by(f64::total_cmp);
        Latencies(all)
    }
}

impl Drop for Operators {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::AbortHandle::abort);
    }
}

/// Milliseconds, sorted.
pub(crate) struct Latencies(Vec<f64>);

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at =
            |share: f64| self.0.get(((self.0.len() as f64 * share) as usize).min(self.0.len().max(1) - 1));
        let [half, most, max] = [0.5, 0.99, 1.0].map(|share| at(share).copied().unwrap_or(f64::NAN));
        write!(f, "p50 {half:.0} ms, p99 {most:.0} ms, max {max:.0} ms, {} machines", self.0.len())
    }
}

async fn live(
    shard: String,
    number: usize,
    rows: usize,
    period: Duration,
    delay: Duration,
    shared: Arc<Shared>,
) {
    tokio::time::sleep(delay).await;
    let mut demand = Demand::new(number, rows);
    loop {
        if let Err(error) = session(&shard, &mut demand, period, &shared).await {
            if demand.complaints < 3 {
                eprintln!("operator {number}: {error}");
            }
            demand.complaints += 1;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn session(
    shard: &str,
    demand: &mut Demand,
    period: Duration,
    shared: &Shared,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let channel = transport::endpoint(Endpoint::from_shared(shard.to_owned())?).connect().await?;
    let (say, said) = mpsc::channel::<OperatorMessage>(256);
    let message = |payload| OperatorMessage { payload: Some(payload) };
    let hello = Hello { cluster_id: demand.cluster.clone(), protocol_version: "v1alpha1".into() };
    say.send(message(Says::Hello(hello))).await?;
    let mut stream = transport::shard_client(channel).session(ReceiverStream::new(said)).await?.into_inner();
    let mut tick = tokio::time::interval(period);
    let mut binding: BTreeMap<String, Instant> = BTreeMap::new();
    loop {
        let payload = tokio::select! {
            frame = stream.message() => match frame? {
                Some(frame) => frame.payload,
                None => return Ok(()),
            },
            _ = tick.tick() => {
                say.send(message(Says::Rollup(demand.next()))).await?;
                shared.rollups.fetch_add(1, Ordering::Relaxed);
                continue;
            }
        };
        match payload {
            Some(Hears::BootstrapRequest(request)) => {
                let answer = BootstrapBlobResponse {
                    request_id: request.request_id,
                    user_data: b"join".to_vec(),
                    ttl_seconds: 600,
                    error: String::new(),
                };
                say.send(message(Says::BootstrapResponse(answer))).await?;
            }
            Some(Hears::ReclaimInstruction(order)) => {
                let ack = ReclaimAck {
                    instruction_id: order.instruction_id,
                    nodes_started: i32::try_from(order.nodes.len()).unwrap_or(i32::MAX),
                };
                say.send(message(Says::ReclaimAck(ack.clone()))).await?;
                say.send(message(Says::ReclaimAck(ack))).await?;
            }
            Some(Hears::NodeStateUpdate(update)) => match update.state {
                4 => {
                    binding.entry(update.machine_id).or_insert_with(now);
                }
                5 => {
                    if let Some(since) = binding.remove(&update.machine_id) {
                        let took = now().duration_since(since).as_secs_f64() * 1e3;
                        shared.latencies.lock().unwrap().push(took);
                    }
                }
                _ => {
                    binding.remove(&update.machine_id);
                }
            },
            _ => {}
        }
    }
}

fn now() -> Instant {
    Instant::now()
}

/// One cluster's demand: rows of a few machines each, one of which changes with every report.
struct Demand {
    cluster: String,
    rows: Vec<CapacityNeed>,
    units: Vec<u32>,
    state: u64,
    complaints: u32,
}

impl Demand {
    fn new(number: usize, rows: usize) -> Self {
        let mut demand = Self {
            cluster: format!("cluster-{number:05}"),
            rows: Vec::new(),
            units: Vec::new(),
            state: 0x9E37_79B9 ^ (number as u64) << 20,
            complaints: 0,
        };
        for row in 0..rows {
            let (kind, zone) = (demand.draw(5) as usize, demand.draw(3) as usize);
            let is_in = |key: &str, values: Vec<String>| NodeSelectorRequirement {
                key: key.into(),
                operator: 1,
                values,
            };
            let types = vec![TYPES[kind].to_owned(), TYPES[(kind + 1) % 5].to_owned()];
            let need = CapacityNeed {
                requirements: vec![
                    is_in("node.kubernetes.io/instance-type", types),
                    is_in("topology.kubernetes.io/zone", vec![ZONES[zone].to_owned()]),
                ],
                min_unit: [("cpu".to_owned(), "1".to_owned()), ("memory".to_owned(), "1Gi".to_owned())]
                    .into(),
                // Every row is a profile of its own.
                priority: [100, 1_000, 100_000][demand.draw(3) as usize] + i32::try_from(row).unwrap_or(0),
                interruption_penalty_bucket: 1 + demand.draw(8) as i32,
                reclamation_penalty_bucket: 1 + demand.draw(4) as i32,
                ..CapacityNeed::default()
            };
            demand.rows.push(need);
            let units = 1 + demand.draw(4) as u32;
            demand.units.push(units);
        }
        demand
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % below
    }

    /// The next roll-up: one row has grown or shrunk.
    fn next(&mut self) -> ClusterCapacityNeeds {
        let row = self.draw(self.rows.len() as u64) as usize;
        let grows = self.draw(2) == 0;
        self.units[row] = if grows { self.units[row] + 1 } else { self.units[row] - 1 }.clamp(1, 6);
        for (row, units) in self.rows.iter_mut().zip(&self.units) {
            row.aggregate_resources =
                [("cpu".to_owned(), units.to_string()), ("memory".to_owned(), format!("{units}Gi"))].into();
        }
        ClusterCapacityNeeds {
            cluster_id: self.cluster.clone(),
            timestamp_unix_nanos: 1,
            needs: self.rows.clone(),
        }
    }
}
