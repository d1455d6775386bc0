//! The commands that ask a shard, as people run them: the real binary against a server that tells a fixed story.

mod commands;
mod contexts;
mod explain;
mod fake;
mod get;
mod on_record;
#[path = "../support/operator.rs"]
#[allow(dead_code, reason = "other tests ask it more")]
mod operator;
mod past;
#[path = "../support/process.rs"]
#[allow(dead_code, reason = "other tests ask it more")]
mod process;
mod run;
mod story;
mod trouble;
