//! The simulated cloud from outside: in process on virtual time, over sockets, and as a process.

mod admin;
mod binary;
mod conformance;
mod docs;
mod faults;
mod hostile;
mod models;
mod process;
mod restart;
mod trace;
mod virtual_cloud;
mod wire;
