//! One cycle: from the fleet and the demand to actions.
//!
//! The steps are those of the design, in order: settle the indexes, normalise, take turns (first inside each
//! cluster, then across them), preempt, reclaim, release. Clusters whose needs and machines did not change keep the credit of
//! the last cycle, so the work follows what changed and what is short, not the size of the fleet.

mod bargain;
mod book;
mod by_domain;
mod cache;
mod choice;
mod claimants;
mod credit;
mod fold;
mod keep;
mod loose;
mod market;
mod pick;
mod preempt;
mod prices;
mod release;
mod renew;
mod sets;
mod sources;
mod spread;
mod stock;
mod tables;
mod totals;
mod trial;
mod trim;
mod turns;
mod victims;
mod walk;

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

use crate::action::{Action, ActionKind};
use crate::amounts::is_zero;
use crate::bits::Bits;
use crate::classes::RequirementSets;
use crate::fleet::Parallelism;
use crate::index::Index;
use crate::intern::{Map, NONE};
use crate::inventory::Inventory;
use crate::lots::Lots;
use crate::needs::{Demand, NeedsTable};
use crate::options::Options;
use crate::vocab::{Amounts, Vocabulary};

pub(crate) use bargain::Rank;
pub(crate) use cache::Cache;
pub use choice::DomainRule;
pub(crate) use choice::{Chosen, Contest};
pub(crate) use claimants::Claimants;
pub(crate) use credit::Credit;
pub(crate) use preempt::Victim;
pub(crate) use prices::{Asking, Tier};
pub(crate) use sources::Sources;
pub(crate) use tables::News;
pub use trial::{Trials, Tried};
pub(crate) use turns::Witness;

use cache::{End, Fresh, Last, Walked};
use fold::Normal;
use market::Market;
use release::{due_machines, next_due, reclaims};
use sets::SupplySets;
use turns::{Taken, Turns};
use walk::{Room, Walk};

/// The steps of a cycle, for whoever measures them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// The indexes caught up with the inventory and the requirement sets with the classes.
    Settle,
    /// Gangs were folded and bound machines credited, cluster by cluster.
    Credit,
    /// Needs still short took their turns: domains were chosen, free machines acquired, others' taken over.
    Acquire,
    /// Victims were picked.
    Preempt,
    /// Excess and idle machines were listed, and all actions written down.
    Release,
}

impl Step {
    /// All steps in order.
    pub const ALL: [Self; 5] = [Self::Settle, Self::Credit, Self::Acquire, Self::Preempt, Self::Release];

    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Settle => "settle",
            Self::Credit => "credit",
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
    /// How many machines it took over from needs after it: the last of those it claims.
    pub(crate) taken_over: usize,
    /// The machines already draining for it that count.
    pub(crate) in_flight: Vec<u32>,
    /// The victims picked for it, best first.
    pub(crate) victims: Vec<Victim>,
    /// What remains after all that; `None` if nothing does.
    pub(crate) unresolved: Option<Amounts>,
}

impl Short {
    /// A need after phase 1.
    fn new(
        cluster: u32,
        row: u32,
        demand: Arc<Demand>,
        domain: Option<Chosen>,
        missing: Amounts,
        acquired: Vec<u32>,
        taken_over: usize,
    ) -> Self {
        let (in_flight, victims, unresolved) = Default::default();
        Self { cluster, row, demand, domain, missing, acquired, taken_over, in_flight, victims, unresolved }
    }
}

/// How much a cycle had to do: counts of work, not of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Clusters whose credit was computed again.
    pub clusters_walked: usize,
    /// Of these, clusters in which a turn depended on other clusters.
    pub clusters_sharing: usize,
    /// Needs whose credit was computed again in other clusters.
    pub needs_renewed: usize,
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
    /// Who watches how a domain is chosen.
    pub(crate) witness: Option<&'a mut Witness>,
}

