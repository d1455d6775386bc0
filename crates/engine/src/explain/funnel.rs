//! What was considered for a need and what each rule removed.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::machine::MachineState;
use bigfleet_model::need::NeedKey;

use crate::amounts::contributes;
use crate::bits::Bits;
use crate::fleet::Fleet;
use crate::intern::Map;
use crate::inventory::Row;
use crate::needs::Demand;

/// A rule that removes machines from a need's sight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Being deleted, or broken.
    Dead,
    /// A requirement they do not meet, in words.
    Requirement(String),
    /// Too small for one indivisible piece.
    MinUnit,
    /// They have nothing of what is still missing.
    AddsNothing,
    /// Outside the domain the gang was given.
    OtherDomain,
}

impl Filter {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Requirement(_) => "requirement",
            Self::MinUnit => "min_unit",
            Self::AddsNothing => "adds_nothing",
            Self::OtherDomain => "other_domain",
        }
    }
}

/// How many machines a rule removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The rule.
    pub by: Filter,
    /// How many it removed of those the rules before it left.
    pub machines: usize,
}

/// Who has machines a need could use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The need that claims them; `None` for machines nobody claims.
    pub need: Option<NeedKey>,
    /// The cluster they are bound to; empty for free machines.
    pub cluster: Box<str>,
    /// The state they are in.
    pub state: MachineState,
    /// The priority of the need that claims them, or the one they were bound at.
    pub priority: i32,
    /// How many there are.
    pub machines: usize,
}

/// Holders listed by name, at most: a need that may go anywhere competes with all others.
const LISTED: usize = 100;

/// What holders are told apart by: the claimant, the cluster, the state and the priority.
type HolderPlace = (Option<*const Demand>, u32, MachineState, i32);

/// From all machines down to those a need could use, and who has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Funnel {
    /// All machines known.
    pub considered: usize,
    /// What each rule removed, in order.
    pub removed: Vec<Removed>,
    /// The machines the need has: credited and acquired.
    pub its_own: usize,
    /// How many others it could use, by the state they are in.
    pub useful: BTreeMap<MachineState, usize>,
    /// The highest priority any of those is held at.
    pub highest_priority: Option<i32>,
    /// The same, of those in all domains and not only in the one a gang was given.
    pub highest_priority_anywhere: Option<i32>,
    /// Who has them, the most machines first; at most 100 holders.
    pub holders: Vec<Holder>,
    /// How many holders were not listed, and how many machines they have.
    pub unlisted: Unlisted,
}

/// Holders that were not listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unlisted {
    /// How many there are.
    pub holders: usize,
    /// How many machines they have together.
    pub machines: usize,
}

/// Machines one holder has.
struct Share<'a> {
    claimant: Option<&'a Arc<Demand>>,
    cluster: u32,
    state: MachineState,
    priority: i32,
    machines: usize,
}

