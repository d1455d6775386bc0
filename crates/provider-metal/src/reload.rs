//! A new inventory while the provider runs: taken whole or refused whole, and nobody bound is dropped.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bigfleet_provider_kit::{Handle, Machine, MachineState};
use tokio::signal::unix::{SignalKind, signal};

use crate::inventory::{self, Inventory};
use crate::shared::Shared;
use crate::truth::{Event, report, state_of};
use crate::watch::watch;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// Takes in the hosts of the present inventory and lets go of the others. Also at the start: the file may have
/// changed while nobody looked.
pub(crate) async fn settle(shared: &Arc<Shared>, before: Option<&Inventory>) {
    let handle = shared.handle.wait().await.clone();
    let inventory = shared.inventory();
    for host in inventory.hosts.values() {
        if let Err(error) = handle.offer(host.offering()).await {
            tracing::error!(host = host.name, %error, "a host of the inventory could not be offered");
        }
        if before.is_none_or(|before| !before.hosts.contains_key(&host.name)) {
            tokio::spawn(watch(shared.clone(), host.name.clone()));
        }
    }
    for machine in handle.machines() {
        let is_left = !inventory.hosts.contains_key(&machine.id);
        if is_left && Event::of(&machine.last_error) != Some(Event::Left) {
            tokio::spawn(leave(shared.clone(), handle.clone(), machine.id.clone()));
        }
    }
}

/// Sees a host out that is not in the file any more. Moves under way end first; a node is drained.
async fn leave(shared: Arc<Shared>, handle: Handle, name: String) {
    const EVIDENCE: &str = "its lines are not in the inventory any more; put them back to have it back";
    loop {
        let is_at_rest = |machine: &Machine| {
            use MachineState::{Configured, Failed, Idle, Speculative};
            matches!(state_of(machine), Configured | Failed | Idle | Speculative)
        };
        let machine = handle.wait_for(&name, is_at_rest).await;
        if shared.is_listed(&name) {
            return;
        }
        if Event::of(&machine.last_error) == Some(Event::Left) {
            return shared.forget(&name);
        }
        if state_of(&machine) != MachineState::Configured {
            report(&handle, &machine, Event::Left, EVIDENCE).await;
            continue;
        }
        let drained = drain_by_ourselves(&shared, &handle, &machine).await;
        let Some(machine) = handle.get(&name) else { return };
        let evidence = match drained {
            Ok(()) => EVIDENCE.to_owned(),
            Err(reason) => format!("{EVIDENCE}; it was not drained cleanly: {reason}"),
        };
        report(&handle, &machine, Event::Left, &evidence).await;
    }
}

/// Draining, the grace, the reset. Should the provider be killed meanwhile, it goes on as a drain that was cut
/// short.
async fn drain_by_ourselves(shared: &Shared, handle: &Handle, seen: &Machine) -> Result<(), String> {
    let grace = shared.inventory().bounds.leave_grace;
    tracing::warn!(
        host = seen.id,
        cluster = seen.cluster,
        grace_secs = grace.as_secs(),
        "left the inventory: draining"
    );
    let change = |machine: &mut Machine| {
        if machine.state == seen.state && machine.cluster == seen.cluster {
            machine.state = MachineState::Draining.to_wire();
        }
    };
    let machine = handle.update(&seen.id, change).await.map_err(|error| error.to_string())?;
    if state_of(&machine) != MachineState::Draining {
        return Ok(());
    }
    shared.clock.sleep(grace).await;
    shared.drain(&machine, Duration::ZERO, Duration::ZERO).await.map_err(|failure| failure.0)
}

/// Reads the file again when it changes or a SIGHUP comes, for ever.
pub(crate) async fn follow(shared: Arc<Shared>, path: &Path) -> std::io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    let mut last = stamp(path);
    loop {
        let is_asked = tokio::select! {
            _ = hangup.recv() => true,
            () = shared.clock.sleep(LOOK) => false,
        };
        let now = stamp(path);
        if now == last && !is_asked {
            continue;
        }
        last = now;
        match inventory::read(path) {
            Ok(inventory) => accept(&shared, inventory).await,
            Err(refused) => tracing::error!("{refused}\nThe inventory of before stays in force."),
        }
    }
}

/// Makes an inventory the present one.
pub(crate) async fn accept(shared: &Arc<Shared>, inventory: Inventory) {
    let before = shared.inventory();
    if *before == inventory {
        return;
    }
    if inventory.provider != before.provider {
        tracing::error!(
            "the inventory names another provider; that takes a restart. The one of before stays in force."
        );
        return;
    }
    if let Err(error) = shared.take_in(inventory) {
        tracing::error!(%error, "the new inventory could not be written down; a restart reads it again");
    }
    tracing::info!(hosts = shared.inventory().hosts.len(), "a new inventory is in force");
    settle(shared, Some(&before)).await;
}

/// What changes when a file is written or replaced.
fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}
