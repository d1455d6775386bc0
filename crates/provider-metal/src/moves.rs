//! The four moves on a host: power, join, reset, power off. Each can be cut off anywhere and done again.
//!
//! What makes that safe is where things are remembered. A job has the id of its operation and lives on the
//! host: asking for it twice does it once, and a provider that was killed asks again. Power is a state, not
//! an event. So every move is "make it so", and what was so already costs one look.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_provider_kit::{Failure, Machine, OperationKind};
use serde::{Deserialize, Serialize};

use crate::agent::{self, Job, Mode, Report, Standing};
use crate::inventory::{Bmc, Host, Inventory};
use crate::kept::{CONFIGURED_FORMAT, Configured};
use crate::places::Place;
use crate::redfish::{Power, Redfish};
use crate::shared::{Shared, Slot};

/// How long to wait between tries: at first, at most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));
/// How long a greeting may take.
pub(crate) const GREETING: Duration = Duration::from_secs(5);
/// The host stops a job a little before we give it up, so that its own reason is the one we report.
const HEADSTART: Duration = Duration::from_secs(2);
const SHOWN_OUTPUT_CHARS: usize = 600;
/// The first hook of a Configure that is only looked at again: there is nothing to do before asking.
const NOTHING: &str = ":";

/// The host's copy of what we know about it: enough to rebuild a lost store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostRecord {
    pub(crate) format: u32,
    pub(crate) provider: String,
    pub(crate) machine: String,
    pub(crate) operation: String,
    pub(crate) kind: String,
    pub(crate) cluster: String,
    pub(crate) metadata: BTreeMap<String, String>,
}

/// A host that is worked on, with what is known about it and the place that is taken.
pub(crate) struct Hold {
    pub(crate) slot: Arc<Slot>,
    pub(crate) host: Arc<Host>,
    pub(crate) inventory: Arc<Inventory>,
    _place: Place,
    _busy: tokio::sync::OwnedMutexGuard<()>,
}

/// The newest form of [`HostRecord`].
pub(crate) const RECORD_FORMAT: u32 = 1;

impl Shared {
    /// The host is on, answers, and is clean.
    pub(crate) async fn create(&self, machine: &Machine) -> Result<String, Failure> {
        let operation = self.operation_of(machine, OperationKind::Create).await;
        let Hold { slot, host, inventory, .. } = &self.hold(machine).await?;
        let work = async {
            if let Some(bmc) = &host.bmc {
                self.power(slot, bmc, Power::On).await;
            }
            self.until_it_answers(slot, host).await;
            let job = new_job(inventory, machine, OperationKind::Create, &operation, Mode::Ensure);
            self.carry_out(slot, host, &job).await
        };
        self.within(slot, "Create", inventory.bounds.create, work).await?;
        Ok(machine.id.clone())
    }

    /// The host has run the bootstrap data and its hook says Ready.
    pub(crate) async fn configure(&self, machine: &Machine, bootstrap: &[u8]) -> Result<(), Failure> {
        let operation = self.operation_of(machine, OperationKind::Configure).await;
        let hold = self.hold(machine).await?;
        let Hold { slot, host, inventory, .. } = &hold;
        let mut job = new_job(inventory, machine, OperationKind::Configure, &operation, Mode::Join);
        job.blob = bootstrap.to_vec();
        let work = self.carry_out(slot, host, &job);
        let joined = self.within(slot, "Configure", inventory.bounds.configure, work).await;
        self.undo_if_failed(&hold, machine, &operation, joined).await
    }

    /// What became of a Configure that a restart cut short: whether the host has joined, or never began.
    pub(crate) async fn resume_configure(&self, machine: &Machine) -> Result<bool, Failure> {
        let operation = self.operation_of(machine, OperationKind::Configure).await;
        let hold = self.hold(machine).await?;
        let Hold { slot, host, inventory, .. } = &hold;
        // Nothing is sent again: the bootstrap data is not ours to keep. What was sent before and has not arrived
        // must not begin behind our back.
        let work = async {
            if self.refused(slot, host, &operation).await? == Standing::None {
                return Ok(false);
            }
            let job = new_job(inventory, machine, OperationKind::Configure, &operation, Mode::Join);
            self.carry_out(slot, host, &job).await.map(|()| true)
        };
        match self.within(slot, "Configure", inventory.bounds.configure, work).await {
            Ok(has_joined) => Ok(has_joined),
            Err(failure) => {
                self.undo_if_failed(&hold, machine, &operation, Err(failure)).await?;
                Ok(true)
            }
        }
    }

