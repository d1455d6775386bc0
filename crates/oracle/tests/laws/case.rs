//! One input and its answer, and what laws ask about them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::profile::Profile;
use bigfleet_model::resource::{ResourceName, ResourceVec};
use bigfleet_oracle::decide;
use bigfleet_scenario::answer::{Action, ActionKind, Amounts, NormalizedNeed};
use bigfleet_scenario::{Answer, Scenario};

/// One input and its answer.
pub(crate) struct Case {
    pub(crate) scenario: Scenario,
    pub(crate) answer: Answer,
    /// The needs after folding.
    pub(crate) needs: Vec<Asked>,
}

/// One need after folding, in the words of the vocabulary.
pub(crate) struct Asked {
    pub(crate) row: NormalizedNeed,
    pub(crate) profile: Arc<Profile>,
    pub(crate) aggregate: ResourceVec,
    pub(crate) min_unit: ResourceVec,
    pub(crate) deficit: ResourceVec,
    /// The chosen domain, if it is a gang and has one.
    pub(crate) domain: Option<String>,
    /// The gangs that were folded into it.
    pub(crate) gangs: Vec<NeedKey>,
}

impl Case {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let answer = decide(scenario);
        let mut profiles: BTreeMap<String, Arc<Profile>> = BTreeMap::new();
        for need in &scenario.needs {
            profiles.insert(need.profile.fingerprint().to_owned(), need.profile.clone());
            let plain = need.profile.without_same();
            profiles.insert(plain.fingerprint().to_owned(), Arc::new(plain));
        }
        let stood: Vec<bool> = stand_as_asked(scenario, &answer.normalized_needs);
        let asked = |(index, row): (usize, &NormalizedNeed)| Asked {
            gangs: if stood[index] {
                Vec::new()
            } else {
                folded_into(scenario, &answer.normalized_needs, row)
            },
            row: row.clone(),
            profile: profiles[&row.fingerprint].clone(),
            aggregate: vector(&row.aggregate),
            min_unit: vector(&row.min_unit),
            deficit: vector(&answer.deficits[index]),
            domain: answer.domains.iter().find(|d| d.need as usize == index).and_then(|d| d.value.clone()),
        };
        let needs = answer.normalized_needs.iter().enumerate().map(asked).collect();
        Self { scenario: scenario.clone(), answer, needs }
    }

    pub(crate) fn machines(&self) -> &[Machine] {
        &self.scenario.machines
    }

    pub(crate) fn machine(&self, id: &str) -> &Machine {
        self.machines().iter().find(|machine| *machine.id == *id).expect("the machine is in the input")
    }

    /// The need that claims a machine.
    pub(crate) fn holder(&self, machine: &Machine) -> Option<usize> {
        self.answer.claims.get(&*machine.id).map(|need| *need as usize)
    }

    /// The actions of one kind.
    pub(crate) fn actions(&self, kind: ActionKind) -> impl Iterator<Item = &Action> {
        self.answer.actions.iter().filter(move |action| action.kind == kind)
    }

    /// Whether an action of this kind is about the machine.
    pub(crate) fn is_told(&self, kind: ActionKind, machine: &Machine) -> bool {
        self.actions(kind).any(|action| *action.machine == *machine.id)
    }

    /// What all machines a need claims provide together.
    pub(crate) fn claimed_total(&self, need: usize) -> ResourceVec {
        let claimed = self.machines().iter().filter(|machine| self.holder(machine) == Some(need));
        claimed.fold(ResourceVec::ZERO, |sum, machine| sum.add(machine.provides()))
    }
}

/// Which rows are needs as they were asked for: each need stands for the first row that is equal to it.
fn stand_as_asked(scenario: &Scenario, rows: &[NormalizedNeed]) -> Vec<bool> {
    let mut left: Vec<NormalizedNeed> = scenario.needs.iter().map(NormalizedNeed::from).collect();
    let mut stands = |row: &NormalizedNeed| {
        let found = left.iter().position(|need| need == row);
        found.map(|at| left.swap_remove(at)).is_some()
    };
    rows.iter().map(&mut stands).collect()
}

