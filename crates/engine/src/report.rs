//! What became of every need in the last cycle, put together when somebody asks.

mod cluster;
mod free;
mod provided;
mod short;
mod table;

use std::cmp::Reverse;
use std::sync::Arc;

use bigfleet_model::resource::ResourceVec;

use crate::cycle::{Chosen, Credit, Short};
use crate::fleet::Fleet;
use crate::intern::Map;
use crate::needs::Demand;
use crate::verdict::{Judge, Reason};

pub use free::Available;
pub(crate) use free::Taken;
pub use provided::Provided;
pub use short::ShortNeed;

/// The domain of a gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainView<'a> {
    /// The value of the `Same` key.
    pub value: &'a str,
    /// Whether everything in that domain together covers the gang.
    pub covers: bool,
}

/// What became of one need.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    /// The need, after folding.
    pub demand: &'a Arc<Demand>,
    /// The bound machines it claims.
    pub credited: Vec<&'a str>,
    /// Those of them that needs after it would have kept, and that it took over because it could acquire too little.
    pub taken_over: Vec<&'a str>,
    /// The free machines it gets, in the order it took them.
    pub acquired: Vec<&'a str>,
    /// For a gang: its domain, if it got one.
    pub domain: Option<DomainView<'a>>,
    /// What phase 1 left missing.
    pub deficit: ResourceVec,
    /// The machines already draining for it.
    pub in_flight: Vec<&'a str>,
    /// The machines preempted for it, best victim first.
    pub victims: Vec<&'a str>,
    /// What is missing after all that; `None` if phase 2 found enough or had nothing to do.
    pub unresolved: Option<ResourceVec>,
    /// Why it is short; `None` if it is not.
    pub reason: Option<Reason>,
}

impl Fleet {
    /// What became of every need in the last cycle, in demand order. Empty before the first cycle.
    ///
    /// Edits since that cycle may make machine names stale but never wrong needs: ask right after a cycle.
    pub fn outcomes(&self) -> Vec<Outcome<'_>> {
        let Some(decision) = self.cache.last() else { return Vec::new() };
        let shorts: Map<(u32, u32), &Short> =
            decision.shorts.iter().map(|short| ((short.cluster, short.row), short)).collect();
        let mut rows: Vec<(&Credit, u32, u32)> = Vec::new();
        for cluster in self.cache.clusters_by_name() {
            let Some(credit) = self.cache.credit(*cluster) else { continue };
            rows.extend((0..credit.rows.len() as u32).map(|row| (credit, *cluster, row)));
        }
        rows.sort_by_key(|(credit, _, row)| {
            let demand = &credit.rows[*row as usize];
            (Reverse(demand.priority()), demand.need.first_seen_unix_nanos)
        });
        let judge = Judge::new(self, decision);
        rows.into_iter()
            .map(|(credit, cluster, row)| {
                self.outcome(credit, row, shorts.get(&(cluster, row)).copied(), &judge)
            })
            .collect()
    }

    fn domain_view(&self, demand: &Demand, chosen: Chosen) -> DomainView<'_> {
        let domain = self.index.classes.domain(demand.same.expect("only gangs have a domain"));
        let value = self.vocab.text(self.index.classes.domain_value(domain, chosen.value));
        DomainView { value, covers: chosen.covers }
    }

    fn outcome<'a>(
        &'a self,
        credit: &'a Credit,
        row: u32,
        short: Option<&Short>,
        judge: &Judge<'_>,
    ) -> Outcome<'a> {
        let names = |machines: &[u32]| machines.iter().map(|m| self.inventory.id(*m)).collect::<Vec<_>>();
        let demand = &credit.rows[row as usize];
        let credited = credit.claims_of(row as usize);
        let domain = credit.domain_of(row).map(|chosen| self.domain_view(demand, chosen));
        let victims: Vec<u32> = short.iter().flat_map(|s| &s.victims).map(|victim| victim.machine).collect();
        Outcome {
            demand,
            credited: names(credited),
            taken_over: names(&credited[credited.len() - short.map_or(0, |s| s.taken_over)..]),
            acquired: names(short.map_or(&[], |s| &s.acquired)),
            domain,
            deficit: short.map_or(ResourceVec::ZERO, |s| self.vocab.vector(&s.missing)),
            in_flight: names(short.map_or(&[], |s| &s.in_flight)),
            victims: names(&victims),
            unresolved: short.and_then(|s| s.unresolved.as_ref()).map(|missing| self.vocab.vector(missing)),
            reason: short.and_then(|s| judge.reason(s, credited)),
        }
    }
}
