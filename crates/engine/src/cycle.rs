//! One cycle: from the fleet and the demand to actions.
//!
//! The steps are those of the design, in order: settle the indexes, normalise, credit, choose domains,
//! acquire, preempt, reclaim, release. Clusters whose needs and machines did not change keep the credit of
//! the last cycle, so the work follows what changed and what is short, not the size of the fleet.

mod acquire;
mod cache;
mod choice;
mod credit;
mod domains;
mod fold;
mod heads;
mod preempt;
mod prices;
mod release;
mod sets;
mod take;
mod trial;

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

use crate::action::{Action, ActionKind};
use crate::amounts::is_zero;
use crate::bits::Bits;
use crate::classes::RequirementSets;
use crate::fleet::Parallelism;
use crate::index::Index;
use crate::inventory::Inventory;
use crate::needs::{Demand, NeedsTable};
use crate::options::Options;
use crate::vocab::{Amounts, Vocabulary};

pub(crate) use cache::Cache;
pub(crate) use credit::{Chosen, Credit, Sources};
pub(crate) use preempt::{Claimants, Victim};
pub use trial::{Trials, Tried};

use acquire::Acquire;
use cache::{Last, Walked};
use domains::finish_walks;
use release::{due_machines, next_due, reclaims};
use sets::SupplySets;

/// The steps of a cycle, for whoever measures them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// The indexes caught up with the inventory and the requirement sets with the classes.
    Settle,
    /// Gangs were folded and bound machines credited, cluster by cluster.
    Credit,
    /// Gangs that depend on free machines chose their domains.
    Domains,
    /// Free machines were acquired.
    Acquire,
    /// Victims were picked.
    Preempt,
    /// Excess and idle machines were listed, and all actions written down.
    Release,
}

impl Step {
    /// All steps in order.
    pub const ALL: [Self; 6] =
        [Self::Settle, Self::Credit, Self::Domains, Self::Acquire, Self::Preempt, Self::Release];

    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Settle => "settle",
            Self::Credit => "credit",
            Self::Domains => "domains",
            Self::Acquire => "acquire",
            Self::Preempt => "preempt",
            Self::Release => "release",
        }
    }
}

/// A need that credit alone did not satisfy.
#[derive(Clone, Debug)]
pub(crate) struct Short {
    pub(crate) cluster: u32,
    pub(crate) row: u32,
    pub(crate) demand: Arc<Demand>,
    pub(crate) domain: Option<Chosen>,
    /// What phase 1 left missing.
    pub(crate) missing: Amounts,
    /// The free machines it got, in the order it took them.
    pub(crate) acquired: Vec<u32>,
    /// The machines already draining for it that count.
    pub(crate) in_flight: Vec<u32>,
    /// The victims picked for it, best first.
    pub(crate) victims: Vec<Victim>,
    /// What remains after all that; `None` if nothing does.
    pub(crate) unresolved: Option<Amounts>,
}

/// How much a cycle had to do: counts of work, not of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Clusters whose credit was computed again.
    pub clusters_walked: usize,
    /// Gangs whose domain depended on free machines.
    pub clusters_sharing: usize,
    /// Needs that credit did not satisfy.
    pub short_needs: usize,
    /// Whether the indexes were built from scratch.
    pub rebuilt: bool,
}

/// What a cycle decided.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// What to do, in order.
    pub actions: Vec<Action>,
    /// How much work it was.
    pub work: Work,
    /// Needs that credit did not satisfy, in demand order.
    pub(crate) shorts: Vec<Short>,
}

/// Everything a cycle reads and the memory it keeps.
pub(crate) struct Cycle<'a> {
    pub(crate) vocab: &'a Vocabulary,
    pub(crate) inventory: &'a mut Inventory,
    pub(crate) needs: &'a NeedsTable,
    pub(crate) interest: &'a crate::classes::Interest,
    pub(crate) sets: &'a mut RequirementSets,
    pub(crate) index: &'a mut Index,
    pub(crate) cache: &'a mut Cache,
    pub(crate) options: &'a Options,
    pub(crate) now_unix_nanos: i64,
    pub(crate) parallelism: Parallelism,
}

