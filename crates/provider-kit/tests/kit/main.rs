//! The kit from outside: in process, over sockets, across crashes.

mod cloud;
mod disk;
mod docs;
mod hostile;
mod kill;
mod lifecycle;
mod listing;
mod meddling;
mod model;
mod power;
mod sockets;
mod steps;
mod timeouts;
