//! What a coordinator decides. It is never on the path of a cycle: shards decide and act without it.
//!
//! ```text
//!   reports ──► standing (soft: lost with the leader) ──► help ──► asks to donors, transfers
//!   admins  ──► settings: domains, quotas, providers, clusters ─┐
//!   acks    ──► orders: instructions until they are answered ───┴─► writes ──► store ──► fleet
//! ```
//!
//! Nothing here waits, stores or dials. A call looks at the [`Fleet`] and answers with [`Writes`]: what must be in the store
//! before anybody hears of it. Whoever drives this commits them under the lease of its leadership and only then has the
//! fleet [apply](Fleet::apply) them. So a leader that was deposed can change nothing, not even in its own eyes.
//!
//! Absent on purpose: a clock, a store, sockets, randomness; and the machines of a shard. A coordinator knows counts and the
//! machines that were handed from one shard to another, nothing else.

mod domains;
mod entry;
mod error;
mod fleet;
mod help;
mod key;
pub mod limits;
mod orders;
mod registry;
mod settings;
mod standing;
mod transfers;

pub use domains::{assign, unassign};
pub use entry::{
    Cluster, Domain, Entry, Instruction, Meta, Order, Provider, Quota, Sequence, Shard, Step, Tenure,
    Transfer,
};
pub use error::{LoadError, Refusal};
pub use fleet::{Fleet, Write, Writes};
pub use help::{Ask, Help, HelpRules, Source};
pub use key::Key;
pub use orders::{Outcome, acknowledge, pending, retry};
pub use registry::{register, remove, sweep};
pub use settings::{bind_cluster, remove_provider, set_provider, set_quota, unbind_cluster};
pub use standing::{Heard, Report, Shortfall, Standing};
pub use transfers::{Offered, transfer};

/// The form of what is stored. A coordinator of an older edition must not lead on what a newer one wrote.
pub const EDITION: u32 = 1;
