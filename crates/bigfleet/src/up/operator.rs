//! The operator of one simulated cluster: a real session with the shard, over a real socket.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_net::{Clock, SystemClock};
use bigfleet_proto::PROTOCOL_VERSION_ACKS_DONE;
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::operator_message::Payload;
use bigfleet_proto::v1alpha1::{Hello, OperatorMessage, ShardMessage};
use bigfleet_provider_sim::admin::v1;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use super::cluster::{Cluster, Nodes};

/// How many frames may wait to be sent.
const QUEUE: usize = 256;
/// How long the shard may take to answer a new session, and how long to wait before the next try. Real time: sockets
/// do not go faster because the world does.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(200);

/// Something a person wants to know or changes.
pub(crate) enum Command {
    /// What is there.
    Look { answer: oneshot::Sender<Vec<v1::Work>> },
    /// These numbers are wanted from now on, by name and number; `None` for what the curve says.
    Fix { wanted: Vec<(String, Option<u64>)>, answer: oneshot::Sender<Result<Fixed, Unknown>> },
}

/// What changed.
pub(crate) struct Fixed {
    pub(crate) work: Vec<v1::Work>,
    /// Whether all of it had been fixed before.
    pub(crate) was_fixed: bool,
}

/// There is no such work; nothing was changed.
pub(crate) struct Unknown {
    pub(crate) work: String,
    pub(crate) known: Vec<String>,
}

/// An operator and all it works with.
pub(crate) struct Operator {
    pub(crate) cluster: Cluster,
    pub(crate) nodes: Arc<dyn Nodes>,
    pub(crate) channel: Channel,
    pub(crate) clock: Arc<dyn Clock>,
    /// How often it reports, on that clock.
    pub(crate) every: Duration,
    pub(crate) commands: mpsc::Receiver<Command>,
}

/// An open session.
struct Line {
    out: mpsc::Sender<OperatorMessage>,
    frames: Streaming<ShardMessage>,
}

impl Operator {
    /// Lives until nobody holds the other end of the commands.
    pub(crate) async fn run(mut self) {
        let real = SystemClock::start();
        loop {
            let opened = tokio::select! {
                opened = open(self.channel.clone(), self.cluster.name()) => opened,
                () = real.sleep(PATIENCE) => Err(Status::deadline_exceeded("the shard does not answer")),
            };
            let ended = match opened {
                Ok(line) => {
                    self.cluster.connected();
                    self.speak(line).await
                }
                Err(status) => Err(status),
            };
            let Err(status) = ended else { return };
            tracing::debug!(cluster = self.cluster.name(), %status, "the session ended; trying again");
            real.sleep(PAUSE).await;
        }
    }

    /// Speaks over one session until it breaks, which is an error, or until nobody is left to give commands.
    async fn speak(&mut self, mut line: Line) -> Result<(), Status> {
        let every = bigfleet_net::nanos(self.every);
        let mut report_at = self.clock.now_unix_nanos();
        loop {
            let now = self.clock.now_unix_nanos();
            for said in self.cluster.look(now, &*self.nodes) {
                say(&line, said).await?;
            }
            if report_at <= now {
                say(&line, Payload::Rollup(self.cluster.rollup(now))).await?;
                report_at = now + every;
            }
            let wake = self.cluster.next_due().unwrap_or(report_at).min(report_at);
            tokio::select! {
                frame = line.frames.message() => match frame? {
                    Some(ShardMessage { payload: Some(heard) }) => {
                        if let Some(said) = self.cluster.hear(heard, now) {
                            say(&line, said).await?;
                        }
                    }
                    Some(ShardMessage { payload: None }) => {}
                    None => return Err(Status::unavailable("the shard ended the session")),
                },
                command = self.commands.recv() => {
                    let Some(command) = command else { return Ok(()) };
                    // What somebody changed by hand is reported at once, so that they see what comes of it.
                    if self.obey(command, now) {
                        report_at = now;
                    }
                }
                () = self.clock.sleep_until(wake) => {}
            }
        }
    }

    /// Does what a person asks. True if the demand may have changed.
    fn obey(&mut self, command: Command, now: i64) -> bool {
        match command {
            Command::Look { answer } => {
                // Whoever asked may have gone.
                let _ = answer.send(self.cluster.work());
                false
            }
            Command::Fix { wanted, answer } => {
                let fixed = self.fix(&wanted, now);
                let changed = fixed.is_ok();
                let _ = answer.send(fixed);
                changed
            }
        }
    }

    fn fix(&mut self, wanted: &[(String, Option<u64>)], now: i64) -> Result<Fixed, Unknown> {
        let find = |(work, count): &(String, Option<u64>)| match self.cluster.find(work) {
            Ok(index) => Ok((index, *count)),
            Err(known) => Err(Unknown { work: work.clone(), known }),
        };
        let wanted = wanted.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let mut was_fixed = true;
        for (index, count) in &wanted {
            was_fixed &= self.cluster.fix(*index, *count, now);
        }
        let rows = self.cluster.work();
        Ok(Fixed { work: wanted.iter().map(|(index, _)| rows[*index].clone()).collect(), was_fixed })
    }
}

async fn open(channel: Channel, cluster: &str) -> Result<Line, Status> {
    let (out, frames) = mpsc::channel(QUEUE);
    let hello = Hello { cluster_id: cluster.into(), protocol_version: PROTOCOL_VERSION_ACKS_DONE.into() };
    // There is room: nothing was sent before.
    let _ = out.try_send(OperatorMessage { payload: Some(Payload::Hello(hello)) });
    let answer = transport::shard_client(channel).session(ReceiverStream::new(frames)).await?;
    Ok(Line { out, frames: answer.into_inner() })
}

async fn say(line: &Line, said: Payload) -> Result<(), Status> {
    let sent = line.out.send(OperatorMessage { payload: Some(said) }).await;
    sent.map_err(|_| Status::unavailable("the session is closed"))
}
