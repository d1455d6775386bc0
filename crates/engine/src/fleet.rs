//! The fleet: machines, needs, and the decisions about them.

use std::sync::Arc;

use bigfleet_model::machine::{Machine, MachineError};
use bigfleet_model::need::{Need, NeedKey};

use crate::classes::{Interest, RequirementSets};
use crate::cycle::{Cache, Cycle, Decision, Step, Witness};
use crate::index::Index;
use crate::inventory::{Inventory, Observed};
use crate::needs::{NeedsTable, Replaced, RollupError, Translator};
use crate::options::Options;
use crate::vocab::Vocabulary;

/// How far a cycle may spread its work. The answers do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parallelism {
    /// How many threads to use at most, this one included; below 2 means this one alone.
    pub threads: usize,
    /// How many clusters must have changed before a second thread is worth starting.
    pub from_clusters: usize,
}

/// One thread; a second thread costs some tens of microseconds to start, a cluster a few to walk.
impl Default for Parallelism {
    fn default() -> Self {
        Self { threads: 1, from_clusters: 64 }
    }
}

/// One shard's machines and demand, with everything kept to decide quickly.
///
/// A fleet is a value. Cloning it ([`Fleet::fork`]) costs microseconds and shares memory until one of the
/// copies changes; a what-if is a fork, some edits and a [`Fleet::cycle`].
///
/// ```
/// use bigfleet_engine::{ActionKind, Fleet, Options};
/// use bigfleet_model::machine::{HostRef, Machine, MachineState};
/// use bigfleet_model::{need::Need, penalty::PenaltyBucket, profile::Profile, resource::ResourceVec};
///
/// let mut fleet = Fleet::default();
/// let mut machine = Machine::new("metal-1", MachineState::Idle);
/// machine.host = Some(HostRef::default());
/// machine.resources = ResourceVec::parse([("cpu", "16")]).unwrap();
/// fleet.observe(&machine).unwrap();
///
/// let profile = Profile::new(vec![], vec![], 1_000, PenaltyBucket::ZERO, PenaltyBucket::ZERO);
/// let unit = ResourceVec::parse([("cpu", "500m")]).unwrap();
/// fleet.replace("shop", vec![Need::of_unit("shop", profile.into(), unit).times(20)], 1).unwrap();
///
/// let decision = fleet.cycle(&Options::default(), 2);
/// assert_eq!(decision.actions[0].kind, ActionKind::Bootstrap);
/// assert_eq!(&*decision.actions[0].machine, "metal-1");
/// ```
#[derive(Clone, Default)]
pub struct Fleet {
    pub(crate) vocab: Vocabulary,
    pub(crate) inventory: Inventory,
    pub(crate) needs: NeedsTable,
    pub(crate) interest: Interest,
    pub(crate) sets: RequirementSets,
    pub(crate) index: Index,
    pub(crate) cache: Cache,
    /// Bytes of the dictionaries when the fleet last moved into new tables, or at its first cycle.
    pub(crate) words_kept_bytes: Option<usize>,
    parallelism: Parallelism,
}

/// How much memory a fleet holds, by part, in bytes. Counted from the sizes of its tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Rows, ids and the order of ids.
    pub machines: usize,
    /// Names, label sets, prices, stamps, requirement sets.
    pub dictionaries: usize,
    /// Everything the phases look things up in.
    pub indexes: usize,
    /// The needs table.
    pub needs: usize,
}

impl Footprint {
    /// All parts together.
    pub fn total(&self) -> usize {
        self.machines + self.dictionaries + self.indexes + self.needs
    }
}

impl Fleet {
    /// An empty fleet whose cycles may use several threads.
    pub fn new(parallelism: Parallelism) -> Self {
        Self { parallelism, ..Self::default() }
    }

    /// A copy to try things on. Both go their own ways from here.
    #[must_use]
    pub fn fork(&self) -> Self {
        self.clone()
    }

