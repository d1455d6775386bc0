//! The core thread: it owns the shard, and nothing it does waits for a socket.
//!
//! Everybody else sends it inputs through one bounded queue and goes on. It takes in all that is queued, lets the shard do
//! what is due, and hands the outcome to the committer. It sleeps until the shard wants to be woken or news come.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use bigfleet_net::{Clock, nanos};
use bigfleet_shard::{Event, SessionId, Shard, Step};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};

use crate::commit::Batch;
use crate::laps::Laps;
use crate::metrics::Metrics;
use crate::pace::Pace;
use crate::telemetry;

/// How many inputs may wait. Each session has at most a handful under way, each listing one.
const QUEUE: usize = 4096;
/// How many inputs are taken in before the shard gets to do what is due.
const AT_ONCE: usize = 512;
/// Never wake more often than this, whatever the shard asks for.
const MIN_SLEEP: Duration = Duration::from_millis(1);

type Look = Box<dyn FnOnce(&Shard, i64) + Send>;
type Act = Box<dyn FnOnce(&mut Shard, i64, &mut Step) + Send>;

enum Input {
    /// Something happened.
    Tell { event: Box<Event>, taken: Option<oneshot::Sender<()>> },
    /// A roll-up came, or another like the last; whoever sent it hears whether it was taken.
    Rollup { session: SessionId, event: Box<Event>, arrived: Option<i64>, taken: oneshot::Sender<bool> },
    /// Somebody looks.
    Look(Look),
    /// Somebody commands; they are told once it is on disk.
    Act(Act, oneshot::Sender<()>),
}

/// The core thread is gone, because the shard stops or something fatal happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the shard is stopping; try again when it is back")]
pub struct Gone;

/// The way to the shard, for everybody.
#[derive(Clone)]
pub struct Core {
    inputs: mpsc::Sender<Input>,
    cycles: watch::Receiver<u64>,
    pace: Pace,
}

impl Core {
    /// Says that something happened.
    pub(crate) async fn tell(&self, event: Event) -> Result<(), Gone> {
        self.inputs.send(Input::Tell { event: Box::new(event), taken: None }).await.map_err(|_| Gone)
    }

    /// Says that something happened, and waits until the shard has taken it in.
    pub(crate) async fn tell_and_wait(&self, event: Event) -> Result<(), Gone> {
        let (taken, is_taken) = oneshot::channel();
        let input = Input::Tell { event: Box::new(event), taken: Some(taken) };
        self.inputs.send(input).await.map_err(|_| Gone)?;
        is_taken.await.map_err(|_| Gone)
    }

    /// Passes on a roll-up of a session, and waits until the shard has judged it: true if it was accepted or held.
    /// `arrived` is when it came, if its way is measured.
    pub(crate) async fn tell_rollup(
        &self,
        session: SessionId,
        event: Event,
        arrived: Option<i64>,
    ) -> Result<bool, Gone> {
        let (taken, is_taken) = oneshot::channel();
        let input = Input::Rollup { session, event: Box::new(event), arrived, taken };
        self.inputs.send(input).await.map_err(|_| Gone)?;
        is_taken.await.map_err(|_| Gone)
    }

    /// The number of the last cycle, changed after each.
    pub fn cycles(&self) -> watch::Receiver<u64> {
        self.cycles.clone()
    }

    /// How long the last cycles took, the oldest first, in nanoseconds of real time.
    pub(crate) fn cycle_times(&self) -> Vec<i64> {
        self.pace.times()
    }

    /// Looks at the shard. Must be quick: nothing else happens meanwhile.
    pub async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Shard, i64) -> T + Send + 'static,
    ) -> Result<T, Gone> {
        let (answer, answered) = oneshot::channel();
        let look: Look = Box::new(move |shard, now| {
            // Nobody is left to tell if they gave up waiting.
            let _ = answer.send(look(shard, now));
        });
        self.inputs.send(Input::Look(look)).await.map_err(|_| Gone)?;
        answered.await.map_err(|_| Gone)
    }

    /// Changes something, and answers when the change is on disk.
    pub async fn act<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Shard, i64, &mut Step) -> T + Send + 'static,
    ) -> Result<T, Gone> {
        let (answer, answered) = oneshot::channel();
        let (kept, is_kept) = oneshot::channel();
        let act: Act = Box::new(move |shard, now, step| drop(answer.send(act(shard, now, step))));
        self.inputs.send(Input::Act(act, kept)).await.map_err(|_| Gone)?;
        let answer = answered.await.map_err(|_| Gone)?;
        is_kept.await.map_err(|_| Gone)?;
        Ok(answer)
    }
}

