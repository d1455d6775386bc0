//! Coordinators over real sockets, on a real file and a real etcd of three members that are killed and frozen.

mod etcd;
mod failures;
mod late;
mod replicas;
mod stores;
