//! Private Kubernetes control planes for tests: the real programs, no double of any.
//!
//! * [`ControlPlane`]: etcd, kube-apiserver, kube-controller-manager and kube-scheduler on loopback, with certificates of
//!   their own, ready in seconds and gone when it is dropped.
//! * [`scenarios`](fn@scenarios): several named tests on one control plane, each in a namespace of its own.
//! * [`Joiner`]: stands in for machines. It makes nodes, keeps them alive, runs their pods on paper and lets them end.
//! * [`join_machines`]: machines of a fleet become nodes, by a [`Joiner`].
//! * [`http_get`]: what a program says on its port for metrics and health.
//!
//! The programs come from `KUBEBUILDER_ASSETS` or from the folder that `scripts/kube-assets` fills. The README of this
//! crate says more.

mod assets;
mod certificates;
mod http;
mod joiner;
mod machines;
mod manifest;
mod plane;
mod process;
mod scenario;

pub use assets::{Assets, AssetsError};
pub use certificates::Identity;
pub use http::http_get;
pub use joiner::{Joiner, NewNode};
pub use machines::{join_machines, node_name};
pub use manifest::apply;
pub use plane::{ControlPlane, Parts, StartError, eventually};
pub use process::Program;
pub use scenario::{Scenario, scenarios};
