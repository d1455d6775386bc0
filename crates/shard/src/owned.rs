//! What a shard may act on, where a coordinator says so: domains, and machines that were given to it or by it.
//!
//! What was said of a machine by its name is above what is said of its domain. Both are on disk before the coordinator hears
//! that it was taken in, so that no life of this shard acts on what an earlier one has let go.
//!
//! Letting go takes time: what is under way ends first. The domain is no longer ours at once, so nothing new begins there;
//! the machines that wait for an end are in `leaving` until it has come. A crash forgets `leaving`, which is safe: the next
//! life does not know these machines at all.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::machine::Machine;

use crate::effect::Step;
use crate::memory::{Fact, Memory};
use crate::planted::Bug;
use crate::shard::Shard;
use crate::spare::Promised;
use crate::table::{Care, Slot};

/// A label and its value.
pub type Domain = (Box<str>, Box<str>);

/// What was said of a machine by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// It is ours, wherever it is.
    Ours,
    /// It is somebody else's although it may be in a domain of ours: in this one, as far as that is known.
    Theirs(Option<Domain>),
}

/// What a coordinator has said that this shard owns.
#[derive(Debug, Default)]
pub struct Owned {
    domains: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    named: BTreeMap<Box<str>, Named>,
    pub(crate) leaving: BTreeSet<Slot>,
    /// Nobody here gets these any more; soft, as `leaving` is.
    pub(crate) promised: Promised,
}

impl Owned {
    pub(crate) fn recall(memory: &Memory) -> Self {
        let mut owned = Self { named: memory.named.clone(), ..Self::default() };
        for (key, value) in &memory.domains {
            owned.domains.entry(key.clone()).or_default().insert(value.clone());
        }
        owned
    }

    /// The domains, by key and value.
    pub fn domains(&self) -> impl Iterator<Item = (&str, &str)> {
        self.domains.iter().flat_map(|(key, values)| values.iter().map(|value| (&**key, &**value)))
    }

    /// What was said of machines by their names.
    pub fn named(&self) -> &BTreeMap<Box<str>, Named> {
        &self.named
    }

    /// How many machines must end what is under way before they are let go.
    pub fn leaving(&self) -> usize {
        self.leaving.len()
    }

    /// Whether a machine in this domain is ours.
    pub fn acts_on(&self, machine: &str, (key, value): (&str, &str)) -> bool {
        match self.named.get(machine) {
            Some(named) => *named == Named::Ours,
            None => self.has_domain(key, value),
        }
    }

    /// Whether a machine is ours.
    pub(crate) fn has(&self, machine: &Machine) -> bool {
        match self.named.get(&machine.id) {
            Some(Named::Ours) => true,
            Some(Named::Theirs(_)) => false,
            None => self.domain_of(machine).is_some(),
        }
    }

    /// The domain of ours that a machine is in, whosever it is by its name.
    pub(crate) fn domain_of(&self, machine: &Machine) -> Option<Domain> {
        self.domains.iter().find_map(|(key, values)| {
            let value = machine.facts().value(key)?;
            values.contains(value).then(|| (key.clone(), value.into()))
        })
    }

    pub(crate) fn has_domain(&self, key: &str, value: &str) -> bool {
        self.domains.get(key).is_some_and(|values| values.contains(value))
    }

    pub(crate) fn take_domain(&mut self, key: &str, value: &str, step: &mut Step) {
        self.domains.entry(key.into()).or_default().insert(value.into());
        step.facts.push(Fact::Domain(key.into(), value.into(), true));
    }

    /// Lets go of a domain, and of what was said of machines of others in it.
    pub(crate) fn drop_domain(&mut self, key: &str, value: &str, step: &mut Step) {
        if let Some(values) = self.domains.get_mut(key) {
            values.remove(value);
        }
        self.domains.retain(|_, values| !values.is_empty());
        step.facts.push(Fact::Domain(key.into(), value.into(), false));
        let is_in =
            |named: &Named| matches!(named, Named::Theirs(Some((of, at))) if (&**of, &**at) == (key, value));
        let gone: Vec<Box<str>> =
            self.named.iter().filter(|(_, named)| is_in(named)).map(|(id, _)| id.clone()).collect();
        for machine in gone {
            self.name(&machine, None, step);
        }
    }

