//! One replica: a task that owns the fleet. It follows whoever leads, and leads when it is its turn.
//!
//! Calls are taken one after the other, so nobody sees half of anything. A leader takes all that wait, decides them on its
//! fleet, commits what they want stored in one transaction if it fits, and answers only then. If the store refuses or does
//! not answer, nobody is told that anything was done, the fleet is thrown away and loaded again: what was decided on top of
//! something that may not be stored is worth nothing.

mod charge;

use std::sync::Arc;
use std::time::Duration;

use bigfleet_coordinator::{
    Fleet, Help, HelpRules, Key, LoadError, Refusal, Standing, Write, Writes, retry, sweep,
};
use bigfleet_net::{Backoff, Clock};
use bigfleet_proto::coordinator_v1::Charge;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};

use crate::metrics::Metrics;
use crate::store::{Change, Leadership, Store, StoreError};
use charge::Followers;

/// How many calls may wait.
const QUEUE: usize = 1_024;
/// How many of them are decided before one commit.
const BATCH: usize = 128;
/// How often a leader looks after what nobody calls for.
const TICK: Duration = Duration::from_secs(1);
/// How often it orders again what was refused, in ticks.
const RETRY_TICKS: u64 = 30;
/// How often it has the store forget its past, in ticks.
const TIDY_TICKS: u64 = 3_600;
/// The first and the longest wait for a store that does not answer.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(200), limit: Duration::from_secs(10) };

/// What a replica knows.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) fleet: Fleet,
    pub(crate) standing: Standing,
    pub(crate) help: Help,
    /// Where the leader serves, if it is known.
    pub(crate) leader: Option<String>,
    pub(crate) is_leading: bool,
    /// Whether the store has answered once: before, an empty fleet means nothing.
    pub(crate) is_loaded: bool,
    pub(crate) revision: i64,
}

/// What a caller asks.
enum Call {
    /// Any replica answers.
    Look(Box<dyn FnOnce(&State) + Send>),
    /// The leader decides; others say who leads.
    Decide(Box<dyn Decision>),
    /// The leader tells a shard what concerns it.
    Follow(Box<str>, oneshot::Sender<Result<watch::Receiver<Charge>, NotDone>>),
}

/// Decides something, and tells the caller once it is stored, or was not.
trait Decision: Send {
    fn decide(&mut self, state: &mut State, now: i64) -> Vec<Writes>;
    fn tell(self: Box<Self>, stored: Result<(), NotDone>);
}

/// Why a call was not carried out.
#[derive(Clone, Debug, Error)]
pub(crate) enum NotDone {
    /// Another replica leads.
    #[error("this replica does not lead{}", .0.as_ref().map_or_else(String::new, |leader| format!("; {leader} does")))]
    NotLeader(Option<String>),
    /// The leader refuses.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Nobody knows whether it was stored.
    #[error("{0}; it may or may not have been carried out, and can be asked again")]
    Unknown(String),
    /// The replica stops.
    #[error("this replica stops")]
    Stopping,
}

/// How calls reach a replica.
#[derive(Clone, Debug)]
pub(crate) struct Replica(mpsc::Sender<Call>);

impl Replica {
    /// Looks at what this replica knows.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&State) -> T + Send + 'static,
    ) -> Result<T, NotDone> {
        let (answer, answered) = oneshot::channel();
        let call = Call::Look(Box::new(move |state| drop(answer.send(look(state)))));
        self.0.send(call).await.map_err(|_| NotDone::Stopping)?;
        answered.await.map_err(|_| NotDone::Stopping)
    }

    /// Has something decided and stored by the leader, if this is it.
    pub(crate) async fn decide<T: Send + 'static>(
        &self,
        decide: impl FnOnce(&mut Deciding<'_>) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, NotDone> {
        let (answer, answered) = oneshot::channel();
        let call = Pending { decide: Some(decide), decided: None, answer };
        self.0.send(Call::Decide(Box::new(call))).await.map_err(|_| NotDone::Stopping)?;
        answered.await.map_err(|_| NotDone::Stopping)?
    }

    /// What concerns a shard, now and whenever it changes, for as long as this replica leads.
    pub(crate) async fn follow(&self, shard: Box<str>) -> Result<watch::Receiver<Charge>, NotDone> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Call::Follow(shard, answer)).await.map_err(|_| NotDone::Stopping)?;
        answered.await.map_err(|_| NotDone::Stopping)?
    }
}

/// A decision in the making: the state, and what is to be stored so far.
pub(crate) struct Deciding<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) now: i64,
    writes: Vec<Writes>,
}

impl Deciding<'_> {
    /// Stores this, before anybody hears of it. What is decided after sees it.
    pub(crate) fn store(&mut self, writes: Writes) {
        if !writes.is_empty() {
            self.state.fleet.apply(&writes);
            self.writes.push(writes);
        }
    }
}

struct Pending<F, T> {
    decide: Option<F>,
    decided: Option<Result<T, Refusal>>,
    answer: oneshot::Sender<Result<T, NotDone>>,
}

