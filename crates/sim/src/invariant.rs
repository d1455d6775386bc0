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
mod i21_no_more_than_missing;
mod i22_books;
mod i23_held_long_enough;
mod i24_drains_remembered;
mod i25_newest_word;
mod i26_listings_agree;
mod i27_grace;
mod i28_fresh;
mod i29_told;
mod i30_parked_looks;
mod i31_approved;

use std::fmt;

use bigfleet_engine::ActionKind;
use bigfleet_model::machine::MachineState;
use bigfleet_model::need::Need;
use bigfleet_proto::v1alpha1::Machine;
use bigfleet_shard::{CallError, CallId, CycleRecord, Memory, Mode, Reception, Request, Shard, Step};

use crate::scenario::{Scenario, What};
use crate::world::Money;

pub(crate) use mirror::Mirror;

/// Something that happened, as far as invariants care.
pub(crate) enum Moment<'a> {
    /// A host starts a life; which of the scenario's shards it is.
    Started { host: usize, index: usize },
    /// A step of a shard, its facts remembered, its effects about to begin; and what its clock shows.
    Step { host: usize, index: usize, clock: i64, shard: &'a Shard, memory: &'a Memory, step: &'a Step },
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
    /// A listing was taken in, true or not; and when it was taken.
    Heard {
        host: usize,
        provider: usize,
        shard: &'a Shard,
        machines: &'a [Machine],
        full: bool,
        clean: bool,
        taken: i64,
    },
    /// An answer about a machine reaches a shard; and when it was given.
    Answered { host: usize, machine: &'a Machine, taken: i64 },
    /// An answer to a call reaches a shard, whatever it says.
    Returned { host: usize, call: CallId },
    /// A cluster acknowledges an instruction.
    Acked { instruction: u64, nodes: i32 },
    /// Somebody pauses shards, or resumes them.
    Paused { cluster: &'a str, on: bool },
    /// Somebody sets a mode, or takes the order back.
    Mode { cluster: &'a str, mode: Option<Mode> },
    /// Somebody approves an action on a machine.
    Approved { machine: &'a str, kind: ActionKind },
    /// A true listing reached a shard.
    Listed { host: usize, shard: &'a Shard, machines: &'a [Machine], full: bool },
    /// A roll-up reaches a shard; none if it cannot be read.
    Reported { cluster: &'a str, needs: Option<&'a [Need]> },
    /// A shard says what became of a roll-up.
    Received { host: usize, cluster: &'a str, reception: &'a Reception, shard: &'a Shard },
    /// A machine is different; before is its state if that is what changed.
    Changed { machine: &'a Machine, before: Option<MachineState> },
    /// Faults are long over: the world should be at rest.
    Settled { quiet_since: i64, last_action: i64, waiting: &'a str, untold: &'a str, money: &'a Money },
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
pub const INVARIANTS: [&str; 40] = [
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
    "what is bought or on order is no more than what is missing",
    "the shard's books agree",
    "a rented machine is held before it is given back",
    "an announced drain outlives a restart",
    "no word is taken over a newer one",
    "a listing that loses most machines is held until enough agree",
    "no drain before the cluster lets go or the grace is over",
    "nothing is taken away by a listing that is too old",
    "a cluster knows what became of its machines",
    "a parked gang looks and does not act",
    "nothing is executed that its mode does not allow",
    // Between shards: see `world/council/check.rs`.
    "no machine is in the hands of two shards",
    "no machine is moved by a shard while another has it",
    "an instruction takes effect at most once",
    "help never makes the donor's higher or equal priorities short",
    "no shard holds more than its quota",
    "what was ordered between shards is carried out in the end",
    "what a leader knows is what is stored",
    "nothing is done that a deposed coordinator says",
    "a domain is let go of when nothing is under way in it",
];

/// What a violation is called whose number is 0: no invariant, but the code itself gave up.
pub const PANIC: &str = "nothing panics";

/// The most violations worth keeping.
const MOST: usize = 20;

/// The most violations of one invariant.
const MOST_OF_ONE: usize = 2;

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
        // Shards go by their own clocks, which may have jumped.
        let jumps = scenario.faults.iter().map(|fault| match fault.what {
            What::ClockJumps { secs } => secs.abs() * 1_000_000_000,
            _ => 0,
        });
        let jumps = jumps.sum::<i64>() + 2_000_000_000;
        let invariants: Vec<Box<dyn Invariant>> = vec![
            Box::new(i01_one_cluster::OneCluster::default()),
            Box::new(i02_fixed_kept::FixedKept),
            Box::new(i03_claimed_stays::ClaimedStays),
            Box::new(i04_free_is_used::FreeIsUsed),
            Box::new(i05_precedence::Precedence),
            Box::new(i06_reclaim_cap::ReclaimCap::new(config.rails)),
            Box::new(i07_pauses::Pauses::default()),
            Box::new(i08_first_report::FirstReport::default()),
            Box::new(i09_held_roll_ups::HeldRollups::new(config.guard)),
            Box::new(i10_truth_adopted::TruthAdopted::default()),
            Box::new(i11_dead_uncounted::DeadUncounted::new(config.patience, jumps)),
            Box::new(i12_silence::Silence),
            Box::new(i13_known_machines::KnownMachines::default()),
            Box::new(i14_fencing::Fencing::default()),
            Box::new(i15_enough_drained::EnoughDrained::default()),
            Box::new(i16_nothing_forgotten::NothingForgotten::new(config.release)),
            Box::new(i17_replay::Replay::default()),
            Box::new(i18_bounds::Bounds::new(config.limits)),
            Box::new(i19_ages::Ages::default()),
            Box::new(i20_money::MoneyAddsUp::default()),
            Box::new(i21_no_more_than_missing::NoMoreThanMissing::new(config.patience, jumps)),
            Box::new(i22_books::Books),
            Box::new(i23_held_long_enough::HeldLongEnough::new(config.release, jumps)),
            Box::new(i24_drains_remembered::DrainsRemembered::default()),
            Box::new(i25_newest_word::NewestWord::default()),
            Box::new(i26_listings_agree::ListingsAgree::new(config.guard)),
            Box::new(i27_grace::Grace::default()),
            Box::new(i28_fresh::Fresh::new(jumps)),
            Box::new(i29_told::ClustersTold),
            Box::new(i30_parked_looks::ParkedLooks),
            Box::new(i31_approved::Approved::default()),
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
                // One that fails all the time must not hide the others.
                let of_it = self.violations.iter().filter(|other| other.number == violation.number).count();
                if self.violations.len() < MOST && of_it < MOST_OF_ONE {
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
