//! One need as it might be, decided without the rest of the cycle.
//!
//! Whoever asks what would help a need wants to know what a cycle would do for it, and nothing else. Machines go to
//! needs in a fixed order, so whatever comes after the need does not matter, and what comes before it got the same in
//! the last cycle, unless it is touched by the change. Only from there on is anything worked out again.

use bigfleet_model::need::{Need, NeedKey};

use crate::amounts::is_zero;
use crate::fleet::Fleet;
use crate::intern::Map;
use crate::options::Options;
use crate::vocab::Amounts;

use super::acquire::Acquire;
use super::credit::{Credit, Sources};
use super::preempt::{Claimants, Preempt};
use super::{Cache, Cycle, Decision, Short, precedence, wanted_victims};

/// What a cycle would do for a need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Whether it would be served, now or as soon as its victims have drained.
    pub satisfied: bool,
    /// How many free machines it would get.
    pub acquires: usize,
    /// How many machines would be preempted for it.
    pub preempts: usize,
}

/// What the last cycle decided, as far as it is to be decided the same way again.
struct Before<'a> {
    cache: &'a Cache,
    decision: &'a Decision,
}

impl Before<'_> {
    /// Whether a need is an old one that holds the same machines.
    fn is(&self, old: &Short, new: &Short, credit: &Credit) -> bool {
        let (a, b) = (&old.demand, &new.demand);
        let same = (old.cluster, old.row, old.domain) == (new.cluster, new.row, new.domain)
            && (a.key, a.folded, a.requirements) == (b.key, b.folded, b.requirements)
            && (&a.aggregate, &a.min_unit) == (&b.aggregate, &b.min_unit)
            && a.need.parked == b.need.parked;
        same && self.cache.credit(old.cluster).is_some_and(|before| {
            std::ptr::eq(before, credit)
                || before.claims_of(old.row as usize) == credit.claims_of(new.row as usize)
        })
    }

    /// The priorities some bound machine is claimed at now and was not before, or the other way round: from above the
    /// first of each pair to the second.
    fn moved_claims(&self, cache: &Cache) -> Vec<(i64, i64)> {
        let mut moved = Vec::new();
        for cluster in cache.clusters_by_name() {
            let (old, new) = (self.cache.credit(*cluster), cache.credit(*cluster));
            if let (Some(old), Some(new)) = (old, new)
                && (std::ptr::eq(old, new) || old.has_same_claims(new))
            {
                continue;
            }
            let mut priorities: Map<u32, (i64, i64)> = Map::default();
            let nobody = (Claimants::UNCLAIMED, Claimants::UNCLAIMED);
            for (priority, machine) in old.into_iter().flat_map(Credit::claimed_at) {
                priorities.entry(machine).or_insert(nobody).0 = i64::from(priority);
            }
            for (priority, machine) in new.into_iter().flat_map(Credit::claimed_at) {
                priorities.entry(machine).or_insert(nobody).1 = i64::from(priority);
            }
            let differing = priorities.into_values().filter(|(old, new)| old != new);
            moved.extend(differing.map(|(old, new)| (old.min(new), old.max(new))));
        }
        moved.sort_unstable();
        moved.dedup();
        moved
    }

    /// What credit left a need missing.
    fn was_missing(&self, old: &Short) -> Option<&Amounts> {
        let short = &self.cache.credit(old.cluster)?.short;
        let at = short.binary_search_by_key(&old.row, |(row, _)| *row).ok()?;
        Some(&short[at].1)
    }
}

/// A fleet to try changes of needs on, as the last cycle saw it.
pub struct Trials<'a> {
    fleet: &'a Fleet,
    /// A fork with everything at hand that trials look at.
    base: Fleet,
    options: &'a Options,
    now_unix_nanos: i64,
}

impl Fleet {
    /// Prepares to try changes of needs. `options` are those of the last cycle.
    pub fn trials<'a>(&'a self, options: &'a Options, now_unix_nanos: i64) -> Trials<'a> {
        let mut base = self.fork();
        // What was observed since the last cycle is not part of the question.
        base.inventory.undo_changes();
        base.index.ensure_bound(&base.inventory);
        base.cache.follow_claims(base.inventory.bound());
        Trials { fleet: self, base, options, now_unix_nanos }
    }

    /// Everything a cycle reads.
    fn parts<'a>(&'a mut self, options: &'a Options, now_unix_nanos: i64) -> Cycle<'a> {
        let parallelism = self.parallelism();
        let Self { vocab, inventory, needs, interest, sets, index, cache, .. } = self;
        Cycle { vocab, inventory, needs, interest, sets, index, cache, options, now_unix_nanos, parallelism }
    }
}

