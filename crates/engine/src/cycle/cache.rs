//! What is kept from cycle to cycle: each cluster's credit, who claims what, and the last decision.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

use crate::action::{Action, ActionKind};
use crate::amounts::is_zero;
use crate::bits::Bits;
use crate::fleet::Parallelism;
use crate::needs::{ClusterDemand, Demand, NeedsTable, touch_all};
use crate::options::Options;
use crate::report::Taken;
use crate::vocab::Vocabulary;

use super::claimants::{Claimants, Rules};
use super::credit::Credit;
use super::fold::{FoldMemory, Normal, normalise};
use super::market::{Market, Stocks};
use super::preempt::Preempt;
use super::renew::{Owners, Picks};
use super::sets::SupplySets;
use super::sources::Sources;
use super::turns::Stopped;
use super::walk::{Mode, Room, Stop, Walk};
use super::{Decision, Short, wanted_victims};

/// A cluster's credit.
#[derive(Clone)]
pub(super) struct Plan {
    /// The rows as reported.
    pub(super) reported: Arc<[Arc<Demand>]>,
    /// For each gang, whether a free machine could hold it.
    pub(super) fits_free: Vec<bool>,
    pub(super) normal: Normal,
    pub(super) credit: Arc<Credit>,
    /// Whose identities are whose, once single needs have been renewed.
    pub(super) owners: Option<Owners>,
}

/// So many clusters are read together before they are renewed one by one.
const TOUCHED_TOGETHER: usize = 32;

/// What a cluster's credit was computed from. These lie side by side, because a cycle looks at all of them.
#[derive(Clone, Copy, Default)]
pub(super) struct Basis {
    pub(super) demand: u64,
    pub(super) supply: u64,
    /// Never 0 if there is a credit.
    pub(super) generation: u64,
    /// The revision of the fold memory that said which gangs a free machine could hold.
    pub(super) folds: u64,
}

/// Which clusters have a credit of some kind.
#[derive(Clone, Default)]
pub(super) struct Kinds {
    /// Some turn depended on more than the cluster.
    pub(super) shared: Bits,
    /// Some need is short.
    pub(super) short: Bits,
    /// Some Configured machine is unclaimed.
    pub(super) excess: Bits,
}

impl Kinds {
    pub(super) fn note(&mut self, cluster: u32, credit: &Credit) {
        self.shared.set(cluster, credit.shared);
        self.short.set(cluster, !credit.short.is_empty());
        self.excess.set(cluster, !credit.excess.is_empty());
    }
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
    /// By cluster, what its plan was computed from.
    pub(super) bases: Vec<Basis>,
    pub(super) kinds: Kinds,
    pub(super) folds: FoldMemory,
    pub(super) sets: SupplySets,
    pub(super) stocks: Stocks,
    pub(super) claimants: Claimants,
    /// Whether the last cycle looked for victims.
    pub(super) preempting: bool,
    /// Clusters by name, and the place of each in that order.
    pub(super) by_name: Vec<u32>,
    pub(super) rank: Vec<u32>,
    pub(super) last: Option<Last>,
}

/// A walk that ended or stopped, with what it was computed from.
pub(super) struct Walked<'a> {
    pub(super) cluster: u32,
    pub(super) fits_free: Vec<bool>,
    pub(super) normal: Normal,
    pub(super) end: End<'a>,
}

/// How far a walk came.
pub(super) enum End<'a> {
    /// To its end.
    Credit(Box<Credit>),
    /// To where it stands still.
    Stopped(Stopped<'a>),
}

/// What a walk came to, with what it was computed from.
pub(super) struct Fresh {
    pub(super) cluster: u32,
    pub(super) fits_free: Vec<bool>,
    pub(super) normal: Normal,
    pub(super) credit: Credit,
}

impl Cache {
    /// The last decision, if there was one.
    pub(crate) fn last(&self) -> Option<&Arc<Decision>> {
        self.last.as_ref().map(|last| &last.decision)
    }

    /// Has the next cycle decide again, although nothing has changed.
    pub(super) fn forget_last(&mut self) {
        self.last = None;
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
        self.bases.resize(vocab.cluster_count(), Basis::default());
        self.by_name = (0..vocab.cluster_count() as u32).collect();
        self.by_name.sort_unstable_by(|a, b| vocab.cluster_name(*a).cmp(vocab.cluster_name(*b)));
        self.rank = vec![0; self.by_name.len()];
        for (place, cluster) in (0..).zip(&self.by_name) {
            self.rank[*cluster as usize] = place;
        }
    }

