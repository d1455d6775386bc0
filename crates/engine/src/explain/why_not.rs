//! Why a need does not have a machine: the first rule that keeps the two apart.

use bigfleet_model::label::Labels;
use bigfleet_model::machine::MachineState;
use bigfleet_model::need::NeedKey;
use bigfleet_model::requirement::Requirement;
use bigfleet_model::resource::ResourceName;

use crate::amounts::{contributes, is_zero};
use crate::cycle::Short;
use crate::fleet::Fleet;
use crate::intern::NONE;

use super::Seen;

/// What keeps a need and a machine apart, or that nothing does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// The need already has it, gets it, or it drains for the need.
    None,
    /// The machine is being deleted or is broken.
    Dead(MachineState),
    /// It does not meet a requirement.
    Requirement {
        /// Which.
        requirement: String,
        /// What the machine has for that key; `None` if it lacks the key.
        value: Option<String>,
    },
    /// It cannot hold one indivisible piece.
    TooSmall {
        /// The resource it has too little of.
        resource: ResourceName,
        /// How much one piece needs.
        needed: u64,
        /// How much the machine provides.
        provides: u64,
    },
    /// The need misses nothing (any more): others served it first.
    Covered,
    /// The machine has nothing of what is still missing.
    AddsNothing,
    /// The gang is parked and acquires nothing.
    Parked,
    /// The gang has no domain, so nothing can be acquired for it.
    NoDomain,
    /// The gang was given another domain.
    OtherDomain {
        /// The domain it was given.
        chosen: String,
        /// The one the machine lies in.
        lies_in: String,
    },
    /// Another need has it.
    ClaimedBy {
        /// Which.
        need: NeedKey,
        /// Its priority.
        priority: i32,
    },
    /// It is bound at a priority that is not lower.
    NotLowerPriority {
        /// The priority it was bound at.
        assigned: i32,
    },
    /// It was preempted in this cycle for another need.
    PreemptedFor {
        /// Which.
        need: NeedKey,
    },
    /// It is on its way for somebody else: being created, joining another cluster, or draining.
    InTransit(MachineState),
    /// Taking it would break the strict spread.
    Spread,
    /// The gang could not be completed in any domain, so nobody is disturbed for it.
    Incomplete,
}

impl Exclusion {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Dead(_) => "dead",
            Self::Requirement { .. } => "requirement",
            Self::TooSmall { .. } => "too_small",
            Self::Covered => "covered",
            Self::AddsNothing => "adds_nothing",
            Self::Parked => "parked",
            Self::NoDomain => "no_domain",
            Self::OtherDomain { .. } => "other_domain",
            Self::ClaimedBy { .. } => "claimed_by",
            Self::NotLowerPriority { .. } => "not_lower_priority",
            Self::PreemptedFor { .. } => "preempted_for",
            Self::InTransit(_) => "in_transit",
            Self::Spread => "spread",
            Self::Incomplete => "incomplete",
        }
    }
}

impl Fleet {
    /// Why a need does not have a machine. `None` if the last cycle knew no such need or no such machine.
    pub fn why_not(&self, key: &NeedKey, machine: &str) -> Option<Exclusion> {
        let seen = self.seen(key)?;
        let machine = self.inventory.find_decided(machine)?;
        Some(seen.exclusion(machine))
    }

    /// Whether machines of a kind meet a requirement.
    pub(crate) fn kind_meets(&self, kind: u32, requirement: &Requirement) -> bool {
        let (instance_type, zone, labels) = self.vocab.describe_kind(kind);
        let labels = Labels::new(labels).expect("labels that were accepted once are accepted again");
        requirement.matches(bigfleet_model::label::Facts { instance_type, zone, labels: &labels })
    }

    /// The name of a cluster; empty for none.
    pub(crate) fn name_of_cluster(&self, cluster: u32) -> &str {
        if cluster == NONE { "" } else { self.vocab.cluster_name(cluster) }
    }
}

