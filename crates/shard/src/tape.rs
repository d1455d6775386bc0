//! What goes on the decision record: the engine's inputs as they changed, and what it decided.
//!
//! Replaying a tape through the engine gives the same decisions, bit for bit, because the engine is a pure function and
//! the tape holds every input it ever had.

mod around;
mod look;

use std::sync::Arc;

use bigfleet_engine::{Action, ActionExplanation, ActionKind, Options};
use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::Machine;
use bigfleet_model::need::{Need, NeedKey};

pub use around::{
    Around, ClusterChange, ClusterSeen, Health, Link, Listed, LossSeen, MOST_TEXT_BYTES, OperatorSeen,
    ProviderSeen, ProviderSettings, Purchases, Settings, Surroundings,
};

/// One change of the engine's input.
#[derive(Clone, Debug)]
pub enum Input {
    /// A machine is there, or is different.
    Observe(Arc<Machine>),
    /// A machine is gone, or no longer counts.
    Remove(Box<str>),
    /// A cluster's whole demand.
    Replace {
        /// Whose.
        cluster: Arc<str>,
        /// The rows, stamped with when they were first seen.
        needs: Arc<[Need]>,
        /// When it was accepted.
        at_unix_nanos: i64,
    },
    /// A gang is parked or may try again.
    Park {
        /// Which.
        key: NeedKey,
        /// Parked or not.
        parked: bool,
    },
}

/// Why a cycle ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a set of flags, each of which may be true by itself")]
pub struct Reasons {
    /// The ticker.
    pub tick: bool,
    /// A cluster's demand changed.
    pub demand: bool,
    /// A machine changed.
    pub supply: bool,
    /// Somebody paused, resumed or changed a rail.
    pub command: bool,
    /// The last cycle left something over.
    pub leftover: bool,
}

/// What became of an action after it was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fate {
    /// It was begun.
    Begun,
    /// A pause holds it back.
    Paused,
    /// Dry run: nothing is executed.
    DryRun,
    /// The reclaim cap of its cluster is used up for this cycle or window.
    Capped,
    /// The bound on actions in one cycle is used up.
    OverBound,
    /// All places for moves under way are taken.
    NoPlace,
    /// The provider's listing is too old to take things away by.
    StaleInventory,
    /// The cluster's operator is absent or refused lately.
    OperatorBackoff,
    /// The machine is being moved already.
    Busy,
    /// The like of the machine would be bound in its place: it is kept.
    Regretted,
    /// A machine that the cluster was about to lose is kept instead.
    TakenBack,
    /// It would replace a machine lost to a suspicious listing, and enough of those were replaced for now.
    LossUnconfirmed,
    /// It is for a parked gang, which only looks.
    OnlyLooks,
    /// Its mode is to observe: it would have been begun.
    Observed,
    /// Its mode is to ask first, and nobody said yes yet.
    AwaitsApproval,
}

impl Fate {
    /// The stable name, for metrics and files.
    pub fn code(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Paused => "paused",
            Self::DryRun => "dry_run",
            Self::Capped => "capped",
            Self::OverBound => "over_bound",
            Self::NoPlace => "no_place",
            Self::StaleInventory => "stale_inventory",
            Self::OperatorBackoff => "operator_backoff",
            Self::Busy => "busy",
            Self::Regretted => "regretted",
            Self::TakenBack => "taken_back",
            Self::LossUnconfirmed => "loss_unconfirmed",
            Self::OnlyLooks => "only_looks",
            Self::Observed => "observed",
            Self::AwaitsApproval => "awaits_approval",
        }
    }
}

/// An action with what became of it.
#[derive(Clone, Debug)]
pub struct Ordered {
    /// What was decided.
    pub action: Action,
    /// What became of it.
    pub fate: Fate,
    /// The rule and the runner-up. A runner-up is looked for so many needs of a cycle; for the others by replay.
    pub why: Option<ActionExplanation>,
    /// The machine as it was decided on. Kept in memory only; on the record are its facts.
    pub machine: Option<Arc<Machine>>,
    /// What the runner-up was then.
    pub runner_up: Option<Box<MachineFacts>>,
    /// Who approved it, if somebody had to.
    pub approved_by: Option<Box<str>>,
}

/// What people want to know of a machine they read about, as it was when something was decided about it: prices move.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineFacts {
    /// Its instance type.
    pub instance_type: Box<str>,
    /// Its zone.
    pub zone: Box<str>,
    /// How it is paid for.
    pub capacity_type: CapacityType,
    /// What it cost an hour.
    pub price_usd_per_hour: f64,
    /// How likely it was to be interrupted within an hour.
    pub interruption_probability: f64,
}

impl From<&Machine> for MachineFacts {
    fn from(machine: &Machine) -> Self {
        Self {
            instance_type: machine.instance_type.clone(),
            zone: machine.zone.clone(),
            capacity_type: machine.capacity_type,
            price_usd_per_hour: machine.price_usd_per_hour,
            interruption_probability: machine.interruption_probability,
        }
    }
}

/// One cycle that changed something.
#[derive(Clone, Debug)]
pub struct CycleRecord {
    /// Its number, counted over all lives of the shard.
    pub cycle: u64,
    /// The life it ran in.
    pub epoch: i64,
    /// The edition of the rules it was decided under.
    pub edition: u32,
    /// When it ran.
    pub now_unix_nanos: i64,
    /// Why it ran.
    pub reasons: Reasons,
    /// The whole input of the engine instead of changes: present in the first record of a life and every few hundred
    /// cycles. `inputs` are then empty.
    pub full: Option<Arc<Vec<Input>>>,
    /// What changed since the record before.
    pub inputs: Vec<Input>,
    /// The options it ran with.
    pub options: Options,
    /// What it decided, in order. Of the actions there was no room for, only the first are listed: a fleet that is
    /// built up decides tens of thousands of them anew in every cycle.
    pub actions: Vec<Ordered>,
    /// How many actions it decided, listed or not.
    pub decided: u32,
    /// A digest of all of them, by [`digest`].
    pub digest: u64,
    /// The price of all hardware there is, an hour.
    pub usd_per_hour: f64,
    /// How many needs were short after it.
    pub short_needs: u32,
    /// What changed around the engine since the record before; `None` if it is not recorded.
    pub around: Option<Around>,
}

/// A digest of actions that says the same on every machine and in every version: FNV-1a over what each of them says.
pub fn digest(actions: &[Action]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut take = |bytes: &[u8]| {
        // The length first, so that no two lists run together.
        for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    for action in actions {
        take(action.kind.name().as_bytes());
        take(action.machine.as_bytes());
        take(action.cluster.as_deref().unwrap_or_default().as_bytes());
        take(&action.grace_secs.unwrap_or(u32::MAX).to_le_bytes());
        if let Some(demand) = &action.need {
            take(demand.need.cluster.as_bytes());
            take(demand.need.profile.fingerprint().as_bytes());
            take(demand.need.group.as_bytes());
        }
    }
    hash
}

impl CycleRecord {
    /// Whether anything of this kind was begun.
    pub fn begun(&self, kind: ActionKind) -> usize {
        self.actions.iter().filter(|o| o.action.kind == kind && o.fate == Fate::Begun).count()
    }
}
