//! What must always hold, one file each, checked while a run goes on.
//!
//! Invariants see moments, not code: what was sent, decided, called, listed and what machines really did. They rebuild the
//! engine's input from the decision record alone ([`Mirror`]), so a record that lies is found like a decision that is
//! wrong.

mod mirror;

mod i01_one_cluster;
mod i02_fixed_kept;
mod i03_claimed_stays;
mod i04_free_is_used;
mod i05_precedence;
mod i06_reclaim_cap;
mod i07_pauses;
mod i08_first_report;
mod i09_held_roll_ups;
mod i10_truth_adopted;
mod i11_dead_uncounted;
mod i12_silence;
mod i13_known_machines;
mod i14_fencing;
mod i15_enough_drained;
mod i16_nothing_forgotten;
mod i17_replay;
mod i18_bounds;
mod i19_ages;
mod i20_money;

use std::fmt;

use bigfleet_model::machine::MachineState;
use bigfleet_model::need::Need;
use bigfleet_proto::v1alpha1::Machine;
use bigfleet_shard::{CallError, CycleRecord, Memory, Reception, Request, Shard, Step};

use crate::scenario::Scenario;
use crate::world::Money;

pub(crate) use mirror::Mirror;

/// Something that happened, as far as invariants care.
pub(crate) enum Moment<'a> {
    /// A host starts a life.
    Started { host: usize },
    /// A step of a shard, its facts remembered, its effects about to begin.
    Step { host: usize, shard: &'a Shard, memory: &'a Memory, step: &'a Step },
    /// A cycle went on the record.
    Cycle { host: usize, superseded: bool, shard: &'a Shard, record: &'a CycleRecord },
    /// The same cycle, decided again from the record.
    Decided { host: usize, superseded: bool, record: &'a CycleRecord, mirror: &'a Mirror },
    /// A call reached a provider.
    Called {
        request: &'a Request,
        moved: bool,
        epoch: i64,
        shard: usize,
        answer: &'a Result<Machine, CallError>,
    },
    /// A true listing reached a shard.
    Listed { host: usize, shard: &'a Shard, machines: &'a [Machine], full: bool },
    /// A roll-up reaches a shard; none if it cannot be read.
    Reported { cluster: &'a str, needs: Option<&'a [Need]> },
    /// A shard says what became of a roll-up.
    Received { host: usize, cluster: &'a str, reception: &'a Reception, shard: &'a Shard },
    /// A machine is different; before is its state if that is what changed.
    Changed { machine: &'a Machine, before: Option<MachineState> },
    /// Faults are long over: the world should be at rest.
    Settled { quiet_since: i64, last_action: i64, waiting: &'a str, money: &'a Money },
    /// A host lost its disk, or another host goes on with its memory.
    Forgotten { host: usize },
}

/// Something that must always hold.
pub(crate) trait Invariant {
    /// Looks at a moment; says what is wrong.
    fn see(&mut self, now: i64, moment: &Moment<'_>) -> Option<String>;
}

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When, in nanoseconds from the start.
    pub at: i64,
    /// Its number in the design.
    pub number: usize,
    /// Which one.
    pub name: &'static str,
    /// What was seen.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secs = self.at as f64 / 1e9;
        write!(f, "invariant {} ({}) at {secs:.3} s: {}", self.number, self.name, self.text)
    }
}

/// The invariants by number, as in the design.
pub const INVARIANTS: [&str; 20] = [
    "a machine is never bound to two clusters",
    "a fixed machine is never deleted",
    "no machine a need claims is reclaimed",
    "no need is short while a matching free machine exists",
    "no lower precedence gets a machine a higher short need could use",
    "the reclaim cap holds",
    "nothing is executed while paused or in dry-run",
    "no reclaim before a cluster's first report",
    "a held roll-up changes nothing",
    "provider truth is adopted",
    "dead machines are never counted as supply",
    "at steady demand nothing moves",
    "every machine listed is known, none is invented",
    "a superseded shard changes nothing",
    "a deficit never drains more than it needs",
    "bought machines are used or released",
    "every executed action replays to the same decision",
    "queues stay within their bounds",
    "ages only grow and survive restarts",
    "money spent is machine-time times price",
];

/// The most violations worth keeping.
const MOST: usize = 20;

/// All invariants, looking on.
pub(crate) struct Watch {
    invariants: Vec<Box<dyn Invariant>>,
    mirrors: Vec<Mirror>,
    violations: Vec<Violation>,
    most: usize,
}

impl Watch {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let config = crate::world::config(scenario, 0, 1);
        let invariants: Vec<Box<dyn Invariant>> = vec![
            Box::new(i01_one_cluster::OneCluster::default()),
            Box::new(i02_fixed_kept::FixedKept),
            Box::new(i03_claimed_stays::ClaimedStays),
            Box::new(i04_free_is_used::FreeIsUsed),
            Box::new(i05_precedence::Precedence),
            Box::new(i06_reclaim_cap::ReclaimCap::new(config.rails)),
            Box::new(i07_pauses::Pauses),
            Box::new(i08_first_report::FirstReport::default()),
            Box::new(i09_held_roll_ups::HeldRollups::new(config.guard)),
            Box::new(i10_truth_adopted::TruthAdopted::default()),
            Box::new(i11_dead_uncounted::DeadUncounted::default()),
            Box::new(i12_silence::Silence),
            Box::new(i13_known_machines::KnownMachines::default()),
            Box::new(i14_fencing::Fencing::default()),
            Box::new(i15_enough_drained::EnoughDrained::default()),
            Box::new(i16_nothing_forgotten::NothingForgotten::new(config.release)),
            Box::new(i17_replay::Replay::default()),
            Box::new(i18_bounds::Bounds),
            Box::new(i19_ages::Ages::default()),
            Box::new(i20_money::MoneyAddsUp::default()),
        ];
        Self { invariants, mirrors: Vec::new(), violations: Vec::new(), most: MOST }
    }

    pub(crate) fn see(&mut self, now: i64, moment: &Moment<'_>) {
        self.each(now, moment);
        if let Moment::Cycle { host, superseded, record, .. } = moment {
            while self.mirrors.len() <= *host {
                self.mirrors.push(Mirror::default());
            }
            let mut mirror = std::mem::take(&mut self.mirrors[*host]);
            if mirror.follow(record) {
                let (host, superseded) = (*host, *superseded);
                self.each(now, &Moment::Decided { host, superseded, record, mirror: &mirror });
            }
            self.mirrors[*host] = mirror;
        }
    }

    fn each(&mut self, now: i64, moment: &Moment<'_>) {
        for (index, invariant) in self.invariants.iter_mut().enumerate() {
            if let Some(text) = invariant.see(now, moment) {
                let at = now - crate::world::START_UNIX_NANOS;
                let violation = Violation { at, number: index + 1, name: INVARIANTS[index], text };
                if self.violations.len() < MOST {
                    self.violations.push(violation);
                }
            }
        }
    }

    pub(crate) fn fail(&mut self, now: i64, number: usize, text: String) {
        let at = now - crate::world::START_UNIX_NANOS;
        if self.violations.len() < MOST {
            self.violations.push(Violation { at, number, name: INVARIANTS[number - 1], text });
        }
    }

    /// A host lost its disk: what it forgot may be forgotten.
    pub(crate) fn disk_lost(&mut self, host: usize) {
        self.each(0, &Moment::Forgotten { host });
    }

    /// Stop at this many violations.
    pub(crate) fn stop_at(&mut self, most: usize) {
        self.most = most;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.violations.len() >= self.most
    }

    pub(crate) fn violations(&self) -> &[Violation] {
        &self.violations
    }
}
