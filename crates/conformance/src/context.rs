//! What a check holds in its hands: the provider, machines to use, callers of its own, and a notebook.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bigfleet_proto::v1alpha1::Machine;
use bigfleet_proto::v1alpha1::capacity_provider_client::CapacityProviderClient;
use tokio::sync::OnceCell;
use tonic::Code;
use tonic::transport::Channel;

use crate::calls::Ack;
use crate::clock::Patience;
use crate::config::{Config, Limits};
use crate::latency::Latency;
use crate::moves::{Kind, Order, Shard, State, Token, is_settled, state_name, state_of};
use crate::random::Random;
use crate::scenes::Scenes;
use crate::supply::{Lease, Supply};
use crate::target::Target;
use crate::verdict::{Ended, Verdict, failed, skipped};

/// How many calls a failure shows.
const CALLS_SHOWN: usize = 16;

/// What all checks of a run share.
pub(crate) struct Run {
    pub(crate) config: Config,
    pub(crate) target: Target,
    pub(crate) supply: Supply,
    pub(crate) scenes: Scenes,
    deletes: OnceCell<bool>,
    callers: AtomicU64,
}

impl Run {
    pub(crate) fn new(config: Config, target: Target) -> Self {
        Self {
            config,
            target,
            supply: Supply::default(),
            scenes: Scenes::default(),
            deletes: OnceCell::new(),
            callers: AtomicU64::new(0),
        }
    }
}

/// What a check wrote down.
#[derive(Default)]
pub(crate) struct Notebook {
    pub(crate) calls: Mutex<VecDeque<String>>,
    pub(crate) notes: Mutex<Vec<String>>,
    pub(crate) latencies: Mutex<Vec<Latency>>,
}

/// One check's hands. Clones are the same hands.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) run: Arc<Run>,
    pub(crate) id: &'static str,
    pub(crate) notebook: Arc<Notebook>,
}

impl Context {
    pub(crate) fn new(run: Arc<Run>, id: &'static str) -> Self {
        Self { run, id, notebook: Arc::default() }
    }

    pub(crate) fn client(&self) -> CapacityProviderClient<Channel> {
        self.run.target.client()
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.run.config.limits
    }

    /// Random numbers for one purpose of this check.
    pub(crate) fn random(&self, purpose: &str) -> Random {
        Random::new(self.run.config.seed, &format!("{} {purpose}", self.id))
    }

    /// A caller no provider has heard of.
    pub(crate) fn shard(&self) -> Shard {
        Shard::new(self.unheard("shard"))
    }

    /// A token no mark can stand against.
    pub(crate) fn token(&self) -> Token {
        self.shard().next()
    }

    /// A name nobody has used.
    pub(crate) fn unheard(&self, what: &str) -> String {
        let number = self.run.callers.fetch_add(1, Ordering::Relaxed);
        format!("conformance-{what}-{}-{}-{number}", self.run.config.run_name, self.id)
    }

    pub(crate) fn remember(&self, call: String) {
        let mut calls = self.notebook.calls.lock().expect("no holder panics");
        if calls.len() == CALLS_SHOWN {
            calls.pop_front();
        }
        calls.push_back(call);
    }

    /// A line for the report.
    pub(crate) fn note(&self, note: impl Into<String>) {
        self.notebook.notes.lock().expect("no holder panics").push(note.into());
    }

    /// Percentiles for the report.
    pub(crate) fn measured(&self, what: &str, samples: &[Duration]) {
        self.notebook.latencies.lock().expect("no holder panics").extend(Latency::of(what, samples));
    }

    /// A machine in this state, for this check alone until it is dropped.
    pub(crate) async fn take(&self, state: State) -> Result<Lease, Ended> {
        self.run.supply.take(self, state).await
    }

    /// Several machines in this state.
    pub(crate) async fn take_several(&self, state: State, count: usize) -> Result<Vec<Lease>, Ended> {
        let mut leases = Vec::with_capacity(count);
        for _ in 0..count {
            leases.push(self.take(state).await?);
        }
        Ok(leases)
    }

