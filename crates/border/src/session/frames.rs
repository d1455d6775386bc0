//! Frames as messages of the wire.

use std::collections::BTreeMap;

use bigfleet_model::label::{INSTANCE_TYPE, ZONE};
use bigfleet_model::machine::Machine;
use bigfleet_proto::v1alpha1::available_capacity_update::Confidence as WireConfidence;
use bigfleet_proto::v1alpha1::shard_message::Payload;
use bigfleet_proto::v1alpha1::{
    Acknowledgement, AvailableCapacityUpdate, BootstrapRequest, NodeStateUpdate, ReclaimInstruction,
    ShardMessage,
};
use bigfleet_shard::{Available, Confidence, Frame, Reception, WireId};
use bytes::Bytes;
use prost::Message;

/// What every acknowledgement carries, for information only.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The highest term a coordinator was heard in.
    pub term: u64,
    /// Our epoch.
    pub epoch: i64,
}

/// The bytes of a frame, and a second message if it takes two to say.
pub fn encoded(frame: &Frame, cluster: &str, context: Context) -> (Bytes, Option<Bytes>) {
    let (message, next) = messages(frame, cluster, context);
    let bytes = |message: ShardMessage| message.encode_to_vec().into();
    (bytes(message), next.map(bytes))
}

fn messages(frame: &Frame, cluster: &str, context: Context) -> (ShardMessage, Option<ShardMessage>) {
    let ack = |echo: String| {
        let coordinator_term = context.term.cast_signed();
        Payload::Ack(Acknowledgement { echo, coordinator_term, shard_epoch: context.epoch })
    };
    let mut next = None;
    let payload = match frame {
        Frame::HelloAck => ack("hello".into()),
        Frame::RollupAck(Reception::Accepted) => ack("rollup".into()),
        Frame::RollupAck(Reception::Held { seen, of, why }) => {
            // Operators wait for the plain word; those that read on learn that it does not count yet.
            next = Some(ack(format!("rollup held {seen} of {of}: {why}")));
            ack("rollup".into())
        }
        Frame::RollupAck(Reception::Refused { why }) => ack(format!("rollup refused: {why}")),
        Frame::Bootstrap { request, requirements } => Payload::BootstrapRequest(BootstrapRequest {
            request_id: hex(*request),
            requirements: requirements.iter().map(Into::into).collect(),
            cluster_id: cluster.into(),
        }),
        Frame::Reclaim { instruction, machine, grace_secs, preemptor_priority } => {
            Payload::ReclaimInstruction(ReclaimInstruction {
                instruction_id: hex(*instruction),
                nodes: vec![machine.to_string()],
                grace_period_seconds: *grace_secs,
                preemptor_priority: *preemptor_priority,
            })
        }
        Frame::Node(machine) => Payload::NodeStateUpdate(node(machine, cluster, frame)),
        Frame::Available(hint) => Payload::AvailableCapacity(available(hint, frame)),
    };
    let message = |payload| ShardMessage { payload: Some(payload) };
    (message(payload), next.map(message))
}

fn node(machine: &Machine, cluster: &str, frame: &Frame) -> NodeStateUpdate {
    NodeStateUpdate {
        supersedes_key: frame.supersedes().unwrap_or_default(),
        machine_id: machine.id.to_string(),
        cluster_id: cluster.into(),
        state: machine.state.to_wire(),
        // Only the cluster knows what its node is called.
        node_name: String::new(),
        provider_id: machine.host.as_ref().map(|host| host.reference.to_string()).unwrap_or_default(),
        last_error: machine.last_error.to_string(),
        labels: labels(machine),
        resources: Some(machine.provides().into()),
        taints: Vec::new(),
    }
}

/// What the node is to be labelled with: the machine's labels, and its type and zone under the keys everybody knows them by.
/// A field goes before the label of its name, as it does for requirements.
fn labels(machine: &Machine) -> BTreeMap<String, String> {
    let labels = machine.labels.iter();
    let fields = [(INSTANCE_TYPE, &*machine.instance_type), (ZONE, &*machine.zone)];
    let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
    labels.chain(fields).map(|(key, value)| (key.into(), value.into())).collect()
}

