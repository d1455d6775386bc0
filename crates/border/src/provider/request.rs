//! Calls about one machine: requests as bytes, and bytes as the shard is told of them.

use bigfleet_proto::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, Machine, MachineRef, TransitionAck,
};
use bigfleet_shard::{BadRecord, Request, Told};
use bytes::Bytes;
use prost::Message;
use tonic::Status;

use super::told;

/// What fences a call: who asks, in which life, and which of its calls this is.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    /// The shard.
    pub shard_id: &'a str,
    /// Its epoch.
    pub epoch: i64,
    /// The number of the call within the epoch.
    pub sequence: i64,
}

/// A call as it goes over the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The gRPC path.
    pub path: &'static str,
    /// The request.
    pub body: Bytes,
}

const GET: &str = "/bigfleet.v1alpha1.CapacityProvider/Get";
const CREATE: &str = "/bigfleet.v1alpha1.CapacityProvider/Create";
const CONFIGURE: &str = "/bigfleet.v1alpha1.CapacityProvider/Configure";
const DRAIN: &str = "/bigfleet.v1alpha1.CapacityProvider/Drain";
const DELETE: &str = "/bigfleet.v1alpha1.CapacityProvider/Delete";

/// The call that asks for this.
pub fn outgoing(request: Request, token: Token<'_>) -> Outgoing {
    let (shard_id, shard_epoch, sequence_number) = (token.shard_id.into(), token.epoch, token.sequence);
    let (path, body) = match request {
        Request::Get { machine } => (GET, MachineRef { id: machine.into() }.encode_to_vec()),
        Request::Create { machine } => {
            let machine_id = machine.into();
            let request = CreateRequest { machine_id, shard_id, shard_epoch, sequence_number };
            (CREATE, request.encode_to_vec())
        }
        Request::Configure { machine, cluster, blob, metadata } => {
            let request = ConfigureRequest {
                machine_id: machine.into(),
                cluster_id: cluster.to_string(),
                bootstrap_blob: blob.to_vec(),
                shard_id,
                shard_epoch,
                sequence_number,
                shard_metadata: metadata,
            };
            (CONFIGURE, request.encode_to_vec())
        }
        Request::Drain { machine, grace_secs } => {
            let request = DrainRequest {
                machine_id: machine.into(),
                grace_period_seconds: grace_secs,
                shard_id,
                shard_epoch,
                sequence_number,
            };
            (DRAIN, request.encode_to_vec())
        }
        Request::Delete { machine } => {
            let machine_id = machine.into();
            let request = DeleteRequest { machine_id, shard_id, shard_epoch, sequence_number };
            (DELETE, request.encode_to_vec())
        }
    };
    Outgoing { path, body: body.into() }
}

impl Outgoing {
    /// What the answer to this call says of the machine, if it says anything. Bytes that are no answer fail the call.
    pub fn answer(path: &str, bytes: &[u8]) -> Result<Option<Result<Told, BadRecord>>, Status> {
        let bad = |error| Status::internal(format!("the answer is no message: {error}"));
        let machine = match path {
            GET => Some(Machine::decode(bytes).map_err(bad)?),
            _ => TransitionAck::decode(bytes).map_err(bad)?.machine,
        };
        Ok(machine.as_ref().map(told))
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_model::machine::MachineState;

    use super::*;

    const TOKEN: Token<'_> = Token { shard_id: "s", epoch: 4, sequence: 9 };

    #[test]
    fn every_call_says_who_asks_and_carries_its_number() {
        let machine: Box<str> = "m-1".into();
        let drain = outgoing(Request::Drain { machine: machine.clone(), grace_secs: 30 }, TOKEN);
        assert_eq!(drain.path, DRAIN);
        let sent = DrainRequest::decode(drain.body).unwrap();
        assert_eq!(
            (&*sent.machine_id, &*sent.shard_id, sent.shard_epoch, sent.sequence_number),
            ("m-1", "s", 4, 9)
        );
        assert_eq!(sent.grace_period_seconds, 30);
        let create = outgoing(Request::Create { machine: machine.clone() }, TOKEN);
        let sent = CreateRequest::decode(create.body).unwrap();
        assert_eq!((create.path, sent.shard_epoch, sent.sequence_number), (CREATE, 4, 9));
        let delete = outgoing(Request::Delete { machine: machine.clone() }, TOKEN);
        let sent = DeleteRequest::decode(delete.body).unwrap();
        assert_eq!((delete.path, sent.shard_epoch, sent.sequence_number), (DELETE, 4, 9));
        let get = outgoing(Request::Get { machine }, TOKEN);
        assert_eq!((get.path, MachineRef::decode(get.body).unwrap().id), (GET, "m-1".into()));
    }

    #[test]
    fn an_answer_is_a_machine_nothing_or_a_failed_call() {
        let machine = Machine { id: "m-1".into(), state: 1, ..Machine::default() };
        let told = Outgoing::answer(GET, &machine.encode_to_vec()).unwrap().unwrap().unwrap();
        assert_eq!((&*told.machine.id, told.machine.state), ("m-1", MachineState::Speculative));
        let ack =
            TransitionAck { machine: Some(Machine { state: 0, ..machine }), ..TransitionAck::default() };
        let refused = Outgoing::answer(CREATE, &ack.encode_to_vec()).unwrap().unwrap().unwrap_err();
        assert_eq!((&*refused.id, refused.code), ("m-1", "state"));
        assert!(Outgoing::answer(DELETE, &[]).unwrap().is_none(), "an empty acknowledgement");
        assert!(Outgoing::answer(GET, &[0xFF]).unwrap_err().message().contains("no message"));
    }
}
