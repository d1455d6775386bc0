//! The wire of BigFleet: `bigfleet.v1alpha1`.
//!
//! Five things live here and nowhere else:
//!
//! * [`v1alpha1`]: messages, servers and clients generated from the files in `proto/`, which fix names and
//!   numbers that other programs depend on;
//! * [`provider_v1`]: what we add to it for providers, in a package of our own: listings that stream;
//! * [`coordinator_v1`]: what our coordinator adds to its part of the wire: quotas, providers, bindings, help;
//! * [`transport`]: limits and keep-alive that every server and client of ours must share. Make servers and
//!   clients with the functions there, never with the generated constructors, whose message limit is 4 MiB;
//! * [`convert`]: the border between messages and the [model](bigfleet_model). What enters is checked once,
//!   there, and refused with an error that names the row and the remedy.

pub mod convert;
pub mod transport;

/// Generated from `proto/bigfleet/v1alpha1/*.proto`; the comments there are the documentation.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated code")]
pub mod v1alpha1 {
    tonic::include_proto!("bigfleet.v1alpha1");
}

/// Generated from `proto/bigfleet/provider/v1/*.proto`: what we add to the wire of providers.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated code")]
pub mod provider_v1 {
    tonic::include_proto!("bigfleet.provider.v1");
}

/// Generated from `proto/bigfleet/coordinator/v1/*.proto`: what our coordinator adds to its wire.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated code")]
pub mod coordinator_v1 {
    tonic::include_proto!("bigfleet.coordinator.v1");
}

/// The compiled files of [`coordinator_v1`], as server reflection wants them.
pub const FLEET_FILE_DESCRIPTOR_SET: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/fleet_descriptors.bin"));

/// The compiled files of [`provider_v1`], as server reflection wants them.
pub const STREAM_FILE_DESCRIPTOR_SET: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/stream_descriptors.bin"));

/// The compiled proto files, as server reflection wants them.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The protocol version an operator announces in its Hello.
pub const PROTOCOL_VERSION: &str = "v1alpha1";

/// The same from an operator that acknowledges a reclaim twice: when it begins to let go of the machine, and when it is
/// done. Peers ignore the version, so the addition is safe; a shard that knows it waits for the second.
pub const PROTOCOL_VERSION_ACKS_DONE: &str = "v1alpha1+acks-done";
