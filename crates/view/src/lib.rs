//! What people and tools see of a shard: `bigfleet.view.v1`.
//!
//! * [`v1`]: messages, server and client generated from `proto/bigfleet/view/v1/view.proto`;
//! * [`view_client`]: a client with our message limit.
//!
//! Explanations leave here as data. Sentences are the business of whoever shows them.

use bigfleet_proto::transport::MESSAGE_LIMIT_BYTES;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::{Bytes, StdError};

/// Generated from `proto/bigfleet/view/v1/view.proto`; the comments there are the documentation.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated code")]
pub mod v1 {
    tonic::include_proto!("bigfleet.view.v1");
}

/// The compiled proto file with what it imports, as server reflection wants it.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The version of the interface, as servers announce it.
pub const API_VERSION: &str = "v1";

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
