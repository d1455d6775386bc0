//! A provider for real machines: metal, virtual machines of a lab, anything with SSH.
//!
//! An [`inventory`] file says which hosts there are. The provider kit serves the wire and keeps the state; here
//! is what a host needs: power through [`redfish`], commands through [`ssh`], jobs that survive both ends
//! ([`agent`]), and watchers that report what happens behind our back.

pub mod agent;
mod backend;
pub mod cli;
mod discover;
pub mod inventory;
mod kept;
mod moves;
mod places;
mod rebuild;
pub mod redfish;
mod reload;
mod shared;
pub mod ssh;
mod truth;
mod watch;

pub use backend::Metal;
