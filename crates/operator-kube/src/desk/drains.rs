//! Letting go of machines: orders of the pure code carried out, answers passed back.

use bigfleet_kube_common::Severity;
use bigfleet_operator::drain::{Evicted, Order, Progress, State};
use bigfleet_proto::v1alpha1::operator_message::Payload as Saying;
use bigfleet_proto::v1alpha1::{ReclaimAck, ReclaimInstruction};
use k8s_openapi::api::core::v1::ObjectReference;

use super::Desk;
use crate::news::News;

impl Desk {
    /// The shard wants machines back.
    pub(super) fn instructed(&mut self, instruction: &ReclaimInstruction, now: i64) {
        let ReclaimInstruction { instruction_id, nodes, grace_period_seconds, preemptor_priority } =
            instruction;
        tracing::info!(
            instruction = instruction_id,
            ?nodes,
            grace_secs = grace_period_seconds,
            "asked to let go"
        );
        if *preemptor_priority == 0 {
            // Nobody waits for it. What another cluster needs more urgently goes without a question.
            self.leaving.judge(nodes);
        }
        if !self.drains.instruct(instruction_id, nodes, *grace_period_seconds, now) {
            tracing::warn!("too many machines are being let go; this one waits for its grace");
        }
    }

    /// Orders what is next. When to look again.
    pub(super) fn step_drains(&mut self, now: i64) -> i64 {
        if self.drains.is_empty() {
            return i64::MAX;
        }
        let orders = self.drains.step(now, &self.picture);
        self.carry_out(orders);
        self.metrics.drains(self.drains.len());
        self.drains.next_due().unwrap_or(i64::MAX)
    }

    /// Carries orders out.
    pub(super) fn carry_out(&mut self, orders: Vec<Order>) {
        for order in orders {
            match order {
                Order::Cordon { node, mark } => {
                    let hands = self.hands.clone();
                    self.spawn(async move {
                        let done = hands.cordon(&node, Some(&mark)).await;
                        News::Applied { object: format!("Node/{node}"), done }
                    });
                }
                Order::Uncordon { node } => {
                    let hands = self.hands.clone();
                    self.spawn(async move {
                        let done = hands.cordon(&node, None).await;
                        News::Applied { object: format!("Node/{node}"), done }
                    });
                }
                Order::Acknowledge { instruction, nodes_started } => {
                    self.say(Saying::ReclaimAck(ReclaimAck { instruction_id: instruction, nodes_started }));
                }
                Order::Evict { pod, grace_secs, .. } => {
                    let hands = self.hands.clone();
                    self.spawn(async move {
                        let outcome = hands.evict(&pod, grace_secs).await;
                        News::Evicted { uid: pod.uid, outcome }
                    });
                }
                Order::Tell(progress) => self.tell_progress(progress),
            }
        }
    }

    pub(super) fn evicted(&mut self, uid: &str, outcome: Evicted, now: i64) {
        self.metrics.eviction(match &outcome {
            Evicted::Accepted => "accepted",
            Evicted::Blocked(_) => "blocked",
            Evicted::Failed(why) => {
                tracing::warn!(uid, why, "a pod could not be evicted; trying again");
                "failed"
            }
        });
        self.drains.evicted(uid, outcome, now);
    }

    fn tell_progress(&mut self, progress: Progress) {
        let Progress { machine, node, state, pods_left, blocked, example } = &progress;
        tracing::info!(machine, ?node, ?state, pods_left, blocked, "drain");
        if let Some(name) = node
            && self.picture.nodes.contains_key(name)
        {
            let about = ObjectReference {
                api_version: Some("v1".into()),
                kind: Some("Node".into()),
                name: Some(name.clone()),
                // Events about nodes are looked up by the name, as the kubelet writes them.
                uid: Some(name.clone()),
                ..ObjectReference::default()
            };
            let said = match (state, example) {
                (State::Cordoning, _) => Some((
                    Severity::Normal,
                    "Draining",
                    "the fleet takes this machine back; pods are being evicted".to_owned(),
                )),
                (State::Evicting, Some((pod, why))) => Some((
                    Severity::Warning,
                    "EvictionBlocked",
                    format!("a disruption budget holds {pod}: {why}"),
                )),
                (State::Empty, _) => {
                    Some((Severity::Normal, "Drained", "no pod is left that must go".to_owned()))
                }
                (State::GraceOver, _) => Some((
                    Severity::Warning,
                    "GraceOver",
                    format!("the grace is over with {pods_left} pods left; the machine goes as it is"),
                )),
                (State::TakenBack, _) => Some((
                    Severity::Normal,
                    "TakenBack",
                    "the fleet leaves this machine here after all".to_owned(),
                )),
                (State::Held | State::Evicting | State::NotFound, _) => None,
            };
            if let Some((severity, reason, message)) = said {
                self.announce(about, severity, reason, message);
            }
        }
        self.drain_progress.insert(machine.clone(), progress);
        let now = self.clock.now_unix_nanos();
        self.objects.nodes_changed(now);
    }
}
