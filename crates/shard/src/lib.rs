//! The loop around the engine: it reconciles, guards, executes, remembers and tells.
//!
//! A [`Shard`] is a state machine without a clock, a socket or a disk. Whoever drives it hands it [`Event`]s and the time,
//! and carries out the [`Effect`]s it answers with, after its [`Fact`]s are safe on disk. The server does that over
//! real sockets and a real store; the simulator does it in virtual time under a seed. Both run this very code.
//!
//! ```text
//!   events ──► handle ──┐                        ┌──► facts, to be on disk first
//!                       ├──► Shard ──► Step ─────┤
//!   time ────► advance ─┘   (engine inside)      └──► effects: calls, frames, records, notices
//! ```

mod audit;
mod care;
mod carry_on;
mod cluster;
mod config;
mod confirmation;
mod cycle;
mod effect;
mod event;
mod execute;
mod flight;
mod forget;
mod guard;
mod helped;
mod hints;
mod ids;
mod ingest;
mod instruct;
mod journal;
mod ledger;
mod losses;
mod memory;
mod modes;
mod money;
mod moves;
mod names;
mod next_list;
mod outcome;
mod owned;
mod parking;
mod pauses;
mod planted;
mod profiles;
mod provider;
mod purchase;
mod put;
mod quota;
mod rails;
mod read;
mod reconcile;
mod records;
mod rollup;
mod sessions;
mod shard;
mod spare;
mod table;
mod take_back;
mod tally;
mod tape;
mod timers;

pub use cluster::{ACKS_DONE, Cluster};
pub use config::{Config, GuardConfig, Limits, MINUTE, Pace, Patience, ProviderConfig, RailConfig, SECOND};
pub use confirmation::Confirmation;
pub use cycle::Phase;
pub use effect::{
    ALARMS, Available, Confidence, Effect, Frame, HangUp, Notice, Reception, Request, Step, Urgency,
};
pub use event::{
    BadRecord, Blob, CallError, CallErrorKind, CallId, Event, ListEnd, ProviderId, Report, Reports,
    SessionId, Told, WireId,
};
pub use flight::{Flight, Stage};
pub use helped::Gift;
pub use instruct::{Answer, Instruction, Order, Outcome, Unanswered};
pub use ledger::{AGE_BUCKETS, Ledger, Shortfall};
pub use losses::{Account, Loss, Pace as PurchasePace};
pub use memory::{Fact, HeldRollup, LettingGo, LossMemo, MachineMemo, Memory, Pause, PauseScope, ShortSince};
pub use modes::{MOST_MODES, MOST_PROPOSALS, Mode, ModeOrder, Proposal, Standing};
pub use money::{Bill, Money, is_paid_for};
pub use owned::{Domain, Named, Owned};
pub use parking::{PARK_AFTER_CYCLES, Stuck};
pub use pauses::{CommandError, MOST_PAUSES, name as name_of_scope};
pub use planted::Bug;
pub use provider::{HeldListing, Provider};
pub use quota::Quota;
pub use rails::ReclaimCap;
pub use read::{MachineView, Queues};
pub use rollup::{Prepared, Rollup};
pub use shard::Shard;
pub use spare::{Source, Spared, Wanted};
pub use table::Care;
pub use tally::Tally;
pub use tape::{
    Around, ClusterChange, ClusterSeen, CycleRecord, Fate, Health, Input, Link, Listed, LossSeen,
    MOST_TEXT_BYTES, MachineFacts, OperatorSeen, Ordered, ProviderSeen, ProviderSettings, Purchases, Reasons,
    Settings, Surroundings, digest,
};
