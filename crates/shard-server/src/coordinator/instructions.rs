//! Instructions as they come, and answers as they go.

use bigfleet_proto::v1alpha1::coordinator_instruction::Payload;
use bigfleet_proto::v1alpha1::{CoordinatorInstruction, InstructAck, ReportAck, instruct_ack};
use bigfleet_shard::{Answer, Instruction, Order, Outcome};

/// What a coordinator says: its term, and what it wants.
pub(super) fn read(ack: ReportAck) -> (i64, Vec<Instruction>) {
    (ack.coordinator_term, ack.instructions.into_iter().map(instruction).collect())
}

fn instruction(message: CoordinatorInstruction) -> Instruction {
    let boxed = |texts: Vec<String>| texts.into_iter().map(Into::into).collect();
    let order = match message.payload {
        Some(Payload::AssignDomain(to)) => {
            Some(Order::Take((to.topology_key.into(), to.topology_value.into())))
        }
        Some(Payload::UnassignDomain(of)) => {
            Some(Order::LetGo((of.topology_key.into(), of.topology_value.into())))
        }
        Some(Payload::TransferOwnership(order)) => Some(Order::Transfer {
            machines: boxed(order.machine_ids),
            from: order.from_shard_id.into(),
            to: order.to_shard_id.into(),
        }),
        // Ours says all of this by transfers.
        Some(Payload::ReassignSpeculative(_) | Payload::CrossShardDrain(_)) | None => None,
    };
    Instruction { term: message.coordinator_term, id: message.instruction_id.into(), order }
}

pub(super) fn ack(answer: Answer) -> InstructAck {
    let outcome = match answer.outcome {
        Outcome::Accepted => instruct_ack::Outcome::Accepted,
        Outcome::Stale => instruct_ack::Outcome::RejectedStale,
        Outcome::Invalid => instruct_ack::Outcome::RejectedInvalid,
        Outcome::Refused => instruct_ack::Outcome::Failed,
    };
    InstructAck { instruction_id: answer.id.into(), outcome: outcome.into(), reason: answer.reason }
}

#[cfg(test)]
mod tests {
    use bigfleet_proto::v1alpha1::{AssignDomain, CrossShardDrain, TransferOwnership, UnassignDomain};

    use super::*;

    #[test]
    fn every_order_is_understood_or_said_to_be_none() {
        let of = |payload| {
            let message = CoordinatorInstruction {
                coordinator_term: 3,
                instruction_id: "i".into(),
                payload,
                ..Default::default()
            };
            read(ReportAck { coordinator_term: 4, acknowledged: true, instructions: vec![message] })
        };
        let (key, value): (String, String) = ("zone".into(), "a".into());
        let domain: bigfleet_shard::Domain = ("zone".into(), "a".into());
        let assign = AssignDomain { topology_key: key.clone(), topology_value: value.clone() };
        let (term, read) = of(Some(Payload::AssignDomain(assign)));
        let taken = Instruction { term: 3, id: "i".into(), order: Some(Order::Take(domain.clone())) };
        assert_eq!((term, read), (4, vec![taken]));
        let unassign = UnassignDomain { topology_key: key, topology_value: value };
        assert_eq!(of(Some(Payload::UnassignDomain(unassign))).1[0].order, Some(Order::LetGo(domain)));
        let transfer = TransferOwnership {
            machine_ids: vec!["m".into()],
            from_shard_id: "a".into(),
            to_shard_id: "b".into(),
        };
        let order = Order::Transfer { machines: vec!["m".into()], from: "a".into(), to: "b".into() };
        assert_eq!(of(Some(Payload::TransferOwnership(transfer))).1[0].order, Some(order));
        assert_eq!(of(Some(Payload::CrossShardDrain(CrossShardDrain::default()))).1[0].order, None);
        assert_eq!(of(None).1[0].order, None);
    }
}
