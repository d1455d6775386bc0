//! Watching hosts: one task for each, that looks when it is time and nobody works on the host.
//!
//! Three looks, each with its period: whether SSH answers (a greeting, no login), who the host is (a login),
//! and what its controller says. A host that does not answer is asked twice more before it is given up, quickly
//! enough that a vanished one is reported within a minute at the default periods.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bigfleet_net::nanos;
use bigfleet_provider_kit::{Handle, HostRef, Machine, MachineState};

use crate::agent::{self, Report, Standing};
use crate::inventory::Host;
use crate::kept::Facts;
use crate::moves::GREETING;
use crate::redfish::{Power, Redfish};
use crate::shared::{Shared, Slot};
use crate::ssh::SshError;
use crate::truth::{Event, report, state_of};

/// How often a host must fail to answer, and how long after the last time it is asked again.
const MISSES: u32 = 3;
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// How long a host that somebody works on is left alone.
const LATER: Duration = Duration::from_secs(2);
/// How long a failed host is left alone after it could not be taken back: at first, at most.
const RETURN: (Duration, Duration) = (Duration::from_secs(10), Duration::from_mins(10));

/// One host under watch.
struct Watcher {
    shared: Arc<Shared>,
    handle: Handle,
    slot: Arc<Slot>,
    name: String,
    next_ssh: i64,
    next_boot: i64,
    next_redfish: i64,
    misses: u32,
    return_wait: Duration,
    next_return: i64,
}

