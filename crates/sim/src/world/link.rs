//! The network between a shard and its providers, with everything networks do.

use std::sync::Arc;

use bigfleet_proto::convert::machine::Received;
use bigfleet_proto::v1alpha1::Machine;
use bigfleet_shard::{
    BadRecord, CallError, CallErrorKind, CallId, Event, ListEnd, Report, Reports, Request, Told,
};

use super::happening::{Answer, Arriving, Asked, Fate, Happening};
use super::{Moment, World};
use crate::cloud::Caller;

/// How long after the caller gave up a late call takes effect.
const LATE: i64 = 5_000_000_000;

/// A listing as it came over the wire.
pub(crate) struct Records(pub(crate) Vec<Machine>);

struct Record<'a>(&'a Machine);

impl Reports for Records {
    fn each(&self, take: &mut dyn FnMut(&dyn Report)) {
        for machine in &self.0 {
            take(&Record(machine));
        }
    }
}

impl Report for Record<'_> {
    fn id(&self) -> &str {
        &self.0.id
    }

    fn digest(&self) -> u128 {
        content(self.0).into()
    }

    fn content(&self) -> u64 {
        content(self.0)
    }

    fn read(&self) -> Result<Told, BadRecord> {
        told(self.0)
    }
}

/// A hash over all that a record says.
fn content(machine: &Machine) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut take = |bytes: &[u8]| {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
        }
        hash = hash.wrapping_add(bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    };
    for text in [&machine.id, &machine.instance_type, &machine.zone, &machine.cluster, &machine.last_error] {
        take(text.as_bytes());
    }
    take(&machine.state.to_le_bytes());
    take(&machine.capacity_type.to_le_bytes());
    take(&machine.price_per_hour.to_le_bytes());
    take(&machine.interruption_probability.to_le_bytes());
    if let Some(host) = &machine.host {
        take(host.r#ref.as_bytes());
    }
    let resources = [&machine.resources, &machine.allocatable].into_iter().flatten();
    for (key, value) in
        resources.flat_map(|r| &r.resources).chain(&machine.labels).chain(&machine.shard_metadata)
    {
        take(key.as_bytes());
        take(value.as_bytes());
    }
    hash
}

/// Reads a record as the shard's client does.
pub(crate) fn told(machine: &Machine) -> Result<Told, BadRecord> {
    match Received::try_from(machine) {
        Ok(received) => Ok(Told { bad_stamps: received.stamp_problems.len(), machine: received.machine }),
        Err(error) => {
            Err(BadRecord { id: machine.id.as_str().into(), code: error.code(), text: error.to_string() })
        }
    }
}

fn unavailable() -> CallError {
    CallError { kind: CallErrorKind::Unavailable, text: "the provider cannot be reached".into() }
}

fn timed_out() -> CallError {
    CallError { kind: CallErrorKind::TimedOut, text: "no answer came in time".into() }
}

impl World {
    pub(super) fn ask_list(
        &mut self,
        host: usize,
        call: CallId,
        provider: usize,
        since: Vec<u8>,
        timeout: i64,
    ) {
        self.dispatch(host, call, provider, Asked::List(since), 0, timeout);
    }

    pub(super) fn ask_machine(
        &mut self,
        host: usize,
        call: CallId,
        provider: usize,
        request: Request,
        sequence: i64,
        timeout: i64,
    ) {
        self.dispatch(host, call, provider, Asked::Machine(request), sequence, timeout);
    }

    /// Sends a call on its way, and decides what becomes of it.
    fn dispatch(
        &mut self,
        host: usize,
        call: CallId,
        provider: usize,
        asked: Asked,
        sequence: i64,
        timeout: i64,
    ) {
        self.tally.calls += 1;
        let (life, epoch) = (self.hosts[host].life, self.hosts[host].epoch);
        let latency = self.scenario.latency.nanos();
        let name = &self.scenario.providers()[provider];
        if self.active.is_down(name) || self.random.happens(self.active.calls_fail) {
            let answer = Answer::Failed(unavailable());
            self.answer_at(self.now + 2 * latency, (host, life, call, provider), answer);
            return;
        }
        let mut fate = Fate::Fine;
        let mut arrives = self.now + latency;
        if self.random.happens(self.active.answers_lost) {
            fate = Fate::AnswerLost;
        } else if self.random.happens(self.active.answers_late) {
            arrives = self.now + timeout + LATE;
            fate = Fate::Late;
        } else if self.random.happens(self.active.answers_twice) {
            fate = Fate::Twice;
        }
        if matches!(fate, Fate::AnswerLost | Fate::Late) {
            let answer = Answer::Failed(timed_out());
            self.answer_at(self.now + timeout, (host, life, call, provider), answer);
        }
        let arriving = Arriving { host, life, epoch, call, provider, asked, sequence, fate };
        self.queue.put(arrives, Happening::Arrive(arriving));
    }