    /// The host is out of its cluster and clean. A drain that goes on after a restart has `slack`, because how
    /// much grace it was given is known to the host alone.
    pub(crate) async fn drain(
        &self,
        machine: &Machine,
        grace: Duration,
        slack: Duration,
    ) -> Result<(), Failure> {
        let operation = self.operation_of(machine, OperationKind::Drain).await;
        let Hold { slot, host, inventory, .. } = &self.hold(machine).await?;
        let mut job = new_job(inventory, machine, OperationKind::Drain, &operation, Mode::Reset);
        job.limit += grace;
        job.facts.push(("BIGFLEET_GRACE_SECS", grace.as_secs().to_string()));
        let work = self.carry_out(slot, host, &job);
        self.within(slot, "Drain", inventory.bounds.drain + grace + slack, work).await
    }

    /// The host is off. One that nothing can switch off shows that it is clean instead.
    pub(crate) async fn delete(&self, machine: &Machine) -> Result<(), Failure> {
        let operation = self.operation_of(machine, OperationKind::Delete).await;
        let Hold { slot, host, inventory, .. } = &self.hold(machine).await?;
        let work = async {
            if let Some(bmc) = &host.bmc {
                self.power(slot, bmc, Power::Off).await;
                return Ok(());
            }
            let job = new_job(inventory, machine, OperationKind::Delete, &operation, Mode::Ensure);
            self.carry_out(slot, host, &job).await
        };
        self.within(slot, "Delete", inventory.bounds.delete, work).await
    }

    /// A job of ours, not of a shard: the host shows that it is clean, after a reset if need be.
    pub(crate) async fn ensure_clean(
        &self,
        slot: &Slot,
        machine: &Machine,
        operation: &str,
    ) -> Result<(), Failure> {
        let (host, inventory) = (slot.host(), self.inventory());
        let unbound = Machine { cluster: String::new(), shard_metadata: BTreeMap::new(), ..machine.clone() };
        let job = new_job(&inventory, &unbound, OperationKind::Drain, operation, Mode::Ensure);
        let limit = inventory.bounds.drain;
        self.within(slot, "a check that it is clean", limit, self.carry_out(slot, &host, &job)).await
    }

    /// A job of ours: the node is still Ready, as far as its hook can tell.
    pub(crate) async fn still_ready(
        &self,
        slot: &Slot,
        machine: &Machine,
        operation: &str,
    ) -> Result<(), Failure> {
        let (host, inventory) = (slot.host(), self.inventory());
        let mut job = new_job(&inventory, machine, OperationKind::Configure, operation, Mode::Join);
        job.first = NOTHING.into();
        let limit = inventory.bounds.configure;
        self.within(slot, "a check that it is Ready", limit, self.carry_out(slot, &host, &job)).await
    }

    /// Waits for a place and for the host.
    pub(crate) async fn hold(&self, machine: &Machine) -> Result<Hold, Failure> {
        let slot = self.slot_of(&machine.id)?;
        let (host, inventory) = (slot.host(), self.inventory());
        let place = self.places.take(&host.rack, inventory.bounds.queue).await?;
        let busy = slot.busy.clone().lock_owned().await;
        slot.take_trouble();
        Ok(Hold { slot, host, inventory, _place: place, _busy: busy })
    }

