//! Sessions: what an operator sends, as events; what the shard says to it, as frames that wait.

mod frames;
mod inbound;
mod outbox;
mod rollup;

use std::sync::Arc;

use bigfleet_model::limits::CLUSTER_NAME_BYTES;
use bigfleet_proto::v1alpha1::{BootstrapBlobResponse, Hello};
use bigfleet_shard::{Blob, Event, SessionId};
use bytes::Bytes;
use tonic::Status;

use inbound::Inbound;

pub use frames::{Context, encoded, from_hex, hex};
pub use outbox::{Full, Outbox};
pub use rollup::{Rollups, Said};

/// The side of a session that reads.
#[derive(Clone, Debug)]
pub struct Session {
    id: SessionId,
    cluster: Option<Arc<str>>,
}

/// What a frame means.
#[expect(clippy::large_enum_variant, reason = "it is moved once, from the border to the shard")]
pub enum Taken {
    /// Tell the shard.
    Tell(Event),
    /// A roll-up, still bytes, for [`Rollups`].
    Rollup(Bytes),
    /// An answer to what nobody asked, or a frame of a newer protocol: harmless.
    Ignored,
}

impl Session {
    /// One that has said nothing yet.
    pub fn new(id: SessionId) -> Self {
        Self { id, cluster: None }
    }

    /// The cluster it speaks for, once it has said hello.
    pub fn cluster(&self) -> Option<&Arc<str>> {
        self.cluster.as_ref()
    }

    /// Takes a frame. The first must be a hello, of a cluster that `vouch` lets it speak for. A status ends the session.
    pub fn take(
        &mut self,
        frame: &Bytes,
        vouch: impl FnOnce(&str) -> Result<(), String>,
    ) -> Result<Taken, Status> {
        let inbound = Inbound::read(frame)
            .map_err(|error| Status::invalid_argument(format!("a frame is no message: {error}")))?;
        let Some(cluster) = &self.cluster else { return self.open(inbound, vouch).map(Taken::Tell) };
        let session = self.id;
        let event =
            match inbound {
                Inbound::Rollup(bytes) => return Ok(Taken::Rollup(bytes)),
                Inbound::Hello(hello) if hello.cluster_id != **cluster => {
                    let other = &hello.cluster_id;
                    let why = format!("this session speaks for {cluster:?}; open another for {other:?}");
                    return Err(Status::invalid_argument(why));
                }
                Inbound::Hello(hello) => Some(self.opened(cluster, hello)),
                Inbound::Blob(response) => from_hex(&response.request_id).map(|request| Event::Blob {
                    session,
                    request,
                    blob: blob(response),
                }),
                Inbound::Reclaim(ack) => from_hex(&ack.instruction_id).map(|instruction| {
                    Event::ReclaimAcked { session, instruction, nodes_started: ack.nodes_started }
                }),
                Inbound::Unknown => None,
            };
        Ok(event.map_or(Taken::Ignored, Taken::Tell))
    }

    fn open(
        &mut self,
        first: Inbound,
        vouch: impl FnOnce(&str) -> Result<(), String>,
    ) -> Result<Event, Status> {
        let Inbound::Hello(hello) = first else {
            return Err(Status::invalid_argument("the first frame must be a hello"));
        };
        check_name(&hello.cluster_id)?;
        vouch(&hello.cluster_id).map_err(Status::permission_denied)?;
        let cluster = &*self.cluster.insert(hello.cluster_id.as_str().into());
        let cluster = cluster.clone();
        Ok(self.opened(&cluster, hello))
    }

    fn opened(&self, cluster: &Arc<str>, hello: Hello) -> Event {
        let protocol = hello.protocol_version.into();
        Event::Opened { session: self.id, cluster: cluster.clone(), protocol }
    }
}

fn check_name(cluster: &str) -> Result<(), Status> {
    if cluster.is_empty() {
        return Err(Status::invalid_argument("the hello names no cluster; set cluster_id"));
    }
    if cluster.len() > CLUSTER_NAME_BYTES {
        let why = format!("cluster_id is longer than {CLUSTER_NAME_BYTES} bytes");
        return Err(Status::invalid_argument(why));
    }
    Ok(())
}

