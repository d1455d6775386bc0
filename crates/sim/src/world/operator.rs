//! The operators: each speaks for one cluster, over one connection at a time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bigfleet_model::machine::MachineState;
use bigfleet_model::need::Need;
use bigfleet_shard::{Blob, Event, Frame, Reception, Rollup, SessionId, WireId};

use super::happening::{Happening, Saying};
use super::{MINUTE, Moment, START_UNIX_NANOS, World};
use crate::cluster::Pods;
use crate::scenario::{self, Measure};

/// How long an operator waits before it connects again.
const RECONNECT: i64 = 1_000_000_000;

/// One cluster and the operator that speaks for it.
pub(crate) struct Operator {
    pub(crate) pods: Pods,
    /// Which host it talks to.
    pub(crate) host: usize,
    pub(super) session: Option<SessionId>,
    /// Told apart from the lives before.
    pub(super) life: u64,
    /// What was last sent on this connection.
    sent: Option<Arc<Vec<Need>>>,
    /// Whether what was last sent on this connection could not be read.
    garbled: bool,
    /// What is wanted, as of the last look.
    demand: Arc<Vec<Need>>,
    pub(crate) wanted: u64,
    pub(crate) waiting: u64,
    /// Frames it has not read.
    outbox: VecDeque<(Option<String>, Frame)>,
    /// What it was told of its machines.
    pub(crate) told: BTreeMap<Box<str>, MachineState>,
    /// Parts of a pod that churn has not ended yet.
    churned: Vec<f64>,
}

impl Operator {
    pub(super) fn new(cluster: &scenario::Cluster) -> Self {
        Self {
            pods: Pods::new(cluster),
            host: cluster.shard,
            session: None,
            life: 0,
            sent: None,
            garbled: false,
            demand: Arc::default(),
            wanted: 0,
            waiting: 0,
            outbox: VecDeque::new(),
            told: BTreeMap::new(),
            churned: vec![0.0; cluster.work.len()],
        }
    }

    /// Its connection is gone.
    pub(super) fn lose_session(&mut self, session: SessionId) {
        if self.session == Some(session) {
            self.session = None;
            self.sent = None;
            self.garbled = false;
            self.outbox.clear();
        }
    }
}

impl World {
    /// An operator connects, unless it is gone or connected.
    pub(super) fn connect(&mut self, cluster: usize, life: u64) {
        let name = self.scenario.clusters[cluster].name.clone();
        let operator = &mut self.operators[cluster];
        if operator.life != life || operator.session.is_some() || self.active.is_gone(&name) {
            return;
        }
        if self.hosts[operator.host].shard.is_none() {
            // Its next life calls for all its operators; asking again and again from here would only pile up.
            return;
        }
        self.sessions += 1;
        let session = SessionId(self.sessions);
        operator.session = Some(session);
        operator.sent = None;
        // A connection begins with the whole truth.
        operator.told.clear();
        let host = operator.host;
        self.hosts[host].sessions.insert(session, cluster);
        self.trace.note(self.now, format_args!("{name} connects as {}", session.0));
        self.utter(cluster, session, Saying::Hello);
        self.queue.put(self.now + 1, Happening::Report { cluster, session });
        if let Some(every) = self.active.crash_loop(&name).map(|(every, _)| every) {
            self.queue.put(self.now + every, Happening::Crash { cluster, life });
        }
    }

    /// Puts something an operator says on its way.
    fn utter(&mut self, cluster: usize, session: SessionId, saying: Saying) {
        let at = self.now + self.scenario.latency.nanos();
        self.queue.put(at, Happening::Say { cluster, session, saying });
    }

    /// What an operator says reaches its shard.
    pub(super) fn say(&mut self, cluster: usize, session: SessionId, saying: Saying) {
        let host = self.operators[cluster].host;
        let Some(host) = self.hosts.iter().position(|h| h.sessions.contains_key(&session)).or(Some(host))
        else {
            return;
        };
        if !self.hosts[host].sessions.contains_key(&session) {
            return;
        }
        let name = self.operators[cluster].pods.name().clone();
        let event = match saying {
            Saying::Hello => Event::Opened { session, cluster: name, protocol: "v1alpha1+acks-done".into() },
            Saying::Rollup(rollup) => {
                let rows = rollup.as_ref().map_or(0, |rollup| rollup.needs.len());
                self.trace.note(self.now, format_args!("{name} reports {rows} rows"));
                let needs = rollup.as_ref().ok().map(|rollup| rollup.needs.clone());
                self.show(&Moment::Reported { cluster: &name, needs: needs.as_deref() });
                Event::Rollup { session, rollup }
            }
            Saying::Again => Event::RollupAgain { session },
            Saying::Blob(request, blob) => Event::Blob { session, request, blob },
            Saying::Ack(instruction, nodes_started) => {
                self.show(&Moment::Acked { instruction: instruction.0, nodes: nodes_started });
                Event::ReclaimAcked { session, instruction, nodes_started }
            }
            Saying::Bye => {
                self.hosts[host].sessions.remove(&session);
                Event::Closed { session }
            }
        };
        self.tell(host, event);
    }

