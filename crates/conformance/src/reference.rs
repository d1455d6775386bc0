//! The contract in one page: what a provider may answer next, for one machine.
//!
//! A provider works in the background, so the model does not know the state of a machine; it knows the states
//! the machine *may* be in. Each answer must be explained by one of them, and leaves those that explain it. So
//! the model judges slow providers as it judges quick ones, and never waits.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_proto::transport::code_name;
use bigfleet_proto::v1alpha1::{Machine, TransitionAck};
use tonic::{Code, Status};

use crate::calls::in_words;
use crate::moves::{Kind, Order, State, Token, has_host, state_name, state_of};
use crate::verdict::{Verdict, ensure, failed};

type Binding = (String, BTreeMap<String, String>);

/// What is known of the last operation of a kind.
#[derive(Clone, Debug)]
enum Recorded {
    /// There may have been one before the run.
    Unknown,
    Is(String),
}

/// What a provider may say about one machine.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) id: String,
    possible: BTreeSet<State>,
    recorded: BTreeMap<Kind, Recorded>,
    marks: BTreeMap<String, (i64, i64)>,
    binding: Option<Binding>,
    deletes: bool,
    /// Whether what is under way was so at a crash.
    is_cut_short: bool,
}

impl Reference {
    /// A machine as it is seen now; nothing is known of its past.
    pub(crate) fn new(machine: &Machine, deletes: bool) -> Self {
        let binding =
            (!machine.cluster.is_empty()).then(|| (machine.cluster.clone(), machine.shard_metadata.clone()));
        Self {
            id: machine.id.clone(),
            possible: BTreeSet::from([state_of(machine)]),
            recorded: Kind::ALL.into_iter().map(|kind| (kind, Recorded::Unknown)).collect(),
            marks: BTreeMap::new(),
            binding,
            deletes,
            is_cut_short: false,
        }
    }

    /// Where a caller's mark stands.
    pub(crate) fn mark(&self, shard_id: &str) -> Option<(i64, i64)> {
        self.marks.get(shard_id).copied()
    }

    /// A state the machine may be in.
    pub(crate) fn guess(&self) -> State {
        *self.possible.iter().next().expect("there is always a possible state")
    }

    /// Time passes: what is under way may have ended.
    fn pass_time(&mut self) {
        for state in self.possible.clone() {
            if let Some(kind) = Kind::under_way_in(state) {
                self.possible.extend([kind.to(), State::Failed]);
                if self.is_cut_short {
                    self.possible.insert(kind.from());
                }
            }
        }
    }

    /// The provider crashed: what was under way may also have been undone, now or once the provider knows.
    pub(crate) fn crash(&mut self) {
        self.is_cut_short |= self.possible.iter().any(|state| Kind::under_way_in(*state).is_some());
        self.pass_time();
    }

    /// A record was seen.
    pub(crate) fn observe(&mut self, machine: &Machine, place: &str) -> Verdict {
        self.pass_time();
        let state = state_of(machine);
        ensure(
            self.possible.contains(&state),
            format!("{place}: {:?} is {}", self.id, names(&self.possible)),
            || state_name(state).into(),
        )?;
        self.possible = BTreeSet::from([state]);
        self.is_cut_short &= Kind::under_way_in(state).is_some();
        self.shape(machine, state, place)
    }

    /// The parts of a record that come and go with its state.
    fn shape(&mut self, machine: &Machine, state: State, place: &str) -> Verdict {
        let expected =
            |what: &str| format!("{place}: {} machine {:?} with {what}", state_name(state), self.id);
        if state == State::Failed {
            return ensure(!machine.last_error.is_empty(), expected("a last_error"), || {
                "an empty one".into()
            });
        }
        let hosted = !matches!(state, State::Speculative | State::Creating);
        ensure(has_host(machine) == hosted, expected(if hosted { "a host" } else { "no host" }), || {
            format!("{:?}", machine.host)
        })?;
        let bound = matches!(state, State::Configuring | State::Configured | State::Draining);
        if !bound {
            self.binding = None;
        }
        let (cluster, metadata) = self.binding.clone().unwrap_or_default();
        ensure(machine.cluster == cluster, expected(&format!("cluster {cluster:?}")), || {
            format!("{:?}", machine.cluster)
        })?;
        ensure(machine.shard_metadata == metadata, expected(&format!("metadata {metadata:?}")), || {
            format!("{:?}", machine.shard_metadata)
        })
    }

