//! Private Kubernetes control planes for tests: the real programs, no double of any.
//!
//! * [`ControlPlane`]: etcd, kube-apiserver, kube-controller-manager and kube-scheduler on loopback, with certificates of
//!   their own, ready in seconds and gone when it is dropped.
//! * [`scenarios`](fn@scenarios): several named tests on one control plane, each in a namespace of its own.
//! * [`Joiner`]: stands in for machines. It makes nodes, keeps them alive, runs their pods on paper and lets them end.
//! * [`Hollow`]: the same with a kubelet for each node, the real one's code over a pretended container runtime.
//! * [`join_machines`], [`join_hollow_machines`]: machines of a fleet become nodes, by one of the two.
//! * [`Playground`]: a control plane connected to `bigfleet up`, for people with kubectl.
//! * [`TestBed`]: several clusters in which pods of charts really run, as processes ([`run_pods_as_processes`]).
//! * [`EtcdMembers`]: an etcd alone, of three members. [`Network`]: hosts whose links can be cut.
//! * [`requests_served`]: how often an API server has answered, by its own count.
//! * [`http_get`]: what a program says on its port for metrics and health.
//!
//! The programs come from `KUBEBUILDER_ASSETS` or from the folder that `scripts/kube-assets` fills. The README of this
//! crate says more.

mod assets;
mod bed;
mod certificates;
mod etcd;
mod hollow;
mod host;
mod http;
mod joiner;
mod machines;
mod manifest;
mod network;
mod plane;
mod playground;
mod process;
mod scenario;
mod served;

pub use assets::{Assets, AssetsError};
pub use bed::TestBed;
pub use certificates::Identity;
pub use etcd::EtcdMembers;
pub use hollow::{Hollow, HollowError};
pub use host::{HOST, run_pods_as_processes};
pub use http::http_get;
pub use joiner::{Joiner, NewNode};
pub use machines::{join_hollow_machines, join_machines, node_name};
pub use manifest::{Apply, apply, try_apply};
pub use network::{Network, Place, in_own_network};
pub use plane::{ControlPlane, Parts, StartError, eventually};
pub use playground::{Playground, PlaygroundError};
pub use process::{Program, processor_secs};
pub use scenario::{Scenario, scenarios};
pub use served::requests_served;
