//! What people and tools see of a shard: `bigfleet.view.v1`.
//!
//! * [`v1`]: messages, server and client generated from `proto/bigfleet/view/v1/view.proto`;
//! * [`view_client`] and [`view_server`]: both ends with our message limit;
//! * [`View`]: the service, over whoever runs a shard ([`Shards`]). It also answers the wire's own `InspectNeeds`.
//!
//! ```text
//!   caller ──► role ──► View ──► short looks on the shard's thread ──► forks, elsewhere ──► data
//!                         └────► the decision record, for moments gone by
//! ```
//!
//! Explanations leave here as data. Sentences are the business of whoever shows them.

mod clusters;
mod commands;
mod convert;
mod cost;
mod decisions;
mod explain;
mod filter;
mod inspect;
mod known;
pub mod lint;
mod machines;
mod modes;
mod names;
mod needs;
mod observed;
mod outputs;
mod own_cluster;
mod pages;
mod past;
mod plan;
mod rails;
mod roles;
mod service;
mod shards;
mod snapshot;
mod summary;
mod truth;
mod utilisation;
mod what_if;

use bigfleet_proto::transport::MESSAGE_LIMIT_BYTES;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::{Bytes, StdError};

pub use cost::divide;
pub use names::{long_id, short_id};
pub use outputs::Outputs;
pub use service::View;
pub use shards::{About, Gone, Shards};

/// Generated from `proto/bigfleet/view/v1/view.proto`; the comments there are the documentation.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated code")]
pub mod v1 {
    tonic::include_proto!("bigfleet.view.v1");
}

/// The compiled proto file with what it imports, as server reflection wants it.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The version of the interface, as servers announce it.
pub const API_VERSION: &str = "v1";

/// A server that takes and sends messages up to the limit all of ours share.
pub fn view_server<T: v1::view_server::View>(service: T) -> v1::view_server::ViewServer<T> {
    v1::view_server::ViewServer::new(service)
        .max_decoding_message_size(MESSAGE_LIMIT_BYTES)
        .max_encoding_message_size(MESSAGE_LIMIT_BYTES)
}

/// A client that takes messages up to the limit all of ours share.
pub fn view_client<T>(channel: T) -> v1::view_client::ViewClient<T>
where
    T: GrpcService<Body>,
    T::Error: Into<StdError>,
    T::ResponseBody: tonic::codegen::Body<Data = Bytes> + Send + 'static,
    <T::ResponseBody as tonic::codegen::Body>::Error: Into<StdError> + Send,
{
    v1::view_client::ViewClient::new(channel)
        .max_decoding_message_size(MESSAGE_LIMIT_BYTES)
        .max_encoding_message_size(MESSAGE_LIMIT_BYTES)
}

/// A server of what clusters hear and say, with the limit all of ours share.
pub fn cluster_view_server<T: v1::cluster_view_server::ClusterView>(
    service: T,
) -> v1::cluster_view_server::ClusterViewServer<T> {
    v1::cluster_view_server::ClusterViewServer::new(service)
        .max_decoding_message_size(MESSAGE_LIMIT_BYTES)
        .max_encoding_message_size(MESSAGE_LIMIT_BYTES)
}

/// A client of what clusters hear and say, with the limit all of ours share.
pub fn cluster_view_client<T>(channel: T) -> v1::cluster_view_client::ClusterViewClient<T>
where
    T: GrpcService<Body>,
    T::Error: Into<StdError>,
    T::ResponseBody: tonic::codegen::Body<Data = Bytes> + Send + 'static,
    <T::ResponseBody as tonic::codegen::Body>::Error: Into<StdError> + Send,
{
    v1::cluster_view_client::ClusterViewClient::new(channel)
        .max_decoding_message_size(MESSAGE_LIMIT_BYTES)
        .max_encoding_message_size(MESSAGE_LIMIT_BYTES)
}