    /// The clusters whose credit may have changed in more than single needs, and the needs that were renewed in the others. The
    /// claims of these are to be [followed](Self::follow_renewed) when all old ones are gone.
    pub(super) fn changed(
        &mut self,
        sources: Sources<'_>,
        needs: &NeedsTable,
    ) -> (Vec<u32>, Vec<(u32, u32)>) {
        let clusters = 0..self.plans.len() as u32;
        let stale: Vec<u32> = clusters.filter(|cluster| self.is_stale(*cluster, needs, sources)).collect();
        let (mut changed, mut renewed, mut picks) = (Vec::new(), Vec::new(), Picks::default());
        for some in stale.chunks(TOUCHED_TOGETHER) {
            self.touch(some, sources, needs);
            changed.extend(
                some.iter()
                    .filter(|cluster| !self.renew(**cluster, sources, needs, &mut picks, &mut renewed)),
            );
        }
        (changed, renewed)
    }

    /// Follows the claims of needs that were renewed.
    pub(super) fn follow_renewed(&mut self, renewed: &[(u32, u32)]) {
        if !self.claimants.is_active() {
            return;
        }
        for (cluster, row) in renewed {
            let plan =
                self.plans[*cluster as usize].as_ref().expect("the cluster of a renewed need has a plan");
            self.claimants.enter_row(&plan.credit, *row);
        }
    }