/// The gangs that are no rows of their own and together make this one.
fn folded_into(scenario: &Scenario, rows: &[NormalizedNeed], folded: &NormalizedNeed) -> Vec<NeedKey> {
    let gangs = scenario.needs.iter().filter(|need| {
        need.profile.same().is_some()
            && *need.cluster == *folded.cluster
            && need.profile.without_same().fingerprint() == folded.fingerprint
            && bigfleet_scenario::answer::amounts(&need.aggregate) == folded.min_unit
            && !rows.contains(&NormalizedNeed::from(*need))
    });
    gangs.map(Need::key).collect()
}

impl Asked {
    /// Whether this is its identity or that of a gang folded into it.
    fn goes_by(&self, cluster: &str, fingerprint: &str, group: &str) -> bool {
        let is = |c: &str, f: &str, g: &str| c == cluster && f == fingerprint && g == group;
        is(&self.row.cluster, &self.row.fingerprint, &self.row.group)
            || self.gangs.iter().any(|key| is(&key.cluster, &key.fingerprint, &key.group))
    }

    /// Whether the machine counts for it, wherever it lies.
    pub(crate) fn counts(&self, machine: &Machine) -> bool {
        self.profile.matches(machine.facts()) && machine.provides().covers(&self.min_unit)
    }

    pub(crate) fn is_gang(&self) -> bool {
        self.profile.same().is_some()
    }

    /// Whether nothing but its requirements says where its machines lie.
    pub(crate) fn is_plain(&self) -> bool {
        !self.is_gang() && self.profile.strict_spread().is_none()
    }

    /// Whether the machine counts for it and lies where it must.
    pub(crate) fn could_use(&self, machine: &Machine) -> bool {
        let in_domain =
            !self.is_gang() || self.domain_of(machine).is_some_and(|d| Some(d) == self.domain.as_deref());
        self.counts(machine) && in_domain
    }

    /// Whether the machine could be used and would still help.
    pub(crate) fn misses(&self, machine: &Machine) -> bool {
        self.could_use(machine) && machine.provides().contributes(&self.deficit)
    }

    /// Whether the machine is stamped as being for it.
    pub(crate) fn is_stamped_on(&self, machine: &Machine) -> bool {
        let stamp = &machine.assigned;
        self.goes_by(&stamp.cluster, &stamp.fingerprint, &stamp.group)
    }

    /// Whether the machine is draining on its behalf.
    pub(crate) fn drained_for(&self, machine: &Machine) -> bool {
        machine.state == MachineState::Draining
            && machine
                .draining_for
                .as_ref()
                .is_some_and(|key| self.goes_by(&key.cluster, &key.fingerprint, &key.group))
    }

    /// Whether it may be credited with the machine.
    pub(crate) fn owns(&self, machine: &Machine) -> bool {
        match machine.state {
            MachineState::Configured | MachineState::Configuring => *machine.cluster == *self.row.cluster,
            MachineState::Creating => {
                *machine.assigned.cluster == *self.row.cluster && self.is_stamped_on(machine)
            }
            _ => false,
        }
    }

    /// Whether its place in precedence order is before that of another.
    pub(crate) fn goes_before(&self, other: &Self) -> bool {
        self.as_need().cmp_precedence(&other.as_need()).is_lt()
    }

    /// The need as the vocabulary knows it.
    pub(crate) fn as_need(&self) -> Need {
        Need {
            cluster: self.row.cluster.as_str().into(),
            profile: self.profile.clone(),
            group: self.row.group.as_str().into(),
            aggregate: self.aggregate.clone(),
            min_unit: self.min_unit.clone(),
            first_seen_unix_nanos: self.row.first_seen,
            parked: self.row.parked,
        }
    }

    /// The machine's domain, if this is a gang.
    pub(crate) fn domain_of<'a>(&self, machine: &'a Machine) -> Option<&'a str> {
        machine.facts().value(self.profile.same()?.key())
    }
}

/// Whether the machine is free to be acquired, as far as its state goes.
pub(crate) fn is_acquirable(machine: &Machine) -> bool {
    matches!(machine.state, MachineState::Idle | MachineState::Speculative)
}

/// Amounts as a vector.
pub(crate) fn vector(amounts: &Amounts) -> ResourceVec {
    let named = amounts.iter().map(|(name, amount)| (ResourceName::new(name).expect("a good name"), *amount));
    ResourceVec::new(named).expect("amounts of an answer are in bounds")
}
