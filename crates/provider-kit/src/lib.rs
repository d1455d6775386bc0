//! Write a BigFleet provider in a few functions.
//!
//! A provider turns six gRPC calls into machines. The calls are easy to answer almost rightly: fencing,
//! repeated calls, crashes between answer and work, listings that miss a change. This crate answers them
//! rightly, once, and asks the author only for what differs between clouds, as a [`Backend`]: what there is
//! to offer, how a machine is made, joined to a cluster, seen to be Ready, emptied and given back.
//!
//! * [`Provider`] is a backend with its state; it implements the gRPC service.
//! * [`Server`] puts it on a socket with TLS, health, reflection and metrics.
//! * [`Handle`] is how a backend speaks up: prices move, hosts die, spot machines are taken.
//!
//! The heart is `steps.rs`: the seven steps of every move, in the order the wire fixes.
//!
//! `docs/providers.md` walks through a whole provider in under a hundred lines.

mod backend;
mod fence;
mod fleet;
mod handle;
mod journal;
mod list;
mod meddle;
mod metrics;
mod offering;
mod operation;
mod options;
mod output;
mod process;
mod provider;
mod record;
mod recovery;
mod refusal;
mod server;
mod service;
mod shared;
mod steps;
mod store;
mod stream;
mod work;

pub use backend::{Backend, Failure, Recovery};
pub use bigfleet_durable::replace as replace_file;
pub use bigfleet_model::capacity::CapacityType;
pub use bigfleet_model::machine::MachineState;
pub use bigfleet_net::{Clock, Sleep, SystemClock, TlsError, TlsFiles, VirtualClock};
pub use bigfleet_proto::provider_v1::ConfigureOutput;
pub use bigfleet_proto::v1alpha1::{HostRef, Machine};
pub use fence::{Mark, Token};
pub use handle::{Handle, UpdateError};
pub use list::{Lister, Selection};
pub use meddle::{Asked, Meddled, Meddler};
pub use metrics::specimen as metrics_specimen;
pub use offering::Offering;
pub use operation::OperationKind;
pub use options::{Options, Timeouts};
pub use output::Outputs;
pub use process::{Patience, stop_signals};
pub use provider::Provider;
pub use record::{ID_LIMIT_BYTES, RecordError};
pub use recovery::StartError;
pub use server::{ServeError, Server, Settings};
pub use store::{Store, StoreError};
