//! What a shard knows of one cluster: its demand, its operator, and what it holds.

use std::collections::BTreeSet;
use std::sync::Arc;

use bigfleet_model::need::Need;

use crate::event::SessionId;
use crate::memory::HeldRollup;
use crate::names::Brought;
use crate::rollup::{Prepared, Totals};
use crate::table::Slot;

/// What an operator adds to the protocol version of its hello, after a `+`, if it acknowledges a reclaim twice: when it
/// begins to let go of the machine, and when it is done. Others acknowledge once, and that is all they ever say.
pub const ACKS_DONE: &str = "acks-done";

/// Whether a protocol version has this addition.
pub(crate) fn adds(protocol: &str, addition: &str) -> bool {
    protocol.split('+').skip(1).any(|added| added == addition)
}

/// One cluster.
#[derive(Debug, Default)]
pub struct Cluster {
    /// Its accepted demand, stamped with when each row was first seen, in key order.
    pub demand: Arc<[Need]>,
    /// How much it asks for in all.
    pub(crate) totals: Arc<Totals>,
    /// When its demand was last reported, held reports included; 0 for not in this life.
    pub reported_unix_nanos: i64,
    /// When its demand last changed; 0 for not in this life.
    pub changed_unix_nanos: i64,
    /// A report that waits to be confirmed.
    pub held: Option<HeldRollup>,
    /// Its operator's connection.
    pub session: Option<SessionId>,
    /// When the connection before ended; 0 for not in this life.
    pub(crate) closed_unix_nanos: i64,
    /// When that connection was opened.
    pub session_since_unix_nanos: i64,
    /// The protocol its operator speaks.
    pub protocol: Box<str>,
    /// Whether its operator says when it is done letting go of a machine, see [`ACKS_DONE`].
    pub acks_done: bool,
    /// How many machines it holds that are Configured.
    pub configured: usize,
    /// Its operator failed so often in a row.
    pub operator_failures: u32,
    /// No bootstrap before this.
    pub operator_backoff_until_unix_nanos: i64,
    /// What the operator last said when it failed.
    pub operator_error: Box<str>,
    /// When and how many machines were reclaimed lately.
    pub reclaims: Vec<(i64, u32)>,
    /// The connection whose last roll-up was accepted or held: only on it may one say "the same again".
    pub(crate) taken_from: Option<SessionId>,
    /// The rows that wait to be confirmed, and the connection that reported them.
    pub(crate) pending: Option<(SessionId, Box<Prepared>)>,
    /// How many names and keys nobody knew before it reported them.
    pub(crate) brought: Brought,
    /// Machines bound to it.
    pub(crate) bound: BTreeSet<Slot>,
}

impl Cluster {
    /// Whether it has reported in this life of the shard, so that things may be taken from it.
    pub fn has_reported(&self) -> bool {
        self.reported_unix_nanos != 0
    }

    /// How many machines are bound to it.
    pub fn machines(&self) -> usize {
        self.bound.len()
    }
}
