//! An honest simulated cloud.
//!
//! A provider whose machines do not exist: it takes as long as a real cloud to make them, runs out of them, takes
//! spot machines back, loses hosts and zones, throttles, and lies in its listings, all from one seed and on the
//! clock it is given. `docs/simulated-cloud.md` lists every model, fault and price.
//!
//! * [`Sim`] is the cloud, to be called in process (later by the simulator) or put on a socket.
//! * [`fault`] is what can be made to go wrong while it runs; [`admin`] is the API for that.
//! * [`scenario`] is a file with a load curve and faults, and what an incident is written down as.
//! * [`cli`] is `bigfleet provider sim`, which is also the standard provider test binary.
//!
//! The honest part is the provider kit's: fencing, repetition, durability. Here is only what a cloud does.

pub mod admin;
pub mod catalogue;
pub mod cli;
mod clock;
mod cloud;
mod event;
pub mod fault;
mod faults_last;
mod inventory;
mod lies;
pub mod models;
mod random;
pub mod replay;
pub mod scenario;
mod shared;
mod sim;
mod span;
mod suggest;
mod world;

pub use clock::FastClock;
pub use cloud::Cloud;
pub use event::{Event, EventLog};
pub use faults_last::FaultsLast;
pub use inventory::{FAULT_LABEL, FAULT_SLOTS, Inventory, RACK_LABEL, RACK_SIZE, SIMULATED_LABEL};
pub use lies::Lies;
pub use sim::{Config, Control, OpenError, Service, Sim};
pub use span::{Span, SpanError};
pub use world::NOTICE_LABEL;
