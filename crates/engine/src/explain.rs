//! Explanations of one need, one pair or one action, worked out when somebody asks.
//!
//! Everything here reads the fleet as the last cycle left it. Nothing is recorded while deciding, so asking
//! costs the one who asks and nobody else; and because it is computed from the same tables the decision was
//! made with, it cannot tell another story.

mod action;
mod coverage;
mod funnel;
mod machine;
mod remedy;
mod why_not;

use std::sync::Arc;

use bigfleet_model::machine::MachineState;
use bigfleet_model::need::NeedKey;

use crate::cycle::{Credit, Decision, Short};
use crate::fleet::Fleet;
use crate::intern::NONE;
use crate::needs::Demand;
use crate::report::Taken;

pub use action::{ActionExplanation, Explainer, Rule, RunnerUp};
pub use coverage::{DomainChoice, DomainCoverage};
pub use funnel::{Filter, Funnel, Holder, Removed, Unlisted};
pub use machine::MachineStory;
pub use remedy::{Change, Remedy};
pub use why_not::Exclusion;

/// How a need came by a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// It was bound, or is being created, for this very need.
    Own,
    /// It is bound to the cluster, and no need keeps it.
    Unkept,
    /// A need after this one keeps it, and there was nothing left to acquire.
    TakenOver,
    /// It was free.
    Acquired,
}

impl Origin {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Unkept => "unkept",
            Self::TakenOver => "taken_over",
            Self::Acquired => "acquired",
        }
    }
}

/// A machine, and the other need it was bound for or that has it; `None` for none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lent {
    /// The machine.
    pub machine: Box<str>,
    /// The other need.
    pub need: Option<NeedKey>,
}

/// How a need came by what it claims, and what became of its own machines that it does not claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    /// How many of its own machines it claims.
    pub own: usize,
    /// Machines it claims that no need kept, and for whom they were bound.
    pub unkept: Vec<Lent>,
    /// Machines it took over, and from whom.
    pub taken_over: Vec<Lent>,
    /// Its own machines that others claim, and who.
    pub lost: Vec<Lent>,
    /// Its own machines that count and that it does not need: the others cover it.
    pub given_back: Vec<Box<str>>,
    /// How many gangs were folded into it.
    pub gangs: usize,
}

/// A need as the last cycle saw it.
pub(crate) struct Seen<'a> {
    pub(crate) fleet: &'a Fleet,
    pub(crate) decision: &'a Arc<Decision>,
    pub(crate) credit: &'a Credit,
    pub(crate) row: u32,
    pub(crate) short: Option<&'a Short>,
}

impl<'a> Seen<'a> {
    pub(crate) fn demand(&self) -> &'a Arc<Demand> {
        &self.credit.rows[self.row as usize]
    }

    /// The machines credit gave it.
    pub(crate) fn credited(&self) -> &'a [u32] {
        self.credit.claims_of(self.row as usize)
    }

    /// The free machines it gets.
    pub(crate) fn acquired(&self) -> &'a [u32] {
        self.short.map_or(&[], |short| &short.acquired)
    }

    /// The domain of a machine under the gang's key.
    pub(crate) fn domain_of(&self, machine: u32) -> Option<u32> {
        let classes = &self.fleet.index.classes;
        let domain = classes.domain(self.demand().same?);
        Some(classes.domain_of_kind(domain, self.fleet.inventory.decided(machine).kind))
    }

    /// How the need came by a machine it claims.
    fn origin_of(&self, machine: u32) -> Origin {
        let credited = self.credited();
        let key = self.fleet.inventory.decided(machine).key;
        let taken_over = self.short.map_or(0, |short| short.taken_over);
        if !credited.contains(&machine) {
            Origin::Acquired
        } else if self.demand().own_keys().any(|own| own == key) {
            Origin::Own
        } else if credited[credited.len() - taken_over..].contains(&machine) {
            Origin::TakenOver
        } else {
            Origin::Unkept
        }
    }
}

