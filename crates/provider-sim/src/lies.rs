//! What callers are told: outages, throttling, and answers that are late, lost, repeated or untrue.
//!
//! All of it happens between the honest provider and its callers, so that the provider's own state is always
//! right and a lie can be told from the truth.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::{ListFilter, TransitionAck};
use bigfleet_provider_kit::{Asked, Handle, Machine, Meddler, Selection};
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

use crate::fault::{Fault, Kind};
use crate::shared::Shared;
use crate::span::Span;

/// Machines whose last answer is kept for repeating.
const ANSWERS_KEPT: usize = 100_000;

/// Changes what callers see. Clones are the same.
#[derive(Clone)]
pub struct Lies {
    pub(crate) shared: Arc<Shared>,
    pub(crate) handle: Handle,
    told: Arc<Mutex<Told>>,
}

/// What was said before.
#[derive(Default)]
struct Told {
    answers: BTreeMap<String, TransitionAck>,
    view: Option<View>,
    /// Machines that were lied about, and until when listings of changes name them: whoever corrects itself says so.
    lied_about: BTreeMap<String, i64>,
    /// Listings so far.
    listings: u64,
    /// By the fault that throttles; 0 is the model.
    buckets: BTreeMap<u64, Bucket>,
}

/// How long after a lie listings of changes name its machines.
const CORRECTED_NANOS: i64 = 60_000_000_000;

/// A listing that is no longer renewed.
struct View {
    taken_unix_nanos: i64,
    machines: Vec<Arc<Machine>>,
    revision: u64,
}

struct Bucket {
    tokens: f64,
    seen_unix_nanos: i64,
}

impl Bucket {
    /// Takes one token if there is one.
    fn take(&mut self, per_sec: f64, burst: f64, now: i64) -> bool {
        let passed_secs = now.saturating_sub(self.seen_unix_nanos).max(0) as f64 / 1e9;
        self.tokens = (self.tokens + passed_secs * per_sec).min(burst);
        self.seen_unix_nanos = now;
        let enough = self.tokens >= 1.0;
        self.tokens -= if enough { 1.0 } else { 0.0 };
        enough
    }
}

impl Lies {
    pub(crate) fn new(shared: Arc<Shared>, handle: Handle) -> Self {
        Self { shared, handle, told: Arc::default() }
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().expect("no holder panics")
    }

    /// Refuses a call that comes too fast.
    fn throttle(&self, asked: &Asked) -> Result<(), Status> {
        let (now, model) = (self.shared.now(), &self.shared.models.throttle);
        let faults = self.shared.active(Kind::Throttle);
        let mut told = self.told();
        told.buckets.retain(|id, _| *id == 0 || faults.iter().any(|(active, _)| active == id));
        let mut take = |id, per_sec: f64, burst: f64| {
            let full = Bucket { tokens: burst, seen_unix_nanos: now };
            told.buckets.entry(id).or_insert(full).take(per_sec, burst, now)
        };
        if model.on && matches!(asked, Asked::Move(..)) && !take(0, model.moves_per_sec, model.burst) {
            return Err(too_fast(model.retry_after));
        }
        for (id, fault) in &faults {
            let rate = fault.number("rate");
            if !take(*id, rate, rate.max(1.0)) {
                return Err(too_fast(fault.span("retry")));
            }
        }
        Ok(())
    }

    async fn dawdle(&self, key: &str) {
        if let Some(fault) = self.shared.hit(Kind::LateAnswers, key, |_| true) {
            self.shared.event("lie", key, format!("the answer comes {} late", fault.span("by")));
            self.shared.clock.sleep(fault.span("by").duration()).await;
        }
    }

    /// The listing as it was when it was last renewed, at most `by` ago.
    fn stale(&self, fault: &Fault, filter: &ListFilter) -> Selection {
        let now = self.shared.now();
        let mut told = self.told();
        let old = |view: &View| now.saturating_sub(view.taken_unix_nanos) >= fault.span("by").nanos();
        if told.view.as_ref().is_none_or(old) {
            let revision = self.handle.revision();
            told.view = Some(View { taken_unix_nanos: now, machines: self.handle.machines(), revision });
        }
        let view = told.view.as_ref().expect("it was just made");
        let revision = view.revision.to_string().into_bytes();
        if filter.since_revision == revision {
            return Selection { machines: Vec::new(), revision };
        }
        let wanted =
            |machine: &&Arc<Machine>| filter.states.is_empty() || filter.states.contains(&machine.state);
        let cap = usize::try_from(filter.max_results).ok().filter(|cap| *cap > 0).unwrap_or(usize::MAX);
        let machines = view.machines.iter().filter(wanted).take(cap).cloned();
        Selection { machines: machines.collect(), revision }
    }
}

impl Lies {
    /// Whether a machine is one of the share that is lied about. The same ones each time.
    fn is_lied_about(&self, fault: &Fault, machine: &Machine) -> bool {
        machine.state == MachineState::Configured.to_wire()
            && self.shared.dice.unit("shown-failed", &machine.id, 0) < fault.number("share")
    }

