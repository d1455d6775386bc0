//! One cycle: from the fleet and the demand to actions.
//!
//! The steps are those of the design, in order: settle the indexes, normalise, credit, choose domains,
//! acquire, preempt, reclaim, release. Clusters whose needs and machines did not change keep the credit of
//! the last cycle, so the work follows what changed and what is short, not the size of the fleet.

mod acquire;
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

use std::borrow::{Borrow, Cow};
use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

use crate::action::{Action, ActionKind};
use crate::amounts::is_zero;
use crate::bits::Bits;
use crate::classes::RequirementSets;
use crate::fleet::Parallelism;
use crate::index::Index;
use crate::intern::NONE;
use crate::inventory::Inventory;
use crate::needs::{ClusterDemand, Demand, NeedsTable};
use crate::options::Options;
use crate::report::Taken;
use crate::vocab::{Amounts, Vocabulary};

pub(crate) use credit::{Chosen, Credit, Sources};
pub(crate) use preempt::{Claimants, Victim};
pub use trial::Tried;

use acquire::Acquire;
use credit::Walk;
use domains::finish_walks;
use fold::{FoldMemory, normalise};
use preempt::Preempt;
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

/// A cluster's credit and what it was computed from.
#[derive(Clone)]
struct Plan {
    demand: u64,
    supply: u64,
    generation: u64,
    /// For each gang, whether a free machine could hold it, and the revision of the fold memory that said so.
    fits_free: Vec<bool>,
    folds: u64,
    credit: Arc<Credit>,
    /// What every cycle asks every credit, answered without looking there.
    shared: bool,
    has_short: bool,
    has_excess: bool,
}

/// The inputs of the last decision.
#[derive(Clone)]
struct Last {
    inventory: u64,
    needs: u64,
    options: Options,
    now_unix_nanos: i64,
    /// The first later instant at which another idle machine falls due.
    next_due: i64,
    decision: Arc<Decision>,
    /// What it took of the free machines, for those who ask.
    taken: OnceLock<Arc<Taken>>,
}

/// What is kept from cycle to cycle. Never changes a decision, only what it costs.
#[derive(Clone, Default)]
pub(crate) struct Cache {
    plans: Vec<Option<Plan>>,
    folds: FoldMemory,
    sets: SupplySets,
    claimants: Claimants,
    /// Whether the last cycle looked for victims.
    preempting: bool,
    /// Clusters by name, and the place of each in that order.
    by_name: Vec<u32>,
    rank: Vec<u32>,
    last: Option<Last>,
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

/// A walk that ended or paused, with what it was computed from.
struct Walked<'a> {
    fits_free: Vec<bool>,
    walk: Walk<'a>,
    ended: bool,
}