    /// Waits until the machine stands still.
    pub(crate) async fn settle(&self, id: &str) -> Result<Machine, Ended> {
        self.settle_watched(id, |_| {}).await
    }

    /// Waits until the machine stands still, and shows every record on the way.
    pub(crate) async fn settle_watched(
        &self,
        id: &str,
        mut seen: impl FnMut(&Machine),
    ) -> Result<Machine, Ended> {
        let limit = self.limits().transition;
        let mut patience = Patience::new(limit, self.limits().poll);
        loop {
            let machine = self.get(id).await?;
            seen(&machine);
            let state = state_of(&machine);
            if is_settled(state) {
                return Ok(machine);
            }
            if !patience.wait().await {
                let expected = format!("machine {id:?} comes to a settled state within {limit:?}");
                return failed(expected, format!("it is still {}", state_name(state)));
            }
        }
    }

    /// Waits until the machine stands still, which must be here.
    pub(crate) async fn reach(&self, id: &str, state: State) -> Result<Machine, Ended> {
        let machine = self.settle(id).await?;
        if state_of(&machine) == state {
            return Ok(machine);
        }
        let got = format!("{}, last_error {:?}", state_name(state_of(&machine)), machine.last_error);
        failed(format!("machine {id:?} comes to {}", state_name(state)), got)
    }

    /// Makes a move with a new caller and waits for its end.
    pub(crate) async fn walk(&self, order: &Order, id: &str) -> Result<(Ack, Machine), Ended> {
        let ack = self.act(order, id, &self.token()).await?.accepted()?;
        let machine = self.reach(id, order.kind().to()).await?;
        Ok((ack, machine))
    }

    /// Makes the plainest move of a kind and waits for its end.
    pub(crate) async fn step(&self, kind: Kind, id: &str) -> Result<(Ack, Machine), Ended> {
        self.walk(&Order::plain(kind), id).await
    }

    /// Whether the provider gives machines back at all.
    pub(crate) async fn deletes(&self) -> Result<bool, Ended> {
        let ask = || async {
            let unknown = self.unheard("machine");
            let answer = self.plain(Kind::Delete, &unknown, &Token::none()).await?;
            Ok(answer.result.err().map(|status| status.code()) != Some(Code::Unimplemented))
        };
        self.run.deletes.get_or_try_init(ask).await.copied()
    }

    /// Skips a check that needs Delete where there is none.
    pub(crate) async fn needs_delete(&self) -> Verdict {
        if self.deletes().await? {
            Ok(())
        } else {
            skipped("the provider does not support Delete (UNIMPLEMENTED)")
        }
    }

    /// Skips a check of a move the provider does not have.
    pub(crate) async fn needs(&self, kind: Kind) -> Verdict {
        if kind == Kind::Delete { self.needs_delete().await } else { Ok(()) }
    }

    /// Waits until no machine of the inventory is under way, or as long as a move may take.
    pub(crate) async fn quiesce(&self) -> Result<BTreeMap<String, Machine>, Ended> {
        let mut patience = Patience::new(self.limits().transition, self.limits().poll);
        loop {
            let machines = self.list_all().await?.machines;
            if machines.iter().all(|machine| is_settled(state_of(machine))) || !patience.wait().await {
                return Ok(machines.into_iter().map(|machine| (machine.id.clone(), machine)).collect());
            }
        }
    }

    /// Restarts the provider and waits until it answers again.
    pub(crate) async fn restart(&self) -> Verdict {
        if !self.run.config.restart.is_possible() {
            return skipped("no restart command was given (--restart-command)");
        }
        let limit = self.limits().restart;
        self.remember("(restart of the provider)".into());
        if let Err(reason) = self.run.config.restart.run(limit).await {
            return failed("the provider can be restarted", reason);
        }
        let mut patience = Patience::new(limit, self.limits().poll);
        match self.run.target.wait_until_reached(&self.run.config, &mut patience).await {
            Ok(()) => Ok(()),
            Err(error) => {
                failed(format!("the provider answers within {limit:?} of its restart"), error.to_string())
            }
        }
    }
}
