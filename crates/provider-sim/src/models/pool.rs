//! Pools: how much of each type there is in each zone.
//!
//! A Create of rented capacity takes from its pool, a Delete puts back, and time refills it. A pool that ran
//! empty says so to everybody for a while, even when something has come in meanwhile, as real ones do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::catalogue::find;
use crate::random::Dice;
use crate::span::Span;

/// How deep pools are and how they refill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pools {
    /// Whether they have an end at all.
    pub on: bool,
    /// How many machines of 4 processors a full pool holds; larger ones are rarer, accelerators much rarer.
    pub depth: f64,
    /// How many of them come in within an hour.
    pub refill_per_hour: f64,
    /// How long a pool that ran empty refuses everybody.
    pub memory: Span,
}

impl Default for Pools {
    fn default() -> Self {
        Self { on: true, depth: 400.0, refill_per_hour: 80.0, memory: Span::from_secs(300) }
    }
}

/// Whether a pool gave a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It did.
    Yes,
    /// It has just run empty.
    RanEmpty,
    /// It ran empty earlier and still says so.
    StillEmpty,
}

#[derive(Debug)]
struct Level {
    machines: f64,
    seen_unix_nanos: i64,
    empty_until_unix_nanos: i64,
    stock_outs: u64,
}

/// The levels of all pools. A pool that nobody has asked is full, give or take.
#[derive(Debug)]
pub(crate) struct PoolBook {
    model: Pools,
    dice: Dice,
    levels: BTreeMap<String, Level>,
}

impl PoolBook {
    pub(crate) fn new(model: Pools, dice: Dice) -> Self {
        Self { model, dice, levels: BTreeMap::new() }
    }

    /// Takes a machine out of the pool, if there is one.
    pub(crate) fn take(&mut self, instance_type: &str, zone: &str, now_unix_nanos: i64) -> Taken {
        if !self.model.on {
            return Taken::Yes;
        }
        let memory = self.model.memory.nanos();
        let level = self.level(instance_type, zone, now_unix_nanos);
        if now_unix_nanos < level.empty_until_unix_nanos {
            return Taken::StillEmpty;
        }
        if level.machines < 1.0 {
            level.empty_until_unix_nanos = now_unix_nanos.saturating_add(memory);
            level.stock_outs += 1;
            return Taken::RanEmpty;
        }
        level.machines -= 1.0;
        Taken::Yes
    }

    /// Puts a machine back.
    pub(crate) fn put_back(&mut self, instance_type: &str, zone: &str, now_unix_nanos: i64) {
        if self.model.on {
            let cap = self.depth(instance_type);
            let level = self.level(instance_type, zone, now_unix_nanos);
            level.machines = (level.machines + 1.0).min(cap);
        }
    }

    /// Machines that are out already, from before a restart.
    pub(crate) fn are_out(&mut self, instance_type: &str, zone: &str, machines: usize, now_unix_nanos: i64) {
        if self.model.on {
            let level = self.level(instance_type, zone, now_unix_nanos);
            level.machines = (level.machines - machines as f64).max(0.0);
        }
    }

    /// What is left of every pool somebody has asked, and how often it ran empty.
    pub(crate) fn levels(&self) -> impl Iterator<Item = (&str, f64, u64)> {
        self.levels.iter().map(|(pool, level)| (pool.as_str(), level.machines, level.stock_outs))
    }

    /// How many machines a full pool of this type holds.
    fn depth(&self, instance_type: &str) -> f64 {
        (self.model.depth * rarity(instance_type)).max(1.0)
    }

    fn level(&mut self, instance_type: &str, zone: &str, now: i64) -> &mut Level {
        let pool = format!("{instance_type}/{zone}");
        let cap = self.depth(instance_type);
        let refill_per_nano = self.model.refill_per_hour * rarity(instance_type) / 3.6e12;
        let at_first = (cap * (0.5 + self.dice.unit("pool", &pool, 0))).min(cap);
        let level = self.levels.entry(pool).or_insert(Level {
            machines: at_first,
            seen_unix_nanos: now,
            empty_until_unix_nanos: i64::MIN,
            stock_outs: 0,
        });
        let passed = now.saturating_sub(level.seen_unix_nanos).max(0);
        level.machines = (level.machines + passed as f64 * refill_per_nano).min(cap);
        level.seen_unix_nanos = level.seen_unix_nanos.max(now);
        level
    }
}

/// Larger machines are rarer: half as many at four times the size. Accelerators are rarer still.
fn rarity(instance_type: &str) -> f64 {
    let Some(kind) = find(instance_type) else { return 1.0 };
    let by_size = (4.0 / kind.cpus.max(4) as f64).sqrt();
    if kind.gpus > 0 { by_size / 8.0 } else { by_size }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000_000;

    fn book(depth: f64) -> PoolBook {
        PoolBook::new(Pools { depth, ..Pools::default() }, Dice::new(3))
    }

    /// Takes until the pool is empty.
    fn drain(book: &mut PoolBook, now: i64) -> usize {
        (0..10_000).take_while(|_| book.take("std-4", "zone-a", now) == Taken::Yes).count()
    }

    #[test]
    fn an_empty_pool_is_remembered_and_refills() {
        let mut book = book(100.0);
        assert!((50..=100).contains(&drain(&mut book, 0)));
        assert_eq!(book.take("std-4", "zone-a", 0), Taken::StillEmpty);
        assert_eq!(book.take("std-4", "zone-a", HOUR / 12 - 1), Taken::StillEmpty, "five minutes long");
        assert_eq!(book.take("std-4", "zone-b", 0), Taken::Yes, "another zone has its own pool");
        assert_eq!(drain(&mut book, HOUR), 80, "an hour's refill");
        assert_eq!(book.levels().find(|(pool, ..)| *pool == "std-4/zone-a").map(|level| level.2), Some(2));
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let mut book =
            PoolBook::new(Pools { depth: 10.0, refill_per_hour: 0.0, ..Pools::default() }, Dice::new(3));
        let at_first = drain(&mut book, 0);
        assert!(at_first > 0);
        for _ in 0..3 {
            book.put_back("std-4", "zone-a", 0);
        }
        let later = Pools::default().memory.nanos();
        assert_eq!(drain(&mut book, later), 3);
        for _ in 0..100 {
            book.put_back("std-4", "zone-a", later);
        }
        assert!(book.levels().all(|(_, machines, _)| machines <= 10.0), "a pool does not overflow");
    }

    #[test]
    fn accelerators_are_rare() {
        assert_eq!(rarity("std-4"), 1.0);
        assert_eq!(rarity("std-16"), 0.5);
        assert!(rarity("train-96") < 0.03);
    }

    #[test]
    fn switched_off_there_is_no_end() {
        let mut book = PoolBook::new(Pools { on: false, depth: 1.0, ..Pools::default() }, Dice::new(1));
        assert!((0..1000).all(|_| book.take("std-4", "zone-a", 0) == Taken::Yes));
    }
}