    pub(crate) fn name(&mut self, machine: &str, named: Option<Named>, step: &mut Step) {
        if self.named.get(machine) == named.as_ref() {
            return;
        }
        match named.clone() {
            Some(named) => drop(self.named.insert(machine.into(), named)),
            None => drop(self.named.remove(machine)),
        }
        step.facts.push(Fact::Named(machine.into(), named));
    }
}

impl Shard {
    /// What a coordinator has said that this shard owns.
    pub fn owned(&self) -> &Owned {
        &self.owned
    }

    /// Whether a machine is this shard's to act on.
    pub(crate) fn owns(&self, machine: &Machine) -> bool {
        if self.config.is_assigned {
            return self.owned.has(machine);
        }
        let domains = &self.config.domains;
        domains.is_empty() || domains.iter().any(|(key, value)| machine.facts().value(key) == Some(&**value))
    }

    /// Whether a machine must end what is under way before it is let go.
    pub fn is_ending(&self, machine: &str) -> bool {
        !self.owned.leaving.is_empty()
            && self.table.find(machine).is_some_and(|slot| self.owned.leaving.contains(&slot))
    }

    /// A provider lists a machine that is somebody else's: now its domain is known.
    pub(crate) fn met_foreign(&mut self, machine: &Machine, step: &mut Step) {
        self.tally.foreign_records += 1;
        if self.owned.named.get(&machine.id) == Some(&Named::Theirs(None))
            && let Some(domain) = self.owned.domain_of(machine)
        {
            self.owned.name(&machine.id, Some(Named::Theirs(Some(domain))), step);
        }
    }

    /// Whether nothing is under way with a machine: neither by an order of ours nor at its provider. One that is overdue has
    /// been waited for long enough.
    pub(crate) fn is_settled(&self, slot: Slot) -> bool {
        let row = self.table.row(slot);
        row.flight.is_none() && (!row.machine.state.is_transitional() || row.care == Care::Overdue)
            || self.config.has(Bug::LetGoAmid)
    }

    /// Lets go of those whose end has come.
    pub(crate) fn leave(&mut self, step: &mut Step) {
        if self.owned.leaving.is_empty() {
            return;
        }
        let there: Vec<Slot> = self.owned.leaving.iter().copied().collect();
        for slot in there {
            if self.table.get(slot).is_none() {
                self.owned.leaving.remove(&slot);
            } else if self.is_settled(slot) {
                self.let_go(slot, step);
            }
        }
    }

    /// Forgets a machine that is no longer ours. It stays as it is, bound or not: whoever owns it next finds our stamps on it. Its
    /// cluster is told that it cannot count on it here; if the cluster moves along, it hears otherwise from the next shard.
    pub(crate) fn let_go(&mut self, slot: Slot, step: &mut Step) {
        if self.table.row(slot).flight.is_some() {
            self.end_flight(slot, "let_go");
        }
        self.owned.leaving.remove(&slot);
        self.owned.promised.remove(&slot);
        let machine = self.table.row(slot).machine.clone();
        if machine.state.is_bound() {
            self.tell_gone(
                &machine,
                "is another shard's now; bind the cluster to that shard to keep it",
                step,
            );
        }
        self.end_count(slot);
        self.forget_row(slot, step);
    }

    /// Machines that were none of ours may be now: everything is listed again, from the beginning.
    pub(crate) fn list_anew(&mut self, now: i64, step: &mut Step) {
        for index in 0..self.providers.len() {
            let provider = &mut self.providers[index];
            provider.revision = [].into();
            provider.full_listed_unix_nanos = None;
            if let Some(listing) = &mut provider.listing {
                listing.is_outdated = true;
            }
            self.list(crate::event::ProviderId(index as u16), now, step);
        }
    }
}