    /// A call reaches its provider.
    pub(super) fn arrive(&mut self, arriving: Arriving) {
        let Arriving { host, life, epoch, call, provider, asked, sequence, fate } = arriving;
        let answer = match asked {
            Asked::List(since) => self.list(provider, &since),
            Asked::Machine(request) => {
                let shard = format!("shard-{}", self.hosts[host].index);
                let caller = Caller { shard: &shard, epoch, sequence };
                let before = self.truth.state(request.machine());
                let answer = self.clouds.call(provider, &caller, &request);
                self.look_at_machines();
                let after = self.truth.state(request.machine());
                let moved = before != after;
                let shard = self.hosts[host].index;
                self.show(&Moment::Called { request: &request, moved, epoch, shard, answer: &answer });
                let is_move = !matches!(request, Request::Get { .. });
                match answer {
                    Ok(_) if is_move && self.random.happens(self.active.moves_denied) => {
                        Answer::Failed(CallError {
                            kind: CallErrorKind::NotFound,
                            text: "no such machine".into(),
                        })
                    }
                    Ok(mut machine) => {
                        self.distort_answer(&mut machine);
                        Answer::Machine(Box::new(machine))
                    }
                    Err(error) => Answer::Failed(error),
                }
            }
        };
        if fate == Fate::AnswerLost {
            return;
        }
        let mut answer = answer;
        if let (Answer::Listed { clean, .. }, Fate::Late) = (&mut answer, fate) {
            // Nobody waits for it any more, so nobody need believe it.
            *clean = false;
        }
        let mut back = self.now + self.scenario.latency.nanos();
        let listing = self.scenario.listing.nanos();
        if listing > 0 && matches!(answer, Answer::Listed { .. }) {
            back += (listing as f64 * self.random.unit()) as i64;
        }
        if fate == Fate::Twice {
            self.answer_at(back + 1_000_000, (host, life, call, provider), answer.clone());
        }
        self.answer_at(back, (host, life, call, provider), answer);
    }

    /// Puts an answer that is given now on its way.
    fn answer_at(
        &mut self,
        at: i64,
        (host, life, call, provider): (usize, u64, CallId, usize),
        answer: Answer,
    ) {
        let taken = self.now;
        self.queue.put(at, Happening::Answer { host, life, call, provider, taken, answer });
    }

    /// What a provider lists, and what the network makes of it.
    fn list(&mut self, provider: usize, since: &[u8]) -> Answer {
        let full = since.is_empty();
        if let Some((machines, revision)) =
            self.active.stale.get(provider).filter(|_| !self.active.stale.is_empty())
        {
            let machines = if full { machines.clone() } else { Vec::new() };
            return Answer::Listed { machines, revision: revision.clone(), clean: false, full };
        }
        let (mut machines, revision) = self.clouds.list(provider, since);
        let mut clean = self.distort_list(provider, full, &mut machines);
        if self.active.reordered {
            self.random.shuffle(&mut machines);
        }
        if let Some(keep) = self.active.truncated.filter(|_| full) {
            machines.truncate((machines.len() as f64 * keep) as usize);
            clean = false;
        }
        Answer::Listed { machines, revision, clean, full }
    }

    /// An answer reaches the shard.
    pub(super) fn answer(
        &mut self,
        host: usize,
        life: u64,
        call: CallId,
        provider: usize,
        taken: i64,
        answer: Answer,
    ) {
        if self.hosts[host].life != life || self.hosts[host].shard.is_none() {
            return;
        }
        self.show(&Moment::Returned { host, call });
        match answer {
            Answer::Failed(error) => {
                self.trace.note(self.now, format_args!("host {host} call {} fails: {error}", call.0));
                self.tell(host, Event::Failed { call, error });
            }
            Answer::Machine(machine) => {
                self.trace.note(
                    self.now,
                    format_args!(
                        "host {host} call {} answered: {} state {}",
                        call.0, machine.id, machine.state
                    ),
                );
                self.show(&Moment::Answered { host, machine: &machine, taken });
                let machine = Some(told(&machine));
                self.tell(host, Event::Answered { call, machine });
            }
            Answer::Listed { machines, revision, clean, full } => {
                if full || !machines.is_empty() {
                    self.trace.note(
                        self.now,
                        format_args!("host {host} call {} lists {} machines", call.0, machines.len()),
                    );
                }
                let listed: Option<Arc<Vec<Machine>>> =
                    (!self.setup.unwatched).then(|| Arc::new(machines.clone()));
                let end = Some(ListEnd { revision: revision.into(), is_pieced: false });
                self.tell(host, Event::Listed { call, records: Box::new(Records(machines)), end });
                if let (Some(listed), Some(shard)) = (listed, &self.hosts[host].shard) {
                    let machines = &listed;
                    let heard = Moment::Heard { host, provider, shard, machines, full, clean, taken };
                    self.watch.see(self.now, &heard);
                    if clean && !listed.is_empty() {
                        self.watch.see(self.now, &Moment::Listed { host, shard, machines, full });
                    }
                }
            }
        }
    }
}