    /// Takes in what is known of a machine: adds it, or replaces what was known. A record that breaks an
    /// invariant is refused and the last good one stays.
    pub fn observe(&mut self, machine: &Machine) -> Result<Observed, MachineError> {
        self.inventory.observe(&mut self.vocab, machine)
    }

    /// Forgets a machine; false if it was not known.
    pub fn remove(&mut self, id: &str) -> bool {
        self.inventory.remove(id)
    }

    /// Replaces a cluster's whole demand; an empty list withdraws it. Nothing changes if a row is refused.
    ///
    /// A row that was already there keeps the time it was first seen. A new row keeps the time it carries,
    /// or gets `now` if it carries none.
    pub fn replace(
        &mut self,
        cluster: &str,
        rows: Vec<Need>,
        now_unix_nanos: i64,
    ) -> Result<Replaced, RollupError> {
        let Self { vocab, needs, interest, sets, .. } = self;
        needs.replace(cluster, rows, now_unix_nanos, &mut Translator { vocab, requirements: sets, interest })
    }

    /// Parks a gang or lets it try again; false if there is no such gang or nothing changed.
    pub fn set_parked(&mut self, key: &NeedKey, parked: bool) -> bool {
        let Self { vocab, needs, interest, sets, .. } = self;
        needs.set_parked(key, parked, &mut Translator { vocab, requirements: sets, interest })
    }

    /// Decides what to do now.
    pub fn cycle(&mut self, options: &Options, now_unix_nanos: i64) -> Arc<Decision> {
        self.cycle_probed(options, now_unix_nanos, &mut |_| {})
    }

    /// Decides what to do now and calls `probe` at the end of each step, so that a caller with a clock can
    /// tell where the time went. A cycle in which nothing changed has no steps.
    pub fn cycle_probed(
        &mut self,
        options: &Options,
        now_unix_nanos: i64,
        probe: &mut dyn FnMut(Step),
    ) -> Arc<Decision> {
        self.compact_if_due();
        self.cycle_watched(options, now_unix_nanos, None, probe)
    }

    /// Decides what to do now while somebody watches how a domain is chosen.
    pub(crate) fn cycle_watched(
        &mut self,
        options: &Options,
        now_unix_nanos: i64,
        witness: Option<&mut Witness>,
        probe: &mut dyn FnMut(Step),
    ) -> Arc<Decision> {
        let Self { vocab, inventory, needs, interest, sets, index, cache, parallelism, .. } = self;
        let parallelism = *parallelism;
        let cycle = Cycle {
            vocab,
            inventory,
            needs,
            interest,
            sets,
            index,
            cache,
            options,
            now_unix_nanos,
            parallelism,
            witness,
        };
        cycle.run(probe)
    }

    /// How many machines are known.
    pub fn machine_count(&self) -> usize {
        self.inventory.len()
    }

    /// How many rows of demand there are, before folding.
    pub fn need_count(&self) -> usize {
        self.needs.len()
    }

    /// Reads the row of every machine once and returns a sum over them: the least any cycle that looks at the
    /// whole fleet could cost. Benchmarks show it beside their figures.
    pub fn read_every_row(&self) -> f64 {
        self.inventory.rows().map(|(_, row)| row.price + f64::from(row.kind ^ row.cluster)).sum()
    }

    /// Memory held, by part.
    pub fn footprint(&self) -> Footprint {
        Footprint {
            machines: self.inventory.heap_bytes(),
            dictionaries: self.vocab.heap_bytes() + self.sets.heap_bytes() + self.needs.folds().words_bytes(),
            indexes: self.index.heap_bytes(),
            needs: self.needs.heap_bytes(),
        }
    }

    /// Forgets everything kept from earlier cycles, so that the next one starts from scratch. The decision
    /// is the same; this exists to prove it and to measure it.
    pub fn forget_cache(&mut self) {
        self.cache = Cache::default();
        self.index.forget_classes();
    }
}