    /// Works on a host, not longer than the limit.
    async fn within<T>(
        &self,
        slot: &Slot,
        what: &str,
        limit: Duration,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            done = work => done,
            () = self.clock.sleep(limit) => Err(overdue(what, limit, slot)),
        }
    }

    /// The operation as the shard knows it: the same before and after a restart.
    async fn operation_of(&self, machine: &Machine, kind: OperationKind) -> String {
        let handle = self.handle.wait().await;
        // A drain of our own, for a host that left the file, has none: any name that does not change will do.
        handle.operation_id(&machine.id, kind).unwrap_or_else(|| format!("own-{kind}-{}", machine.id))
    }

    /// Has a job done and waits for its end, through lost connections.
    async fn carry_out(&self, slot: &Slot, host: &Host, job: &Job) -> Result<(), Failure> {
        let mut wait = BACKOFF.0;
        let mut was_sent = false;
        loop {
            let asked = if was_sent {
                agent::wait(&self.ssh, host, &job.operation).await
            } else {
                agent::job(&self.ssh, host, job).await
            };
            match asked {
                Ok(report) => {
                    was_sent = true;
                    wait = BACKOFF.0;
                    if let Some(end) = self.ended(host, job, &report) {
                        return end;
                    }
                }
                Err(error) if error.is_passing() => {
                    slot.note(&error);
                    self.clock.sleep(wait).await;
                    wait = (wait * 2).min(BACKOFF.1);
                }
                Err(error) => return Err(Failure(error.to_string())),
            }
        }
    }

    /// How a job ended, if it has.
    fn ended(&self, host: &Host, job: &Job, report: &Report) -> Option<Result<(), Failure>> {
        let standing = report.standing_of(&job.operation);
        if standing == Standing::Running {
            return None;
        }
        let heading = format!("{:?} {} {standing:?}", job.mode, job.operation);
        self.kept.keep_output(&host.name, &heading, &report.output);
        if job.mode == Mode::Join && job.first != NOTHING {
            let configured = Configured {
                format: CONFIGURED_FORMAT,
                operation: job.operation.clone(),
                cluster: job.cluster.clone(),
                outcome: outcome(&standing, job.limit),
                ended_unix_nanos: self.clock.now_unix_nanos(),
                output: report.output.clone(),
            };
            self.kept.keep_configured(&host.name, &configured);
        }
        let address = &host.ssh.address;
        let what = match job.mode {
            Mode::Join => "the join",
            Mode::Reset => "the reset",
            Mode::Ensure => "the check that the host is clean",
        };
        let output = tail(&report.output);
        Some(match standing {
            Standing::Ended(0) => Ok(()),
            Standing::Ended(124) => {
                let secs = job.limit.as_secs();
                Err(Failure(format!("{what} on {address} took longer than {secs} s{output}")))
            }
            Standing::Ended(code) => {
                Err(Failure(format!("{what} on {address} failed with exit code {code}{output}")))
            }
            Standing::Lost => {
                Err(Failure(format!("{what} on {address} was cut off: the host restarted or killed it")))
            }
            Standing::Running | Standing::None => Err(Failure(format!(
                "{what} on {address} is not known there any more: the work folder was emptied or used by somebody else"
            ))),
        })
    }

    /// Has a job refused unless it was begun, and says how it stands; asked until the host answers.
    async fn refused(&self, slot: &Slot, host: &Host, operation: &str) -> Result<Standing, Failure> {
        let mut wait = BACKOFF.0;
        loop {
            match agent::refuse(&self.ssh, host, operation).await {
                Ok(report) => return Ok(report.standing_of(operation)),
                Err(error) if error.is_passing() => {
                    slot.note(&error);
                    self.clock.sleep(wait).await;
                    wait = (wait * 2).min(BACKOFF.1);
                }
                Err(error) => return Err(Failure(error.to_string())),
            }
        }
    }

    /// A host that failed to join may still join later, half an hour after everybody forgot it. So it is reset.
    async fn undo_if_failed(
        &self,
        hold: &Hold,
        machine: &Machine,
        operation: &str,
        joined: Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Err(Failure(reason)) = joined else { return Ok(()) };
        let Hold { slot, host, inventory, .. } = hold;
        let undo = format!("{operation}-undo");
        let mut job = new_job(inventory, machine, OperationKind::Drain, &undo, Mode::Reset);
        job.supersedes = operation.into();
        let reset =
            self.within(slot, "the reset", inventory.bounds.drain, self.carry_out(slot, host, &job)).await;
        Err(Failure(match reset {
            Ok(()) => format!("{reason}; the host was reset"),
            Err(Failure(second)) => format!("{reason}; and the host is not clean: {second}"),
        }))
    }

    /// Switches power, again and again: a controller may be busy for minutes. The move has the time limit.
    async fn power(&self, slot: &Slot, bmc: &Bmc, power: Power) {
        let controller = Redfish::new(bmc, &self.clock);
        let mut wait = BACKOFF.0;
        loop {
            let switched = match power {
                Power::Off => controller.power_off().await,
                Power::On | Power::Changing => controller.power_on().await,
            };
            let Err(error) = switched else { return };
            slot.note(&error);
            self.clock.sleep(wait).await;
            wait = (wait * 2).min(BACKOFF.1);
        }
    }

    async fn until_it_answers(&self, slot: &Slot, host: &Host) {
        let mut wait = BACKOFF.0;
        while let Err(error) = self.ssh.answers(host, GREETING).await {
            slot.note(&error);
            self.clock.sleep(wait).await;
            wait = (wait * 2).min(BACKOFF.1);
        }
    }
}

