//! The view over a real shard that is driven by hand, called in process and over sockets.

mod answers;
mod driver;
mod lists;
mod measure;
mod modes;
mod money;
mod own_cluster;
mod past;
mod roles;
mod sockets;
mod truth;
