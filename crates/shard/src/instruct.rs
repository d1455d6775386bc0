//! Instructions of a coordinator: fenced by its term, each taken in once, answered when it is carried out.
//!
//! A coordinator that lost its leadership may still speak. What it says in an older term than the highest heard is not done.
//! Each instruction comes again until it is answered, and any answer, whatever its outcome, makes a coordinator forget it. So
//! what is still under way is not answered: it comes again with the answer to the next report.

use std::collections::{BTreeMap, VecDeque};

use bigfleet_model::machine::MachineState;
use bigfleet_model::text::Quoted;

use crate::effect::{Step, Urgency};
use crate::memory::Fact;
use crate::owned::{Domain, Named};
use crate::planted::Bug;
use crate::provider::Provider;
use crate::shard::Shard;
use crate::table::Slot;

/// How many answers are remembered. An order that comes again after so many others is carried out again, which changes
/// nothing: orders say what is to be so, not what is to be changed.
const REMEMBERED: usize = 4096;

/// What a coordinator wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// The machines of this domain are ours.
    Take(Domain),
    /// They are not ours any more; to be answered when nothing of ours is under way there.
    LetGo(Domain),
    /// Machines go from one shard to another, whatever their domains.
    Transfer {
        /// Which.
        machines: Vec<Box<str>>,
        /// Who lets go of them.
        from: Box<str>,
        /// Who takes them then.
        to: Box<str>,
    },
}

/// An order with its name, in the term in which it is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The term.
    pub term: i64,
    /// Names it for ever.
    pub id: Box<str>,
    /// What is wanted; nothing if that could not be read.
    pub order: Option<Order>,
}

/// What became of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is carried out.
    Accepted,
    /// It was said in an older term.
    Stale,
    /// It makes no sense to this shard.
    Invalid,
    /// It is not carried out.
    Refused,
}

/// What a coordinator is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Which instruction.
    pub id: Box<str>,
    /// What became of it.
    pub outcome: Outcome,
    /// Why, or empty.
    pub reason: String,
}

/// An instruction that is not answered, because any answer would end it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// What it said.
    pub instruction: Instruction,
    /// Why it is not carried out, and what would help.
    pub why: String,
    /// Whether it will be answered when what is under way has ended. If not, somebody must do something.
    pub ends: bool,
}

/// Instructions that were heard.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// The highest term.
    pub(crate) term: i64,
    /// Of those heard last: everything unanswered comes with each.
    unanswered: Vec<Unanswered>,
    answered: BTreeMap<Box<str>, (Outcome, String)>,
    oldest: VecDeque<Box<str>>,
}

impl Heard {
    pub(crate) fn recall(term: i64) -> Self {
        Self { term, ..Self::default() }
    }

    fn remember(&mut self, answer: &Answer) {
        if self.oldest.len() == REMEMBERED
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.answered.remove(&oldest);
        }
        self.oldest.push_back(answer.id.clone());
        self.answered.insert(answer.id.clone(), (answer.outcome, answer.reason.clone()));
    }
}

impl Shard {
    /// The highest term in which a coordinator was heard.
    pub fn coordinator_term(&self) -> i64 {
        self.heard.term
    }

    /// What a coordinator said last that is not answered yet.
    pub fn unanswered(&self) -> &[Unanswered] {
        &self.heard.unanswered
    }

    /// Takes in what a coordinator says in answer to a report, in its order. What to tell it, once the facts are on disk.
    pub fn instruct(
        &mut self,
        term: i64,
        instructions: &[Instruction],
        now: i64,
        step: &mut Step,
    ) -> Vec<Answer> {
        let highest = self.heard.term;
        if term < highest && !self.config.has(Bug::TermIgnored) {
            let text = format!(
                "a coordinator speaks in term {term}, which ended when term {highest} began; nothing of it is done"
            );
            Self::say(step, Urgency::Warning, "old_coordinator", text);
            return Vec::new();
        }
        if term > highest {
            self.heard.term = term;
            step.facts.push(Fact::Term(term));
        }
        let before = std::mem::take(&mut self.heard.unanswered);
        let named = instructions.iter().filter(|instruction| !instruction.id.is_empty());
        let answers = named.filter_map(|instruction| self.judge(instruction, now, step)).collect();
        for new in &self.heard.unanswered {
            let is_known = before.iter().any(|known| known.instruction.id == new.instruction.id);
            if !new.ends && !is_known {
                let text = format!("an instruction of the coordinator is not carried out: {}", new.why);
                Self::say(step, Urgency::Warning, "instruction_waits", text);
            }
        }
        answers
    }

    /// Leaves an instruction unanswered, so that it stays with its coordinator and comes again.
    fn put_off(&mut self, instruction: &Instruction, why: String, ends: bool) {
        self.heard.unanswered.push(Unanswered { instruction: instruction.clone(), why, ends });
    }