    /// The time to report has come.
    pub(super) fn report(&mut self, cluster: usize, session: SessionId) {
        if self.operators[cluster].session != Some(session) {
            return;
        }
        let period = self.scenario.clusters[cluster].roll_up.nanos();
        self.queue.put(self.now + period, Happening::Report { cluster, session });
        let name: Arc<str> = self.operators[cluster].pods.name().clone();
        if self.active.is_garbage(&name) {
            // The same bytes again are said to be so, whatever became of them.
            let again = std::mem::replace(&mut self.operators[cluster].garbled, true);
            self.operators[cluster].sent = None;
            let garbage = Saying::Rollup(Err("row 3: operator 17 is unknown".into()));
            self.utter(cluster, session, if again { Saying::Again } else { garbage });
            return;
        }
        self.operators[cluster].garbled = false;
        let empty =
            self.active.is_empty(&name) || self.active.crash_loop(&name).is_some_and(|(_, empty)| empty);
        let operator = &mut self.operators[cluster];
        if operator.pods.take_demand_changed() {
            let demand = operator.pods.rollup();
            if demand != *operator.demand {
                operator.demand = Arc::new(demand);
            }
        }
        let rows = if empty { Arc::default() } else { operator.demand.clone() };
        let saying = if operator.sent.as_ref().is_some_and(|sent| Arc::ptr_eq(sent, &rows) || *sent == rows) {
            Saying::Again
        } else {
            let needs = rows.to_vec();
            Saying::Rollup(Ok(Rollup { cluster: name, taken_unix_nanos: self.now, needs }))
        };
        operator.sent = Some(rows);
        self.utter(cluster, session, saying);
    }

    /// A shard sends a frame.
    pub(super) fn send(&mut self, host: usize, session: SessionId, frame: Frame) {
        let Some(cluster) = self.hosts[host].sessions.get(&session).copied() else { return };
        let name = self.scenario.clusters[cluster].name.clone();
        if let Frame::RollupAck(reception) = &frame {
            let shard = self.hosts[host].shard.as_ref();
            if let Some(shard) = shard.filter(|_| !self.setup.unwatched) {
                self.watch.see(self.now, &Moment::Received { host, cluster: &name, reception, shard });
            }
        }
        if self.active.is_stuck(&name) {
            let bound = self.hosts[host].shard.as_ref().map_or(0, |shard| shard.config().limits.outbox);
            let outbox = &mut self.operators[cluster].outbox;
            let key = frame.supersedes();
            if key.is_some() {
                outbox.retain(|(other, _)| *other != key);
            }
            outbox.push_back((key, frame));
            if outbox.len() > bound {
                self.hosts[host].sessions.remove(&session);
                self.operators[cluster].lose_session(session);
                self.tell(host, Event::Closed { session });
            }
            return;
        }
        let at = self.now + self.scenario.latency.nanos();
        self.queue.put(at, Happening::Frame { cluster, session, frame });
    }

    /// A stuck operator reads again.
    pub(super) fn read_on(&mut self, cluster: usize) {
        let Some(session) = self.operators[cluster].session else { return };
        for (_, frame) in std::mem::take(&mut self.operators[cluster].outbox) {
            self.queue.put(self.now, Happening::Frame { cluster, session, frame });
        }
    }

