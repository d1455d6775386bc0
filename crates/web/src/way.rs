//! A shard that can be asked: over a connection, or in this process without one.

use bigfleet_view::v1::view_client::ViewClient;
use bigfleet_view::v1::view_server;
use bigfleet_view::{view_client, view_server};
use tonic::Status;
use tonic::body::Body;
use tonic::transport::Channel;
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;

/// Whatever takes a call and brings the answer.
pub(crate) type Way = BoxCloneSyncService<http::Request<Body>, http::Response<Body>, Status>;

/// Asks a shard.
pub(crate) type Client = ViewClient<Way>;

/// One shard and the way to it.
#[derive(Clone)]
pub struct Shard {
    pub(crate) name: String,
    client: Client,
}

impl Shard {
    /// A shard at the other end of a connection. The name is shown until the shard says its own.
    pub fn remote(name: &str, channel: Channel) -> Self {
        let way = BoxCloneSyncService::new(channel.map_err(|error| Status::from_error(error.into())));
        Self { name: name.to_owned(), client: view_client(way) }
    }

    /// A shard of this process: its view is called directly, so that no certificate is needed to talk to oneself.
    pub fn local<V: view_server::View + Clone>(name: &str, view: V) -> Self {
        type Call = http::Request<Body>;
        let service = view_server(view);
        let way = BoxCloneSyncService::new(ServiceExt::<Call>::map_err(service, |never| match never {}));
        Self { name: name.to_owned(), client: view_client(way) }
    }

    /// A client for one call.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }
}
