//! The network between a shard and its providers, with everything networks do. What travels is bytes: requests are
//! written and answers are read by the shard's own border.

use std::sync::Arc;

use bigfleet_border::provider::{Ask, Batch, DigestKey, ListCall, Lister, Outgoing, Token};
use bigfleet_border::provider::{meaning, outgoing};
use bigfleet_proto::provider_v1::{ListChunk, ListEnd, ListRequest};
use bigfleet_proto::v1alpha1::{ListFilter, Machine, MachineList, TransitionAck};
use bigfleet_shard::{BadRecord, CallError, CallId, Event, Request, Told};
use bytes::Bytes;
use prost::Message;
use tonic::Status;

use super::happening::{Answer, Arriving, Asked, Fate, Happening, Listed};
use super::{Moment, World};
use crate::random::Random;

/// How long after the caller gave up a late call takes effect.
const LATE: i64 = 5_000_000_000;
/// Records in a chunk of a stream: few, so that small worlds have several.
const CHUNK: usize = 16;

/// How a provider can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serves {
    /// As a stream.
    Stream,
    /// In one answer.
    Whole,
    /// Everything is too much for one answer: by state.
    Pieces,
}

impl Serves {
    /// All ways, the usual one more often.
    pub(super) const ALL: [Self; 4] = [Self::Stream, Self::Stream, Self::Whole, Self::Pieces];
}

fn unreachable() -> Status {
    // As the client's own side says it: a status with a cause was made up here and not sent by anybody.
    Status::from_error(Box::new(std::io::Error::other("the provider cannot be reached")))
}

fn timed_out() -> Status {
    Status::deadline_exceeded("no answer came in time")
}

impl World {
    pub(super) fn ask_list(
        &mut self,
        host: usize,
        call: CallId,
        provider: usize,
        since: Arc<[u8]>,
        timeout: i64,
    ) {
        let now = self.now + self.hosts[host].clock_offset;
        let list = ListCall::begin(self.lister(host, provider), since, now);
        self.dispatch(host, call, provider, Asked::List(list), timeout);
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
        let (shard, epoch) = (format!("shard-{}", self.hosts[host].index), self.hosts[host].epoch);
        let token = if self.clouds.ignore_fences {
            Token { shard_id: "", epoch: 0, sequence: 0 }
        } else {
            Token { shard_id: &shard, epoch, sequence }
        };
        let outgoing = outgoing(request.clone(), token);
        self.dispatch(host, call, provider, Asked::Machine(request, outgoing), timeout);
    }

    /// What this life of a host has learned about a provider.
    fn lister(&mut self, host: usize, provider: usize) -> &mut Lister {
        let host = &mut self.hosts[host];
        let mut secret = Random::new(host.life);
        let fresh = || Lister::new(DigestKey::new(|_| secret.bits()));
        host.listers.entry(provider).or_insert_with(fresh)
    }

    /// Sends a call on its way, and decides what becomes of it.
    fn dispatch(&mut self, host: usize, call: CallId, provider: usize, asked: Asked, timeout: i64) {
        self.tally.calls += 1;
        let (life, epoch) = (self.hosts[host].life, self.hosts[host].epoch);
        let latency = self.scenario.latency.nanos();
        let name = &self.scenario.providers()[provider];
        if self.active.is_down(name) || self.random.happens(self.active.calls_fail) {
            let answer = failed(asked, provider, timeout, self.now, unreachable());
            self.queue.put(
                self.now + 2 * latency,
                Happening::Answer { host, life, call, answer: Box::new(answer) },
            );
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
            let answer = failed(asked.clone(), provider, timeout, self.now, timed_out());
            self.queue
                .put(self.now + timeout, Happening::Answer { host, life, call, answer: Box::new(answer) });
        }
        let arriving = Arriving { host, life, epoch, call, provider, asked, timeout, fate };
        self.queue.put(arrives, Happening::Arrive(Box::new(arriving)));
    }