impl Cycle<'_> {
    pub(crate) fn run(mut self, probe: &mut dyn FnMut(Step)) -> Arc<Decision> {
        if let Some(decision) = self.unchanged() {
            return decision;
        }
        let mut work = self.settle(probe);
        let Cycle {
            vocab,
            inventory,
            needs,
            sets,
            index,
            cache,
            options,
            now_unix_nanos,
            parallelism,
            witness,
            ..
        } = self;
        let inventory = &*inventory;
        let mut decision = Decision::default();
        cache.last = None;
        // An index of all bound machines pays off when it is used again; the first time, a look at those that
        // come into question is quicker.
        if cache.preempting {
            index.ensure_bound(inventory);
            index.bound.iter_mut().for_each(|bound| Lots::follow(bound, inventory));
        }
        let index = &*index;
        let sources = Sources { vocab, inventory, index, classes: &index.classes, sets };

        let (mut stopped, mut waiting) = (Vec::new(), Map::default());
        let mut fresh = Vec::new();
        let (changed, renewed) = cache.changed(sources, needs);
        for Walked { cluster, fits_free, normal, end } in
            cache.walk_changed(&changed, sources, needs, parallelism)
        {
            match end {
                End::Credit(credit) => fresh.push(Fresh { cluster, fits_free, normal, credit: *credit }),
                End::Stopped(walk) => {
                    waiting.insert(cluster, (fits_free, normal));
                    stopped.push(walk);
                }
            }
        }
        work.clusters_walked = fresh.len() + stopped.len();
        work.clusters_sharing = stopped.len();
        work.needs_renewed = renewed.len();
        // A machine may have moved between two of these clusters: all old claims go before new ones come.
        for cluster in fresh.iter().map(|fresh| fresh.cluster).chain(waiting.keys().copied()) {
            cache.drop_claims(cluster);
        }
        cache.follow_renewed(&renewed);
        for fresh in fresh {
            cache.keep(fresh, sources, needs);
        }
        probe(Step::Credit);

        // Apart from the cache while they are in use; they go back at the end.
        let (mut supply_sets, mut stocks) =
            (std::mem::take(&mut cache.sets), std::mem::take(&mut cache.stocks));
        let market = Market::new(sources, &mut supply_sets, &mut stocks);
        let planned = cache.planned(|cluster| !waiting.contains_key(&cluster));
        let planned = planned.iter().map(|(cluster, credit)| (*cluster, &**credit));
        let mut room = Room::default();
        let walk_again = |cluster: u32| {
            room.slots.resize(vocab.key_count(), NONE);
            let plan = cache.plan(cluster);
            let Normal { rows, turns, .. } = &plan.normal;
            Box::new(Walk::new(sources, cluster, rows.clone(), turns.clone(), &mut room))
        };
        let Taken { shorts, walks, mut market } =
            Turns::new(market, &cache.rank, walk_again, witness).run(planned, stopped);
        decision.shorts = shorts;
        work.short_needs = decision.shorts.len();
        for walk in walks {
            let cluster = walk.cluster;
            let (fits_free, normal) = waiting.remove(&cluster).unwrap_or_else(|| {
                // It was walked on because a need takes over what others keep: what was kept of it is void.
                cache.drop_claims(cluster);
                let plan = cache.plan(cluster);
                (plan.fits_free.clone(), plan.normal.clone())
            });
            let mut credit = walk.credit;
            credit.shared = true;
            cache.keep(Fresh { cluster, fits_free, normal, credit }, sources, needs);
        }
        probe(Step::Acquire);

        let order = in_demand_order(&decision.shorts, &cache.rank);
        acquisitions(&mut decision, &order, sources);
        let due = due_machines(sources, options, now_unix_nanos, &market.taken);
        cache.preempting = decision.shorts.iter().any(|short| !is_zero(&short.missing));
        let preempted = if cache.preempting {
            cache.preempt(&mut decision, &mut market, options)
        } else {
            Bits::default()
        };
        probe(Step::Preempt);

        market.close();
        (cache.sets, cache.stocks) = (supply_sets, stocks);
        reclaims(&mut decision, cache, sources, options, &preempted);
        decision.actions.extend(due.into_iter().map(|machine| Action {
            kind: ActionKind::Delete,
            machine: inventory.id(machine).into(),
            cluster: None,
            need: None,
            grace_secs: None,
        }));
        decision.work = work;
        let mut shorts: Vec<Option<Short>> = decision.shorts.into_iter().map(Some).collect();
        decision.shorts = order.iter().filter_map(|at| shorts[*at as usize].take()).collect();
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
        Lots::follow(&mut index.free, inventory);
        index.bound.iter_mut().for_each(|bound| Lots::follow(bound, inventory));
        if work.rebuilt {
            cache.stocks.touched.note_all();
        }
        cache.stocks.note(index.touched_lots.drain(..), index.free_news.drain(..));
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
    for short in shorts.iter().filter(|short| !is_zero(&short.missing) && !short.demand.need.parked) {
        let number = sets.number(&short.demand, sources.classes, sources.sets);
        below = below.max(short.demand.priority());
        if seen.insert(number) {
            classes.union_with(&sets.get(number).members);
        }
    }
    (classes, below)
}

/// The places of short needs in demand order.
fn in_demand_order(shorts: &[Short], cluster_rank: &[u32]) -> Vec<u32> {
    let place = |short: &Short| {
        let (priority, need) = (Reverse(short.demand.priority()), &short.demand.need);
        (priority, need.first_seen_unix_nanos, cluster_rank[short.cluster as usize], short.row)
    };
    let mut order: Vec<_> = (0..).zip(shorts).map(|(at, short)| (place(short), at)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, at)| at).collect()
}

/// The places of short needs that stand in demand order, in precedence order.
pub(crate) fn precedence(shorts: &[impl Borrow<Short>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..shorts.len()).collect();
    // Stable: among equals demand order decides, and that is how they stand.
    order.sort_by_key(|at| shorts[*at].borrow().demand.precedence());
    order
}

/// Writes down what was acquired: need by need, Bootstrap before Provision, each by id.
fn acquisitions(decision: &mut Decision, order: &[u32], sources: Sources<'_>) {
    use bigfleet_model::machine::MachineState;
    let Decision { shorts, actions, .. } = decision;
    for short in order.iter().map(|at| &shorts[*at as usize]) {
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
