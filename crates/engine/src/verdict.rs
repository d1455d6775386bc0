//! Why a need is short: one reason, the first that applies.
//!
//! Verdicts never take part in a decision. They are worked out from the fleet as it stands, for those who
//! ask, and cost nothing when nobody does.

use std::cell::OnceCell;
use std::fmt;

use bigfleet_model::resource::MAX_AMOUNT;

use crate::amounts::{contributes, is_zero};
use crate::cycle::{Decision, Short};
use crate::fleet::Fleet;
use crate::index::is_live;
use crate::intern::{Map, NONE};
use crate::lots::Shelved;
use crate::needs::Demand;

/// Why a need is short. The names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The gang is parked: it acquires nothing for a while.
    Parked,
    /// What drains for it covers the rest: it is a matter of time.
    InFlight,
    /// No machine counts for it and would add anything, besides those it has.
    NoMatchingSupply,
    /// No domain holds enough for the gang, or only the spread kept a free machine out.
    TopologyUnsatisfiable,
    /// Victims were found, but not enough.
    PreemptionExhausted,
    /// What it could use is held by equal or higher precedence.
    PriorityStarved,
}

impl Reason {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Parked => "parked",
            Self::InFlight => "in_flight",
            Self::NoMatchingSupply => "no_matching_supply",
            Self::TopologyUnsatisfiable => "topology_unsatisfiable",
            Self::PreemptionExhausted => "preemption_exhausted",
            Self::PriorityStarved => "priority_starved",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// Works out reasons against one decision. What many needs ask for is counted once, when first asked.
pub(crate) struct Judge<'a> {
    fleet: &'a Fleet,
    decision: &'a Decision,
    domains: Vec<OnceCell<Map<u32, Map<u32, u32>>>>,
    turns: OnceCell<Turns>,
}

/// When machines were acquired, as places in precedence order.
struct Turns {
    of_need: Map<(u32, u32), usize>,
    /// For each class, the latest turn at which a machine of it was still free.
    latest: Vec<usize>,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(fleet: &'a Fleet, decision: &'a Decision) -> Self {
        let domains = fleet.index.classes.domains().iter().map(|_| OnceCell::new()).collect();
        Self { fleet, decision, domains, turns: OnceCell::new() }
    }

    /// Why a need is short, if it is; `credited` are the machines credit gave it.
    pub(crate) fn reason(&self, short: &Short, credited: &[u32]) -> Option<Reason> {
        if is_zero(&short.missing) {
            return None;
        }
        Some(if short.demand.need.parked {
            Reason::Parked
        } else if short.unresolved.is_none() {
            Reason::InFlight
        } else if !self.has_matching_supply(short, credited) {
            Reason::NoMatchingSupply
        } else if self.is_topology_unsatisfiable(short) {
            Reason::TopologyUnsatisfiable
        } else if !short.victims.is_empty() || !short.in_flight.is_empty() {
            Reason::PreemptionExhausted
        } else {
            Reason::PriorityStarved
        })
    }

    /// The classes that count for a need.
    fn counting<'b>(&'b self, demand: &'b Demand) -> impl Iterator<Item = u32> + 'b {
        let Fleet { index, sets, .. } = self.fleet;
        let admitted = sets.admits(demand.requirements).iter();
        admitted.filter(|class| index.classes.covers(*class, &demand.min_unit))
    }

    fn has_matching_supply(&self, short: &Short, credited: &[u32]) -> bool {
        let Fleet { index, inventory, .. } = self.fleet;
        let (classes, live) = (&index.classes, index.live_count(inventory));
        self.counting(&short.demand).any(|class| {
            if !contributes(classes.provides(class), &short.missing) {
                return false;
            }
            let of_class = |machine: &&u32| classes.of_kind(inventory.decided(**machine).kind) == class;
            let own = credited.iter().chain(&short.acquired).filter(of_class).count();
            live[class as usize] as usize > own
        })
    }

    fn is_topology_unsatisfiable(&self, short: &Short) -> bool {
        let classes = &self.fleet.index.classes;
        let demand = &*short.demand;
        if let Some(key) = demand.same {
            return !self.some_domain_covers(demand, classes.domain(key));
        }
        if demand.spread.is_none() {
            return false;
        }
        let turns = self.turns();
        let turn = turns.of_need[&(short.cluster, short.row)];
        self.counting(demand).any(|class| {
            contributes(classes.provides(class), &short.missing) && turns.latest[class as usize] > turn
        })
    }

    /// Whether some domain's live machines together, whoever holds them, cover a gang.
    fn some_domain_covers(&self, demand: &Demand, domain: usize) -> bool {
        let classes = &self.fleet.index.classes;
        let by_value = self.domains[domain].get_or_init(|| {
            let mut counts: Map<u32, Map<u32, u32>> = Map::default();
            for (_, row) in self.fleet.inventory.decided_rows().filter(|(_, row)| is_live(row)) {
                let value = classes.domain_of_kind(domain, row.kind);
                if value != NONE {
                    *counts.entry(value).or_default().entry(classes.of_kind(row.kind)).or_default() += 1;
                }
            }
            counts
        });
        let counting: crate::bits::Bits = self.counting(demand).collect();
        by_value.values().any(|cells| {
            let cells: Vec<(u32, u32)> = cells
                .iter()
                .map(|(class, count)| (*class, *count))
                .filter(|(class, _)| counting.contains(*class))
                .collect();
            !cells.is_empty()
                && demand.aggregate.iter().all(|(dim, amount)| {
                    let sum = cells.iter().fold(0_u64, |sum, (class, count)| {
                        let one = classes.provides(*class)[*dim as usize];
                        sum.saturating_add(one.saturating_mul(u64::from(*count))).min(MAX_AMOUNT)
                    });
                    sum >= *amount
                })
        })
    }

    fn turns(&self) -> &Turns {
        self.turns.get_or_init(|| {
            let Fleet { index, inventory, .. } = self.fleet;
            let shorts = &self.decision.shorts;
            let mut of_need = Map::default();
            let mut of_machine: Map<u32, usize> = Map::default();
            for (turn, at) in crate::cycle::precedence(shorts).into_iter().enumerate() {
                of_need.insert((shorts[at].cluster, shorts[at].row), turn);
                of_machine.extend(shorts[at].acquired.iter().map(|machine| (*machine, turn)));
            }
            let mut latest = vec![0; index.classes.len()];
            for lot in 0..index.free.lots.len() as u32 {
                for Shelved { machine, .. } in index.free.machines(lot) {
                    // A machine nobody took was free at every turn.
                    let turn = of_machine.get(machine).copied().unwrap_or(usize::MAX);
                    let class = index.classes.of_kind(inventory.decided(*machine).kind) as usize;
                    latest[class] = latest[class].max(turn);
                }
            }
            Turns { of_need, latest }
        })
    }
}
