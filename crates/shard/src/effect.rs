//! What a shard wants done. It does nothing itself: whoever drives it carries this out.
//!
//! The one rule for drivers: the [`Fact`]s of a step are on disk before the first of its [`Effect`]s begins. Then a crash
//! between any two steps forgets nothing that anybody was told or asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_engine::Leftover;
use bigfleet_model::machine::Machine;
use bigfleet_model::requirement::Requirement;
use bigfleet_model::resource::ResourceVec;

use crate::event::{CallId, ProviderId, SessionId, WireId};
use crate::memory::Fact;
use crate::tape::CycleRecord;

/// What came of a step.
#[derive(Default)]
pub struct Step {
    /// To be on disk before the effects begin, all or none.
    pub facts: Vec<Fact>,
    /// To be begun in this order.
    pub effects: Vec<Effect>,
    /// What nobody needs any more, to be dropped where there is time.
    pub leftovers: Vec<Leftover>,
}

/// One thing to do.
#[derive(Clone, Debug)]
pub enum Effect {
    /// List a provider's machines: those changed since a revision, or all.
    List {
        /// To be answered under this number, by [`Event::Listed`](crate::Event::Listed) or
        /// [`Event::Failed`](crate::Event::Failed).
        call: CallId,
        /// Whom to ask.
        provider: ProviderId,
        /// Only what changed since; empty for everything.
        since: Arc<[u8]>,
        /// Give up after this long.
        timeout_nanos: i64,
    },
    /// Call a provider about one machine.
    Call {
        /// To be answered under this number.
        call: CallId,
        /// Whom to ask.
        provider: ProviderId,
        /// What to ask.
        request: Request,
        /// The sequence number of the fencing token; meaningless for Get.
        sequence: i64,
        /// Give up after this long.
        timeout_nanos: i64,
    },
    /// Send a frame to an operator.
    Send {
        /// To whom.
        session: SessionId,
        /// What.
        frame: Frame,
    },
    /// End a connection.
    HangUp {
        /// Which.
        session: SessionId,
        /// Why.
        why: HangUp,
    },
    /// Append a cycle to the decision record.
    Record(Arc<CycleRecord>),
    /// Say something to the people who run this.
    Say(Notice),
}

/// Why a connection is ended by the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HangUp {
    /// A newer connection speaks for the same cluster.
    Replaced,
    /// The shard stops; reconnect elsewhere or later.
    Stopping,
}

/// A question or an order about one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Make it.
    Create {
        /// Which.
        machine: Box<str>,
    },
    /// Bind it.
    Configure {
        /// Which.
        machine: Box<str>,
        /// To which cluster.
        cluster: Arc<str>,
        /// What it runs to join.
        blob: Arc<[u8]>,
        /// Our stamp.
        metadata: BTreeMap<String, String>,
    },
    /// Empty it.
    Drain {
        /// Which.
        machine: Box<str>,
        /// How long pods may take to leave.
        grace_secs: i64,
    },
    /// Give it back.
    Delete {
        /// Which.
        machine: Box<str>,
    },
    /// Ask what it is.
    Get {
        /// Which.
        machine: Box<str>,
    },
}

impl Request {
    /// The machine it is about.
    pub fn machine(&self) -> &str {
        match self {
            Self::Create { machine }
            | Self::Configure { machine, .. }
            | Self::Drain { machine, .. }
            | Self::Delete { machine }
            | Self::Get { machine } => machine,
        }
    }

    /// The name of the call, for metrics and messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Create { .. } => "Create",
            Self::Configure { .. } => "Configure",
            Self::Drain { .. } => "Drain",
            Self::Delete { .. } => "Delete",
            Self::Get { .. } => "Get",
        }
    }
}

/// A frame for an operator.
#[derive(Clone, Debug)]
pub enum Frame {
    /// Hello was understood.
    HelloAck,
    /// What became of a roll-up.
    RollupAck(Reception),
    /// Asks for what a node needs to join.
    Bootstrap {
        /// To be answered under this number.
        request: WireId,
        /// What the node will be asked to satisfy.
        requirements: Arc<[Requirement]>,
    },
    /// Asks the cluster to let go of a machine.
    Reclaim {
        /// To be acknowledged under this number.
        instruction: WireId,
        /// The machine.
        machine: Box<str>,
        /// How long its pods may take to leave.
        grace_secs: i64,
        /// The priority it yields to; 0 if it is simply not needed.
        preemptor_priority: i32,
    },
    /// Tells what one of the cluster's machines is.
    Node(Arc<Machine>),
    /// Tells what there is to have for one of the cluster's profiles.
    Available(Available),
}

impl Frame {
    /// Frames of the same key replace one another while they wait; `None` is never replaced.
    pub fn supersedes(&self) -> Option<String> {
        match self {
            Self::Node(machine) => Some(format!("node:{}", machine.id)),
            Self::Available(hint) => Some(format!("available:{}", hint.fingerprint)),
            _ => None,
        }
    }
}

/// What became of a roll-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reception {
    /// It is the cluster's demand now.
    Accepted,
    /// It erases too much to be believed at once: the demand before it stays until it is confirmed.
    Held {
        /// How many reports agree so far.
        seen: u32,
        /// How many it takes.
        of: u32,
        /// What is suspicious about it.
        why: String,
    },
    /// It could not be used; the demand before it stays.
    Refused {
        /// What is wrong with it.
        why: String,
    },
}

/// How likely it is that capacity asked for now would be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Confidence {
    /// There is nothing.
    None,
    /// There is some, in quota only, or the provider has not been heard for a while.
    Low,
    /// There is quota, from a provider that answers.
    Medium,
    /// Hardware stands ready.
    High,
}

/// What there is to have for one profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Available {
    /// The profile.
    pub fingerprint: Arc<str>,
    /// Its requirements.
    pub requirements: Arc<[Requirement]>,
    /// What the cheapest machine for it provides.
    pub resources: ResourceVec,
    /// How many machines are free.
    pub count: u32,
    /// How sure that is.
    pub confidence: Confidence,
    /// What the cheapest costs an hour.
    pub usd_per_hour: f64,
}

/// How urgent a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// For whoever follows along.
    Info,
    /// Somebody should look at it some time.
    Warning,
    /// Somebody should be woken.
    Alarm,
}

/// The codes of all alarms there are: who counts them shows each from 0 on, so that the first one of a kind is a change.
pub const ALARMS: [&str; 7] = [
    "bound_elsewhere",
    "fenced",
    "listing_lost_machines",
    "not_supported",
    "quarantined",
    "read_otherwise",
    "suspicious_loss",
];

/// Something worth a line in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// How urgent.
    pub urgency: Urgency,
    /// A short stable name, for filters and metrics.
    pub code: &'static str,
    /// The sentence: what happened, why, and what to do.
    pub text: String,
}