fn available(hint: &Available, frame: &Frame) -> AvailableCapacityUpdate {
    let confidence = match hint.confidence {
        Confidence::None => WireConfidence::None,
        Confidence::Low => WireConfidence::Low,
        Confidence::Medium => WireConfidence::Medium,
        Confidence::High => WireConfidence::High,
    };
    AvailableCapacityUpdate {
        supersedes_key: frame.supersedes().unwrap_or_default(),
        requirements: hint.requirements.iter().map(Into::into).collect(),
        resources: Some((&hint.resources).into()),
        available_count: i32::try_from(hint.count).unwrap_or(i32::MAX),
        confidence: confidence.into(),
        cost_per_hour: hint.usd_per_hour,
    }
}

/// A number as 16 hexadecimal characters.
pub fn hex(WireId(id): WireId) -> String {
    format!("{id:016x}")
}

/// The number of 16 lower-case hexadecimal characters; nothing else was ever given out.
pub fn from_hex(text: &str) -> Option<WireId> {
    let is_ours = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_ours.then(|| u64::from_str_radix(text, 16).ok().map(WireId)).flatten()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bigfleet_model::label::Labels;
    use bigfleet_model::machine::{HostRef, MachineState};

    use super::*;

    fn said(frame: &Frame) -> Vec<Payload> {
        let context = Context { term: 7, epoch: 3 };
        let (first, second) = encoded(frame, "shop", context);
        let read = |bytes| ShardMessage::decode(bytes).unwrap().payload.unwrap();
        [Some(first), second].into_iter().flatten().map(read).collect()
    }

    fn echoes(frame: &Frame) -> Vec<String> {
        let echo = |payload| match payload {
            Payload::Ack(ack) => {
                assert_eq!((ack.coordinator_term, ack.shard_epoch), (7, 3));
                ack.echo
            }
            other => panic!("{other:?}"),
        };
        said(frame).into_iter().map(echo).collect()
    }

    #[test]
    fn receptions_are_told_as_the_wire_has_them() {
        assert_eq!(echoes(&Frame::HelloAck), ["hello"]);
        assert_eq!(echoes(&Frame::RollupAck(Reception::Accepted)), ["rollup"]);
        let held = Reception::Held { seen: 1, of: 3, why: "it erases 90 % of the rows".into() };
        assert_eq!(
            echoes(&Frame::RollupAck(held)),
            ["rollup", "rollup held 1 of 3: it erases 90 % of the rows"]
        );
        let refused = Reception::Refused { why: "row 3".into() };
        assert_eq!(echoes(&Frame::RollupAck(refused)), ["rollup refused: row 3"], "never the plain word");
    }

    #[test]
    fn a_machine_is_told_with_what_its_node_needs() {
        let mut machine = Machine::new("m-1", MachineState::Failed);
        machine.host = Some(HostRef { provider: "metal".into(), reference: "rack-7".into() });
        machine.last_error = "fan".into();
        machine.instance_type = "m6i.large".into();
        machine.zone = "zone-a".into();
        machine.labels = Labels::new([("rack", "r7"), (ZONE, "elsewhere")]).unwrap();
        let [Payload::NodeStateUpdate(update)] = &said(&Frame::Node(Arc::new(machine)))[..] else { panic!() };
        assert_eq!(
            (&*update.supersedes_key, &*update.machine_id, &*update.cluster_id, update.state),
            ("node:m-1", "m-1", "shop", 8)
        );
        assert_eq!(update.labels[ZONE], "zone-a", "the field, not the label of its name");
        assert_eq!((&*update.labels[INSTANCE_TYPE], update.labels.len()), ("m6i.large", 3));
        assert_eq!((&*update.node_name, &*update.provider_id, &*update.last_error), ("", "rack-7", "fan"));
    }

    #[test]
    fn numbers_are_sixteen_lower_case_characters_and_nothing_else() {
        assert_eq!(hex(WireId(0xAB)), "00000000000000ab");
        assert_eq!(from_hex("00000000000000ab"), Some(WireId(0xAB)));
        assert_eq!(from_hex("ffffffffffffffff"), Some(WireId(u64::MAX)));
        for bad in ["", "ab", "00000000000000AB", "+0000000000000ab", "00000000000000abc", "0000000000000 ab"]
        {
            assert_eq!(from_hex(bad), None, "{bad:?}");
        }
    }
}
