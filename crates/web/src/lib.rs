//! The page: what people see of one shard or of several, in a browser.
//!
//! ```text
//!   browser ──► guard: who, from where ──► assets (embedded)
//!      │                              ├──► api: one question, one answer as JSON ──► shards, by bigfleet.view.v1
//!      └──── stream ◄── live: the newest state, kept once for everybody who looks ◄── Watch ──┘
//! ```
//!
//! Nothing is decided here and no sentence is made here: data comes from the view, words from `bigfleet-tell`. What
//! costs more than a look is kept once, by the server, however many people look; a browser that reads slowly gets the
//! newest state when it is ready for it and misses none but what is older.

mod answer;
mod api;
mod assets;
mod guard;
mod history;
mod live;
mod query;
mod serve;
mod site;
mod stream;
mod tokens;
mod way;

pub use guard::Access;
pub use serve::{Served, serve};
pub use site::{Settings, Site};
pub use tokens::{Tokens, TokensError};
pub use way::Shard;
