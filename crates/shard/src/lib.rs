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

mod config;
mod effect;
mod event;
mod memory;
mod shard;
mod tape;

pub use config::{Config, GuardConfig, Limits, MINUTE, Pace, Patience, ProviderConfig, RailConfig, SECOND};
pub use effect::{Available, Confidence, Effect, Frame, HangUp, Notice, Reception, Request, Step, Urgency};
pub use event::{
    BadRecord, Blob, CallError, CallErrorKind, CallId, Event, ListEnd, ProviderId, Report, Reports, Rollup,
    SessionId, Told, WireId,
};
pub use memory::{Fact, HeldRollup, LettingGo, MachineMemo, Memory, Pause, PauseScope, ShortSince};
pub use shard::Shard;
pub use tape::{CycleRecord, Fate, Input, Ordered, Reasons};
