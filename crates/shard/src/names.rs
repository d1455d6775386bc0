//! The names a fleet speaks of: resources, and keys that needs ask about.
//!
//! The engine gives each a number once and compares numbers from then on, so how many there are decides what everything
//! costs, for everybody. What comes in is bounded here before the engine sees it: per fleet, and per cluster, so that one
//! that makes up names uses up its own share and nobody else's. Names are not forgotten within a life; a restart begins
//! with those in use.

use bigfleet_model::limits::{
    CLUSTER_KEYS, CLUSTER_RESOURCE_NAMES, FLEET_DEMAND_RESOURCE_NAMES, FLEET_KEYS, FLEET_RESOURCE_NAMES,
    OverLimit, count,
};
use bigfleet_model::need::Need;
use bigfleet_model::resource::{ResourceName, ResourceVec};

type Set<T> = hashbrown::HashSet<T, foldhash::fast::FixedState>;

/// Every name the engine may have a number for.
#[derive(Debug, Default)]
pub(crate) struct Names {
    resources: Set<ResourceName>,
    keys: Set<Box<str>>,
}

/// Names that a roll-up has and nobody had before.
#[derive(Debug, Default)]
pub(crate) struct New {
    resources: Set<ResourceName>,
    keys: Set<Box<str>>,
}

/// How many names a cluster was the first to have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Brought {
    resources: usize,
    keys: usize,
}

/// The names that a roll-up has, each once.
#[derive(Debug, Default)]
pub(crate) struct Mentioned {
    resources: Set<ResourceName>,
    keys: Set<Box<str>>,
}

impl Mentioned {
    /// Those of these rows.
    pub(crate) fn in_rows(rows: &[Need]) -> Self {
        let mut found = Self::default();
        for need in rows {
            for (name, _) in need.aggregate.iter().chain(need.min_unit.iter()) {
                if !found.resources.contains(name) {
                    found.resources.insert(name.clone());
                }
            }
            let keys = need.profile.requirements().iter().map(bigfleet_model::requirement::Requirement::key);
            for key in keys.chain(need.profile.spread().iter().map(|spread| &*spread.key)) {
                if !found.keys.contains(key) {
                    found.keys.insert(key.into());
                }
            }
        }
        found
    }
}

impl Names {
    /// What of these is new, if the fleet has room for it.
    pub(crate) fn new_in(&self, mentioned: &Mentioned) -> Result<New, OverLimit> {
        let new = New {
            resources: mentioned.resources.difference(&self.resources).cloned().collect(),
            keys: mentioned.keys.difference(&self.keys).cloned().collect(),
        };
        if !new.resources.is_empty() {
            let names = self.resources.len() + new.resources.len();
            count("the fleet", "resource names", names, FLEET_DEMAND_RESOURCE_NAMES)?;
        }
        count("the fleet", "keys of requirements", self.keys.len() + new.keys.len(), FLEET_KEYS)?;
        Ok(new)
    }

    /// Takes up what a roll-up brought.
    pub(crate) fn learn(&mut self, new: New) {
        self.resources.extend(new.resources);
        self.keys.extend(new.keys);
    }

    /// Takes up the names of what a machine provides, if the fleet has room for them.
    pub(crate) fn learn_of_machine(&mut self, provides: &ResourceVec) -> Result<(), OverLimit> {
        let is_new = |name: &&ResourceName| !self.resources.contains(*name);
        let new: Vec<ResourceName> = provides.iter().map(|(name, _)| name).filter(is_new).cloned().collect();
        if new.is_empty() {
            return Ok(());
        }
        count("the fleet", "resource names", self.resources.len() + new.len(), FLEET_RESOURCE_NAMES)?;
        self.resources.extend(new);
        Ok(())
    }
}

impl Brought {
    /// Refuses what is more than one cluster may bring.
    pub(crate) fn may_grow(&self, new: &New) -> Result<(), OverLimit> {
        let (resources, keys) = (self.resources + new.resources.len(), self.keys + new.keys.len());
        count("the cluster", "resource names nobody else has", resources, CLUSTER_RESOURCE_NAMES)?;
        count("the cluster", "keys of requirements nobody else has", keys, CLUSTER_KEYS)
    }

    pub(crate) fn grow(&mut self, new: &New) {
        self.resources += new.resources.len();
        self.keys += new.keys.len();
    }
}