impl Fleet {
    /// Finds a need in the last cycle. A gang that was folded is found under its own identity too, as the
    /// plain need it became part of.
    pub(crate) fn seen(&self, key: &NeedKey) -> Option<Seen<'_>> {
        let decision = self.cache.last()?;
        let (cluster, row) = self.row_of(key)?;
        let credit = self.cache.credit(cluster)?;
        let short = self.cache.short(cluster, row);
        Some(Seen { fleet: self, decision, credit, row, short })
    }

    /// The place of a need among the credited ones: its cluster, and its row there.
    pub(crate) fn row_of(&self, key: &NeedKey) -> Option<(u32, u32)> {
        let cluster = self.vocab.find_cluster(&key.cluster)?;
        let credit = self.cache.credit(cluster)?;
        let named = |demand: &Arc<Demand>| {
            (demand.need.profile.fingerprint(), &*demand.need.group) == (&*key.fingerprint, &*key.group)
        };
        // A folded need may have the identity of a plain one; who asks by name means the plain one.
        let plain = credit.rows.iter().position(|row| !row.folded && named(row));
        let row = plain.or_else(|| credit.rows.iter().position(named)).or_else(|| {
            let raw = self.need(key)?;
            let gang = raw.gang.as_ref()?;
            credit
                .rows
                .iter()
                .position(|row| row.folded && row.key == gang.key && row.need.min_unit == raw.need.aggregate)
        })?;
        Some((cluster, row as u32))
    }

    /// Finds the very need an action is for: a plain need and a folded one may share an identity.
    pub(crate) fn seen_exactly(&self, demand: &Arc<Demand>) -> Option<Seen<'_>> {
        let decision = self.cache.last()?;
        let cluster = self.vocab.find_cluster(&demand.need.cluster)?;
        let credit = self.cache.credit(cluster)?;
        let row = credit.rows.iter().position(|row| Arc::ptr_eq(row, demand))? as u32;
        let short = self.cache.short(cluster, row);
        Some(Seen { fleet: self, decision, credit, row, short })
    }

    /// What the last cycle took of the free machines, counted when first asked.
    pub(crate) fn taken(&self) -> Option<&Taken> {
        self.cache.taken(|decision| Taken::of(decision, self))
    }

    /// Who has each machine after the last cycle: the need that claims it, by machine number.
    pub(crate) fn claimants(&self) -> Vec<Option<&Arc<Demand>>> {
        let mut claimants = vec![None; self.inventory.bound()];
        for cluster in self.cache.clusters_by_name() {
            let Some(credit) = self.cache.credit(*cluster) else { continue };
            for (row, machine) in credit.claims() {
                claimants[machine as usize] = Some(&credit.rows[row]);
            }
        }
        for short in self.cache.last().iter().flat_map(|decision| &decision.shorts) {
            for machine in &short.acquired {
                claimants[*machine as usize] = Some(&short.demand);
            }
        }
        claimants
    }

    /// Every machine that some need claims after the last cycle, with that need, in no promised order.
    pub fn claims(&self) -> impl Iterator<Item = (&str, &Arc<Demand>)> {
        let credits = self.cache.clusters_by_name().iter().filter_map(|cluster| self.cache.credit(*cluster));
        let bound = credits.flat_map(|credit| {
            credit.claims().map(|(row, machine)| (self.inventory.id(machine), &credit.rows[row]))
        });
        let shorts = self.cache.last().into_iter().flat_map(|decision| &decision.shorts);
        let free = shorts.flat_map(|short| {
            short.acquired.iter().map(|machine| (self.inventory.id(*machine), &short.demand))
        });
        bound.chain(free)
    }

    /// The need that claims one machine after the last cycle.
    pub(crate) fn claimant(&self, machine: u32) -> Option<&Arc<Demand>> {
        let row = self.inventory.decided(machine);
        let holder = match row.state? {
            MachineState::Configured | MachineState::Configuring => row.cluster,
            MachineState::Creating if row.key != NONE => self.vocab.cluster_of_key(row.key),
            _ => {
                // Most free machines are not taken, and nobody then need be asked.
                let decision = self
                    .cache
                    .last()
                    .filter(|_| self.taken().is_some_and(|t| t.machines.contains(machine)))?;
                let taker = decision.shorts.iter().find(|short| short.acquired.contains(&machine));
                return taker.map(|short| &short.demand);
            }
        };
        let credit = self.cache.credit(holder)?;
        credit.claims().find(|(_, claimed)| *claimed == machine).map(|(row, _)| &credit.rows[row])
    }

    /// How a need came by what it claims. `None` if the last cycle knew no such need.
    pub fn origins(&self, key: &NeedKey) -> Option<Origins> {
        let seen = self.seen(key)?;
        let demand = seen.demand();
        let mut origins = Origins { gangs: demand.members.len(), ..Origins::default() };
        for machine in seen.credited() {
            let lent =
                || Lent { machine: self.inventory.id(*machine).into(), need: self.bound_for(*machine) };
            match seen.origin_of(*machine) {
                Origin::Own => origins.own += 1,
                Origin::TakenOver => origins.taken_over.push(lent()),
                Origin::Unkept | Origin::Acquired => origins.unkept.push(lent()),
            }
        }
        let cluster = self.vocab.find_cluster(&key.cluster)?;
        let claimed = seen.credited();
        for held in self.index.holdings.supply(cluster).all() {
            if !demand.own_keys().any(|key| key == held.key) || claimed.contains(&held.machine) {
                continue;
            }
            let machine: Box<str> = self.inventory.id(held.machine).into();
            let taker = seen.credit.claims().find(|(_, claimed)| *claimed == held.machine);
            if let Some((row, _)) = taker {
                let need = Some(seen.credit.rows[row].need.key());
                origins.lost.push(Lent { machine, need });
            } else if self.counts(held.kind, demand) {
                origins.given_back.push(machine);
            }
        }
        Some(origins)
    }

    /// The need a machine is stamped for.
    fn bound_for(&self, machine: u32) -> Option<NeedKey> {
        let key = self.inventory.decided(machine).key;
        (key != NONE).then(|| self.vocab.need_key(key))
    }

    fn counts(&self, kind: u32, demand: &Demand) -> bool {
        let class = self.index.classes.of_kind(kind);
        self.sets.admits(demand.requirements).contains(class)
            && self.index.classes.covers(class, &demand.min_unit)
    }
}
