//! What a coordinator orders, fenced by its term.
//!
//! A coordinator that lost its leadership may still speak. What it says in an older term than the highest heard is not
//! done. Each instruction comes again until it is acknowledged, so those seen are remembered with what became of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bigfleet_model::text::shown;
use bigfleet_proto::v1alpha1::coordinator_instruction::Payload;
use bigfleet_proto::v1alpha1::instruct_ack::Outcome;
use bigfleet_proto::v1alpha1::{CoordinatorInstruction, InstructAck, ReportAck};

/// How many instructions are remembered.
const REMEMBERED: usize = 4096;

/// Instructions heard, and acknowledgements owed.
#[derive(Default)]
pub(crate) struct Instructions {
    term: i64,
    seen: BTreeMap<String, (Outcome, String)>,
    order: VecDeque<String>,
    owed: Vec<InstructAck>,
    /// Orders that wait for a build that can carry them out.
    pending: BTreeSet<String>,
}

impl Instructions {
    /// The highest term heard.
    pub(crate) fn term(&self) -> i64 {
        self.term
    }

    /// What the next report must carry.
    pub(crate) fn acks(&self) -> Vec<InstructAck> {
        self.owed.clone()
    }

    /// The first so many were delivered.
    pub(crate) fn sent(&mut self, count: usize) {
        self.owed.drain(..count);
    }

    /// Takes in an answer to a report.
    pub(crate) fn take(&mut self, ack: ReportAck) {
        if ack.coordinator_term < self.term {
            tracing::warn!(
                term = ack.coordinator_term,
                highest = self.term,
                "a coordinator of an older term speaks"
            );
            return;
        }
        self.term = ack.coordinator_term;
        for instruction in
            ack.instructions.into_iter().filter(|instruction| !instruction.instruction_id.is_empty())
        {
            let Some((outcome, reason)) = self.judge(&instruction) else { continue };
            let ack =
                InstructAck { instruction_id: instruction.instruction_id, outcome: outcome.into(), reason };
            if !self.owed.iter().any(|owed| owed.instruction_id == ack.instruction_id) {
                self.owed.push(ack);
            }
        }
    }

    /// What to acknowledge; nothing for an order this build cannot carry out. Any acknowledgement, whatever its outcome,
    /// makes a coordinator forget the order, so what is still to be done must not be acknowledged: it stays pending.
    fn judge(&mut self, instruction: &CoordinatorInstruction) -> Option<(Outcome, String)> {
        if instruction.coordinator_term < self.term {
            let why = format!("term {} is older than {}", instruction.coordinator_term, self.term);
            return Some((Outcome::RejectedStale, why));
        }
        if let Some((outcome, reason)) = self.seen.get(&instruction.instruction_id) {
            // Told again with what became of it then: "accepted" would be a lie about one that failed.
            return Some(match outcome {
                Outcome::Accepted => (Outcome::Accepted, "duplicate-redelivery".into()),
                other => (*other, format!("duplicate-redelivery: {reason}")),
            });
        }
        if let Some(payload) = &instruction.payload {
            if self.pending.insert(instruction.instruction_id.clone()) {
                let (id, order) = (&*shown(&instruction.instruction_id), name(payload));
                tracing::warn!(
                    id,
                    order,
                    "the coordinator orders what this build cannot do; it stays pending"
                );
            }
            while self.pending.len() > REMEMBERED {
                self.pending.pop_first();
            }
            return None;
        }
        let (outcome, reason) =
            (Outcome::RejectedInvalid, "the instruction says nothing this build knows".to_owned());
        self.remember(instruction.instruction_id.clone(), outcome, reason.clone());
        Some((outcome, reason))
    }

    fn remember(&mut self, id: String, outcome: Outcome, reason: String) {
        if self.order.len() == REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        self.order.push_back(id.clone());
        self.seen.insert(id, (outcome, reason));
    }
}

fn name(payload: &Payload) -> &'static str {
    match payload {
        Payload::AssignDomain(_) => "AssignDomain",
        Payload::UnassignDomain(_) => "UnassignDomain",
        Payload::ReassignSpeculative(_) => "ReassignSpeculative",
        Payload::CrossShardDrain(_) => "CrossShardDrain",
        Payload::TransferOwnership(_) => "TransferOwnership",
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_proto::v1alpha1::AssignDomain;

    use super::*;

    fn order(term: i64, id: &str) -> CoordinatorInstruction {
        let payload = Some(Payload::AssignDomain(AssignDomain::default()));
        CoordinatorInstruction {
            coordinator_term: term,
            instruction_id: id.into(),
            payload,
            ..Default::default()
        }
    }

    fn hear(
        instructions: &mut Instructions,
        term: i64,
        orders: Vec<CoordinatorInstruction>,
    ) -> Vec<(String, i32, String)> {
        instructions.take(ReportAck { coordinator_term: term, acknowledged: true, instructions: orders });
        let acks = instructions.acks();
        instructions.sent(acks.len());
        acks.into_iter().map(|ack| (ack.instruction_id, ack.outcome, ack.reason)).collect()
    }

    fn nonsense(term: i64, id: &str) -> CoordinatorInstruction {
        CoordinatorInstruction { payload: None, ..order(term, id) }
    }

    #[test]
    fn what_cannot_be_done_is_not_acknowledged_and_so_stays_pending() {
        let mut instructions = Instructions::default();
        for _ in 0..3 {
            assert_eq!(hear(&mut instructions, 5, vec![order(5, "a")]), [], "any outcome would clear it");
        }
        assert_eq!(instructions.pending.len(), 1);
    }

    #[test]
    fn older_terms_are_not_heard() {
        let mut instructions = Instructions::default();
        hear(&mut instructions, 5, vec![]);
        assert_eq!(hear(&mut instructions, 4, vec![order(5, "a")]), [], "the whole answer is dropped");
        let stale = hear(&mut instructions, 6, vec![order(5, "b")]);
        assert_eq!(stale, [("b".into(), Outcome::RejectedStale as i32, "term 5 is older than 6".into())]);
        assert_eq!(instructions.term(), 6);
    }

    #[test]
    fn acknowledgements_are_owed_until_they_are_delivered_and_once() {
        let mut instructions = Instructions::default();
        let ack = ReportAck { coordinator_term: 1, acknowledged: true, instructions: vec![nonsense(1, "a")] };
        instructions.take(ack.clone());
        instructions.take(ack);
        assert_eq!(instructions.acks().len(), 1);
        instructions.sent(1);
        assert_eq!(instructions.acks(), []);
    }

    #[test]
    fn nonsense_is_invalid() {
        let mut instructions = Instructions::default();
        let heard = hear(&mut instructions, 1, vec![nonsense(1, "a"), nonsense(1, "")]);
        assert_eq!((heard.len(), heard[0].1), (1, Outcome::RejectedInvalid as i32));
    }

    #[test]
    fn memory_is_bounded() {
        let mut instructions = Instructions::default();
        for number in 0..REMEMBERED + 10 {
            let id = number.to_string();
            hear(&mut instructions, 1, vec![order(1, &id), nonsense(1, &format!("n{id}"))]);
        }
        assert_eq!(instructions.pending.len(), REMEMBERED);
        assert_eq!((instructions.seen.len(), instructions.order.len()), (REMEMBERED, REMEMBERED));
    }
}
