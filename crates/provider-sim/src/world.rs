//! What happens of its own accord: prices move, spot machines are taken back, hosts die, zones go out, and what
//! is broken is repaired.
//!
//! The world looks at the whole fleet at every tick, and whenever a fault begins or ends. A look first decides
//! what changes, from the records alone, and then changes it, each record only if it is still the same machine.

mod look;

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::HostRef;
use bigfleet_provider_kit::{CapacityType, Handle, Machine};
use tokio::task::JoinSet;

use crate::catalogue::find;
use crate::cloud::new_host;
use crate::fault::{Fault, Status};
use crate::inventory::is_owned;
use crate::shared::{Shared, host_of, state_of};

/// The label that says when a spot machine will be taken back, in Unix seconds.
pub const NOTICE_LABEL: &str = "bigfleet.sim/reclaim-at";
/// Changes made at once; well below what the store lets wait.
const AT_ONCE: usize = 16_384;

/// What a look finds for one machine.
#[derive(Clone, Debug, PartialEq)]
enum Change {
    /// It will be taken back at this moment.
    Notice { at_unix_nanos: i64 },
    /// A notice that is without object.
    NoticeIsVoid,
    /// It is gone.
    Lost { reason: String },
    /// It works again.
    Repaired,
    /// It costs this much now.
    Price { usd_per_hour: f64 },
}

pub(crate) struct World {
    shared: Arc<Shared>,
    handle: Handle,
    /// The tick that was looked at last.
    tick: i64,
    seen_unix_nanos: i64,
    /// Spot machines that have their notice: the hardware, and when it will be taken back.
    notices: BTreeMap<String, (String, i64)>,
    /// Since when machines are Failed.
    failed_since: BTreeMap<String, i64>,
    prices: look::PriceBoard,
}

impl World {
    pub(crate) fn new(shared: Arc<Shared>, handle: Handle) -> Self {
        let now = shared.now();
        let tick = now.div_euclid(shared.models.tick.nanos());
        // A clock that ran fast before a restart was ahead: no notice is longer than a notice.
        let latest = now.saturating_add(shared.models.spot.notice.nanos());
        let noticed = handle.machines().into_iter().filter_map(|machine| {
            let at_secs: i64 = machine.labels.get(NOTICE_LABEL)?.parse().ok()?;
            let at = at_secs.saturating_mul(1_000_000_000).min(latest);
            Some((machine.id.clone(), (host_of(&machine)?.to_string(), at)))
        });
        Self {
            notices: noticed.collect(),
            failed_since: BTreeMap::new(),
            prices: look::PriceBoard::default(),
            shared,
            handle,
            tick,
            seen_unix_nanos: now.saturating_sub(1),
        }
    }

    /// Goes on for ever.
    pub(crate) async fn run(mut self) {
        loop {
            self.look().await;
            let wake = self.next_look();
            let shared = self.shared.clone();
            tokio::select! {
                biased;
                () = shared.changed.notified() => {}
                () = sleep_until(&shared, wake) => {}
            }
        }
    }

    fn is_eventful(&self) -> bool {
        let models = &self.shared.models;
        models.spot.on
            || models.host_loss.on
            || models.prices.on
            || models.repair.on
            || !self.notices.is_empty()
    }

    /// When something may happen next, if anything may.
    fn next_look(&self) -> Option<i64> {
        let tick = self.shared.models.tick.nanos();
        let at_tick = self.is_eventful().then(|| (self.tick + 1).saturating_mul(tick));
        let reclaim = self.notices.values().map(|(_, at)| *at).min();
        let fault = self.shared.board().next_change(self.seen_unix_nanos);
        [at_tick, reclaim, fault].into_iter().flatten().min()
    }

    async fn look(&mut self) {
        let now = self.shared.now();
        self.note_faults(now);
        let due = self.take_due(now);
        let outages = self.shared.active(crate::fault::Kind::ZoneOutage);
        if !self.is_eventful() && due.is_empty() && outages.is_empty() && !self.prices.is_needed(&self.shared)
        {
            self.seen_unix_nanos = now;
            return;
        }
        let machines = self.handle.machines();
        let changes = self.decide(now, &machines, &due, &outages);
        self.tick = now.div_euclid(self.shared.models.tick.nanos());
        self.seen_unix_nanos = now;
        let mut tasks = JoinSet::new();
        for (machine, change) in changes {
            if tasks.len() == AT_ONCE {
                tasks.join_next().await;
            }
            tasks.spawn(make(self.shared.clone(), self.handle.clone(), machine, change));
        }
        while tasks.join_next().await.is_some() {}
    }

