//! The shard: one value that holds everything and is driven from outside.

use crate::config::Config;
use crate::effect::Step;
use crate::event::Event;
use crate::memory::Memory;

/// One shard.
pub struct Shard {
    config: Config,
}

impl Shard {
    /// A shard that starts, with what it remembers of its life before.
    pub fn new(config: Config, memory: Memory, now_unix_nanos: i64) -> Self {
        let _ = (memory, now_unix_nanos);
        Self { config }
    }

    /// Takes in something that happened.
    pub fn handle(&mut self, event: Event, now_unix_nanos: i64, step: &mut Step) {
        let _ = (event, now_unix_nanos, step, &self.config);
    }

    /// Does what is due by now: lists providers, tries again, looks after machines, runs a cycle.
    pub fn advance(&mut self, now_unix_nanos: i64, step: &mut Step) {
        let _ = (now_unix_nanos, step);
    }

    /// When something will be due next, if nothing happens before.
    pub fn next_wake_unix_nanos(&self) -> i64 {
        i64::MAX
    }
}