impl Fleet {
    /// What was considered for a need, what each rule removed, and who holds what it could use. `None` if
    /// the last cycle knew no such need.
    pub fn funnel(&self, key: &NeedKey) -> Option<Funnel> {
        let seen = self.seen(key)?;
        let demand = seen.demand();
        let missing = seen.short.map_or(&demand.aggregate, |short| &short.missing);
        let requirements = demand.need.profile.requirements();
        let mut removed: Vec<Removed> = Vec::new();
        let by = |filter: Filter| Removed { by: filter, machines: 0 };
        removed.push(by(Filter::Dead));
        removed.extend(requirements.iter().map(|r| by(Filter::Requirement(r.to_string()))));
        removed.extend([by(Filter::MinUnit), by(Filter::OtherDomain), by(Filter::AddsNothing)]);
        let (min_unit, adds_nothing) = (1 + requirements.len(), 3 + requirements.len());
        let classes = &self.index.classes;
        let mut own = Bits::with_bound(self.inventory.bound());
        seen.credited().iter().chain(seen.acquired()).for_each(|machine| {
            own.insert(*machine);
        });
        // Machines of one class are alike to every rule but that of the domain: each class is asked once, and
        // knows the rule that removes it.
        let admitted = self.sets.admits(demand.requirements);
        let mut rules: Vec<Option<Option<usize>>> = vec![None; classes.len()];
        let rule_for = |class: u32, kind: u32| {
            let unmet = || requirements.iter().position(|r| !self.kind_meets(kind, r)).map(|at| 1 + at);
            if !admitted.contains(class) {
                unmet()
            } else if !classes.covers(class, &demand.min_unit) {
                Some(min_unit)
            } else if !contributes(classes.provides(class), missing) {
                Some(adds_nothing)
            } else {
                None
            }
        };
        let chosen = seen.short.and_then(|short| short.domain).map(|chosen| chosen.value);
        let mut useful: Vec<(u32, &Row)> = Vec::new();
        let mut elsewhere: Vec<(u32, &Row)> = Vec::new();
        let (mut considered, mut its_own) = (0, 0);
        for (machine, row) in self.inventory.decided_rows() {
            let Some(state) = row.state else { continue };
            considered += 1;
            if own.contains(machine) {
                its_own += 1;
                continue;
            }
            if matches!(state, MachineState::Deleting | MachineState::Failed) {
                removed[0].machines += 1;
                continue;
            }
            let class = classes.of_kind(row.kind);
            let rule = *rules[class as usize].get_or_insert_with(|| rule_for(class, row.kind));
            // The domain is looked at before what a machine adds, and tells machines of a class apart.
            let fits = rule.is_none_or(|rule| rule == adds_nothing);
            if fits && chosen.is_some_and(|value| seen.domain_of(machine) != Some(value)) {
                removed[min_unit + 1].machines += 1;
                if rule.is_none() {
                    elsewhere.push((machine, row));
                }
            } else if let Some(rule) = rule {
                removed[rule].machines += 1;
            } else {
                useful.push((machine, row));
            }
        }
        let mut shares: Map<HolderPlace, Share<'_>> = Map::default();
        let (mut by_state, mut highest_priority) = (BTreeMap::new(), None);
        let none = useful.is_empty() && elsewhere.is_empty();
        let claimants = if none { Vec::new() } else { self.claimants() };
        let held_at = |machine: u32, row: &Row| {
            let claimant: Option<&Arc<Demand>> = claimants[machine as usize];
            claimant.map_or_else(|| self.vocab.worth_of(row.worth).priority, |demand| demand.priority())
        };
        let elsewhere = elsewhere.into_iter().map(|(machine, row)| held_at(machine, row)).max();
        for (machine, row) in useful {
            let (claimant, priority) = (claimants[machine as usize], held_at(machine, row));
            let state = row.state.expect("a useful machine is a known one");
            let (cluster, place) = (row.cluster, (claimant.map(Arc::as_ptr), row.cluster, state, priority));
            let share =
                shares.entry(place).or_insert(Share { claimant, cluster, state, priority, machines: 0 });
            share.machines += 1;
        }
        for share in shares.values() {
            *by_state.entry(share.state).or_default() += share.machines;
            highest_priority = highest_priority.max(Some(share.priority));
        }
        let (holders, unlisted) = self.largest(shares.into_values().collect());
        removed.retain(|removed| removed.machines > 0);
        Some(Funnel {
            considered,
            removed,
            its_own,
            useful: by_state,
            highest_priority,
            highest_priority_anywhere: highest_priority.max(elsewhere),
            holders,
            unlisted,
        })
    }

    /// The largest holders by name, and how much is with the others.
    fn largest(&self, mut shares: Vec<Share<'_>>) -> (Vec<Holder>, Unlisted) {
        let order = |a: &Share<'_>, b: &Share<'_>| {
            let need = |share: &Share<'_>| {
                let need = &share.claimant?.need;
                Some((need.profile.fingerprint().to_owned(), need.group.clone()))
            };
            let name = |share: &Share<'_>| self.name_of_cluster(share.cluster);
            b.machines
                .cmp(&a.machines)
                .then_with(|| name(a).cmp(name(b)))
                .then_with(|| (a.state, a.priority).cmp(&(b.state, b.priority)))
                .then_with(|| need(a).cmp(&need(b)))
        };
        let mut unlisted = Unlisted::default();
        if shares.len() > LISTED {
            shares.select_nth_unstable_by(LISTED, order);
            let others = shares.drain(LISTED..).map(|share| share.machines);
            unlisted = others.fold(unlisted, |sum, machines| Unlisted {
                holders: sum.holders + 1,
                machines: sum.machines + machines,
            });
        }
        shares.sort_by(order);
        let holder = |share: Share<'_>| Holder {
            need: share.claimant.map(|demand| demand.need.key()),
            cluster: self.name_of_cluster(share.cluster).into(),
            state: share.state,
            priority: share.priority,
            machines: share.machines,
        };
        (shares.into_iter().map(holder).collect(), unlisted)
    }
}