impl Cycle<'_> {
    pub(crate) fn run(mut self, probe: &mut dyn FnMut(Step)) -> Arc<Decision> {
        if let Some(decision) = self.unchanged() {
            return decision;
        }
        let mut work = self.credit(probe);
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

    /// Brings the indexes up to date and credits what is bound, cluster by cluster.
    fn credit(&mut self, probe: &mut dyn FnMut(Step)) -> Work {
        let Cycle { vocab, inventory, needs, interest, sets, index, cache, parallelism, .. } = self;
        let mut work = Work { rebuilt: index.settle(inventory, vocab, interest), ..Work::default() };
        sets.evaluate(&index.classes, work.rebuilt);
        cache.sets.refresh(&index.classes, index.generation, needs.len());
        cache.folds.refresh(needs.folds(), index, sets);
        cache.rank_clusters(vocab);
        if work.rebuilt {
            cache.claimants.reset();
        }
        probe(Step::Settle);

        let sources = Sources { vocab, inventory, index, classes: &index.classes, sets };
        let mut walked = cache.walk_changed(sources, needs, *parallelism);
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
        work
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

impl Cache {
    /// The last decision, if there was one.
    pub(crate) fn last(&self) -> Option<&Arc<Decision>> {
        self.last.as_ref().map(|last| &last.decision)
    }

    /// What the last decision took of the free machines, counted by `count` when first asked for.
    pub(crate) fn taken(&self, count: impl FnOnce(&Decision) -> Taken) -> Option<&Taken> {
        let last = self.last.as_ref()?;
        Some(last.taken.get_or_init(|| Arc::new(count(&last.decision))))
    }

    /// What became of a need that credit did not satisfy in the last cycle.
    pub(crate) fn short(&self, cluster: u32, row: u32) -> Option<&Short> {
        let shorts = &self.last()?.shorts;
        let place = |cluster: u32, row: u32, demand: &Demand| {
            let need = &demand.need;
            (Reverse(demand.priority()), need.first_seen_unix_nanos, self.rank[cluster as usize], row)
        };
        let wanted = place(cluster, row, &self.credit(cluster)?.rows[row as usize]);
        let at = shorts.binary_search_by_key(&wanted, |short| place(short.cluster, short.row, &short.demand));
        at.ok().map(|at| &shorts[at])
    }

    /// The credit of a cluster, as of the last cycle.
    pub(crate) fn credit(&self, cluster: u32) -> Option<&Credit> {
        self.plans.get(cluster as usize)?.as_ref().map(|plan| &*plan.credit)
    }

    /// The priority of the need that claims each bound machine, as of the last cycle.
    pub(crate) fn claimants(&self, machines: usize) -> Cow<'_, Claimants> {
        if self.claimants.is_active() {
            return Cow::Borrowed(&self.claimants);
        }
        let mut claimants = Claimants::default();
        claimants.activate(machines, self.plans.iter().flatten().map(|plan| &plan.credit));
        Cow::Owned(claimants)
    }

    /// Clusters in the order of their names.
    pub(crate) fn clusters_by_name(&self) -> &[u32] {
        &self.by_name
    }

    fn rank_clusters(&mut self, vocab: &Vocabulary) {
        if self.by_name.len() == vocab.cluster_count() {
            return;
        }
        self.plans.resize_with(vocab.cluster_count(), || None);
        self.by_name = (0..vocab.cluster_count() as u32).collect();
        self.by_name.sort_unstable_by(|a, b| vocab.cluster_name(*a).cmp(vocab.cluster_name(*b)));
        self.rank = vec![0; self.by_name.len()];
        for (place, cluster) in (0..).zip(&self.by_name) {
            self.rank[*cluster as usize] = place;
        }
    }

    /// Walks every cluster whose credit may have changed.
    fn walk_changed<'a>(
        &self,
        sources: Sources<'a>,
        needs: &NeedsTable,
        parallelism: Parallelism,
    ) -> Vec<Walked<'a>> {
        let silent = Arc::new(ClusterDemand::default());
        let demand_of = |cluster: u32| needs.cluster(cluster).unwrap_or(&silent);
        let changed: Vec<u32> =
            (0..self.plans.len() as u32).filter(|c| self.is_stale(*c, needs, sources)).collect();
        let walk_all = |clusters: &[u32]| -> Vec<Walked<'a>> {
            let mut places = vec![NONE; sources.classes.len()];
            clusters
                .iter()
                .map(|cluster| self.walk(*cluster, demand_of(*cluster), sources, &mut places))
                .collect()
        };
        let Parallelism { threads, from_clusters } = parallelism;
        if threads < 2 || changed.len() < from_clusters.max(2) {
            return walk_all(&changed);
        }
        let mut walked = Vec::with_capacity(changed.len());
        std::thread::scope(|scope| {
            let mut parts = changed.chunks(changed.len().div_ceil(threads));
            let mine = parts.next().unwrap_or_default();
            let others: Vec<_> = parts.map(|part| scope.spawn(|| walk_all(part))).collect();
            walked.extend(walk_all(mine));
            for other in others {
                walked.extend(other.join().expect("a walk does not panic"));
            }
        });
        walked
    }

    fn is_stale(&self, cluster: u32, needs: &NeedsTable, sources: Sources<'_>) -> bool {
        let Some(plan) = &self.plans[cluster as usize] else { return true };
        let index = sources.index;
        plan.demand != needs.version(cluster)
            || plan.supply != index.holdings.version(cluster)
            || plan.generation != index.generation
            || plan.shared
            || plan.folds != self.folds.revision
                && needs
                    .cluster(cluster)
                    .is_some_and(|demand| !self.fits_free(demand).eq(plan.fits_free.iter().copied()))
    }

    fn fits_free(&self, demand: &ClusterDemand) -> impl Iterator<Item = bool> {
        demand.folds.iter().map(|fold| self.folds.fits_free(*fold))
    }

    fn walk<'a>(
        &self,
        cluster: u32,
        demand: &ClusterDemand,
        sources: Sources<'a>,
        places: &mut [u32],
    ) -> Walked<'a> {
        let supply = sources.index.holdings.supply(cluster);
        let rows = normalise(demand, &self.folds, supply, sources.classes, sources.sets);
        let mut walk = Walk::new(sources, cluster, rows, places);
        let ended = walk.advance();
        Walked { fits_free: self.fits_free(demand).collect(), walk, ended }
    }

    /// Forgets who claimed what in a cluster that was walked again.
    fn drop_claims(&mut self, cluster: u32) {
        if let (true, Some(old)) = (self.claimants.is_active(), &self.plans[cluster as usize]) {
            self.claimants.leave(&old.credit);
        }
    }

    /// Keeps a cluster's new credit.
    fn keep(
        &mut self,
        cluster: u32,
        fits_free: Vec<bool>,
        credit: Credit,
        sources: Sources<'_>,
        needs: &NeedsTable,
    ) {
        if self.claimants.is_active() {
            self.claimants.enter(&credit);
        }
        self.plans[cluster as usize] = Some(Plan {
            demand: needs.version(cluster),
            supply: sources.index.holdings.version(cluster),
            generation: sources.index.generation,
            fits_free,
            folds: self.folds.revision,
            shared: credit.shared,
            has_short: !credit.short.is_empty(),
            has_excess: !credit.excess.is_empty(),
            credit: Arc::new(credit),
        });
    }

    /// The needs credit left short, in demand order.
    fn shorts(&self) -> Vec<Short> {
        let mut shorts = Vec::new();
        for cluster in &self.by_name {
            let plan = self.plans[*cluster as usize].as_ref();
            let Some(plan) = plan.filter(|plan| plan.has_short) else { continue };
            let credit = &plan.credit;
            shorts.extend(credit.short.iter().map(|(row, missing)| Short {
                cluster: *cluster,
                row: *row,
                demand: credit.rows[*row as usize].clone(),
                domain: credit.domain_of(*row),
                missing: missing.clone(),
                acquired: Vec::new(),
                in_flight: Vec::new(),
                victims: Vec::new(),
                unresolved: None,
            }));
        }
        // Stable: within a cluster needs already stand in demand order.
        shorts
            .sort_by_key(|short| (Reverse(short.demand.priority()), short.demand.need.first_seen_unix_nanos));
        shorts
    }

    /// Runs phase 2 over what phase 1 left missing. Returns the preempted machines.
    fn preempt(&mut self, decision: &mut Decision, sources: Sources<'_>, options: &Options) -> Bits {
        let credits = self.plans.iter().flatten().map(|plan| &plan.credit);
        let (some_bound, some_claimants);
        let (bound, claimants) = if let Some(bound) = &sources.index.bound {
            if !self.claimants.is_active() {
                self.claimants.activate(sources.inventory.bound(), credits);
            }
            (&**bound, &self.claimants)
        } else {
            let (classes, below) = wanted_victims(&decision.shorts, sources, &mut self.sets);
            some_bound = sources.index.bound_among(sources.inventory, sources.vocab, &classes, below);
            let mut claimants = Claimants::default();
            claimants.activate(sources.inventory.bound(), credits);
            some_claimants = claimants;
            (&some_bound, &some_claimants)
        };
        let mut preempt = Preempt::new(sources, bound, &mut self.sets, options, claimants);
        // Shorts stand in demand order, which begins with the priority: the order of phase 2.
        for short in decision.shorts.iter_mut().filter(|short| !is_zero(&short.missing)) {
            let credit =
                &self.plans[short.cluster as usize].as_ref().expect("a short need has a plan").credit;
            preempt.serve(short, credit.claims_of(short.row as usize));
        }
        let taken = preempt.taken;
        for short in &decision.shorts {
            decision.actions.extend(short.victims.iter().map(|victim| {
                let loser = sources.vocab.cluster_name(sources.inventory.row(victim.machine).cluster);
                Action {
                    kind: ActionKind::Preempt,
                    machine: sources.inventory.id(victim.machine).into(),
                    cluster: Some(loser.into()),
                    need: Some(short.demand.clone()),
                    grace_secs: Some(victim.grace_secs),
                }
            }));
        }
        taken
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