impl Cycle<'_> {
    pub(crate) fn run(mut self, probe: &mut dyn FnMut(Step)) -> Arc<Decision> {
        if let Some(decision) = self.unchanged() {
            return decision;
        }
        let mut work = self.settle(probe);
        self.credit(None, &mut work, probe);
        let Cycle { vocab, inventory, needs, sets, index, cache, options, now_unix_nanos, .. } = self;
        let mut decision = Decision::default();
        {
            let classes = &*index.classes;
            let sources = Sources { vocab, inventory, index, classes, sets };
            decision.shorts = cache.shorts();
            work.short_needs = decision.shorts.len();
            let mut acquire = Acquire::new(sources, &mut cache.sets);
            for at in precedence(&decision.shorts) {
                let short = &mut decision.shorts[at];
                let credit =
                    &cache.plans[short.cluster as usize].as_ref().expect("a short need has a plan").credit;
                acquire.serve(short, credit.claims_of(short.row as usize));
            }
            let taken = acquire.taken;
            probe(Step::Acquire);
            decision.actions.reserve(decision.shorts.len());
            acquisitions(&mut decision, sources);
            decision.work = work;
            cache.last = None;
            let due = due_machines(sources, options, now_unix_nanos, &taken);
            let unmet = decision.shorts.iter().any(|short| !is_zero(&short.missing));
            let preempted = if unmet {
                // An index of all bound machines pays off when it is used again; the first time, a look at
                // those that come into question is quicker.
                if cache.preempting {
                    index.ensure_bound(inventory);
                }
                let classes = &*index.classes;
                let sources = Sources { vocab, inventory, index, classes, sets };
                cache.preempt(&mut decision, sources, options)
            } else {
                Bits::default()
            };
            cache.preempting = unmet;
            probe(Step::Preempt);
            let classes = &*index.classes;
            let sources = Sources { vocab, inventory, index, classes, sets };
            reclaims(&mut decision, cache, sources, options, &preempted);
            decision.actions.extend(due.into_iter().map(|machine| Action {
                kind: ActionKind::Delete,
                machine: inventory.id(machine).into(),
                cluster: None,
                need: None,
                grace_secs: None,
            }));
        }
        let decision = Arc::new(decision);
        cache.last = Some(Last {
            inventory: inventory.revision(),
            needs: needs.revision(),
            options: options.clone(),
            now_unix_nanos,
            next_due: next_due(index, options, now_unix_nanos),
            decision: Arc::clone(&decision),
            taken: OnceLock::new(),
        });
        probe(Step::Release);
        decision
    }

    /// Brings the indexes and the requirement sets up to date.
    fn settle(&mut self, probe: &mut dyn FnMut(Step)) -> Work {
        let Cycle { vocab, inventory, needs, interest, sets, index, cache, .. } = self;
        let work = Work { rebuilt: index.settle(inventory, vocab, interest), ..Work::default() };
        sets.evaluate(&index.classes, work.rebuilt);
        cache.sets.refresh(&index.classes, index.generation, needs.len());
        cache.folds.refresh(needs.folds(), index, sets);
        cache.rank_clusters(vocab);
        if work.rebuilt {
            cache.claimants.reset();
        }
        probe(Step::Settle);
        work
    }

    /// Credits what is bound, cluster by cluster: of all clusters whose credit may have changed, or of one of them
    /// alone. False, and nothing done, if that one cannot be walked without the others.
    fn credit(&mut self, only: Option<u32>, work: &mut Work, probe: &mut dyn FnMut(Step)) -> bool {
        let Cycle { vocab, inventory, needs, sets, index, cache, parallelism, .. } = self;
        let sources = Sources { vocab, inventory, index, classes: &index.classes, sets };
        let mut walked = cache.walk_changed(only, sources, needs, *parallelism);
        if only.is_some() && walked.iter().any(|walked| !walked.ended) {
            return false;
        }
        work.clusters_walked = walked.len();
        probe(Step::Credit);

        let (mut paused, mut places) = (Vec::new(), Vec::new());
        let mut ended = Vec::with_capacity(walked.len());
        for Walked { fits_free, walk, ended: done } in walked.drain(..) {
            if done {
                ended.push((fits_free, walk.cluster, walk.credit));
            } else {
                places.push(fits_free);
                paused.push(walk);
            }
        }
        work.clusters_sharing = paused.len();
        let finished = finish_walks(paused, &cache.rank, sources, &mut cache.sets);
        let finished = finished.into_iter().zip(places);
        ended.extend(finished.map(|(walk, fits_free)| (fits_free, walk.cluster, walk.credit)));
        // A machine may have moved between two of these clusters: all old claims go before new ones come.
        for (_, cluster, _) in &ended {
            cache.drop_claims(*cluster);
        }
        for (fits_free, cluster, credit) in ended {
            cache.keep(cluster, fits_free, credit, sources, needs);
        }
        probe(Step::Domains);
        true
    }

    /// The last decision, if nothing it depends on has changed.
    fn unchanged(&self) -> Option<Arc<Decision>> {
        let last = self.cache.last.as_ref()?;
        let same = last.inventory == self.inventory.revision()
            && last.needs == self.needs.revision()
            && (last.now_unix_nanos..last.next_due).contains(&self.now_unix_nanos)
            && last.options == *self.options;
        same.then(|| Arc::clone(&last.decision))
    }
}

/// The classes unmet needs could take victims of, and the priority all of those must be below.
fn wanted_victims(shorts: &[Short], sources: Sources<'_>, sets: &mut SupplySets) -> (Bits, i32) {
    let (mut classes, mut seen, mut below) = (Bits::default(), Bits::default(), i32::MIN);
    for short in shorts.iter().filter(|short| !is_zero(&short.missing)) {
        let number = sets.number(&short.demand, sources.classes, sources.sets);
        below = below.max(short.demand.priority());
        if seen.insert(number) {
            classes.union_with(&sets.get(number).members);
        }
    }
    (classes, below)
}

/// The places of short needs in precedence order.
pub(crate) fn precedence(shorts: &[impl Borrow<Short>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..shorts.len()).collect();
    // Stable: among equals demand order decides, and that is how they stand.
    order.sort_by_key(|at| {
        let profile = &shorts[*at].borrow().demand.need.profile;
        Reverse((profile.priority(), profile.interruption(), profile.reclamation()))
    });
    order
}

/// Writes down what was acquired: need by need, Bootstrap before Provision, each by id.
fn acquisitions(decision: &mut Decision, sources: Sources<'_>) {
    use bigfleet_model::machine::MachineState;
    let Decision { shorts, actions, .. } = decision;
    for short in shorts.iter() {
        let mut machines: Vec<(ActionKind, u64, u32)> = short
            .acquired
            .iter()
            .map(|machine| {
                let row = sources.inventory.row(*machine);
                let idle = row.state == Some(MachineState::Idle);
                let kind = if idle { ActionKind::Bootstrap } else { ActionKind::Provision };
                (kind, row.order, *machine)
            })
            .collect();
        machines.sort_unstable();
        actions.extend(machines.into_iter().map(|(kind, _, machine)| Action {
            kind,
            machine: sources.inventory.id(machine).into(),
            cluster: Some(short.demand.need.cluster.clone()),
            need: Some(short.demand.clone()),
            grace_secs: None,
        }));
    }
}