/// A job for a machine, with the hooks and limits of its mode.
fn new_job(
    inventory: &Inventory,
    machine: &Machine,
    kind: OperationKind,
    operation: &str,
    mode: Mode,
) -> Job {
    let is_bound = kind == OperationKind::Configure;
    let record = HostRecord {
        format: RECORD_FORMAT,
        provider: inventory.provider.clone(),
        machine: machine.id.clone(),
        operation: operation.into(),
        kind: kind.name().into(),
        cluster: if is_bound { machine.cluster.clone() } else { String::new() },
        metadata: if is_bound { machine.shard_metadata.clone() } else { BTreeMap::new() },
    };
    let hooks = &inventory.hooks;
    let (first, second, limit) = match mode {
        Mode::Join => (&hooks.join, &hooks.ready, inventory.bounds.configure),
        Mode::Reset | Mode::Ensure => (&hooks.reset, &hooks.clean, inventory.bounds.drain),
    };
    Job {
        operation: operation.into(),
        cluster: machine.cluster.clone(),
        mode,
        limit: limit.saturating_sub(HEADSTART).max(Duration::from_secs(1)),
        facts: vec![
            ("BIGFLEET_MACHINE", machine.id.clone()),
            ("BIGFLEET_CLUSTER", machine.cluster.clone()),
            ("BIGFLEET_OPERATION", operation.into()),
        ],
        first: first.clone(),
        second: second.clone(),
        blob: Vec::new(),
        record: serde_json::to_vec(&record).expect("a record is plain data"),
        supersedes: String::new(),
    }
}

/// How a job ended, in words.
fn outcome(standing: &Standing, limit: Duration) -> String {
    match standing {
        Standing::Ended(124) => format!("stopped after {} s", limit.as_secs()),
        Standing::Ended(code) => format!("ended with exit code {code}"),
        Standing::Lost => "cut off: the host restarted or killed it".into(),
        Standing::Running | Standing::None => "not known on the host any more".into(),
    }
}

fn overdue(what: &str, limit: Duration, slot: &Slot) -> Failure {
    let because =
        slot.take_trouble().map_or_else(String::new, |trouble| format!("; the last problem: {trouble}"));
    Failure(format!("{what} took longer than {} s{because}", limit.as_secs()))
}

/// The end of what a job printed, as one line that no terminal acts on.
fn tail(output: &str) -> String {
    let output = output.trim();
    if output.is_empty() {
        return "; it printed nothing".into();
    }
    let skipped = output.chars().count().saturating_sub(SHOWN_OUTPUT_CHARS);
    let shown: String = output.chars().skip(skipped).collect();
    format!("; its output ends \"{}\"", shown.escape_debug())
}