    /// The faults that happen once and now; written down, so that a restart does not repeat them.
    fn take_due(&self, now: i64) -> Vec<(u64, Fault)> {
        let mut board = self.shared.board();
        let due = board.take_due(now);
        if !due.is_empty()
            && let Err(error) = self.shared.keep(&board)
        {
            tracing::error!(%error, "a fault that has happened could not be written down");
        }
        due
    }

    /// Writes down which faults have begun or ended since the last look.
    fn note_faults(&self, now: i64) {
        let before = self.seen_unix_nanos;
        for entry in self.shared.board().entries() {
            let word = match (entry.status(before), entry.status(now)) {
                (Status::Planned, Status::Active) => "begins",
                (Status::Active, Status::Over)
                    if entry.until_unix_nanos.is_some_and(|until| until > before) =>
                {
                    "ends"
                }
                (Status::Planned, Status::Over) => "began and ended",
                _ => continue,
            };
            self.shared.event("fault", &entry.id.to_string(), format!("{word}: {}", entry.fault));
        }
    }
}

async fn sleep_until(shared: &Shared, wake: Option<i64>) {
    match wake {
        Some(wake) => shared.clock.sleep_until(wake).await,
        None => std::future::pending().await,
    }
}

/// Makes one change, if the machine is still the one that was looked at.
async fn make(shared: Arc<Shared>, handle: Handle, seen: Arc<Machine>, change: Change) {
    let mut made = false;
    let told = shared.told(if let Change::Notice { at_unix_nanos } = change { at_unix_nanos } else { 0 });
    let outcome = handle
        .update(&seen.id, |machine| {
            let failed = |machine: &Machine| state_of(machine) == MachineState::Failed;
            if machine.host == seen.host && failed(machine) == failed(&seen) {
                apply(&shared, machine, &change, told);
                made = *machine != *seen;
            }
        })
        .await;
    if let Err(error) = outcome {
        tracing::error!(machine = seen.id, %error, "a change of the simulated world could not be made");
        return;
    }
    if !made {
        return;
    }
    match &change {
        Change::Notice { at_unix_nanos } => {
            let in_secs = at_unix_nanos.saturating_sub(shared.now()) / 1_000_000_000;
            shared.event("spot-notice", &seen.id, format!("will be taken back in {in_secs} s"));
        }
        Change::Lost { reason } => {
            shared.nodes().remove(&seen.id);
            shared.event("lost", &seen.id, reason.as_str());
        }
        Change::Repaired => shared.event("repaired", &seen.id, ""),
        // Prices are written down once per pool, where they are decided.
        Change::Price { .. } | Change::NoticeIsVoid => {}
    }
}

fn apply(shared: &Shared, machine: &mut Machine, change: &Change, told_unix_nanos: i64) {
    let usual_loss = find(&machine.instance_type).map_or(0.05, |kind| kind.spot_loss_per_hour);
    match change {
        Change::Notice { .. } => {
            machine.interruption_probability = 1.0;
            let secs = told_unix_nanos.div_euclid(1_000_000_000);
            machine.labels.insert(NOTICE_LABEL.into(), secs.to_string());
        }
        Change::NoticeIsVoid => {
            machine.interruption_probability = usual_loss;
            machine.labels.remove(NOTICE_LABEL);
        }
        Change::Lost { reason } => {
            machine.state = MachineState::Failed.to_wire();
            machine.last_error.clone_from(reason);
        }
        Change::Repaired => {
            let owned = CapacityType::from_wire(machine.capacity_type).is_some_and(is_owned);
            let state = if owned { MachineState::Idle } else { MachineState::Speculative };
            machine.state = state.to_wire();
            machine.host = owned
                .then(|| HostRef { provider: shared.name.clone(), r#ref: new_host(shared, &machine.id) });
        }
        Change::Price { usd_per_hour } => machine.price_per_hour = *usd_per_hour,
    }
    debug_assert!(state_of(machine) != MachineState::Failed || !machine.last_error.is_empty());
}