    /// A move was asked for and answered. `operations` are the ids seen so far: no new operation may have one.
    pub(crate) fn judge(
        &mut self,
        order: &Order,
        token: &Token,
        answer: &Result<TransitionAck, Status>,
        operations: &mut BTreeSet<String>,
    ) -> Verdict {
        let kind = order.kind();
        let what = format!("{kind}({:?}, {token})", self.id);
        let code = answer.as_ref().err().map(Status::code);
        let in_words = || match answer {
            Ok(ack) => {
                format!("OK, operation {:?}, {:?}", ack.operation_id, ack.machine.as_ref().map(state_of))
            }
            Err(status) => in_words(status),
        };
        if kind == Kind::Delete && !self.deletes {
            let right = code == Some(Code::Unimplemented);
            return ensure(right, format!("{what} is UNIMPLEMENTED"), in_words);
        }
        if !self.passes(token) {
            let right = code == Some(Code::FailedPrecondition);
            return ensure(right, format!("{what} is {}", code_name(Code::FailedPrecondition)), in_words);
        }
        if !token.is_none() {
            self.marks.insert(token.shard_id.clone(), (token.epoch, token.sequence));
        }
        ensure(code != Some(Code::FailedPrecondition), format!("{what} passes the fence"), in_words)?;
        self.pass_time();
        match answer {
            Err(_) => self.refused(kind, &what, in_words),
            Ok(ack) => self.accepted(order, ack, operations, &what),
        }
    }

    fn passes(&self, token: &Token) -> bool {
        token.is_none() || self.mark(&token.shard_id).is_none_or(|mark| (token.epoch, token.sequence) > mark)
    }

    fn refused(&mut self, kind: Kind, what: &str, in_words: impl Fn() -> String) -> Verdict {
        let known = matches!(self.recorded[&kind], Recorded::Is(_));
        let repeat = |state: State| known && (state == kind.during() || state == kind.to());
        let explains = |state: &State| *state != kind.from() && !repeat(*state);
        let left: BTreeSet<State> = self.possible.iter().copied().filter(explains).collect();
        ensure(!left.is_empty(), format!("{what} is accepted on {}", names(&self.possible)), in_words)?;
        self.is_cut_short &= left.iter().any(|state| Kind::under_way_in(*state).is_some());
        self.possible = left;
        Ok(())
    }

    fn accepted(
        &mut self,
        order: &Order,
        ack: &TransitionAck,
        operations: &mut BTreeSet<String>,
        what: &str,
    ) -> Verdict {
        let kind = order.kind();
        let Some(machine) = &ack.machine else {
            return failed(format!("{what}: a machine in the ack"), "none");
        };
        let (id, state) = (&ack.operation_id, state_of(machine));
        let is_under_way = Kind::under_way_in(state).is_some();
        ensure(!id.is_empty(), format!("{what}: an operation id"), || "an empty one".into())?;
        let repeats = self.possible.contains(&state) && (state == kind.during() || state == kind.to());
        let begins = self.possible.contains(&kind.from())
            && [kind.during(), kind.to(), State::Failed].contains(&state);
        let is_new = !operations.contains(id);
        match &self.recorded[&kind] {
            Recorded::Is(recorded) if repeats && recorded == id => self.is_cut_short &= is_under_way,
            Recorded::Unknown if repeats && !begins && is_new => {
                // From before the run, but known from now on: nothing new can have it.
                operations.insert(id.clone());
                self.recorded.insert(kind, Recorded::Is(id.clone()));
                self.is_cut_short &= is_under_way;
            }
            _ if begins && is_new => {
                // What the crash cut short has ended; this move it has not seen.
                self.is_cut_short = false;
                operations.insert(id.clone());
                self.recorded.insert(kind, Recorded::Is(id.clone()));
                if let Order::Configure { cluster, metadata, .. } = order {
                    self.binding = Some((cluster.clone(), metadata.clone()));
                }
            }
            recorded => {
                let expected = format!(
                    "{what} on {} with {recorded:?}: a refusal, a repeat or a new id",
                    names(&self.possible)
                );
                return failed(expected, format!("OK, operation {id:?}, {}", state_name(state)));
            }
        }
        self.possible = BTreeSet::from([state]);
        self.shape(machine, state, &format!("ack of {what}"))
    }
}