    /// A call reaches its provider.
    pub(super) fn arrive(&mut self, arriving: Arriving) {
        let Arriving { host, life, epoch, call, provider, asked, timeout, fate } = arriving;
        let mut answer = match asked {
            Asked::List(list) => Answer::Listed(self.list(list, provider, timeout)),
            Asked::Machine(request, outgoing) => {
                let before = self.truth.state(request.machine());
                let answer = self.clouds.call(provider, &outgoing);
                self.look_at_machines();
                let moved = before != self.truth.state(request.machine());
                let shard = self.hosts[host].index;
                let said = read(&outgoing, &answer);
                self.show(&Moment::Called { request: &request, moved, epoch, shard, answer: &said });
                if moved {
                    self.check_ordered(host, &request);
                }
                let is_move = !matches!(request, Request::Get { .. });
                let answer = match answer {
                    Ok(_) if is_move && self.is_denied() => Err(Status::not_found("no such machine")),
                    Ok(bytes) => Ok(self.distorted(outgoing.path, bytes)),
                    refused => refused,
                };
                Answer::Machine { path: outgoing.path, answer, taken: self.now }
            }
        };
        if fate == Fate::AnswerLost {
            return;
        }
        if let (Answer::Listed(listed), Fate::Late) = (&mut answer, fate) {
            // Nobody waits for it any more, so nobody need believe it.
            (listed.said, listed.is_repeat) = (None, true);
        }
        let mut back = self.now + self.scenario.latency.nanos();
        let listing = self.scenario.listing.nanos();
        if listing > 0 && matches!(answer, Answer::Listed(_)) {
            back += (listing as f64 * self.random.unit()) as i64;
        }
        if fate == Fate::Twice {
            let mut answer = answer.clone();
            if let Answer::Listed(listed) = &mut answer {
                listed.is_repeat = true;
            }
            self.queue
                .put(back + 1_000_000, Happening::Answer { host, life, call, answer: Box::new(answer) });
        }
        self.queue.put(back, Happening::Answer { host, life, call, answer: Box::new(answer) });
    }

    /// What a provider lists, and what the network makes of it.
    fn list(&mut self, list: ListCall, provider: usize, timeout: i64) -> Listed {
        let mut listed = Listed {
            list,
            provider,
            timeout,
            answer: Err(Status::internal("nobody asked")),
            taken: self.now,
            said: None,
            is_true: false,
            is_piece: false,
            full: false,
            is_repeat: false,
        };
        let serves = self.serves[provider];
        let Some(ask) = listed.list.ask() else { return listed };
        let filter = match &ask {
            Ask::Stream(_) if serves != Serves::Stream => {
                listed.answer = Err(Status::unimplemented("there is no such service"));
                return listed;
            }
            Ask::Stream(request) => {
                let since = ListRequest::decode(request.clone()).expect("the border writes good requests");
                ListFilter { since_revision: since.since_revision.to_vec(), ..ListFilter::default() }
            }
            Ask::Unary(request) => {
                ListFilter::decode(request.clone()).expect("the border writes good requests")
            }
        };
        listed.full = filter.since_revision.is_empty();
        if listed.full && filter.states.is_empty() && serves == Serves::Pieces {
            listed.answer = Err(Status::out_of_range("the answer is too large"));
            return listed;
        }
        let (mut machines, revision, is_true) = self.listed(provider, &filter.since_revision);
        machines.retain(|machine| filter.states.is_empty() || filter.states.contains(&machine.state));
        let chunks = match ask {
            Ask::Stream(_) => chunks(&machines, &revision),
            Ask::Unary(_) => {
                let list = MachineList { machines: std::mem::take(&mut machines), revision };
                let bytes = list.encode_to_vec().into();
                machines = list.machines;
                vec![bytes]
            }
        };
        listed.answer = Ok((chunks, Ok(())));
        (listed.is_true, listed.is_piece) = (is_true, !filter.states.is_empty());
        listed.said = (!self.setup.unwatched).then_some(machines);
        listed
    }