impl<F, T> Decision for Pending<F, T>
where
    F: FnOnce(&mut Deciding<'_>) -> Result<T, Refusal> + Send,
    T: Send,
{
    fn decide(&mut self, state: &mut State, now: i64) -> Vec<Writes> {
        let mut deciding = Deciding { state, now, writes: Vec::new() };
        let decide = self.decide.take().expect("decided once");
        self.decided = Some(decide(&mut deciding));
        deciding.writes
    }

    fn tell(self: Box<Self>, stored: Result<(), NotDone>) {
        let answer = match (stored, self.decided) {
            (Ok(()), Some(decided)) => decided.map_err(NotDone::Refused),
            (Ok(()), None) => Err(NotDone::Unknown("it was not decided".into())),
            (Err(error), _) => Err(error),
        };
        // A caller that is gone needs no answer.
        let _ = self.answer.send(answer);
    }
}

/// What a replica runs with.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) store: Store,
    /// Where this replica serves, as others are told.
    pub(crate) address: String,
    /// Whether the leader has etcd forget its past.
    pub(crate) tidies: bool,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
}

/// Why a replica ended.
#[derive(Debug, Error)]
pub enum ReplicaError {
    /// What is stored is no fleet of ours.
    #[error("the store cannot be used: {0}")]
    Load(#[from] LoadError),
}

/// Makes a replica. It answers while `run` runs.
pub(crate) fn replica() -> (Replica, Calls) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    (Replica(sender), Calls(receiver))
}

/// Calls that wait for a replica.
pub(crate) struct Calls(mpsc::Receiver<Call>);

impl Running {
    /// Follows and leads until everybody who could call is gone, or the store holds nonsense.
    pub(crate) async fn run(self, mut calls: Calls) -> Result<(), ReplicaError> {
        let mut state = State::default();
        let mut failures = 0;
        loop {
            let turn = async {
                let leadership = self.follow(&mut state, &mut calls).await?;
                failures = 0;
                self.lead(&mut state, &mut calls, &leadership).await
            };
            match turn.await {
                Ok(()) | Err(Ended::Stopped) => return Ok(()),
                Err(Ended::Nonsense(error)) => return Err(error.into()),
                Err(Ended::Store(error)) => tracing::warn!(%error, "starting over from the store"),
            }
            state.is_leading = false;
            self.metrics.leads(false);
            failures += 1;
            let wait = BACKOFF.wait(failures, u64::from(std::process::id()));
            if let Err(Ended::Stopped) = meanwhile(&state, &mut calls, self.clock.sleep(wait)).await {
                return Ok(());
            }
        }
    }

    /// Knows what the leader has stored, until it is this replica's turn.
    async fn follow(&self, state: &mut State, calls: &mut Calls) -> Result<Leadership, Ended> {
        self.load(state, calls).await?;
        let mut changes = meanwhile(state, calls, self.store.changes(state.revision)).await??;
        let turn = self.store.lead(&self.address, &self.clock);
        tokio::pin!(turn);
        loop {
            tokio::select! {
                leadership = &mut turn => return Ok(leadership?),
                change = changes.next() => {
                    let (changed, revision) = change?;
                    for change in changed {
                        take(state, change)?;
                    }
                    state.revision = revision;
                }
                call = calls.0.recv() => answer(state, call.ok_or(Ended::Stopped)?),
            }
        }
    }

    async fn load(&self, state: &mut State, calls: &mut Calls) -> Result<(), Ended> {
        let loaded = meanwhile(state, calls, self.store.load()).await??;
        let entries = loaded.entries.iter().map(|(key, value)| (key.as_str(), value.as_slice()));
        state.fleet = Fleet::load(entries).map_err(Ended::Nonsense)?;
        state.revision = loaded.revision;
        state.is_loaded = true;
        Ok(())
    }

    /// Decides for all, until the leadership is lost.
    async fn lead(&self, state: &mut State, calls: &mut Calls, leadership: &Leadership) -> Result<(), Ended> {
        // The last leader may have stored more than this replica has heard of.
        self.load(state, calls).await?;
        let begin = state.fleet.begin(leadership.term);
        state.fleet.apply(&begin);
        state.revision = self.store.commit(leadership, &begin).await?;
        let term = state.fleet.term();
        state.standing = Standing::default();
        state.help = Help::new(HelpRules::default(), term);
        state.leader = Some(self.address.clone());
        state.is_leading = true;
        self.metrics.leads(true);
        tracing::info!(term, store = self.store.name(), "this replica leads");
        let mut followers = Followers::default();
        let mut tidied = state.revision;
        for tick in 1_u64.. {
            let sleep = self.clock.sleep(TICK);
            tokio::pin!(sleep);
            loop {
                tokio::select! {
                    biased;
                    () = leadership.until_lost() => return Err(StoreError::Deposed.into()),
                    () = &mut sleep => break,
                    call = calls.0.recv() => {
                        let call = call.ok_or(Ended::Stopped)?;
                        self.decide(state, calls, call, &mut followers, leadership).await?;
                    }
                }
            }
            self.look_after(state, tick, &mut followers, leadership).await?;
            if let Store::Etcd(etcd) = &self.store
                && self.tidies
                && tick % TIDY_TICKS == 0
            {
                // What was an hour ago: a follower that was away for longer loads again.
                if let Err(error) = etcd.tidy(tidied).await {
                    tracing::warn!(%error, "the store could not be tidied; the next try follows");
                }
                tidied = state.revision;
            }
        }
        Ok(())
    }

