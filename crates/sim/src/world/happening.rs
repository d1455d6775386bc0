//! What will happen, and when.

use std::collections::BTreeMap;

use bigfleet_border::provider::{ListCall, Outgoing};
use bigfleet_proto::v1alpha1::Machine;
use bigfleet_shard::{CallId, Request, SessionId};
use bytes::Bytes;
use tonic::Status;

use super::council::Talk;

/// A call on its way to a provider.
#[derive(Debug)]
pub(super) struct Arriving {
    pub(super) host: usize,
    pub(super) life: u64,
    pub(super) epoch: i64,
    pub(super) call: CallId,
    pub(super) provider: usize,
    pub(super) asked: Asked,
    pub(super) timeout: i64,
    pub(super) fate: Fate,
}

/// What is asked of a provider.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    /// The next step of a listing.
    List(ListCall),
    /// A call about one machine, and its bytes.
    Machine(Request, Outgoing),
}

/// What the network does to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Fine,
    /// It takes effect; nobody hears of it in time.
    AnswerLost,
    /// The answer comes twice.
    Twice,
    /// It takes effect after the caller gave up.
    Late,
}

/// What comes back.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Listed(Listed),
    /// About one machine, and what was asked.
    Machine {
        path: &'static str,
        answer: Result<Bytes, Status>,
        /// When it was given.
        taken: i64,
    },
}

/// What comes back from one step of a listing.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says something else about the answer")]
pub(super) struct Listed {
    /// The listing, as it was when it was asked.
    pub(super) list: ListCall,
    pub(super) provider: usize,
    pub(super) timeout: i64,
    /// One answer, or the chunks of a stream and how it ends.
    pub(super) answer: Result<(Vec<Bytes>, Result<(), Status>), Status>,
    /// When it was given.
    pub(super) taken: i64,
    /// The same machines for those who watch.
    pub(super) said: Option<Vec<Machine>>,
    /// The network and the provider told the truth.
    pub(super) is_true: bool,
    /// It is a piece of a listing: machines in other states are in others.
    pub(super) is_piece: bool,
    /// Everything was asked for, not what changed.
    pub(super) full: bool,
    /// It comes a second time.
    pub(super) is_repeat: bool,
}

/// What an operator says.
#[derive(Debug)]
pub(super) enum Saying {
    Frame(Bytes),
    Bye,
}

#[derive(Debug)]
pub(super) enum Happening {
    Arrive(Box<Arriving>),
    Answer {
        host: usize,
        life: u64,
        call: CallId,
        answer: Box<Answer>,
    },
    Frame {
        cluster: usize,
        session: SessionId,
        frame: Bytes,
    },
    Say {
        session: SessionId,
        saying: Saying,
    },
    Report {
        cluster: usize,
        session: SessionId,
    },
    Connect {
        cluster: usize,
        life: u64,
    },
    Crash {
        cluster: usize,
        life: u64,
    },
    Load {
        cluster: usize,
        work: usize,
    },
    Churn {
        cluster: usize,
        work: usize,
    },
    Join {
        cluster: usize,
        machine: String,
        since: i64,
    },
    Emptied {
        cluster: usize,
        session: SessionId,
        machine: Box<str>,
        instruction: String,
    },
    FaultBegins(usize),
    FaultEnds(usize),
    Approve(usize),
    Kill {
        host: usize,
    },
    Restart {
        host: usize,
    },
    Repair {
        provider: usize,
        machine: String,
    },
    Interruptions,
    /// Something is said between shards and their coordinator.
    Council(Talk),
    Look(usize),
    Sample,
}

/// All that will happen, by time and then by when it was decided.
#[derive(Debug, Default)]
pub(super) struct Queue {
    due: BTreeMap<(i64, u64), Happening>,
    put: u64,
}

impl Queue {
    pub(super) fn put(&mut self, at: i64, happening: Happening) {
        self.put += 1;
        self.due.insert((at, self.put), happening);
    }

    pub(super) fn len(&self) -> usize {
        self.due.len()
    }

    pub(super) fn next(&self) -> Option<i64> {
        self.due.keys().next().map(|(at, _)| *at)
    }

    pub(super) fn take_due(&mut self, now: i64) -> Option<Happening> {
        let first = self.due.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// Nothing goes wrong any more.
    pub(super) fn drop_faults(&mut self) {
        let of_faults = |happening: &Happening| {
            matches!(happening, Happening::FaultBegins(_) | Happening::FaultEnds(_) | Happening::Approve(_))
        };
        self.due.retain(|_, happening| !of_faults(happening));
    }
}