    /// The machines in an answer, its revision, and whether both are true.
    fn listed(&mut self, provider: usize, since: &[u8]) -> (Vec<Machine>, Vec<u8>, bool) {
        let full = since.is_empty();
        if let Some((machines, revision)) = self.active.stale.get(provider) {
            return (if full { machines.clone() } else { Vec::new() }, revision.clone(), false);
        }
        let (mut machines, revision) = self.clouds.list(provider, since);
        let is_true = self.distort_list(provider, full, &mut machines);
        if self.active.reordered {
            self.random.shuffle(&mut machines);
        }
        let Some(keep) = self.active.truncated.filter(|_| full) else { return (machines, revision, is_true) };
        machines.truncate((machines.len() as f64 * keep) as usize);
        (machines, revision, false)
    }

    /// An answer reaches the shard.
    pub(super) fn answer(&mut self, host: usize, life: u64, call: CallId, answer: Answer) {
        if self.hosts[host].life != life || self.hosts[host].shard.is_none() {
            return;
        }
        match answer {
            Answer::Machine { path, answer, taken } => {
                self.show(&Moment::Returned { host, call });
                if let Some(machine) = answer.as_ref().ok().and_then(|bytes| machine_in(path, bytes)) {
                    self.show(&Moment::Answered { host, machine: &machine, taken });
                }
                match answer.and_then(|bytes| Outgoing::answer(path, &bytes)) {
                    Ok(machine) => {
                        self.note_answer(host, call, machine.as_ref());
                        self.tell(host, Event::Answered { call, machine });
                    }
                    Err(status) => self.call_failed(host, call, meaning(&status)),
                }
            }
            Answer::Listed(listed) => self.listing_goes_on(host, life, call, listed),
        }
    }

    fn note_answer(&mut self, host: usize, call: CallId, machine: Option<&Result<Told, BadRecord>>) {
        let call = call.0;
        match machine {
            Some(Ok(Told { machine, .. })) => {
                let (id, state) = (&machine.id, machine.state);
                self.trace.note(self.now, format_args!("host {host} call {call} answered: {id} {state}"));
            }
            other => self.trace.note(self.now, format_args!("host {host} call {call} answered: {other:?}")),
        }
    }

    fn call_failed(&mut self, host: usize, call: CallId, error: CallError) {
        self.trace.note(self.now, format_args!("host {host} call {} fails: {error}", call.0));
        self.tell(host, Event::Failed { call, error });
    }

    /// Hands what came of one step of a listing to the shard, and takes the next.
    fn listing_goes_on(&mut self, host: usize, life: u64, call: CallId, listed: Listed) {
        let Listed { mut list, provider, timeout, answer, taken, said, is_true, is_piece, full, is_repeat } =
            listed;
        let mut batches = Vec::new();
        let lister = self.lister(host, provider);
        let step = take(&mut list, lister, answer, &mut batches);
        let failed = step.err().map(|status| lister.failed(&status));
        if failed.is_some() || list.ask().is_none() {
            self.show(&Moment::Returned { host, call });
        }
        for batch in batches {
            let listing = batch.listing.clone();
            if full || !listing.is_empty() {
                let count = listing.len();
                self.trace.note(self.now, format_args!("host {host} call {} lists {count} machines", call.0));
            }
            for event in batch.into_parts(call) {
                self.tell(host, event);
                if self.hosts[host].life != life {
                    return;
                }
            }
            self.lister(host, provider).handed(&listing);
        }
        if let (Some(machines), Some(shard)) = (&said, &self.hosts[host].shard) {
            let is_whole = full && !is_piece;
            let heard =
                Moment::Heard { host, provider, shard, machines, full: is_whole, clean: is_true, taken };
            self.watch.see(self.now, &heard);
            if is_true && !machines.is_empty() {
                self.watch.see(self.now, &Moment::Listed { host, shard, machines, full });
            }
        }
        match failed {
            Some(error) => self.call_failed(host, call, error),
            // One listing goes on from here, however often the answer comes.
            None if list.ask().is_some() && !is_repeat => {
                self.dispatch(host, call, provider, Asked::List(list), timeout);
            }
            None => {}
        }
    }
}