    /// Says of machines that are fine that they failed.
    fn show_failed(&self, filter: &ListFilter, list: &mut Selection) {
        let fault = self.shared.active(Kind::ShownFailed).into_iter().next().map(|(_, fault)| fault);
        let now = self.shared.now();
        let mut told = self.told();
        told.lied_about.retain(|_, until| *until > now);
        if fault.is_none() && told.lied_about.is_empty() {
            return;
        }
        // A change of mind is a change, whatever the revision says.
        if !filter.since_revision.is_empty() {
            let named: std::collections::BTreeSet<String> =
                list.machines.iter().map(|machine| machine.id.clone()).collect();
            let concerned = self.handle.machines().into_iter().filter(|machine| {
                let lie = fault.as_ref().is_some_and(|fault| self.is_lied_about(fault, machine));
                (lie || told.lied_about.contains_key(&machine.id)) && !named.contains(&machine.id)
            });
            list.machines.extend(concerned);
        }
        let Some(fault) = fault else { return };
        for machine in &mut list.machines {
            if self.is_lied_about(&fault, machine) {
                told.lied_about.insert(machine.id.clone(), now + CORRECTED_NANOS);
                *machine = Arc::new(failed(machine));
            }
        }
    }
}

/// A machine as it would be if it had failed.
fn failed(machine: &Machine) -> Machine {
    let mut failed = machine.clone();
    failed.state = MachineState::Failed.to_wire();
    failed.cluster.clear();
    failed.last_error = "the host does not answer (a lie)".into();
    failed
}

fn too_fast(retry: Span) -> Status {
    let mut status =
        Status::new(Code::ResourceExhausted, format!("too many calls; come back in {retry} (simulated)"));
    let millis = retry.nanos() / 1_000_000;
    status.metadata_mut().insert("grpc-retry-pushback-ms", MetadataValue::from(millis));
    status
}

/// What a call is about, for the log and the dice.
fn key(asked: &Asked) -> &str {
    match asked {
        Asked::Move(_, id) | Asked::Get(id) => id,
        Asked::List(_) => "list",
    }
}

impl Meddler for Lies {
    async fn before(&self, asked: &Asked) -> Result<(), Status> {
        if self.shared.hit(Kind::ApiOutage, key(asked), |_| true).is_some() {
            self.shared.event("api-outage", key(asked), "a call is refused");
            return Err(Status::unavailable("the provider's API is out (simulated)"));
        }
        self.throttle(asked).inspect_err(|_| self.shared.event("throttle", key(asked), "a call is refused"))
    }

    async fn acked(
        &self,
        asked: &Asked,
        honest: Result<TransitionAck, Status>,
    ) -> Result<TransitionAck, Status> {
        let Ok(ack) = honest else { return honest };
        self.dawdle(key(asked)).await;
        if self.shared.hit(Kind::DeniedMoves, key(asked), |_| true).is_some() {
            self.shared.event("lie", key(asked), "the machine is denied, the move has begun");
            return Err(Status::not_found(format!("no such machine: {} (a lie)", key(asked))));
        }
        if self.shared.hit(Kind::LostAnswers, key(asked), |_| true).is_some() {
            self.shared.event("lie", key(asked), "the answer is lost, the move has begun");
            return Err(Status::unavailable("the answer was lost on the way (simulated)"));
        }
        let repeat = self.shared.hit(Kind::RepeatedAnswers, key(asked), |_| true).is_some();
        let mut told = self.told();
        if told.answers.len() >= ANSWERS_KEPT {
            told.answers.clear();
        }
        let previous = told.answers.insert(key(asked).into(), ack.clone());
        drop(told);
        match previous.filter(|_| repeat) {
            Some(previous) => {
                self.shared.event("lie", key(asked), "the previous answer is given again");
                Ok(previous)
            }
            None => Ok(ack),
        }
    }

    async fn got(&self, honest: Result<Machine, Status>) -> Result<Machine, Status> {
        let machine = honest?;
        self.dawdle(&machine.id).await;
        let fault = self.shared.active(Kind::ShownFailed).into_iter().next().map(|(_, fault)| fault);
        let lie = fault.is_some_and(|fault| self.is_lied_about(&fault, &machine));
        Ok(if lie { failed(&machine) } else { machine })
    }

    async fn listed(&self, filter: &ListFilter, honest: Selection) -> Result<Selection, Status> {
        self.dawdle("list").await;
        let first = |kind| self.shared.active(kind).into_iter().next().map(|(_, fault)| fault);
        let mut list = if let Some(fault) = first(Kind::StaleList) {
            self.stale(&fault, filter)
        } else {
            self.told().view = None;
            honest
        };
        self.show_failed(filter, &mut list);
        if first(Kind::HalvedList).is_some() && filter.since_revision.is_empty() {
            let mut told = self.told();
            told.listings += 1;
            let listing = told.listings;
            drop(told);
            let stays =
                |machine: &Arc<Machine>| self.shared.dice.unit("halved-list", &machine.id, listing) < 0.5;
            list.machines.retain(stays);
            self.shared.event("lie", "list", format!("shows {} machines", list.machines.len()));
        }
        if let Some(fault) = first(Kind::ContradictedList) {
            let twice = (list.machines.len() as f64 * fault.number("share")).ceil() as usize;
            self.shared.event("lie", "list", format!("says two things of {twice} machines"));
            let contradicted: Vec<_> =
                list.machines[..twice].iter().map(|one| Arc::new(failed(one))).collect();
            list.machines.extend(contradicted);
        }
        if let Some(fault) = first(Kind::TruncatedList) {
            let kept = (list.machines.len() as f64 * fault.number("keep")).ceil() as usize;
            self.shared.event("lie", "list", format!("shows {kept} of {} machines", list.machines.len()));
            list.machines.truncate(kept);
        }
        if let Some(fault) = first(Kind::DuplicatedList) {
            let twice = (list.machines.len() as f64 * fault.number("share")).ceil() as usize;
            self.shared.event("lie", "list", format!("shows {twice} machines twice"));
            list.machines.extend_from_within(..twice);
        }
        if first(Kind::ShuffledList).is_some() {
            self.shared.dice.shuffle(&mut list.machines, "list", self.shared.now().cast_unsigned());
        }
        Ok(list)
    }
}
