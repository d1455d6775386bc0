//! The operators: each speaks for one cluster, over one connection at a time, in the bytes of the wire.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::machine::MachineState;
use bigfleet_proto::PROTOCOL_VERSION_ACKS_DONE;
use bigfleet_proto::v1alpha1::operator_message::Payload as Say;
use bigfleet_proto::v1alpha1::shard_message::Payload as Heard;
use bigfleet_proto::v1alpha1::{
    BootstrapBlobResponse, CapacityNeed, ClusterCapacityNeeds, Hello, NodeSelectorRequirement,
    OperatorMessage, ReclaimAck, ReclaimInstruction, ShardMessage,
};
use bigfleet_shard::{Event, SessionId};
use bytes::Bytes;
use prost::Message;
use prost::encoding::WireType;

use super::happening::{Happening, Saying};
use super::line::Line;
use super::{MINUTE, START_UNIX_NANOS, World};
use crate::cluster::Pods;
use crate::scenario::{self, Measure};

/// The roll-up's number in `OperatorMessage`.
const ROLLUP: u32 = 2;
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
    /// The rows of its roll-up, as of the last look, in the bytes of the wire.
    rows: Bytes,
    pub(crate) wanted: u64,
    pub(crate) waiting: u64,
    /// What it was told of its machines.
    pub(crate) told: BTreeMap<Box<str>, MachineState>,
    /// Parts of a pod that churn has not ended yet.
    churned: Vec<f64>,
}

impl Operator {
    pub(super) fn new(cluster: &scenario::Cluster, pods: Pods) -> Self {
        Self {
            pods,
            host: cluster.shard,
            session: None,
            life: 0,
            rows: Bytes::new(),
            wanted: 0,
            waiting: 0,
            told: BTreeMap::new(),
            churned: vec![0.0; cluster.work.len()],
        }
    }