fn names(states: &BTreeSet<State>) -> String {
    states.iter().map(|state| state_name(*state)).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use bigfleet_proto::v1alpha1::HostRef;

    use super::*;

    fn machine(state: State) -> Machine {
        let host = HostRef { provider: "p".into(), r#ref: "h".into() };
        let hosted = !matches!(state, State::Speculative | State::Creating);
        Machine { id: "m".into(), state: state as i32, host: hosted.then_some(host), ..Machine::default() }
    }

    #[expect(clippy::unnecessary_wraps, reason = "the shape of an answer")]
    fn ok(id: &str, state: State) -> Result<TransitionAck, Status> {
        Ok(TransitionAck { operation_id: id.into(), machine: Some(machine(state)) })
    }

    fn judge(
        reference: &mut Reference,
        answer: &Result<TransitionAck, Status>,
        seen: &mut BTreeSet<String>,
    ) -> bool {
        reference.judge(&Order::Create, &Token::none(), answer, seen).is_ok()
    }

    #[test]
    fn a_create_begins_once_and_is_then_repeated() {
        let mut seen = BTreeSet::new();
        let mut reference = Reference::new(&machine(State::Speculative), true);
        assert!(!judge(&mut reference.clone(), &Err(Status::internal("no")), &mut seen));
        assert!(judge(&mut reference, &ok("op-1", State::Creating), &mut seen));
        assert!(judge(&mut reference.clone(), &ok("op-1", State::Idle), &mut seen));
        assert!(!judge(&mut reference.clone(), &ok("op-2", State::Idle), &mut seen));
        assert!(reference.observe(&machine(State::Idle), "Get").is_ok());
        assert!(reference.observe(&machine(State::Creating), "Get").is_err());
    }

    #[test]
    fn an_id_from_before_the_run_is_never_new() {
        let mut seen = BTreeSet::new();
        let mut reference = Reference::new(&machine(State::Idle), true);
        let mut ask =
            |kind, answer| reference.judge(&Order::plain(kind), &Token::none(), &answer, &mut seen).is_ok();
        assert!(ask(Kind::Drain, ok("old", State::Idle)));
        assert!(ask(Kind::Drain, ok("old", State::Idle)));
        let mut bound = machine(State::Configuring);
        bound.cluster = crate::moves::CLUSTER.into();
        assert!(ask(Kind::Configure, Ok(TransitionAck { operation_id: "new".into(), machine: Some(bound) })));
        assert!(!ask(Kind::Drain, ok("old", State::Idle)));
    }

    #[test]
    fn the_fence_decides_before_the_state() {
        let mut seen = BTreeSet::new();
        let mut reference = Reference::new(&machine(State::Idle), true);
        let token = |sequence| Token { shard_id: "s".into(), epoch: 1, sequence };
        let fenced = Err(Status::failed_precondition("fenced"));
        let refused = Err(Status::internal("no"));
        assert!(reference.judge(&Order::plain(Kind::Drain), &token(5), &refused, &mut seen).is_ok());
        assert!(reference.judge(&Order::plain(Kind::Drain), &token(5), &refused, &mut seen).is_err());
        assert!(reference.judge(&Order::plain(Kind::Drain), &token(5), &fenced, &mut seen).is_ok());
        assert!(reference.judge(&Order::plain(Kind::Drain), &token(6), &fenced, &mut seen).is_err());
    }

    /// A Configure of this machine, by number.
    fn configuring(reference: &mut Reference, seen: &mut BTreeSet<String>, number: usize) -> bool {
        let order = Order::noted(crate::moves::CLUSTER, BTreeMap::new());
        let mut bound = machine(State::Configuring);
        bound.cluster = crate::moves::CLUSTER.into();
        let ack = TransitionAck { operation_id: format!("op-{number}"), machine: Some(bound) };
        reference.judge(&order, &Token::none(), &Ok(ack), seen).is_ok()
    }

    #[test]
    fn a_move_is_undone_only_if_a_crash_cut_it_short() {
        let mut seen = BTreeSet::new();
        let idle = machine(State::Idle);
        let mut bound = machine(State::Configuring);
        bound.cluster = crate::moves::CLUSTER.into();
        let mut reference = Reference::new(&idle, true);
        assert!(configuring(&mut reference, &mut seen, 1));
        assert!(reference.clone().observe(&idle, "Get").is_err(), "nothing has crashed");
        let mut ended = reference.clone();
        let mut failed = machine(State::Failed);
        failed.last_error = "lost".into();
        assert!(ended.observe(&failed, "Get").is_ok());
        ended.crash();
        assert!(ended.observe(&idle, "Get").is_err(), "it had failed before the crash");

        reference.crash();
        assert!(reference.clone().observe(&idle, "List").is_ok(), "undone at once");
        assert!(reference.observe(&bound, "List").is_ok(), "the provider asks its machine first");
        assert!(reference.clone().observe(&idle, "Get").is_ok(), "and then undoes it");
        // The next one is not the one that was cut short, whichever way the machine was seen to be free.
        let mut looked = reference.clone();
        assert!(looked.observe(&idle, "Get").is_ok());
        for mut free in [looked, reference] {
            let mut seen = seen.clone();
            assert!(configuring(&mut free, &mut seen, 2));
            assert!(free.observe(&idle, "Get").is_err(), "no crash since it began");
        }
    }
}