/// Watches a host until it is not in the inventory any more.
pub(crate) async fn watch(shared: Arc<Shared>, name: String) {
    let handle = shared.handle.wait().await.clone();
    let Some(slot) = shared.slot(&name) else { return };
    if slot.is_watched.swap(true, Ordering::SeqCst) {
        return; // it left the file and came back before its watcher noticed
    }
    let (now, periods) = (shared.clock.now_unix_nanos(), shared.inventory().watch.clone());
    // Spread by name, so that a start does not look at every host at once.
    let spread =
        name.bytes().fold(7_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let spread = spread ^ (spread >> 31);
    let first = |period: Duration| now + (spread % nanos(period).unsigned_abs().max(1)).cast_signed();
    let watcher = Watcher {
        next_ssh: first(periods.ssh),
        next_boot: first(periods.boot_id),
        next_redfish: first(periods.redfish),
        misses: 0,
        return_wait: RETURN.0,
        next_return: now,
        shared,
        handle,
        slot,
        name,
    };
    watcher.run().await;
}

impl Watcher {
    async fn run(mut self) {
        while self.shared.is_listed(&self.name) {
            let host = self.slot.host();
            let redfish = if host.bmc.is_some() { self.next_redfish } else { i64::MAX };
            let next = self.next_ssh.min(self.next_boot).min(redfish);
            self.shared.clock.sleep_until(next).await;
            let busy = self.slot.busy.clone();
            let Ok(_busy) = busy.try_lock() else {
                self.shared.clock.sleep(LATER).await;
                continue;
            };
            let Some(machine) = self.handle.get(&self.name) else { return };
            self.look(&host, &machine).await;
        }
        self.slot.is_watched.store(false, Ordering::SeqCst);
    }

    /// One look at what is due, and when to look again.
    async fn look(&mut self, host: &Host, machine: &Machine) {
        let now = self.shared.clock.now_unix_nanos();
        let periods = self.shared.inventory().watch.clone();
        let is_due = |next: i64| next <= now;
        let (ssh, boot) = (is_due(self.next_ssh), is_due(self.next_boot));
        let redfish = host.bmc.is_some() && is_due(self.next_redfish);
        for (due, next, period) in [
            (ssh, &mut self.next_ssh, periods.ssh),
            (boot, &mut self.next_boot, periods.boot_id),
            (redfish, &mut self.next_redfish, periods.redfish),
        ] {
            if due {
                *next = now.saturating_add(nanos(period));
            }
        }
        match state_of(machine) {
            MachineState::Idle | MachineState::Configured => {
                let is_well = (!ssh || self.answers(host, machine).await)
                    && (!redfish || self.is_powered(host, machine).await);
                if is_well && boot {
                    self.is_itself(host, machine).await;
                }
            }
            MachineState::Failed if ssh && is_due(self.next_return) => self.take_back(host, machine).await,
            _ => self.misses = 0,
        }
    }

    /// Whether SSH answers.
    async fn answers(&mut self, host: &Host, machine: &Machine) -> bool {
        let Err(error) = self.shared.ssh.answers(host, GREETING).await else {
            self.misses = 0;
            return true;
        };
        self.misses += 1;
        tracing::debug!(host = self.name, misses = self.misses, %error, "no answer");
        if self.misses < MISSES {
            self.next_ssh = self.shared.clock.now_unix_nanos().saturating_add(nanos(ASK_AGAIN));
            return false;
        }
        let mut evidence = format!("{error}, {MISSES} times in a row");
        if let Some(bmc) = &host.bmc {
            match Redfish::new(bmc, &self.shared.clock).system().await {
                Ok(system) => write!(evidence, "; its controller says power {:?}", system.power),
                Err(error) => write!(evidence, "; and {error}"),
            }
            .expect("a string takes everything");
        }
        self.misses = 0;
        report(&self.handle, machine, Event::Vanished, &evidence).await;
        false
    }

    /// Whether its controller says that it is on and well.
    async fn is_powered(&mut self, host: &Host, machine: &Machine) -> bool {
        let Some(bmc) = &host.bmc else { return true };
        let system = match Redfish::new(bmc, &self.shared.clock).system().await {
            Ok(system) => system,
            Err(error) => {
                // The host may well be fine; we only know less about it.
                tracing::warn!(host = self.name, %error, "the controller cannot be asked");
                return true;
            }
        };
        if system.power == Power::Off {
            if let Err(error) = self.shared.ssh.answers(host, GREETING).await {
                let evidence = format!("controller {} says power Off, and {error}", bmc.url);
                report(&self.handle, machine, Event::PoweredOff, &evidence).await;
                return false;
            }
            tracing::warn!(
                host = self.name,
                controller = bmc.url,
                "the controller says power Off, but the host answers"
            );
        }
        if system.health.as_deref() == Some("Critical") {
            if state_of(machine) == MachineState::Idle {
                let evidence = format!("controller {} says health Critical", bmc.url);
                report(&self.handle, machine, Event::Unhealthy, &evidence).await;
                return false;
            }
            tracing::warn!(
                host = self.name,
                controller = bmc.url,
                "health Critical, while the host is in use"
            );
        }
        true
    }

    /// Whether it is the host it was: same key, same installation, same start, same job.
    async fn is_itself(&mut self, host: &Host, machine: &Machine) {
        let seen = {
            let _place = self.shared.watching.acquire().await;
            agent::probe(&self.shared.ssh, host).await
        };
        let is_bound = state_of(machine) == MachineState::Configured;
        let seen = match seen {
            Ok(seen) => seen,
            Err(error @ SshError::OtherKey { .. }) => {
                return report(&self.handle, machine, Event::OtherKey, &error.to_string()).await;
            }
            // Whether it is there at all is another look's business.
            Err(error) if error.is_passing() => return tracing::debug!(host = self.name, %error, "no login"),
            Err(error) if is_bound => {
                // The node may well be fine; we only cannot look.
                return tracing::warn!(host = self.name, %error, "the host is in use and cannot be looked at");
            }
            Err(error) => return report(&self.handle, machine, Event::LockedOut, &error.to_string()).await,
        };
        let facts = Facts { boot_id: seen.boot_id.clone(), machine_id: seen.machine_id.clone() };
        let Some(known) = self.shared.kept.facts(&self.name) else {
            return self.shared.kept.learn(&self.name, facts);
        };
        if let Some(evidence) = reimaged(&known, &seen, is_bound) {
            self.shared.kept.learn(&self.name, facts);
            return report(&self.handle, machine, Event::Reimaged, &evidence).await;
        }
        if known.boot_id != facts.boot_id {
            self.rebooted(machine, &known, &facts).await;
        }
        self.shared.kept.learn(&self.name, facts);
    }

    /// A host that was started anew is looked at closely: a node should be Ready again, a free host clean.
    async fn rebooted(&mut self, machine: &Machine, known: &Facts, facts: &Facts) {
        let evidence = format!("boot id {} became {}", known.boot_id, facts.boot_id);
        let operation = format!("reboot-{}", facts.boot_id);
        let checked = if state_of(machine) == MachineState::Configured {
            self.shared.still_ready(&self.slot, machine, &operation).await
        } else {
            self.shared.ensure_clean(&self.slot, machine, &operation).await
        };
        match checked {
            Ok(()) => tracing::warn!(host = self.name, evidence, "the host was rebooted, and is what it was"),
            Err(failure) => {
                let evidence = format!("{evidence}; {failure}");
                report(&self.handle, machine, Event::Rebooted, &evidence).await;
            }
        }
    }

    /// A host that failed for a reason that passes, and is there again: reset, checked, and free.
    async fn take_back(&mut self, host: &Host, machine: &Machine) {
        let Some(event) = Event::of(&machine.last_error).filter(|event| event.passes()) else { return };
        let taken = self.try_to_take_back(host, machine, event).await;
        let Err(reason) = taken else {
            self.return_wait = RETURN.0;
            return;
        };
        tracing::debug!(host = self.name, %event, reason, "not back yet");
        self.next_return = self.shared.clock.now_unix_nanos().saturating_add(nanos(self.return_wait));
        self.return_wait = (self.return_wait * 2).min(RETURN.1);
    }

    async fn try_to_take_back(&mut self, host: &Host, machine: &Machine, event: Event) -> Result<(), String> {
        if let Some(bmc) = &host.bmc {
            let system =
                Redfish::new(bmc, &self.shared.clock).system().await.map_err(|error| error.to_string())?;
            if system.power == Power::Off && !host.always_on {
                self.becomes(machine, MachineState::Speculative, event).await;
                return Ok(());
            }
            if system.health.as_deref() == Some("Critical") {
                return Err("its health is Critical".into());
            }
        }
        self.shared.ssh.answers(host, GREETING).await.map_err(|error| error.to_string())?;
        let _place = self.shared.watching.acquire().await;
        let now = self.shared.clock.now_unix_nanos();
        let cleaned = self.shared.ensure_clean(&self.slot, machine, &format!("return-{now}")).await;
        cleaned.map_err(|failure| failure.to_string())?;
        let seen = agent::probe(&self.shared.ssh, host).await.map_err(|error| error.to_string())?;
        self.shared.kept.learn(&self.name, Facts { boot_id: seen.boot_id, machine_id: seen.machine_id });
        self.becomes(machine, MachineState::Idle, event).await;
        Ok(())
    }

    async fn becomes(&self, seen: &Machine, state: MachineState, event: Event) {
        let provider = self.shared.inventory().provider.clone();
        let change = |machine: &mut Machine| {
            if machine.state == seen.state && machine.last_error == seen.last_error {
                machine.state = state.to_wire();
                machine.host = Some(HostRef { provider, r#ref: seen.id.clone() });
            }
        };
        match self.handle.update(&self.name, change).await {
            Ok(_) => tracing::warn!(host = self.name, was = %event, now = ?state, "the host is back"),
            Err(error) => {
                tracing::error!(host = self.name, %error, "a host that is back could not be written down");
            }
        }
    }
}

/// Evidence that a host was installed anew, if there is any.
fn reimaged(known: &Facts, seen: &Report, is_bound: bool) -> Option<String> {
    if !known.machine_id.is_empty() && !seen.machine_id.is_empty() && known.machine_id != seen.machine_id {
        return Some(format!("machine id {} became {}", known.machine_id, seen.machine_id));
    }
    (is_bound && seen.standing == Standing::None)
        .then(|| "its work folder is gone, and with it the job that made it a node".into())
}
