//! A scripted operator over a real socket: it reports what it is told to, gives blobs and lets go of machines at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::operator_message::Payload as Says;
use bigfleet_proto::v1alpha1::shard_message::Payload as Hears;
use bigfleet_proto::v1alpha1::{
    BootstrapBlobResponse, CapacityNeed, ClusterCapacityNeeds, Hello, OperatorMessage, ReclaimAck,
};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;

/// What an operator has heard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) sessions: u64,
    /// Acknowledgements, in order.
    pub(crate) acks: Vec<String>,
    /// The last state of each machine, as a wire number.
    pub(crate) nodes: BTreeMap<String, i32>,
    pub(crate) blobs_given: u64,
    pub(crate) reclaims: Vec<(String, i32)>,
    pub(crate) hints: u64,
}

impl Heard {
    /// Machines that serve the cluster.
    pub(crate) fn configured(&self) -> usize {
        self.nodes.values().filter(|state| **state == 5).count()
    }
}

/// An operator that reconnects whenever its connection ends, and repeats its roll-up.
pub(crate) struct Operator {
    rollup: watch::Sender<Vec<CapacityNeed>>,
    heard: Arc<Mutex<Heard>>,
    task: AbortHandle,
}

impl Operator {
    /// Starts an operator that reports this often.
    pub(crate) fn start(shard: &str, cluster: &str, every: Duration, rows: Vec<CapacityNeed>) -> Self {
        let (rollup, rows) = watch::channel(rows);
        let heard: Arc<Mutex<Heard>> = Arc::default();
        let life = live(shard.to_owned(), cluster.to_owned(), every, rows, heard.clone());
        Self { rollup, heard, task: tokio::spawn(life).abort_handle() }
    }

    /// Changes what it reports.
    pub(crate) fn report(&self, rows: Vec<CapacityNeed>) {
        self.rollup.send_replace(rows);
    }

    pub(crate) fn heard(&self) -> Heard {
        self.heard.lock().unwrap().clone()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[expect(clippy::disallowed_methods, reason = "an operator over a real socket lives in real time")]
async fn live(
    shard: String,
    cluster: String,
    every: Duration,
    rows: watch::Receiver<Vec<CapacityNeed>>,
    heard: Arc<Mutex<Heard>>,
) {
    loop {
        let _ = session(&shard, &cluster, every, rows.clone(), &heard).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// One connection, until it ends.
#[expect(clippy::disallowed_methods, reason = "an operator over a real socket lives in real time")]
async fn session(
    shard: &str,
    cluster: &str,
    every: Duration,
    mut rows: watch::Receiver<Vec<CapacityNeed>>,
    heard: &Mutex<Heard>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let channel = transport::endpoint(Endpoint::from_shared(shard.to_owned())?).connect().await?;
    let (say, said) = mpsc::channel::<OperatorMessage>(1024);
    let message = |payload| OperatorMessage { payload: Some(payload) };
    let hello = Hello { cluster_id: cluster.into(), protocol_version: "v1alpha1".into() };
    say.send(message(Says::Hello(hello))).await?;
    let mut stream = transport::shard_client(channel).session(ReceiverStream::new(said)).await?.into_inner();
    {
        let mut heard = heard.lock().unwrap();
        heard.sessions += 1;
        // The shard begins with the whole truth.
        heard.nodes.clear();
    }
    let mut tick = tokio::time::interval(every);
    loop {
        let payload = tokio::select! {
            frame = stream.message() => match frame? {
                Some(frame) => frame.payload,
                None => return Ok(()),
            },
            _ = tick.tick() => None,
            changed = rows.changed() => { changed?; None }
        };
        let Some(payload) = payload else {
            let needs = rows.borrow_and_update().clone();
            let rollup = ClusterCapacityNeeds { cluster_id: cluster.into(), timestamp_unix_nanos: 1, needs };
            say.send(message(Says::Rollup(rollup))).await?;
            continue;
        };
        let answers = hear(payload, &mut heard.lock().unwrap());
        for answer in answers {
            say.send(message(answer)).await?;
        }
    }
}

/// Notes a frame and answers it.
fn hear(payload: Hears, heard: &mut Heard) -> Vec<Says> {
    match payload {
        Hears::Ack(ack) => {
            heard.acks.push(ack.echo);
            Vec::new()
        }
        Hears::BootstrapRequest(request) => {
            heard.blobs_given += 1;
            let user_data = format!("join {}", request.cluster_id).into_bytes();
            let request_id = request.request_id;
            vec![Says::BootstrapResponse(BootstrapBlobResponse {
                request_id,
                user_data,
                ttl_seconds: 300,
                error: String::new(),
            })]
        }
        Hears::ReclaimInstruction(order) => {
            for node in &order.nodes {
                heard.reclaims.push((node.clone(), order.preemptor_priority));
            }
            let ack = ReclaimAck {
                instruction_id: order.instruction_id,
                nodes_started: i32::try_from(order.nodes.len()).unwrap_or(i32::MAX),
            };
            // Begun, and done.
            vec![Says::ReclaimAck(ack.clone()), Says::ReclaimAck(ack)]
        }
        Hears::NodeStateUpdate(update) => {
            let is_bound = (4..=6).contains(&update.state) || update.state == 8;
            if is_bound {
                heard.nodes.insert(update.machine_id, update.state);
            } else {
                heard.nodes.remove(&update.machine_id);
            }
            Vec::new()
        }
        Hears::AvailableCapacity(_) => {
            heard.hints += 1;
            Vec::new()
        }
    }
}
