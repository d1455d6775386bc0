//! A scripted operator.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::operator_message::Payload as Said;
use bigfleet_proto::v1alpha1::shard_message::Payload as Heard;
use bigfleet_proto::v1alpha1::{
    BootstrapBlobResponse, BootstrapRequest, CapacityNeed, ClusterCapacityNeeds, Hello, NodeStateUpdate,
    OperatorMessage, ShardMessage,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};

use crate::house::soon;

pub(crate) struct Operator {
    cluster: String,
    out: mpsc::Sender<OperatorMessage>,
    inbound: Streaming<ShardMessage>,
}

pub(crate) async fn channel(address: SocketAddr) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    transport::endpoint(endpoint).connect().await.unwrap()
}

impl Operator {
    /// Connects without a word.
    pub(crate) async fn silent(channel: Channel, cluster: &str) -> Self {
        let (out, frames) = mpsc::channel(256);
        let mut client = transport::shard_client(channel);
        let answer = soon("the session to open", client.session(ReceiverStream::new(frames))).await;
        Self { cluster: cluster.into(), out, inbound: answer.unwrap().into_inner() }
    }

    /// Connects and says hello, and hears it answered.
    pub(crate) async fn connect(address: SocketAddr, cluster: &str) -> Self {
        let mut operator = Self::silent(channel(address).await, cluster).await;
        operator.hello().await;
        assert_eq!(operator.ack().await, "hello");
        operator
    }

    /// The same over a connection on which hardly anything fits that is not read.
    pub(crate) async fn connect_narrow(address: SocketAddr, cluster: &str) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let endpoint = transport::endpoint(endpoint).initial_stream_window_size(4096);
        let mut operator = Self::silent(endpoint.connect().await.unwrap(), cluster).await;
        operator.hello().await;
        assert_eq!(operator.ack().await, "hello");
        operator
    }

    pub(crate) async fn say(&self, said: Said) {
        self.out.send(OperatorMessage { payload: Some(said) }).await.unwrap();
    }

    pub(crate) async fn hello(&self) {
        let hello = Hello { cluster_id: self.cluster.clone(), protocol_version: "v1alpha1".into() };
        self.say(Said::Hello(hello)).await;
    }

    /// Reports this demand.
    pub(crate) async fn rollup(&self, needs: Vec<CapacityNeed>) {
        self.rollup_of(&self.cluster, 1, needs).await;
    }

    pub(crate) async fn rollup_of(&self, cluster: &str, taken: i64, needs: Vec<CapacityNeed>) {
        let rollup = ClusterCapacityNeeds { cluster_id: cluster.into(), timestamp_unix_nanos: taken, needs };
        self.say(Said::Rollup(rollup)).await;
    }

    /// Talks without ever listening, until the connection breaks.
    pub(crate) async fn flood(&self, cluster: &str) {
        let rollup = ClusterCapacityNeeds { cluster_id: cluster.into(), ..ClusterCapacityNeeds::default() };
        let message = OperatorMessage { payload: Some(Said::Rollup(rollup)) };
        while self.out.send(message.clone()).await.is_ok() {}
    }

    /// The next frame, or how the session ended.
    pub(crate) async fn hear(&mut self) -> Result<Option<Heard>, Status> {
        let message = soon("a frame", self.inbound.message()).await?;
        Ok(message.map(|message| message.payload.expect("a frame says something")))
    }

    /// The next acknowledgement.
    pub(crate) async fn ack(&mut self) -> String {
        loop {
            if let Heard::Ack(ack) = self.hear().await.unwrap().expect("the session goes on") {
                return ack.echo;
            }
        }
    }

    /// How the session ends.
    pub(crate) async fn end(&mut self) -> Option<Status> {
        loop {
            match self.hear().await {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(status) => return Some(status),
            }
        }
    }

    pub(crate) async fn answer(&self, request: &BootstrapRequest, error: &str) {
        let response = BootstrapBlobResponse {
            request_id: request.request_id.clone(),
            user_data: b"join".to_vec(),
            ttl_seconds: 60,
            error: error.into(),
        };
        self.say(Said::BootstrapResponse(response)).await;
    }

    /// Answers requests for blobs until a machine is told to be as wanted.
    pub(crate) async fn serve_until(&mut self, wanted: impl Fn(&NodeStateUpdate) -> bool) -> NodeStateUpdate {
        loop {
            match self.hear().await.unwrap().expect("the session goes on") {
                Heard::BootstrapRequest(request) => self.answer(&request, "").await,
                Heard::NodeStateUpdate(update) if wanted(&update) => return update,
                _ => {}
            }
        }
    }
}

/// So many processors, in units of one.
pub(crate) fn need(priority: i32, cpus: u32) -> CapacityNeed {
    let amounts = |cpus: u32| {
        BTreeMap::from([("cpu".into(), cpus.to_string()), ("memory".into(), format!("{cpus}Gi"))])
    };
    CapacityNeed {
        priority,
        aggregate_resources: amounts(cpus),
        min_unit: amounts(1),
        ..CapacityNeed::default()
    }
}
