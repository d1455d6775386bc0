//! What shards have said of late. Soft: it is lost with the leader, and the next reports bring it back.

use std::collections::BTreeMap;

use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::requirement::Requirement;
use bigfleet_model::resource::ResourceVec;

use crate::error::Refusal;
use crate::limits;

/// What a shard says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The shard's life.
    pub epoch: i64,
    /// Its cycle in that life.
    pub cycle: i64,
    /// Its machines, quota slots included.
    pub total_machines: i32,
    /// Those that are idle or quota slots.
    pub free_machines: i32,
    /// By instance type.
    pub by_instance_type: BTreeMap<String, i32>,
    /// By zone.
    pub by_zone: BTreeMap<String, i32>,
    /// Where its providers serve.
    pub provider_address: String,
    /// Demand it could not meet.
    pub shortfalls: Vec<Shortfall>,
}

/// Demand a shard could not meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortfall {
    /// What a machine must be.
    pub requirements: Vec<Requirement>,
    /// How much is missing.
    pub deficit: ResourceVec,
    /// How important it is.
    pub priority: i32,
    /// For how many cycles.
    pub age_cycles: i32,
    /// How much an interruption costs it.
    pub interruption: PenaltyBucket,
}

/// A report, and when it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// What was said.
    pub report: Report,
    /// When it came, by the clock of the coordinator.
    pub received_unix_nanos: i64,
}

/// The last report of every shard.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    heard: BTreeMap<Box<str>, Heard>,
}

impl Standing {
    /// Takes in a report, unless a newer one of the shard is known: reports may overtake each other. Says which.
    pub fn hear(&mut self, shard: &str, report: Report, now: i64) -> Result<bool, Refusal> {
        let counted = report.by_instance_type.len().max(report.by_zone.len());
        let too_many = |field, count, most| Err(Refusal::TooMany { field, count, most });
        if report.shortfalls.len() > limits::SHORTFALLS {
            return too_many("shortfalls", report.shortfalls.len(), limits::SHORTFALLS);
        }
        if counted > limits::COUNTED {
            return too_many("per_instance_type_counts, per_zone_counts", counted, limits::COUNTED);
        }
        let age = |report: &Report| (report.epoch, report.cycle);
        if self.heard.get(shard).is_some_and(|known| age(&known.report) > age(&report)) {
            return Ok(false);
        }
        self.heard.insert(shard.into(), Heard { report, received_unix_nanos: now });
        Ok(true)
    }

    /// A removed shard is forgotten.
    pub fn forget(&mut self, shard: &str) {
        self.heard.remove(shard);
    }

    /// The last report of a shard.
    pub fn of(&self, shard: &str) -> Option<&Heard> {
        self.heard.get(shard)
    }

    /// All of them by shard.
    pub fn all(&self) -> impl ExactSizeIterator<Item = (&str, &Heard)> {
        self.heard.iter().map(|(shard, heard)| (&**shard, heard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_replaces_all_of_an_older_one_and_nothing_of_a_newer_one() {
        let mut standing = Standing::default();
        let report =
            |epoch, cycle, free_machines| Report { epoch, cycle, free_machines, ..Report::default() };
        assert_eq!(standing.hear("a", report(1, 5, 10), 1), Ok(true));
        assert_eq!(standing.hear("a", report(1, 4, 99), 2), Ok(false), "overtaken");
        assert_eq!(standing.hear("a", report(2, 1, 20), 3), Ok(true), "a new life counts from one");
        assert_eq!(standing.hear("a", report(1, 9, 99), 4), Ok(false), "from an old life");
        let heard = standing.of("a").expect("it reported");
        assert_eq!((heard.report.free_machines, heard.received_unix_nanos), (20, 3));
    }
}
