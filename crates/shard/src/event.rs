//! What a shard may be told: everything that reaches it from outside.
//!
//! An event is a fact, already read and checked at the border, with nothing left to parse. A shard that is handed the
//! same events at the same instants does the same things, byte for byte.

use std::sync::Arc;

use bigfleet_model::machine::Machine;
use thiserror::Error;

use crate::rollup::{Prepared, Rollup};

/// A provider, by its place in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProviderId(pub u16);

/// One operator's connection. Never used twice in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// One call to a provider. Never used twice in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// A number that goes over the wire as 16 hexadecimal characters: a bootstrap request or a reclaim instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WireId(pub u64);

/// One record of a listing, still in the form in which it came: most are as they were last time, and then nobody needs
/// to read them.
pub trait Report {
    /// The machine's id.
    fn id(&self) -> &str;
    /// A digest over the bytes of the record, its id included; 0 if there is none. Whoever sends the same bytes again
    /// is known by it alone. Nobody but the provider may be able to make two records with one digest.
    fn digest(&self) -> u128 {
        0
    }
    /// A hash over all that the provider said of the machine. Equal content should give an equal hash, in whatever
    /// order it is written.
    fn content(&self) -> u64;
    /// The record, checked.
    fn read(&self) -> Result<Told, BadRecord>;
}

/// A batch of records.
pub trait Reports: Send {
    /// Calls `take` with each record in turn.
    fn each(&self, take: &mut dyn FnMut(&dyn Report));
}

/// A machine as its provider described it.
#[derive(Clone, Debug)]
pub struct Told {
    /// The machine.
    pub machine: Machine,
    /// How many of its stamps could not be read and were left out.
    pub bad_stamps: usize,
}

/// A record that was refused; the last good one stays.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct BadRecord {
    /// Which machine, as far as it could be told.
    pub id: Box<str>,
    /// A short stable name of what is wrong, fit for a metric.
    pub code: &'static str,
    /// The whole sentence.
    pub text: String,
}

/// The end of a listing.
#[derive(Clone, Debug, Default)]
pub struct ListEnd {
    /// What to ask from next time; empty if the provider has no revisions.
    pub revision: Arc<[u8]>,
    /// Whether it was put together from several answers, each of another instant. A machine may have moved between
    /// two of them and be in none, so what is missing is asked about before it is taken for lost.
    pub is_pieced: bool,
}

/// Why a call to a provider gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}: {text}", .kind.code())]
pub struct CallError {
    /// What kind of trouble.
    pub kind: CallErrorKind,
    /// What the provider said.
    pub text: String,
}

/// Kinds of trouble with a call, as far as they matter for what to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallErrorKind {
    /// The provider knows no such machine.
    NotFound,
    /// The provider does not offer this call.
    NotSupported,
    /// Somebody with a newer token drives this machine: stop, and tell a human.
    Fenced,
    /// The provider refused the move in the machine's present state, or for a reason of its own.
    Refused,
    /// The provider could not be reached or asked to be left alone for a while.
    Unavailable,
    /// No answer came in time. The call may have taken effect.
    TimedOut,
}

impl CallErrorKind {
    /// The stable name, for metrics and messages.
    pub fn code(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::NotSupported => "not_supported",
            Self::Fenced => "fenced",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
            Self::TimedOut => "timed_out",
        }
    }
}

/// What a node needs to join its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// Passed to the provider unchanged.
    pub user_data: Arc<[u8]>,
    /// It must be used within this time; 0 or less for no limit.
    pub ttl_secs: i64,
}

/// Everything a shard may be told.
#[expect(clippy::large_enum_variant, reason = "an event is moved once, from the border to the shard")]
pub enum Event {
    /// A part of a listing; the last part carries its end.
    Listed {
        /// The call it answers.
        call: CallId,
        /// The records of this part.
        records: Box<dyn Reports>,
        /// Present on the last part.
        end: Option<ListEnd>,
    },
    /// A call failed, List included.
    Failed {
        /// Which call.
        call: CallId,
        /// Why.
        error: CallError,
    },
    /// A call other than List was answered, with the machine as the provider saw it at that moment if it said so.
    Answered {
        /// Which call.
        call: CallId,
        /// The machine, or why the record was refused.
        machine: Option<Result<Told, BadRecord>>,
    },
    /// An operator said hello and may speak for this cluster.
    Opened {
        /// Its connection.
        session: SessionId,
        /// Its cluster.
        cluster: Arc<str>,
        /// The protocol it says it speaks.
        protocol: Box<str>,
    },
    /// A connection ended, whoever ended it.
    Closed {
        /// Which.
        session: SessionId,
    },
    /// A roll-up, or why it could not be read.
    Rollup {
        /// Who sent it.
        session: SessionId,
        /// What it said.
        rollup: Result<Box<Prepared>, String>,
    },
    /// A roll-up that says, byte for byte, what the last one on this connection said. What that means, the shard decides;
    /// [`crate::Shard::has_taken_rollup`] tells whether it would be understood.
    RollupAgain {
        /// Who sent it.
        session: SessionId,
    },
    /// A bootstrap blob, or why there is none.
    Blob {
        /// Who sent it.
        session: SessionId,
        /// Which request it answers.
        request: WireId,
        /// The blob.
        blob: Result<Blob, String>,
    },
    /// A cluster begins to let go of machines, or has done so.
    ReclaimAcked {
        /// Who sent it.
        session: SessionId,
        /// Which instruction it answers.
        instruction: WireId,
        /// How many nodes were cordoned; none if there was nothing to cordon.
        nodes_started: i32,
    },
}

impl Event {
    /// A roll-up that was read, made ready on this thread; or why it could not be.
    pub fn of_rollup(session: SessionId, rollup: Result<Rollup, String>) -> Self {
        let prepare = |rollup: Rollup| rollup.prepare().map_err(|error| error.to_string());
        Self::Rollup { session, rollup: rollup.and_then(prepare).map(Box::new) }
    }
}
