//! What can go wrong, and when.

use bigfleet_provider_sim::Span;
use serde::{Deserialize, Serialize};

/// Something that goes wrong for a while, or once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// When it begins.
    pub at: Span,
    /// How long it lasts; `0s` for what happens once.
    #[serde(default, rename = "for")]
    pub lasts: Span,
    /// What it is.
    pub what: What,
}

/// A call to a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names of the wire")]
pub enum Call {
    Create,
    Configure,
    Drain,
    Delete,
}

/// What a provider says of a machine that is bound and fine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lie {
    /// It has failed.
    Failed,
    /// It is bound to another cluster.
    Elsewhere,
    /// It has next to nothing to give.
    Small,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum What {
    /// A provider answers nothing but errors.
    ProviderDown {
        /// Which; all if left out.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        provider: String,
    },
    /// Calls fail before they take effect.
    CallsFail {
        /// How likely.
        p: f64,
    },
    /// Calls take effect and their answers are lost.
    AnswersLost {
        /// How likely.
        p: f64,
    },
    /// Calls hang and take effect later than the caller waits.
    AnswersLate {
        /// How likely.
        p: f64,
    },
    /// Answers come twice.
    AnswersTwice {
        /// How likely.
        p: f64,
    },
    /// Full lists lose machines, without a word.
    ListTruncated {
        /// The share that is left.
        keep: f64,
    },
    /// Lists say what was true when this began.
    ListStale,
    /// Lists come in random order.
    ListReordered,
    /// Full lists leave out another half each time.
    ListHalves,
    /// Lists name some machines twice, the second time as Failed.
    ListDoubles {
        /// How likely, for each machine.
        p: f64,
    },
    /// Lists and answers say something else of bound machines that are fine.
    ShownAs {
        /// What they say.
        lie: Lie,
        /// Of which share of them.
        share: f64,
        /// Only of those of this cluster.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        cluster: String,
    },
    /// Moves are carried out, and answered as if nobody knew the machine.
    MovesDenied {
        /// How likely.
        p: f64,
    },
    /// Moves fail.
    MovesFail {
        /// Which.
        call: Call,
        /// Only in this pool.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pool: String,
        /// How likely.
        p: f64,
    },
    /// Moves do not end.
    MovesHang {
        /// Which.
        call: Call,
        /// Only in this pool.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pool: String,
        /// How likely.
        p: f64,
    },
    /// Machines die at once.
    MachinesDie {
        /// How many at most.
        count: usize,
        /// Only of this pool.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pool: String,
        /// Only in this zone.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        zone: String,
        /// Only those bound to this cluster.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        cluster: String,
        /// Only those in this state, by its name.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        state: String,
    },
    /// A zone is out: its machines die, and nothing can be made there.
    ZoneOutage {
        /// Which.
        zone: String,
    },
    /// A pool costs something else from now on.
    Price {
        /// Which.
        pool: String,
        /// Dollars an hour.
        usd: f64,
    },
    /// A cluster's operator is gone.
    OperatorGone {
        /// Whose.
        cluster: String,
    },
    /// It starts again and again, and reports nothing at first.
    OperatorCrashLoops {
        /// Whose.
        cluster: String,
        /// How long each life lasts.
        every: Span,
        /// Each life reports an empty cluster before it dies.
        #[serde(default)]
        empty: bool,
    },
    /// It sends what cannot be read.
    OperatorGarbage {
        /// Whose.
        cluster: String,
    },
    /// It reports no demand at all.
    OperatorEmpty {
        /// Whose.
        cluster: String,
    },
    /// It reads nothing.
    OperatorStuck {
        /// Whose.
        cluster: String,
    },
    /// It has no bootstrap blob to give.
    OperatorRefuses {
        /// Whose.
        cluster: String,
    },
    /// The shard is killed and started again.
    ShardKilled {
        /// How long it is away.
        away: Span,
        /// Which, where there are several.
        #[serde(default)]
        shard: usize,
        /// It also loses its disk.
        #[serde(default)]
        disk_lost: bool,
    },
    /// The shard is killed after every so many steps and started again at once.
    ShardKilledOften {
        /// After so many steps; the place within a step changes each time.
        steps: u64,
    },
    /// An older life of the shard goes on acting beside the new one.
    ShardTwice,
    /// The shard's clock jumps.
    ClockJumps {
        /// By how many seconds; negative for back.
        secs: i64,
    },
    /// Somebody lets the shard only observe, or ask before it acts.
    Trusted {
        /// How far.
        to: Trust,
        /// Only with this cluster.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        cluster: String,
        /// How often somebody looks at what is proposed, and approves two of three; never if it is nothing.
        #[serde(default)]
        looks_every: Span,
    },
    /// Somebody pauses everything.
    Paused {
        /// Count it as a rehearsal.
        #[serde(default)]
        dry_run: bool,
        /// Only this cluster.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        cluster: String,
    },
}

/// What a shard is trusted with while it is not trusted with everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// To say what it would do.
    Observe,
    /// To do what somebody approved.
    Approve,
}

impl Trust {
    /// As the shard calls it.
    pub(crate) fn mode(self) -> bigfleet_shard::Mode {
        match self {
            Self::Observe => bigfleet_shard::Mode::Observe,
            Self::Approve => bigfleet_shard::Mode::Approve,
        }
    }
}

impl Fault {
    /// When it is over.
    pub fn until(&self) -> i64 {
        self.at.nanos().saturating_add(self.lasts.nanos())
    }
}
