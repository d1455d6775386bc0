//! Limits and keep-alive of every gRPC server and client of ours, set in one place.
//!
//! A List of half a million machines is far above the 4 MiB that gRPC libraries allow by default, so each
//! generated server and client has to be told otherwise, in both directions. And a peer that vanished
//! without a word is noticed only by HTTP/2 pings; without them a channel may wait for ever.
//!
//! Providers cut off a client that pings more often than every 30 seconds, so ours stay above that. For the
//! same reason the flow-control windows are fixed: the adaptive ones measure with pings of their own.

use std::sync::Arc;
use std::time::Duration;

use tonic::Code;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::{Bytes, StdError};
use tonic::transport::{Endpoint, Server};

use crate::coordinator_v1::fleet_client::FleetClient;
use crate::coordinator_v1::fleet_server::{Fleet, FleetServer};
use crate::provider_v1::machine_output_server::{MachineOutput, MachineOutputServer};
use crate::provider_v1::machine_stream_server::{MachineStream, MachineStreamServer};
use crate::v1alpha1::capacity_provider_client::CapacityProviderClient;
use crate::v1alpha1::capacity_provider_server::{CapacityProvider, CapacityProviderServer};
use crate::v1alpha1::coordinator_client::CoordinatorClient;
use crate::v1alpha1::coordinator_server::{Coordinator, CoordinatorServer};
use crate::v1alpha1::shard_client::ShardClient;
use crate::v1alpha1::shard_read_client::ShardReadClient;
use crate::v1alpha1::shard_read_server::{ShardRead, ShardReadServer};
use crate::v1alpha1::shard_server::{Shard, ShardServer};

/// The largest chunk of a streamed listing we take: 16 MiB.
pub const CHUNK_LIMIT_BYTES: usize = 16 << 20;
/// From this size on a chunk is sent: 1 MiB. Only a record that is larger by itself makes a larger one.
pub const CHUNK_BYTES: usize = 1 << 20;
/// How much of what a join has printed is sent and taken: 64 KiB.
pub const OUTPUT_LIMIT_BYTES: usize = 64 << 10;
/// The largest message we send or take: 256 MiB.
pub const MESSAGE_LIMIT_BYTES: usize = bigfleet_model::limits::MESSAGE_BYTES;

/// In the trailers of a refusal by a replica of the coordinator that does not lead: where the leader serves.
pub const LEADER_HEADER: &str = "bigfleet-leader";

/// The shortest time between two pings that providers tolerate.
pub const PROVIDER_PING_MIN: Duration = Duration::from_secs(30);
/// How often a client of ours pings; above [`PROVIDER_PING_MIN`] by a wide margin.
pub const CLIENT_PING_INTERVAL: Duration = Duration::from_secs(45);
/// How often a server of ours pings.
pub const SERVER_PING_INTERVAL: Duration = Duration::from_mins(1);
/// How long an unanswered ping is waited for before the connection is given up.
pub const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a client waits for a connection.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How many calls one connection may have under way on a server.
pub const STREAMS_PER_CONNECTION: u32 = 4096;

const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// A server builder with our limits and keep-alive.
pub fn server() -> Server {
    Server::builder()
        .http2_keepalive_interval(Some(SERVER_PING_INTERVAL))
        .http2_keepalive_timeout(Some(PING_TIMEOUT))
        .tcp_keepalive(Some(SERVER_PING_INTERVAL))
        .tcp_nodelay(true)
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
}

/// Gives an endpoint our limits and keep-alive.
pub fn endpoint(endpoint: Endpoint) -> Endpoint {
    endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(CLIENT_PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .keep_alive_while_idle(true)
        .tcp_keepalive(Some(CLIENT_PING_INTERVAL))
        .tcp_nodelay(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
}

macro_rules! limited {
    ($server:ident, $client:ident, $service:path, $server_type:ident, $client_type:ident) => {
        #[doc = concat!("A [`", stringify!($server_type), "`] that takes and sends messages up to [`MESSAGE_LIMIT_BYTES`].")]
        pub fn $server<T: $service>(service: T) -> $server_type<T> {
            $server_type::new(service)
                .max_decoding_message_size(MESSAGE_LIMIT_BYTES)
                .max_encoding_message_size(MESSAGE_LIMIT_BYTES)
        }

        #[doc = concat!("A [`", stringify!($client_type), "`] that takes and sends messages up to [`MESSAGE_LIMIT_BYTES`].")]
        pub fn $client<T>(channel: T) -> $client_type<T>
        where
            T: GrpcService<Body>,
            T::Error: Into<StdError>,
            T::ResponseBody: tonic::codegen::Body<Data = Bytes> + Send + 'static,
            <T::ResponseBody as tonic::codegen::Body>::Error: Into<StdError> + Send,
        {
            $client_type::new(channel)
                .max_decoding_message_size(MESSAGE_LIMIT_BYTES)
                .max_encoding_message_size(MESSAGE_LIMIT_BYTES)
        }
    };
}

limited!(provider_server, provider_client, CapacityProvider, CapacityProviderServer, CapacityProviderClient);
limited!(shard_server, shard_client, Shard, ShardServer, ShardClient);
limited!(shard_read_server, shard_read_client, ShardRead, ShardReadServer, ShardReadClient);
limited!(coordinator_server, coordinator_client, Coordinator, CoordinatorServer, CoordinatorClient);
limited!(fleet_server, fleet_client, Fleet, FleetServer, FleetClient);

/// Both services every provider of ours has: the calls everybody knows, and listings that stream.
pub fn provider_servers<T: CapacityProvider, L: MachineStream>(
    calls: Arc<T>,
    listings: L,
) -> (CapacityProviderServer<T>, MachineStreamServer<L>) {
    let calls = CapacityProviderServer::from_arc(calls)
        .max_decoding_message_size(MESSAGE_LIMIT_BYTES)
        .max_encoding_message_size(MESSAGE_LIMIT_BYTES);
    // Requests are a cursor; chunks are bounded by whoever makes them.
    let listings = MachineStreamServer::new(listings).max_encoding_message_size(CHUNK_LIMIT_BYTES);
    (calls, listings)
}

/// What joins have printed, from providers that know. Requests are a name, answers the end of a text.
pub fn output_server<O: MachineOutput>(outputs: O) -> MachineOutputServer<O> {
    MachineOutputServer::new(outputs)
}

const _: () = assert!(CLIENT_PING_INTERVAL.as_secs() > PROVIDER_PING_MIN.as_secs());

/// The name of a status code as gRPC spells it, for metrics and messages.
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