impl Seen<'_> {
    fn exclusion(&self, machine: u32) -> Exclusion {
        let has_it = self.credited().contains(&machine)
            || self.acquired().contains(&machine)
            || self.short.is_some_and(|s| {
                s.in_flight.contains(&machine) || s.victims.iter().any(|victim| victim.machine == machine)
            });
        if has_it {
            return Exclusion::None;
        }
        self.unfit(machine).or_else(|| self.out_of_turn(machine)).unwrap_or_else(|| self.contested(machine))
    }

    /// What of the machine itself excludes it.
    fn unfit(&self, machine: u32) -> Option<Exclusion> {
        let Fleet { inventory, vocab, index, .. } = self.fleet;
        let (row, demand) = (inventory.decided(machine), self.demand());
        if let Some(state @ (MachineState::Deleting | MachineState::Failed)) = row.state {
            return Some(Exclusion::Dead(state));
        }
        let unmet = demand.need.profile.requirements().iter().find(|r| !self.fleet.kind_meets(row.kind, r));
        if let Some(requirement) = unmet {
            let (instance_type, zone, labels) = vocab.describe_kind(row.kind);
            let labels = Labels::new(labels).expect("labels that were accepted once are accepted again");
            let facts = bigfleet_model::label::Facts { instance_type, zone, labels: &labels };
            let value = facts.value(requirement.key()).map(str::to_owned);
            return Some(Exclusion::Requirement { requirement: requirement.to_string(), value });
        }
        let provides = index.classes.provides_kind(row.kind);
        let short_of = demand.min_unit.iter().find(|(dim, amount)| provides[*dim as usize] < *amount)?;
        let (dim, needed) = *short_of;
        Some(Exclusion::TooSmall {
            resource: vocab.dim_name(dim).clone(),
            needed,
            provides: provides[dim as usize],
        })
    }

    /// What of the need's own situation excludes it.
    fn out_of_turn(&self, machine: u32) -> Option<Exclusion> {
        let Fleet { inventory, vocab, index, .. } = self.fleet;
        let demand = self.demand();
        let Some(short) = self.short.filter(|short| !is_zero(&short.missing)) else {
            return Some(Exclusion::Covered);
        };
        if !contributes(index.classes.provides_kind(inventory.decided(machine).kind), &short.missing) {
            return Some(Exclusion::AddsNothing);
        }
        if demand.need.parked {
            return Some(Exclusion::Parked);
        }
        let key = demand.same?;
        let Some(chosen) = short.domain else { return Some(Exclusion::NoDomain) };
        let lies_in = self.domain_of(machine)?;
        let domain = index.classes.domain(key);
        let text = |value| vocab.text(index.classes.domain_value(domain, value)).to_owned();
        (lies_in != chosen.value)
            .then(|| Exclusion::OtherDomain { chosen: text(chosen.value), lies_in: text(lies_in) })
    }

    /// Who stands between the need and the machine.
    fn contested(&self, machine: u32) -> Exclusion {
        let Fleet { inventory, vocab, .. } = self.fleet;
        let (row, demand) = (inventory.decided(machine), self.demand());
        if let Some(holder) = self.fleet.claimant(machine) {
            let lower = holder.priority() < demand.priority();
            if row.state != Some(MachineState::Configured) || !lower {
                return Exclusion::ClaimedBy { need: holder.need.key(), priority: holder.priority() };
            }
        }
        match row.state {
            Some(MachineState::Configured) => {
                let assigned = vocab.worth_of(row.worth).priority;
                if assigned >= demand.priority() {
                    return Exclusion::NotLowerPriority { assigned };
                }
                let taken = |short: &&Short| short.victims.iter().any(|victim| victim.machine == machine);
                if let Some(other) = self.decision.shorts.iter().find(taken) {
                    return Exclusion::PreemptedFor { need: other.demand.need.key() };
                }
                // What drains for it and its victims suffice, or leave nothing missing that this one has, or
                // only the spread kept it out.
                match self.short.and_then(|short| short.unresolved.as_ref()) {
                    None => Exclusion::Covered,
                    Some(rest) if !contributes(self.fleet.index.classes.provides_kind(row.kind), rest) => {
                        Exclusion::AddsNothing
                    }
                    Some(_) if demand.same.is_some() => Exclusion::Incomplete,
                    Some(_) => Exclusion::Spread,
                }
            }
            Some(MachineState::Idle | MachineState::Speculative) => Exclusion::Spread,
            Some(state) => Exclusion::InTransit(state),
            None => Exclusion::Covered,
        }
    }
}
