//! The commands that ask a shard, as people run them: the real binary against a server that tells a fixed story.

mod commands;
mod contexts;
mod explain;
mod fake;
mod get;
mod run;
mod story;
mod trouble;