    fn judge(&mut self, instruction: &Instruction, now: i64, step: &mut Step) -> Option<Answer> {
        let Instruction { term, id, order } = instruction;
        let answer = |outcome, reason: &str| Answer { id: id.clone(), outcome, reason: reason.into() };
        if *term < self.heard.term && !self.config.has(Bug::TermIgnored) {
            let why = format!("term {term} is older than {}", self.heard.term);
            return Some(answer(Outcome::Stale, &why));
        }
        if let Some((outcome, reason)) = self.heard.answered.get(id) {
            // Told again with what became of it then: "accepted" would be a lie about one that was refused.
            return Some(match outcome {
                Outcome::Accepted => answer(Outcome::Accepted, "duplicate-redelivery"),
                other => answer(*other, &format!("duplicate-redelivery: {reason}")),
            });
        }
        let done = match order {
            None => Some(Err((Outcome::Invalid, "the instruction says nothing this build knows".to_owned()))),
            Some(Order::Take((key, value))) if key.is_empty() || value.is_empty() => {
                Some(Err((Outcome::Invalid, "the domain has no key or no value".to_owned())))
            }
            // An answer, whatever it says, would have the coordinator think the domain this shard's.
            Some(Order::Take(_)) if !self.config.is_assigned => {
                let why = "this shard has domains of its own and takes no assignments; start it without them, or \
                           unassign the domain";
                self.put_off(instruction, why.to_owned(), false);
                None
            }
            Some(_) if !self.config.is_assigned => {
                let why = "this shard has domains of its own and takes no instructions about others";
                Some(Err((Outcome::Refused, why.to_owned())))
            }
            Some(Order::Take((key, value))) => {
                if !self.owned.has_domain(key, value) {
                    self.owned.take_domain(key, value, step);
                    self.list_anew(now, step);
                }
                Some(Ok(()))
            }
            Some(Order::LetGo((key, value))) => {
                let is_left = self.let_go_of(key, value, step);
                if !is_left {
                    let why = "what is under way there ends first".to_owned();
                    self.put_off(instruction, why, true);
                }
                is_left.then_some(Ok(()))
            }
            Some(Order::Transfer { machines, from, to }) => {
                let done = self.transfer(machines, from, to, now, step);
                if done.is_none() {
                    let why = "its machines are being drained, or not known yet to be free".to_owned();
                    self.put_off(instruction, why, true);
                }
                done
            }
        };
        let answer = match done? {
            Ok(()) => answer(Outcome::Accepted, ""),
            Err((outcome, why)) => answer(outcome, &why),
        };
        self.heard.remember(&answer);
        Some(answer)
    }

    /// Lets go of a domain. Whether nothing is under way there any more.
    ///
    /// What was said of machines of others in it is forgotten with it. So it must be known which of them are in it: their
    /// providers list them in full after every assignment.
    fn let_go_of(&mut self, key: &str, value: &str, step: &mut Step) -> bool {
        let is_unknown = self.owned.named().values().any(|named| *named == Named::Theirs(None));
        let is_listed = |provider: &Provider| provider.full_listed_unix_nanos.is_some();
        if is_unknown && self.owned.has_domain(key, value) && !self.providers.iter().all(is_listed) {
            return false;
        }
        if self.owned.has_domain(key, value) {
            self.owned.drop_domain(key, value, step);
            let is_lost = |slot: &Slot| !self.owned.has(&self.table.row(*slot).machine);
            let lost: Vec<Slot> = self.table.iter().map(|(slot, _)| slot).filter(is_lost).collect();
            self.owned.leaving.extend(lost);
        }
        self.leave(step);
        let is_in = |slot: &Slot| {
            self.table.get(*slot).is_some_and(|row| row.machine.facts().value(key) == Some(value))
        };
        !self.owned.leaving.iter().any(is_in)
    }

    /// Lets go of machines, or takes them.
    fn transfer(
        &mut self,
        machines: &[Box<str>],
        from: &str,
        to: &str,
        now: i64,
        step: &mut Step,
    ) -> Option<Result<(), (Outcome, String)>> {
        let me = &*self.config.shard_id;
        if to == me {
            if from != me {
                self.helped.given(machines, from, now);
            }
            for machine in machines {
                self.owned.name(machine, Some(Named::Ours), step);
                if let Some(slot) = self.table.find(machine) {
                    self.owned.leaving.remove(&slot);
                }
            }
            self.list_anew(now, step);
            return Some(Ok(()));
        }
        if from != me {
            let why =
                format!("it is between shards {} and {}, none of which this is", Quoted(from), Quoted(to));
            return Some(Err((Outcome::Invalid, why)));
        }
        let everybody_spoke = self.providers.iter().all(|provider| provider.listed_unix_nanos.is_some());
        for machine in machines {
            match self.table.find(machine) {
                Some(slot) if !self.is_free(slot) && self.will_be_free(slot, now) => return None,
                Some(slot) if !self.is_free(slot) => {
                    let why = format!("machine {} is in use", Quoted(machine));
                    return Some(Err((Outcome::Refused, why)));
                }
                // One that was given to us and that nobody has listed yet in this life may be in use.
                None if !everybody_spoke && self.owned.named().get(machine) == Some(&Named::Ours) => {
                    return None;
                }
                _ => {}
            }
        }
        for machine in machines {
            let slot = self.table.find(machine);
            let domain = slot.map(|slot| self.owned.domain_of(&self.table.row(slot).machine));
            let named = match domain {
                // It was let go of before, and whose it is is known already.
                None if matches!(self.owned.named().get(machine), Some(Named::Theirs(_))) => continue,
                // In no domain of ours it is theirs without a word.
                Some(None) => None,
                Some(domain) => Some(Named::Theirs(domain)),
                None => Some(Named::Theirs(None)),
            };
            self.owned.name(machine, named, step);
            if let Some(slot) = slot {
                self.let_go(slot, step);
            }
        }
        Some(Ok(()))
    }

    /// Whether a machine can be given away: nobody has it, and nothing is under way with it.
    pub(crate) fn is_free(&self, slot: Slot) -> bool {
        let row = self.table.row(slot);
        let state = row.machine.state;
        self.is_settled(slot) && matches!(state, MachineState::Idle | MachineState::Speculative)
    }
}