/// The other end of a [`Core`].
pub(crate) struct Inbox {
    inputs: mpsc::Receiver<Input>,
    cycles: watch::Sender<u64>,
    pace: Pace,
}

pub(crate) fn channel() -> (Core, Inbox) {
    let (inputs, inbox) = mpsc::channel(QUEUE);
    let (told, cycles) = watch::channel(0);
    let pace = Pace::default();
    (Core { inputs, cycles, pace: pace.clone() }, Inbox { inputs: inbox, cycles: told, pace })
}

/// Why the core thread ended of its own accord.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It was told to, or nobody is left who could tell it anything.
    Stopped,
    /// The committer takes no more steps. What it died of is its own to say.
    CommitterGone,
}

/// What the core thread works with.
pub(crate) struct Loop {
    pub(crate) shard: Shard,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) committer: SyncSender<Batch>,
    pub(crate) metrics: Metrics,
    /// Real time, however fast the shard's clock runs.
    pub(crate) stopwatch: Arc<dyn Clock>,
}

impl Loop {
    /// Runs until nobody can send any more, `stop` is sent, or the committer is gone.
    pub(crate) async fn run(mut self, inbox: Inbox, mut stop: oneshot::Receiver<()>) -> End {
        let Inbox { mut inputs, cycles, pace } = inbox;
        let mut taken_in = Vec::with_capacity(AT_ONCE);
        let mut decided_upon = Vec::new();
        loop {
            let now = self.clock.now_unix_nanos();
            let wake = self.shard.next_wake_unix_nanos().max(now.saturating_add(nanos(MIN_SLEEP)));
            tokio::select! {
                biased;
                _ = &mut stop => return End::Stopped,
                count = inputs.recv_many(&mut taken_in, AT_ONCE) => if count == 0 { return End::Stopped },
                () = self.clock.sleep_until(wake) => {}
            }
            let mut batch = Batch::default();
            let now = self.clock.now_unix_nanos();
            self.shard.note_wall(self.clock.wall_unix_nanos(), now, &mut batch.step);
            for input in taken_in.drain(..) {
                self.take(input, now, &mut batch, &mut decided_upon);
            }
            if self.advance(&mut batch, &mut decided_upon, &pace) {
                cycles.send_replace(self.shard.cycle());
            }
            if !batch.is_empty() && self.committer.send(batch).is_err() {
                return End::CommitterGone;
            }
        }
    }

    fn take(&mut self, input: Input, now: i64, batch: &mut Batch, decided_upon: &mut Vec<i64>) {
        match input {
            Input::Tell { event, taken } => {
                self.shard.handle(*event, now, &mut batch.step);
                if let Some(taken) = taken {
                    // Whoever sent it may have gone since.
                    let _ = taken.send(());
                }
            }
            Input::Rollup { session, event, arrived, taken } => {
                self.shard.handle(*event, now, &mut batch.step);
                decided_upon.extend(arrived);
                // Whoever sent it may have gone since.
                let _ = taken.send(self.shard.has_taken_rollup(session));
            }
            Input::Look(look) => look(&self.shard, now),
            Input::Act(act, kept) => {
                act(&mut self.shard, now, &mut batch.step);
                batch.told.push(kept);
            }
        }
    }

    fn advance(&mut self, batch: &mut Batch, decided_upon: &mut Vec<i64>, pace: &Pace) -> bool {
        let (begun, started) = (self.clock.now_unix_nanos(), self.stopwatch.now_unix_nanos());
        let mut laps = Laps::new(&*self.clock, begun);
        let has_cycled =
            self.shard.advance_probed(begun, &mut batch.step, &mut |phase| laps.end_of(phase.name()));
        if has_cycled {
            let ended = self.clock.now_unix_nanos();
            pace.took(self.stopwatch.now_unix_nanos() - started);
            self.metrics.cycled(&laps, begun, ended);
            for arrived in decided_upon.drain(..) {
                self.metrics.decided_upon(ended - arrived);
            }
            telemetry::cycle(&laps, self.shard.cycle(), begun, ended);
        }
        has_cycled
    }
}
