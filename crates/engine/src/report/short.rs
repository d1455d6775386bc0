//! The needs that are short, and single needs, for callers that ask after every cycle.
//!
//! A fleet has tens of thousands of needs and few are short. What is here costs what is asked about, not what
//! the fleet holds.

use std::cmp::Ordering;
use std::sync::Arc;

use bigfleet_model::machine::Machine;
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::resource::ResourceVec;

use crate::amounts::is_zero;
use crate::fleet::Fleet;
use crate::needs::Demand;
use crate::verdict::{Judge, Reason};

use super::Outcome;

/// A need phase 1 left short.
#[derive(Clone, Debug)]
pub struct ShortNeed<'a> {
    /// The need, after folding.
    pub demand: &'a Arc<Demand>,
    /// What phase 1 left missing.
    pub missing: ResourceVec,
    /// What is missing after phase 2; `None` if what drains for it and its victims will do.
    pub unresolved: Option<ResourceVec>,
    /// How many free machines it gets all the same.
    pub acquired: usize,
    /// How many machines already drain for it.
    pub in_flight: usize,
    /// How many machines are preempted for it.
    pub victims: usize,
    /// For a gang that got a domain: whether everything in that domain together covers it.
    pub domain_covers: Option<bool>,
}

impl Fleet {
    /// The needs phase 1 left short in the last cycle, in demand order. Empty before the first cycle.
    pub fn short_needs(&self) -> Vec<ShortNeed<'_>> {
        let shorts = self.cache.last().into_iter().flat_map(|decision| &decision.shorts);
        shorts
            .filter(|short| !is_zero(&short.missing))
            .map(|short| ShortNeed {
                demand: &short.demand,
                missing: self.vocab.vector(&short.missing),
                unresolved: short.unresolved.as_ref().map(|missing| self.vocab.vector(missing)),
                acquired: short.acquired.len(),
                in_flight: short.in_flight.len(),
                victims: short.victims.len(),
                domain_covers: short.domain.map(|chosen| chosen.covers),
            })
            .collect()
    }

    /// Whether a need of higher precedence than `need`, one that phase 2 left short in the last cycle, could use a
    /// machine. A strict spread may still forbid it.
    pub fn is_wanted_above(&self, need: &Need, machine: &Machine) -> bool {
        let shorts = self.cache.last().into_iter().flat_map(|decision| &decision.shorts);
        // They come in demand order, and both orders begin with the priority.
        let above = shorts.take_while(|short| short.demand.priority() >= need.profile.priority());
        above.filter(|short| !short.demand.need.parked).any(|short| {
            let other = &short.demand.need;
            let in_domain = other.profile.same().is_none_or(|same| {
                let domain = short.domain.map(|chosen| self.domain_view(&short.demand, chosen).value);
                domain.is_some() && domain == machine.facts().value(same.key())
            });
            let missing = short.unresolved.as_ref();
            missing.is_some()
                && other.cmp_precedence(need) == Ordering::Less
                && in_domain
                && other.profile.matches(machine.facts())
                && other.fits_on(machine.provides())
                && missing.is_some_and(|missing| machine.provides().contributes(&self.vocab.vector(missing)))
        })
    }

    /// What became of one need in the last cycle. A gang that was folded is answered with the plain need it
    /// became part of. `None` if the last cycle knew no such need.
    pub fn outcome_of(&self, key: &NeedKey) -> Option<Outcome<'_>> {
        let seen = self.seen(key)?;
        let judge = Judge::new(self, seen.decision);
        Some(self.outcome(seen.credit, seen.row, seen.short, &judge))
    }

    /// Why a need is short after the last cycle; `None` if it is not, or is not known.
    pub fn reason_of(&self, key: &NeedKey) -> Option<Reason> {
        self.reasons_of([key]).pop().flatten()
    }

    /// Why each of some needs is short after the last cycle, in the order asked. What several answers need is
    /// counted once.
    pub fn reasons_of<'k>(&self, keys: impl IntoIterator<Item = &'k NeedKey>) -> Vec<Option<Reason>> {
        let Some(decision) = self.cache.last() else { return keys.into_iter().map(|_| None).collect() };
        let judge = Judge::new(self, decision);
        let reason = |key| {
            let seen = self.seen(key)?;
            judge.reason(seen.short?, seen.credited())
        };
        keys.into_iter().map(reason).collect()
    }
}