fn blob(response: BootstrapBlobResponse) -> Result<Blob, String> {
    if response.error.is_empty() {
        Ok(Blob { user_data: response.user_data.into(), ttl_secs: response.ttl_seconds })
    } else {
        Err(response.error)
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_proto::v1alpha1::operator_message::Payload;
    use bigfleet_proto::v1alpha1::{ClusterCapacityNeeds, OperatorMessage, ReclaimAck};
    use bigfleet_shard::WireId;
    use prost::Message;
    use tonic::Code;

    use super::*;

    fn frame(payload: Payload) -> Bytes {
        OperatorMessage { payload: Some(payload) }.encode_to_vec().into()
    }

    fn hello(cluster: &str) -> Bytes {
        frame(Payload::Hello(Hello { cluster_id: cluster.into(), protocol_version: "v1alpha1".into() }))
    }

    fn refused(session: &mut Session, bytes: &Bytes) -> (Code, String) {
        let Err(status) = session.take(bytes, |_| Ok(())) else { panic!("it was taken") };
        (status.code(), status.message().into())
    }

    #[test]
    fn a_session_begins_with_a_hello_of_somebody_who_may() {
        let mut session = Session::new(SessionId(4));
        let rollup = frame(Payload::Rollup(ClusterCapacityNeeds::default()));
        assert_eq!(refused(&mut session, &rollup).1, "the first frame must be a hello");
        assert_eq!(refused(&mut session, &Bytes::from_static(&[0xFF])).0, Code::InvalidArgument);
        assert!(refused(&mut session, &hello("")).1.contains("names no cluster"));
        assert!(refused(&mut session, &hello(&"x".repeat(CLUSTER_NAME_BYTES + 1))).1.contains("longer than"));
        let Err(status) = session.take(&hello("shop"), |_| Err("not yours".into())) else { panic!() };
        assert_eq!((status.code(), session.cluster()), (Code::PermissionDenied, None), "{status}");
        let Ok(Taken::Tell(Event::Opened { session: id, cluster, .. })) =
            session.take(&hello("shop"), |_| Ok(()))
        else {
            panic!()
        };
        assert_eq!((id, &*cluster), (SessionId(4), "shop"));
        assert!(refused(&mut session, &hello("web")).1.contains("open another for \"web\""));
        assert!(matches!(session.take(&rollup, |_| Ok(())), Ok(Taken::Rollup(_))));
    }

    #[test]
    fn answers_carry_numbers_that_were_given_out_or_are_ignored() {
        let mut session = Session::new(SessionId(4));
        assert!(session.take(&hello("shop"), |_| Ok(())).is_ok());
        let mut ack = |instruction: &str| {
            let ack = ReclaimAck { instruction_id: instruction.into(), nodes_started: 2 };
            session.take(&frame(Payload::ReclaimAck(ack)), |_| Ok(())).unwrap()
        };
        assert!(matches!(
            ack("00000000000000ab"),
            Taken::Tell(Event::ReclaimAcked { instruction: WireId(0xAB), nodes_started: 2, .. })
        ));
        assert!(matches!(ack("ab"), Taken::Ignored));
        assert!(matches!(session.take(&Bytes::new(), |_| Ok(())), Ok(Taken::Ignored)));
    }

    #[test]
    fn a_roll_up_is_known_again_only_if_the_shard_took_it() {
        let rollup = |taken, cluster: &str| {
            let needs = Vec::new();
            ClusterCapacityNeeds { cluster_id: cluster.into(), timestamp_unix_nanos: taken, needs }
                .encode_to_vec()
        };
        let mut rollups = Rollups::new(SessionId(4), "shop".into());
        let (said, again) = rollups.recognise(&rollup(1, "shop"));
        assert!(again.is_none());
        rollups.judged(said, false);
        assert!(rollups.recognise(&rollup(2, "shop")).1.is_none(), "it was refused");
        rollups.judged(said, true);
        let again = rollups.recognise(&rollup(2, "shop")).1;
        assert!(matches!(again, Some(Event::RollupAgain { session: SessionId(4) })));
        assert!(rollups.recognise(&rollup(2, "web")).1.is_none());
        assert!(matches!(rollups.read(&rollup(2, "web")), Event::Rollup { rollup: Err(_), .. }));
    }
}