    /// Walks clusters whose credit may have changed, as far as they go by themselves.
    pub(super) fn walk_changed<'a>(
        &self,
        changed: &[u32],
        sources: Sources<'a>,
        needs: &NeedsTable,
        parallelism: Parallelism,
    ) -> Vec<Walked<'a>> {
        let walk_all = |clusters: &[u32]| -> Vec<Walked<'a>> {
            let mut room = Room::new(sources.vocab.key_count());
            clusters.iter().map(|cluster| self.walk(*cluster, sources, needs, &mut room)).collect()
        };
        let Parallelism { threads, from_clusters } = parallelism;
        if threads < 2 || changed.len() < from_clusters.max(2) {
            return walk_all(changed);
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

    fn is_stale(&mut self, cluster: u32, needs: &NeedsTable, sources: Sources<'_>) -> bool {
        let (index, basis) = (sources.index, self.bases[cluster as usize]);
        if basis.demand != needs.version(cluster)
            || basis.supply != index.holdings.version(cluster)
            || basis.generation != index.generation
            || self.kinds.shared.contains(cluster)
        {
            return true;
        }
        if basis.folds == self.folds.revision {
            return false;
        }
        let plan = self.plans[cluster as usize].as_ref().expect("what has a basis has a plan");
        let reported = needs.cluster(cluster);
        if reported.is_some_and(|demand| !self.fits_free(demand).eq(plan.fits_free.iter().copied())) {
            return true;
        }
        self.bases[cluster as usize].folds = self.folds.revision;
        false
    }

    pub(super) fn fits_free(&self, demand: &ClusterDemand) -> impl Iterator<Item = bool> {
        demand.folds.iter().map(|fold| self.folds.fits_free(*fold))
    }

    fn walk<'a>(
        &self,
        cluster: u32,
        sources: Sources<'a>,
        needs: &NeedsTable,
        room: &mut Room,
    ) -> Walked<'a> {
        let silent = Arc::new(ClusterDemand::default());
        let demand = needs.cluster(cluster).unwrap_or(&silent);
        let plan = self.plans[cluster as usize].as_ref();
        let same_rows = |_: &&Plan| self.bases[cluster as usize].demand == needs.version(cluster);
        let before = plan.filter(same_rows).map(|plan| &plan.normal);
        touch_all(&demand.rows);
        let normal = normalise(demand, &self.folds, sources, cluster, before, &mut room.slots);
        let (rows, turns) = (normal.rows.clone(), normal.turns.clone());
        let mut walk = Walk::new(sources, cluster, rows.clone(), turns.clone(), room);
        let mut stop = walk.advance(Mode::Ahead);
        if walk.passed_short_needs(stop) {
            // The turns of those come first: the cluster is walked turn by turn from the first of them.
            walk = Walk::new(sources, cluster, rows, turns, room);
            stop = walk.advance(Mode::Live);
        }
        let fits_free = self.fits_free(demand).collect();
        let end = match stop {
            Stop::End => End::Credit(Box::new(walk.into_credit(room))),
            _ => End::Stopped(Stopped { walk: Box::new(walk), stop }),
        };
        Walked { cluster, fits_free, normal, end }
    }

    /// The credits of clusters that have short needs, of those asked for.
    pub(super) fn planned(&self, asked: impl Fn(u32) -> bool) -> Vec<(u32, Arc<Credit>)> {
        let clusters = self.kinds.short.iter().filter(|cluster| asked(*cluster));
        clusters.map(|cluster| (cluster, self.plan(cluster).credit.clone())).collect()
    }

    /// The plan of a cluster that has one.
    pub(super) fn plan(&self, cluster: u32) -> &Plan {
        self.plans[cluster as usize].as_ref().expect("the cluster has a plan")
    }

    /// Runs phase 2 over what phase 1 left missing, in precedence order. Returns the preempted machines.
    pub(super) fn preempt(
        &mut self,
        decision: &mut Decision,
        market: &mut Market<'_>,
        options: &Options,
    ) -> Bits {
        let sources = market.sources;
        let Sources { vocab, inventory, index, .. } = sources;
        let (some_bound, some_claimants);
        let (bound, claimants) = if let Some(bound) = &index.bound {
            self.follow_claims(inventory.bound());
            (&**bound, &self.claimants)
        } else {
            let (classes, below) = wanted_victims(&decision.shorts, sources, market.sets);
            some_bound = index.bound_among(inventory, vocab, &classes, below);
            some_claimants = self.claimants(inventory.bound()).into_owned();
            (&some_bound, &some_claimants)
        };
        let clusters = 0..vocab.cluster_count() as u32;
        let ready: Vec<bool> =
            clusters.map(|cluster| options.ready.contains(vocab.cluster_name(cluster))).collect();
        let rules = Rules { options, claimants, ready: &ready };
        let reported = self.kinds.excess.iter().filter(|cluster| ready[*cluster as usize]);
        let unclaimed = reported.flat_map(|cluster| self.plan(cluster).credit.excess.iter().copied());
        let mut preempt = Preempt::new(bound, market, rules, unclaimed);
        for short in decision.shorts.iter_mut().filter(|short| !is_zero(&short.missing)) {
            let credit = &self.plan(short.cluster).credit;
            preempt.serve(short, credit.claims_of(short.row as usize));
            decision.actions.extend(short.victims.iter().map(|victim| {
                let loser = vocab.cluster_name(inventory.row(victim.machine).cluster);
                Action {
                    kind: ActionKind::Preempt,
                    machine: inventory.id(victim.machine).into(),
                    cluster: Some(loser.into()),
                    need: Some(short.demand.clone()),
                    grace_secs: Some(victim.grace_secs),
                }
            }));
        }
        preempt.taken
    }

    /// Forgets who claimed what in a cluster that was walked again.
    pub(super) fn drop_claims(&mut self, cluster: u32) {
        if let (true, Some(old)) = (self.claimants.is_active(), &self.plans[cluster as usize]) {
            self.claimants.leave(&old.credit);
        }
    }

    /// Keeps what a cluster's walk came to. It is valid for as long as nothing it was computed from changes, unless
    /// other clusters had a part in it.
    pub(super) fn keep(&mut self, fresh: Fresh, sources: Sources<'_>, needs: &NeedsTable) {
        let Fresh { cluster, fits_free, normal, credit } = fresh;
        let old = self.plans[cluster as usize].take();
        let owners = old.filter(|old| Arc::ptr_eq(&old.normal.rows, &normal.rows)).and_then(|old| old.owners);
        if self.claimants.is_active() {
            self.claimants.enter(&credit);
        }
        self.bases[cluster as usize] = Basis {
            demand: needs.version(cluster),
            supply: sources.index.holdings.version(cluster),
            generation: sources.index.generation,
            folds: self.folds.revision,
        };
        self.kinds.note(cluster, &credit);
        self.plans[cluster as usize] = Some(Plan {
            reported: needs.cluster(cluster).map(|demand| demand.rows.clone()).unwrap_or_default(),
            fits_free,
            normal,
            credit: Arc::new(credit),
            owners,
        });
    }
}