    /// Its connection is gone.
    pub(super) fn lose_session(&mut self, session: SessionId) {
        if self.session == Some(session) {
            self.session = None;
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
        // A connection begins with the whole truth.
        operator.told.clear();
        let host = &mut self.hosts[operator.host];
        let most_frames = host.shard.as_ref().map_or(0, |shard| shard.config().limits.outbox);
        host.sessions.insert(session, Line::new(cluster, session, most_frames));
        self.trace.note(self.now, format_args!("{name} connects as {}", session.0));
        let protocol_version = PROTOCOL_VERSION_ACKS_DONE.into();
        self.utter(session, Say::Hello(Hello { cluster_id: name.clone(), protocol_version }));
        self.queue.put(self.now + 1, Happening::Report { cluster, session });
        if let Some(every) = self.active.crash_loop(&name).map(|(every, _)| every) {
            self.queue.put(self.now + every, Happening::Crash { cluster, life });
        }
    }

    /// Puts something an operator says on its way.
    fn utter(&mut self, session: SessionId, payload: Say) {
        let frame = OperatorMessage { payload: Some(payload) }.encode_to_vec().into();
        self.put_saying(session, Saying::Frame(frame));
    }

    fn put_saying(&mut self, session: SessionId, saying: Saying) {
        let at = self.now + self.scenario.latency.nanos();
        self.queue.put(at, Happening::Say { session, saying });
    }

    /// What an operator says reaches its shard.
    pub(super) fn say(&mut self, session: SessionId, saying: Saying) {
        let Some(host) = self.hosts.iter().position(|host| host.sessions.contains_key(&session)) else {
            return;
        };
        match saying {
            Saying::Frame(frame) => self.frame(host, session, &frame),
            Saying::Bye => {
                self.hosts[host].sessions.remove(&session);
                self.tell(host, Event::Closed { session });
            }
        }
    }

    /// The time to report has come.
    pub(super) fn report(&mut self, cluster: usize, session: SessionId) {
        if self.operators[cluster].session != Some(session) {
            return;
        }
        let period = self.scenario.clusters[cluster].roll_up.nanos();
        self.queue.put(self.now + period, Happening::Report { cluster, session });
        let name: Arc<str> = self.operators[cluster].pods.name().clone();
        let empty =
            self.active.is_empty(&name) || self.active.crash_loop(&name).is_some_and(|(_, empty)| empty);
        let operator = &mut self.operators[cluster];
        if operator.pods.take_demand_changed() {
            let needs = operator.pods.rollup().iter().map(CapacityNeed::from).collect();
            operator.rows =
                ClusterCapacityNeeds { needs, ..ClusterCapacityNeeds::default() }.encode_to_vec().into();
        }
        let rows = if empty { Bytes::new() } else { operator.rows.clone() };
        let head = ClusterCapacityNeeds {
            cluster_id: name.to_string(),
            timestamp_unix_nanos: self.now,
            needs: vec![],
        };
        let frame =
            if self.active.is_garbage(&name) { self.garbage(head, &rows) } else { frame(&head, &rows) };
        self.put_saying(session, Saying::Frame(frame));
    }

    /// What an operator sends that has lost its mind: never anything a shard may take.
    fn garbage(&mut self, mut head: ClusterCapacityNeeds, rows: &[u8]) -> Bytes {
        match self.random.below(5) {
            0 => {
                let requirement =
                    NodeSelectorRequirement { key: "zone".into(), operator: 17, values: Vec::new() };
                head.needs.push(CapacityNeed { requirements: vec![requirement], ..CapacityNeed::default() });
                frame(&head, rows)
            }
            1 => frame(&ClusterCapacityNeeds { cluster_id: "somebody-else".into(), ..head }, rows),
            2 => {
                head.needs.push(CapacityNeed { reclamation_penalty_bucket: 99, ..CapacityNeed::default() });
                frame(&head, rows)
            }
            // A good frame around something that is no roll-up: a name that ends too soon.
            3 => frame(&head, &[0x0A, 9, self.random.below(256) as u8]),
            // Not even a frame: field 0 does not exist.
            _ => [&[0], &*frame(&head, rows)].concat().into(),
        }
    }

    /// A stuck operator reads again.
    pub(super) fn read_on(&mut self, cluster: usize) {
        if let Some(session) = self.operators[cluster].session {
            self.flush(self.operators[cluster].host, session);
        }
    }

    /// A frame reaches its operator.
    pub(super) fn receive(&mut self, cluster: usize, session: SessionId, frame: &Bytes) {
        if self.operators[cluster].session != Some(session) {
            return;
        }
        let name = &self.scenario.clusters[cluster].name;
        let message = ShardMessage::decode(frame.clone()).expect("a shard sends what can be read");
        match message.payload {
            None | Some(Heard::AvailableCapacity(_)) => {}
            Some(Heard::Ack(ack)) => {
                let measure = match &*ack.echo {
                    held if held.starts_with("rollup held") => Measure::Held,
                    refused if refused.starts_with("rollup refused") => Measure::Refused,
                    _ => return,
                };
                self.trace.note(self.now, format_args!("{name} is told: {}", ack.echo));
                self.count(measure, Some(cluster), 1);
            }
            Some(Heard::BootstrapRequest(request)) => {
                let refuses = self.active.refuses(name);
                let response = BootstrapBlobResponse {
                    request_id: request.request_id,
                    user_data: if refuses { Vec::new() } else { b"join".to_vec() },
                    ttl_seconds: 600,
                    error: if refuses { "no token can be minted".into() } else { String::new() },
                };
                self.utter(session, Say::BootstrapResponse(response));
            }
            Some(Heard::ReclaimInstruction(instruction)) => self.let_go(cluster, session, instruction),
            Some(Heard::NodeStateUpdate(node)) => {
                let state = MachineState::from_wire(node.state).expect("a shard knows eight states");
                // A machine that stays after all may be used again.
                if state == MachineState::Configured {
                    self.operators[cluster].pods.uncordon(&node.machine_id);
                }
                self.operators[cluster].told.insert(node.machine_id.into(), state);
            }
        }
    }

    /// A cluster is asked to let go of machines: it cordons, evicts and says when it is done.
    fn let_go(&mut self, cluster: usize, session: SessionId, reclaim: ReclaimInstruction) {
        let ReclaimInstruction { instruction_id, nodes, grace_period_seconds, .. } = reclaim;
        for machine in nodes {
            let there = self.operators[cluster].pods.cordon(&machine);
            self.acknowledge(session, &instruction_id, i32::from(there));
            if there {
                let grace = grace_period_seconds.saturating_mul(1_000_000_000);
                let evict = self.scenario.clusters[cluster].evict.nanos().min(grace);
                let (machine, instruction) = (machine.into(), instruction_id.clone());
                self.queue
                    .put(self.now + evict, Happening::Emptied { cluster, session, machine, instruction });
            }
        }
    }

    fn acknowledge(&mut self, session: SessionId, instruction: &str, nodes_started: i32) {
        let ack = ReclaimAck { instruction_id: instruction.into(), nodes_started };
        self.utter(session, Say::ReclaimAck(ack));
    }

    /// The pods of a machine have left.
    pub(super) fn emptied(&mut self, cluster: usize, session: SessionId, machine: &str, instruction: &str) {
        let lost = self.operators[cluster].pods.evict(machine);
        self.count(Measure::PodsLost, Some(cluster), lost);
        if self.operators[cluster].session == Some(session) {
            self.acknowledge(session, instruction, 1);
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
            self.put_saying(session, Saying::Bye);
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

/// The frame of a roll-up. Fields of a message may be written one after the other, so rows are encoded once and used often.
fn frame(head: &ClusterCapacityNeeds, rows: &[u8]) -> Bytes {
    let mut head = head.encode_to_vec();
    let mut bytes = Vec::with_capacity(head.len() + rows.len() + 8);
    prost::encoding::encode_key(ROLLUP, WireType::LengthDelimited, &mut bytes);
    prost::encoding::encode_varint((head.len() + rows.len()) as u64, &mut bytes);
    bytes.append(&mut head);
    bytes.extend_from_slice(rows);
    bytes.into()
}
