//! What the operator of one cluster decides.
//!
//! ```text
//!   requests ──► ask ──► demand ──► roll-up          pods without a hole ──► reserve ──┐
//!                          ▲                                                           │
//!                          └───────────────────────── asks for more ◄──────────────────┘
//!   a machine is let go ──► fit: have its pods a place? ──► drain ──► cordon, evict, acknowledge
//!   a machine is to join ──► template ──► bootstrap data
//! ```
//!
//! Nothing here knows Kubernetes' client, sockets or clocks: what the API server and the shard said goes in, what should be
//! done comes out. `bigfleet-operator-kube` carries it out.

pub mod ask;
pub mod demand;
pub mod drain;
pub mod fit;
pub mod reserve;
pub mod template;