impl Trials<'_> {
    /// What a cycle would do for a need if its cluster reported these rows instead. `None` if there is no such need
    /// among them, or they are refused.
    pub fn decide(&self, cluster: &str, rows: Vec<Need>, key: &NeedKey) -> Option<Tried> {
        let (options, now_unix_nanos) = (self.options, self.now_unix_nanos);
        let mut fleet = self.base.fork();
        fleet.replace(cluster, rows, now_unix_nanos).ok()?;
        let number = fleet.vocab.find_cluster(cluster)?;
        // Clusters whose gangs wait for free machines depend on each other; others can be looked at alone.
        let was_alone = self.base.cache.credit(number).is_some_and(|credit| !credit.shared);
        let mut parts = fleet.parts(options, now_unix_nanos);
        let mut work = parts.settle(&mut |_| {});
        let alone = was_alone && !work.rebuilt && parts.credit(Some(number), &mut work, &mut |_| {});
        if !alone {
            parts.credit(None, &mut work, &mut |_| {});
        }
        let (cluster, row) = fleet.row_of(key)?;
        let last = self.fleet.cache.last.as_ref()?;
        let before = Before { cache: &self.fleet.cache, decision: &last.decision };
        let before = (last.options == *options && !work.rebuilt).then_some(before);
        let mut shorts = fleet.cache.shorts();
        let Some(own) = shorts.iter().position(|short| (short.cluster, short.row) == (cluster, row)) else {
            return Some(Tried { satisfied: true, acquires: 0, preempts: 0 });
        };
        let Fleet { vocab, inventory, index, sets, cache, .. } = &mut fleet;
        let sources = Sources { vocab, inventory, index, classes: &index.classes, sets };
        acquire_until(&mut shorts, own, sources, cache, before.as_ref());
        let short = &shorts[own];
        if !is_zero(&short.missing) && !short.demand.need.parked {
            preempt_until(&mut shorts, own, sources, cache, options, before.as_ref());
        }
        let short = &shorts[own];
        Some(Tried {
            satisfied: is_zero(&short.missing) || !short.demand.need.parked && short.unresolved.is_none(),
            acquires: short.acquired.len(),
            preempts: short.victims.len(),
        })
    }
}

/// Acquires until it is known what one need gets, and, if it stays short, what those get that preempt before it.
fn acquire_until(
    shorts: &mut [Short],
    own: usize,
    sources: Sources<'_>,
    cache: &mut Cache,
    before: Option<&Before<'_>>,
) {
    let Cache { sets, plans, .. } = cache;
    let mut acquire = Acquire::new(sources, sets);
    let old = before.map(|before| (before, precedence(&before.decision.shorts)));
    let mut repeats = old.is_some();
    let priority = shorts[own].demand.priority();
    let mut had_its_turn = false;
    for (turn, at) in precedence(shorts).into_iter().enumerate() {
        if had_its_turn && (is_zero(&shorts[own].missing) || shorts[at].demand.priority() < priority) {
            return;
        }
        had_its_turn |= at == own;
        let short = &mut shorts[at];
        let credit = &plans[short.cluster as usize].as_ref().expect("a short need has a plan").credit;
        let same = old.as_ref().filter(|_| repeats).and_then(|(before, order)| {
            let old = &before.decision.shorts[*order.get(turn)?];
            let is_missing = before.was_missing(old) == Some(&short.missing);
            (is_missing && before.is(old, short, credit)).then_some(old)
        });
        if let Some(old) = same {
            short.acquired.clone_from(&old.acquired);
            short.missing = old.missing.clone();
            for machine in &old.acquired {
                acquire.taken.insert(*machine);
            }
            continue;
        }
        repeats = false;
        acquire.serve(short, credit.claims_of(short.row as usize));
    }
}

/// Preempts, in demand order, until it is known what one need gets.
fn preempt_until(
    shorts: &mut [Short],
    own: usize,
    sources: Sources<'_>,
    cache: &mut Cache,
    options: &Options,
    before: Option<&Before<'_>>,
) {
    let some_bound;
    let bound = if let Some(bound) = &sources.index.bound {
        &**bound
    } else {
        let (classes, below) = wanted_victims(&shorts[..=own], sources, &mut cache.sets);
        some_bound = sources.index.bound_among(sources.inventory, sources.vocab, &classes, below);
        &some_bound
    };
    let claimants = cache.claimants(sources.inventory.bound()).into_owned();
    let mut old = before.into_iter().flat_map(|before| {
        let unmet = before.decision.shorts.iter().filter(|short| !is_zero(&short.missing));
        unmet.map(move |short| (before, short))
    });
    // A machine that is claimed at another priority than before may be a victim for others than before.
    let moved = before.map_or_else(Vec::new, |before| before.moved_claims(cache));
    let mut repeats = before.is_some();
    let Cache { sets, plans, .. } = cache;
    let mut preempt = Preempt::new(sources, bound, sets, options, &claimants);
    for short in shorts[..=own].iter_mut().filter(|short| !is_zero(&short.missing)) {
        let credit = &plans[short.cluster as usize].as_ref().expect("a short need has a plan").credit;
        let priority = i64::from(short.demand.priority());
        let same = old.next().filter(|(before, old)| {
            repeats
                && !moved.iter().any(|(low, high)| (low + 1..=*high).contains(&priority))
                && (&old.missing, &old.acquired) == (&short.missing, &short.acquired)
                && before.is(old, short, credit)
        });
        if let Some((_, old)) = same {
            preempt.repeat(short, old);
            continue;
        }
        repeats = false;
        preempt.serve(short, credit.claims_of(short.row as usize));
    }
}