/// What becomes of a listing with this answer; its batches are collected as they come.
fn take(
    list: &mut ListCall,
    lister: &mut Lister,
    answer: Result<(Vec<Bytes>, Result<(), Status>), Status>,
    batches: &mut Vec<Batch>,
) -> Result<(), Status> {
    let last = if let Some(Ask::Stream(_)) = list.ask() {
        let ended = answer.and_then(|(chunks, ended)| {
            for chunk in chunks {
                batches.extend(list.chunk(lister.splitter().split(&chunk))?);
            }
            ended
        });
        list.ended(lister, ended)?
    } else {
        let split = answer.map(|(body, _)| lister.splitter().split(&body[0]));
        list.answered(lister, split)?
    };
    batches.extend(last);
    Ok(())
}

/// The machines of a stream, the end with the last of them.
fn chunks(machines: &[Machine], revision: &[u8]) -> Vec<Bytes> {
    let records = machines.iter().map(|machine| Bytes::from(machine.encode_to_vec()));
    let records: Vec<Bytes> = records.collect();
    let mut chunks: Vec<ListChunk> =
        records.chunks(CHUNK).map(|chunk| ListChunk { machines: chunk.to_vec(), end: None }).collect();
    if chunks.is_empty() {
        chunks.push(ListChunk::default());
    }
    let end = ListEnd { revision: revision.to_vec().into(), machines: records.len() as u64 };
    chunks.last_mut().expect("there is one").end = Some(end);
    chunks.iter().map(|chunk| chunk.encode_to_vec().into()).collect()
}

/// The answer to a call that came to nothing.
fn failed(asked: Asked, provider: usize, timeout: i64, taken: i64, status: Status) -> Answer {
    match asked {
        Asked::Machine(_, outgoing) => Answer::Machine { path: outgoing.path, answer: Err(status), taken },
        Asked::List(list) => Answer::Listed(Listed {
            list,
            provider,
            timeout,
            answer: Err(status),
            taken,
            said: None,
            is_true: false,
            is_piece: false,
            full: false,
            is_repeat: false,
        }),
    }
}

/// An answer as those who watch read it.
fn read(call: &Outgoing, answer: &Result<Bytes, Status>) -> Result<Machine, CallError> {
    let bytes = answer.as_ref().map_err(meaning)?;
    Ok(machine_in(call.path, bytes).unwrap_or_default())
}

/// The machine an answer is about.
fn machine_in(path: &str, bytes: &Bytes) -> Option<Machine> {
    if path.ends_with("/Get") {
        Machine::decode(bytes.clone()).ok()
    } else {
        TransitionAck::decode(bytes.clone()).ok().and_then(|ack| ack.machine)
    }
}

impl World {
    /// Whether a move that was carried out is denied.
    fn is_denied(&mut self) -> bool {
        let p = self.active.moves_denied;
        p > 0.0 && self.random.happens(p)
    }

    /// An answer as a provider that lies gives it.
    fn distorted(&self, path: &str, bytes: Bytes) -> Bytes {
        if self.active.lied_about.is_empty() {
            return bytes;
        }
        if path.ends_with("/Get") {
            let mut machine = Machine::decode(bytes).unwrap_or_default();
            self.distort_answer(&mut machine);
            return machine.encode_to_vec().into();
        }
        let mut ack = TransitionAck::decode(bytes).unwrap_or_default();
        if let Some(machine) = &mut ack.machine {
            self.distort_answer(machine);
        }
        ack.encode_to_vec().into()
    }
}
