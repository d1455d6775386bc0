//! What help this shard asked for and got: for explanations, of this life alone.

use std::collections::{BTreeMap, VecDeque};

use bigfleet_model::need::NeedKey;

use crate::shard::Shard;

/// How many gifts are remembered.
const REMEMBERED: usize = 256;

/// Machines that another shard gave to this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gift {
    /// When this shard was told that they are its own.
    pub at_unix_nanos: i64,
    /// Who gave them.
    pub from: Box<str>,
    /// Which.
    pub machines: Vec<Box<str>>,
}

/// Help, as far as this life knows.
#[derive(Debug, Default)]
pub(crate) struct Helped {
    /// Since when a coordinator knows of each shortfall.
    asked: BTreeMap<NeedKey, i64>,
    gifts: VecDeque<Gift>,
}

impl Helped {
    pub(crate) fn given(&mut self, machines: &[Box<str>], from: &str, now: i64) {
        // Told again, it is no second gift.
        let is_known = self.gifts.iter().any(|gift| *gift.from == *from && gift.machines == machines);
        if is_known || machines.is_empty() {
            return;
        }
        if self.gifts.len() == REMEMBERED {
            self.gifts.pop_front();
        }
        let gift = Gift { at_unix_nanos: now, from: from.into(), machines: machines.into() };
        self.gifts.push_back(gift);
    }
}

impl Shard {
    /// A coordinator has taken a report, and knows of the shortfalls in it.
    pub fn reported(&mut self, now: i64) {
        let short = self.ledger.top(self.config.limits.reported_shortfalls);
        let asked = short.into_iter().map(|(key, _)| {
            let since = self.helped.asked.get(key).copied().unwrap_or(now);
            (key.clone(), since)
        });
        self.helped.asked = asked.collect();
    }

    /// Since when a coordinator knows that this need is short; none if it is not, or if no coordinator took a report of it.
    pub fn asked_for_help(&self, need: &NeedKey) -> Option<i64> {
        self.helped.asked.get(need).copied()
    }

    /// What other shards gave, the oldest first.
    pub fn gifts(&self) -> impl ExactSizeIterator<Item = &Gift> {
        self.helped.gifts.iter()
    }
}