    /// A frame reaches its operator.
    pub(super) fn receive(&mut self, cluster: usize, session: SessionId, frame: Frame) {
        if self.operators[cluster].session != Some(session) {
            return;
        }
        let name = self.scenario.clusters[cluster].name.clone();
        match frame {
            Frame::HelloAck | Frame::Available(_) => {}
            Frame::RollupAck(reception) => {
                let measure = match reception {
                    Reception::Accepted => return,
                    Reception::Held { .. } => Measure::Held,
                    Reception::Refused { .. } => Measure::Refused,
                };
                self.trace.note(self.now, format_args!("{name} is told: {reception:?}"));
                self.count(measure, Some(cluster), 1);
            }
            Frame::Bootstrap { request, .. } => {
                let blob = if self.active.refuses(&name) {
                    Err("no token can be minted".into())
                } else {
                    Ok(Blob { user_data: Arc::from(*b"join"), ttl_secs: 600 })
                };
                self.utter(cluster, session, Saying::Blob(request, blob));
            }
            Frame::Reclaim { instruction, machine, grace_secs, .. } => {
                self.let_go(cluster, session, machine, instruction, grace_secs);
            }
            Frame::Node(machine) => {
                // A machine that stays after all may be used again.
                if machine.state == MachineState::Configured {
                    self.operators[cluster].pods.uncordon(&machine.id);
                }
                self.operators[cluster].told.insert(machine.id.clone(), machine.state);
            }
        }
    }

    /// A cluster is asked to let go of a machine: it cordons, evicts and says when it is done.
    fn let_go(
        &mut self,
        cluster: usize,
        session: SessionId,
        machine: Box<str>,
        instruction: WireId,
        grace_secs: i64,
    ) {
        let there = self.operators[cluster].pods.cordon(&machine);
        self.utter(cluster, session, Saying::Ack(instruction, i32::from(there)));
        if there {
            let evict =
                self.scenario.clusters[cluster].evict.nanos().min(grace_secs.saturating_mul(1_000_000_000));
            self.queue.put(self.now + evict, Happening::Emptied { cluster, session, machine, instruction });
        }
    }

    /// The pods of a machine have left.
    pub(super) fn emptied(&mut self, cluster: usize, session: SessionId, machine: &str, instruction: WireId) {
        let lost = self.operators[cluster].pods.evict(machine);
        self.count(Measure::PodsLost, Some(cluster), lost);
        if self.operators[cluster].session == Some(session) {
            self.utter(cluster, session, Saying::Ack(instruction, 1));
        }
    }

    /// A shard ended a connection.
    pub(super) fn hung_up(&mut self, cluster: usize, session: SessionId) {
        let operator = &mut self.operators[cluster];
        if operator.session == Some(session) {
            operator.lose_session(session);
            let life = operator.life;
            self.queue.put(self.now + RECONNECT, Happening::Connect { cluster, life });
        }
    }

    /// An operator's process ends; it starts again after a moment unless it is gone for good.
    pub(super) fn operator_crashes(&mut self, cluster: usize, life: u64) {
        if self.operators[cluster].life != life {
            return;
        }
        self.disconnect(cluster);
        self.operators[cluster].life += 1;
        let life = self.operators[cluster].life;
        self.queue.put(self.now + RECONNECT, Happening::Connect { cluster, life });
    }

    /// Ends an operator's connection from its side.
    pub(super) fn disconnect(&mut self, cluster: usize) {
        if let Some(session) = self.operators[cluster].session {
            self.operators[cluster].lose_session(session);
            self.utter(cluster, session, Saying::Bye);
        }
    }

    /// The load may have changed.
    pub(super) fn load(&mut self, cluster: usize, work: usize) {
        let since = self.since_start();
        let pods = &self.scenario.clusters[cluster].work[work].pods;
        let target = pods.at(since);
        if let Some(next) = pods.next_change(since) {
            self.queue.put(START_UNIX_NANOS + next, Happening::Load { cluster, work });
        }
        self.operators[cluster].pods.scale(work, target);
        self.trace.note(self.now, format_args!("load {cluster} {work} is {target}"));
    }

    /// Some pods end and are made again.
    pub(super) fn churn(&mut self, cluster: usize, work: usize) {
        let spec = &self.scenario.clusters[cluster].work[work];
        let due = &mut self.operators[cluster].churned[work];
        *due += spec.pods.at(self.now - START_UNIX_NANOS) as f64 * spec.churn_per_hour / 60.0;
        let pods = due.floor();
        *due -= pods;
        self.operators[cluster].pods.churn(work, pods as u64);
        self.queue.put(self.now + MINUTE, Happening::Churn { cluster, work });
    }

    /// Every cluster's scheduler has a look, where something changed.
    pub(super) fn schedule_pods(&mut self) {
        for operator in &mut self.operators {
            operator.pods.schedule();
            if operator.pods.take_touched() {
                (operator.wanted, operator.waiting) = operator.pods.count();
            }
        }
    }
}
