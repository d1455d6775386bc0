//! What will happen, and when.

use std::collections::BTreeMap;

use bigfleet_proto::v1alpha1::Machine;
use bigfleet_shard::{Blob, CallError, CallId, Frame, Request, Rollup, SessionId, WireId};

/// A call on its way to a provider.
#[derive(Debug)]
pub(super) struct Arriving {
    pub(super) host: usize,
    pub(super) life: u64,
    pub(super) epoch: i64,
    pub(super) call: CallId,
    pub(super) provider: usize,
    pub(super) asked: Asked,
    pub(super) sequence: i64,
    pub(super) fate: Fate,
}

/// What is asked of a provider.
#[derive(Debug)]
pub(super) enum Asked {
    List(Vec<u8>),
    Machine(Request),
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
    Listed { machines: Vec<Machine>, revision: Vec<u8>, clean: bool, full: bool },
    Machine(Box<Machine>),
    Failed(CallError),
}

/// What an operator says.
#[derive(Debug)]
pub(super) enum Saying {
    Hello,
    Rollup(Result<Rollup, String>),
    Again,
    Blob(WireId, Result<Blob, String>),
    Ack(WireId, i32),
    Bye,
}

#[derive(Debug)]
pub(super) enum Happening {
    Arrive(Arriving),
    Answer { host: usize, life: u64, call: CallId, provider: usize, taken: i64, answer: Answer },
    Frame { cluster: usize, session: SessionId, frame: Frame },
    Say { cluster: usize, session: SessionId, saying: Saying },
    Report { cluster: usize, session: SessionId },
    Connect { cluster: usize, life: u64 },
    Crash { cluster: usize, life: u64 },
    Load { cluster: usize, work: usize },
    Churn { cluster: usize, work: usize },
    Join { cluster: usize, machine: String, since: i64 },
    Emptied { cluster: usize, session: SessionId, machine: Box<str>, instruction: WireId },
    FaultBegins(usize),
    FaultEnds(usize),
    Kill { host: usize },
    Restart { host: usize },
    Repair { provider: usize, machine: String },
    Interruptions,
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
        self.due
            .retain(|_, happening| !matches!(happening, Happening::FaultBegins(_) | Happening::FaultEnds(_)));
    }
}
