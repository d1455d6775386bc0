//! The border of a shard: bytes on one side, events and effects on the other.
//!
//! ```text
//!   operator ── frames ──► session::Session ─── Event ───►┐            ┌── Effect::Send ──► session::frames ──► bytes
//!                          session::Rollups               │   Shard    │                    session::Outbox
//!   provider ── bytes ───► provider::ListCall ─ Event ───►┘            └── Effect::Call ──► provider::request ─► bytes
//! ```
//!
//! Everything that others send is read here and nowhere else, and everything a shard says is written here: what a frame
//! is, when a roll-up says what the last one said, how a provider is listed, what its status codes mean, what may wait for
//! an operator that does not read. The server puts sockets around this crate and the simulator a seeded network; both
//! pass the same bytes, so what fuzzing finds holds for what is shipped.
//!
//! Absent on purpose: sockets, tasks, a clock, randomness, decisions. Where the time matters it is handed in.

pub mod provider;
pub mod session;
pub mod wire;
