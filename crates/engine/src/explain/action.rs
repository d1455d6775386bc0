//! Why an action was chosen: the rule behind it and the machine it beat.

use bigfleet_model::cost::{effective_cost, priority_gap, victim_score};
use bigfleet_model::machine::MachineState;

use crate::action::{Action, ActionKind};
use crate::cycle::{Short, precedence};
use crate::fleet::Fleet;
use crate::intern::Map;
use crate::options::Options;

use super::Seen;

/// The rule that produced an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The cheapest Idle machine that counts.
    CheapestIdle,
    /// No Idle machine was left: the Speculative machine of the least effective cost.
    LeastEffectiveCost,
    /// The bound machine of lower priority with the highest victim score.
    BestVictim,
    /// No need of its cluster claims it.
    Unclaimed,
    /// Its hold is over.
    HoldOver,
}

impl Rule {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::CheapestIdle => "cheapest_idle",
            Self::LeastEffectiveCost => "least_effective_cost",
            Self::BestVictim => "best_victim",
            Self::Unclaimed => "unclaimed",
            Self::HoldOver => "hold_over",
        }
    }
}

/// The next best machine, that was not chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct RunnerUp {
    /// Which.
    pub machine: Box<str>,
    /// The state it is in.
    pub state: MachineState,
    /// What it would have cost an hour (acquisition), or its victim score (preemption).
    pub figure: f64,
}

/// Why an action was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionExplanation {
    /// The rule.
    pub rule: Rule,
    /// What the machine costs an hour with its risk (acquisition), its victim score (preemption), or its
    /// price (the others).
    pub figure: f64,
    /// The best of those it was preferred to; `None` if there was no other.
    pub runner_up: Option<RunnerUp>,
}

impl Fleet {
    /// Why an action of the last cycle was chosen. `options` are those of that cycle. `None` if the last
    /// cycle ordered no such thing.
    pub fn explain_action(&self, action: &Action, options: &Options) -> Option<ActionExplanation> {
        let machine = self.inventory.find_decided(&action.machine)?;
        let row = self.inventory.decided(machine);
        let plain = |rule| ActionExplanation { rule, figure: row.price, runner_up: None };
        match action.kind {
            ActionKind::Reclaim => return Some(plain(Rule::Unclaimed)),
            ActionKind::Delete => return Some(plain(Rule::HoldOver)),
            _ => {}
        }
        let seen = self.seen_exactly(action.need.as_ref()?)?;
        let short = seen.short?;
        if action.kind == ActionKind::Preempt {
            return Some(ActionExplanation {
                rule: Rule::BestVictim,
                figure: self.score(machine, seen.demand().priority(), options),
                runner_up: self.next_victim(&seen, short, options),
            });
        }
        let idle = action.kind == ActionKind::Bootstrap;
        Some(ActionExplanation {
            rule: if idle { Rule::CheapestIdle } else { Rule::LeastEffectiveCost },
            figure: self.cost_for(&seen, machine),
            runner_up: self.next_free(&seen, short),
        })
    }

    /// What a free machine costs a need an hour.
    fn cost_for(&self, seen: &Seen<'_>, machine: u32) -> f64 {
        let row = self.inventory.decided(machine);
        let (price, probability) = self.vocab.price_and_probability(row.terms);
        if row.state == Some(MachineState::Idle) {
            return price;
        }
        effective_cost(price, probability, seen.demand().need.profile.interruption())
    }

    fn score(&self, machine: u32, preemptor: i32, options: &Options) -> f64 {
        let worth = self.vocab.worth_of(self.inventory.decided(machine).worth);
        let gap = priority_gap(preemptor, worth.priority);
        let drain_secs = options.estimated_drain_nanos as f64 / 1e9;
        victim_score(&options.weights, gap, drain_secs, worth.interruption_usd, worth.reclamation_usd)
    }

    /// The free machine a need would have taken next at its turn.
    fn next_free(&self, seen: &Seen<'_>, short: &Short) -> Option<RunnerUp> {
        let shorts = &seen.decision.shorts;
        let mut turn_of: Map<u32, usize> = Map::default();
        let mut own = 0;
        for (turn, at) in precedence(shorts).into_iter().enumerate() {
            if (shorts[at].cluster, shorts[at].row) == (short.cluster, short.row) {
                own = turn;
            }
            turn_of.extend(shorts[at].acquired.iter().map(|machine| (*machine, turn)));
        }
        let free = self.index.free.lots.iter().flat_map(|lot| &lot.machines).copied();
        let available = free.filter(|machine| {
            turn_of.get(machine).is_none_or(|turn| *turn > own)
                && seen.counts(*machine)
                && short.domain.is_none_or(|chosen| seen.domain_of(*machine) == Some(chosen.value))
        });
        let place = |machine: &u32| {
            let row = self.inventory.decided(*machine);
            (row.state == Some(MachineState::Speculative), self.cost_for(seen, *machine), row.order)
        };
        let next = available.min_by(|a, b| {
            let ((a_later, a_cost, a_order), (b_later, b_cost, b_order)) = (place(a), place(b));
            a_later.cmp(&b_later).then(a_cost.total_cmp(&b_cost)).then(a_order.cmp(&b_order))
        })?;
        Some(self.runner_up(next, self.cost_for(seen, next)))
    }

    /// The victim a need would have taken next.
    fn next_victim(&self, seen: &Seen<'_>, short: &Short, options: &Options) -> Option<RunnerUp> {
        let preemptor = seen.demand().priority();
        let preempted: Vec<u32> =
            seen.decision.shorts.iter().flat_map(|s| &s.victims).map(|victim| victim.machine).collect();
        let claimants = self.claimants();
        let next = self
            .inventory
            .decided_rows()
            .filter(|(machine, row)| {
                row.state == Some(MachineState::Configured)
                    && self.vocab.worth_of(row.worth).priority < preemptor
                    && claimants[*machine as usize].is_none_or(|demand| demand.priority() < preemptor)
                    && !preempted.contains(machine)
                    && seen.counts(*machine)
                    && short.domain.is_none_or(|chosen| seen.domain_of(*machine) == Some(chosen.value))
            })
            .map(|(machine, row)| (self.score(machine, preemptor, options), row.order, machine))
            .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
        Some(self.runner_up(next.2, next.0))
    }

    fn runner_up(&self, machine: u32, figure: f64) -> RunnerUp {
        let state = self.inventory.decided(machine).state.expect("a candidate is a known machine");
        RunnerUp { machine: self.inventory.id(machine).into(), state, figure }
    }
}
