//! What is kept from cycle to cycle: each cluster's credit, who claims what, and the last decision.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

use crate::action::{Action, ActionKind};
use crate::amounts::is_zero;
use crate::bits::Bits;
use crate::fleet::Parallelism;
use crate::intern::NONE;
use crate::needs::{ClusterDemand, Demand, NeedsTable};
use crate::options::Options;
use crate::report::Taken;
use crate::vocab::Vocabulary;

use super::credit::{Credit, Sources, Walk};
use super::fold::{FoldMemory, normalise};
use super::preempt::{Claimants, Preempt};
use super::sets::SupplySets;
use super::{Decision, Short, wanted_victims};

/// A cluster's credit and what it was computed from.
#[derive(Clone)]
pub(super) struct Plan {
    pub(super) demand: u64,
    pub(super) supply: u64,
    pub(super) generation: u64,
    /// For each gang, whether a free machine could hold it, and the revision of the fold memory that said so.
    pub(super) fits_free: Vec<bool>,
    pub(super) folds: u64,
    pub(super) credit: Arc<Credit>,
    /// What every cycle asks every credit, answered without looking there.
    pub(super) shared: bool,
    pub(super) has_short: bool,
    pub(super) has_excess: bool,
}

/// The inputs of the last decision.
#[derive(Clone)]
pub(super) struct Last {
    pub(super) inventory: u64,
    pub(super) needs: u64,
    pub(super) options: Options,
    pub(super) now_unix_nanos: i64,
    /// The first later instant at which another idle machine falls due.
    pub(super) next_due: i64,
    pub(super) decision: Arc<Decision>,
    /// What it took of the free machines, for those who ask.
    pub(super) taken: OnceLock<Arc<Taken>>,
}

/// What is kept from cycle to cycle. Never changes a decision, only what it costs.
#[derive(Clone, Default)]
pub(crate) struct Cache {
    pub(super) plans: Vec<Option<Plan>>,
    pub(super) folds: FoldMemory,
    pub(super) sets: SupplySets,
    pub(super) claimants: Claimants,
    /// Whether the last cycle looked for victims.
    pub(super) preempting: bool,
    /// Clusters by name, and the place of each in that order.
    pub(super) by_name: Vec<u32>,
    pub(super) rank: Vec<u32>,
    pub(super) last: Option<Last>,
}

/// A walk that ended or paused, with what it was computed from.
pub(super) struct Walked<'a> {
    pub(super) fits_free: Vec<bool>,
    pub(super) walk: Walk<'a>,
    pub(super) ended: bool,
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

    /// Follows who claims which machine from here on.
    pub(super) fn follow_claims(&mut self, machines: usize) {
        if !self.claimants.is_active() {
            self.claimants.activate(machines, self.plans.iter().flatten().map(|plan| &plan.credit));
        }
    }

    /// Clusters in the order of their names.
    pub(crate) fn clusters_by_name(&self) -> &[u32] {
        &self.by_name
    }

    pub(super) fn rank_clusters(&mut self, vocab: &Vocabulary) {
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

    /// Walks every cluster whose credit may have changed, or one of them alone.
    pub(super) fn walk_changed<'a>(
        &self,
        only: Option<u32>,
        sources: Sources<'a>,
        needs: &NeedsTable,
        parallelism: Parallelism,
    ) -> Vec<Walked<'a>> {
        let silent = Arc::new(ClusterDemand::default());
        let demand_of = |cluster: u32| needs.cluster(cluster).unwrap_or(&silent);
        let all = 0..self.plans.len() as u32;
        let asked = only.map_or(all, |cluster| cluster..cluster + 1);
        let changed: Vec<u32> = asked.filter(|c| self.is_stale(*c, needs, sources)).collect();
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

    pub(super) fn is_stale(&self, cluster: u32, needs: &NeedsTable, sources: Sources<'_>) -> bool {
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

    pub(super) fn fits_free(&self, demand: &ClusterDemand) -> impl Iterator<Item = bool> {
        demand.folds.iter().map(|fold| self.folds.fits_free(*fold))
    }

    pub(super) fn walk<'a>(
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
    pub(super) fn drop_claims(&mut self, cluster: u32) {
        if let (true, Some(old)) = (self.claimants.is_active(), &self.plans[cluster as usize]) {
            self.claimants.leave(&old.credit);
        }
    }

    /// Keeps a cluster's new credit.
    pub(super) fn keep(
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
    pub(super) fn shorts(&self) -> Vec<Short> {
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
    pub(super) fn preempt(
        &mut self,
        decision: &mut Decision,
        sources: Sources<'_>,
        options: &Options,
    ) -> Bits {
        let (some_bound, some_claimants);
        let (bound, claimants) = if let Some(bound) = &sources.index.bound {
            self.follow_claims(sources.inventory.bound());
            (&**bound, &self.claimants)
        } else {
            let (classes, below) = wanted_victims(&decision.shorts, sources, &mut self.sets);
            some_bound = sources.index.bound_among(sources.inventory, sources.vocab, &classes, below);
            some_claimants = self.claimants(sources.inventory.bound()).into_owned();
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
