//! What moves, watchers and reloads share: the hosts, the way to reach them, and the kit's handle.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock};

use bigfleet_net::Clock;
use bigfleet_provider_kit::{Failure, Handle};
use tokio::sync::SetOnce;

use crate::inventory::{Host, Inventory};
use crate::kept::Kept;
use crate::places::Places;
use crate::ssh::Ssh;

/// Watchers that may be logged in somewhere at once. Their questions take a fraction of a second.
const WATCHING: usize = 16;

pub(crate) struct Shared {
    pub(crate) ssh: Ssh,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) kept: Kept,
    pub(crate) places: Places,
    pub(crate) watching: tokio::sync::Semaphore,
    /// Set when the kit has opened its store.
    pub(crate) handle: SetOnce<Handle>,
    inventory: RwLock<Arc<Inventory>>,
    slots: RwLock<BTreeMap<String, Arc<Slot>>>,
}

/// One host as it is worked with. It outlives its line in the inventory until nothing of ours is on it.
pub(crate) struct Slot {
    host: RwLock<Arc<Host>>,
    /// Held by whoever works on the host: one task per host.
    pub(crate) busy: Arc<tokio::sync::Mutex<()>>,
    /// What last went wrong, for the text of a time-out.
    trouble: Mutex<String>,
    /// Whether a watcher looks after it.
    pub(crate) is_watched: AtomicBool,
}

impl Slot {
    fn new(host: Host) -> Self {
        Self {
            host: RwLock::new(Arc::new(host)),
            busy: Arc::default(),
            trouble: Mutex::default(),
            is_watched: AtomicBool::new(false),
        }
    }

    pub(crate) fn host(&self) -> Arc<Host> {
        self.host.read().expect("no holder panics").clone()
    }

    pub(crate) fn note(&self, trouble: &impl ToString) {
        *self.trouble.lock().expect("no holder panics") = trouble.to_string();
    }

    /// What last went wrong, once.
    pub(crate) fn take_trouble(&self) -> Option<String> {
        let trouble = std::mem::take(&mut *self.trouble.lock().expect("no holder panics"));
        (!trouble.is_empty()).then_some(trouble)
    }
}

impl Shared {
    pub(crate) fn open(inventory: Inventory, state: &Path, clock: Arc<dyn Clock>) -> std::io::Result<Self> {
        let kept = Kept::open(state)?;
        let shared = Self {
            ssh: Ssh::new(state, clock.clone())?,
            places: Places::new(inventory.bounds.parallel, inventory.bounds.parallel_per_rack, clock.clone()),
            clock,
            watching: tokio::sync::Semaphore::new(WATCHING),
            handle: SetOnce::new(),
            slots: RwLock::new(
                kept.hosts().into_iter().map(|(name, host)| (name, Arc::new(Slot::new(host)))).collect(),
            ),
            kept,
            inventory: RwLock::new(Arc::new(inventory.clone())),
        };
        shared.take_in(inventory)?;
        Ok(shared)
    }

    /// Makes an inventory the present one. Hosts that are no longer in it stay known until they are forgotten.
    pub(crate) fn take_in(&self, inventory: Inventory) -> std::io::Result<()> {
        let all = {
            let mut slots = self.slots.write().expect("no holder panics");
            for host in inventory.hosts.values() {
                match slots.get(&host.name) {
                    Some(slot) => *slot.host.write().expect("no holder panics") = Arc::new(host.clone()),
                    None => drop(slots.insert(host.name.clone(), Arc::new(Slot::new(host.clone())))),
                }
            }
            slots
                .values()
                .map(|slot| slot.host())
                .map(|host| (host.name.clone(), Host::clone(&host)))
                .collect()
        };
        *self.inventory.write().expect("no holder panics") = Arc::new(inventory);
        self.kept.keep_hosts(&all)
    }

    /// Forgets a host of which nothing is left to do, unless it is in the inventory again.
    pub(crate) fn forget(&self, name: &str) {
        let mut slots = self.slots.write().expect("no holder panics");
        if !self.is_listed(name) {
            slots.remove(name);
        }
    }

    pub(crate) fn inventory(&self) -> Arc<Inventory> {
        self.inventory.read().expect("no holder panics").clone()
    }

    pub(crate) fn is_listed(&self, name: &str) -> bool {
        self.inventory().hosts.contains_key(name)
    }

    pub(crate) fn slot(&self, name: &str) -> Option<Arc<Slot>> {
        self.slots.read().expect("no holder panics").get(name).cloned()
    }

    /// The host behind a machine, for a move.
    pub(crate) fn slot_of(&self, name: &str) -> Result<Arc<Slot>, Failure> {
        self.slot(name).ok_or_else(|| {
            Failure(format!("host {name} is not in the inventory, and how to reach it is not known any more"))
        })
    }
}