    /// Takes a call and all that wait behind it, stores what they decide, and answers.
    async fn decide(
        &self,
        state: &mut State,
        calls: &mut Calls,
        first: Call,
        followers: &mut Followers,
        leadership: &Leadership,
    ) -> Result<(), Ended> {
        let now = self.clock.now_unix_nanos();
        let (mut decided, mut batch) = (Vec::new(), Vec::new());
        let mut next = Some(first);
        while let Some(call) = next {
            match call {
                // Sees what was decided before it and may not be stored yet: it is answered at once, and harmless.
                Call::Look(look) if decided.is_empty() => look(state),
                Call::Look(look) => {
                    next = Some(Call::Look(look));
                    break;
                }
                Call::Decide(mut call) => {
                    batch.extend(call.decide(state, now));
                    decided.push(call);
                }
                Call::Follow(shard, answer) => drop(answer.send(Ok(followers.add(state, shard)))),
            }
            next = if decided.len() < BATCH { calls.0.try_recv().ok() } else { None };
        }
        let stored = self.commit(state, leadership, &batch).await;
        for call in decided {
            let told = stored.as_ref().map(drop).map_err(|error| NotDone::Unknown(error.to_string()));
            call.tell(told);
        }
        stored?;
        if let Some(Call::Look(look)) = next {
            look(state);
        }
        // Reports mostly change nothing that is stored; whom help is asked of is settled every second.
        if !batch.is_empty() {
            followers.tell(state);
        }
        Ok(())
    }

    /// Stores changes in as few transactions as they fit in, in order.
    async fn commit(
        &self,
        state: &mut State,
        leadership: &Leadership,
        batch: &[Writes],
    ) -> Result<(), StoreError> {
        let mut together = Writes::default();
        for writes in batch {
            if !together.have_room(writes.as_slice().len()) {
                state.revision = self.store.commit(leadership, &together).await?;
                together = Writes::default();
            }
            together.append(writes);
        }
        if !together.is_empty() {
            state.revision = self.store.commit(leadership, &together).await?;
        }
        self.metrics.committed(batch.len());
        Ok(())
    }

    /// What nobody calls for: removed shards, refused orders, help.
    async fn look_after(
        &self,
        state: &mut State,
        tick: u64,
        followers: &mut Followers,
        leadership: &Leadership,
    ) -> Result<(), Ended> {
        let now = self.clock.now_unix_nanos();
        let mut batch = Vec::new();
        let mut swept = sweep(&state.fleet, now);
        if swept.is_empty() && tick.is_multiple_of(RETRY_TICKS) {
            swept = retry(&state.fleet);
        }
        if !swept.is_empty() {
            for write in swept.as_slice() {
                if let Write::Delete(Key::Shard(shard)) = write {
                    state.standing.forget(shard);
                }
            }
            state.fleet.apply(&swept);
            batch.push(swept);
        }
        self.commit(state, leadership, &batch).await?;
        state.help.tick(&state.fleet, &state.standing, now);
        followers.tell(state);
        self.metrics.measured(state);
        Ok(())
    }
}

/// Answers as one who does not lead.
fn answer(state: &State, call: Call) {
    let not_leader = || NotDone::NotLeader(state.leader.clone());
    match call {
        Call::Look(look) => look(state),
        Call::Decide(call) => call.tell(Err(not_leader())),
        Call::Follow(_, answer) => drop(answer.send(Err(not_leader()))),
    }
}

/// Answers calls while something else is waited for: a store that is away must not silence a replica.
async fn meanwhile<T>(state: &State, calls: &mut Calls, work: impl Future<Output = T>) -> Result<T, Ended> {
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return Ok(done),
            call = calls.0.recv() => answer(state, call.ok_or(Ended::Stopped)?),
        }
    }
}

/// Takes in what the leader has stored.
fn take(state: &mut State, change: Change) -> Result<(), Ended> {
    match change {
        Change::Leader(leader) => state.leader = leader,
        Change::Entry(key, Some(value)) => {
            let entry = bigfleet_coordinator::Entry::decode(&key, &value).map_err(Ended::Nonsense)?;
            state.fleet.apply_one(Write::Put(entry));
        }
        Change::Entry(key, None) => {
            let key = Key::parse(&key).ok_or(Ended::Nonsense(LoadError::Key(key)))?;
            state.fleet.apply_one(Write::Delete(key));
        }
    }
    Ok(())
}

/// Why a turn ended.
enum Ended {
    Stopped,
    Store(StoreError),
    Nonsense(LoadError),
}

impl From<StoreError> for Ended {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
