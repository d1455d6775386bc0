//! Why an action was chosen: the rule behind it and the machine it beat.
//!
//! The machine a need would have taken next is the same for all its actions and is looked for once, among lots and
//! not among machines: all machines of a lot cost the same, so its first one left stands for it.

use std::cell::OnceCell;
use std::sync::Arc;

use bigfleet_model::cost::{priority_gap, victim_score};
use bigfleet_model::machine::MachineState;

use crate::action::{Action, ActionKind};
use crate::amounts::subtract;
use crate::bits::Bits;
use crate::cycle::{Asking, Claimants, Decision, Rank, Short, Tier, precedence};
use crate::fleet::Fleet;
use crate::index::free_rank;
use crate::intern::Map;
use crate::inventory::Row;
use crate::lots::{Lots, Shelved};
use crate::options::Options;
use crate::vocab::{Amounts, Dim};

use super::Seen;

/// The rule that produced an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// First edition of the rules, kept for its records: the cheapest Idle machine that counts.
    CheapestIdle,
    /// First edition, kept for its records: the Speculative machine of the least effective cost.
    LeastEffectiveCost,
    /// The bound machine of lower priority with the highest victim score.
    BestVictim,
    /// No need of its cluster claims it.
    Unclaimed,
    /// Its hold is over.
    HoldOver,
    /// A fixed machine that stood idle: it is paid for anyway.
    PaidFor,
    /// It asked least for the share of the demand it adds.
    Bargain,
    /// A bound machine of lower priority that no need claims: it would be reclaimed anyway.
    UnclaimedVictim,
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
            Self::PaidFor => "paid_for",
            Self::Bargain => "bargain",
            Self::UnclaimedVictim => "unclaimed_victim",
        }
    }
}

/// The next best machine, that was not chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct RunnerUp {
    /// Its id.
    pub machine: Box<str>,
    /// The state it is in.
    pub state: MachineState,
    /// What it asked an hour (acquisition), or its victim score (preemption).
    pub figure: f64,
    /// The share of the demand it would have added (acquisition).
    pub share: Option<f64>,
    /// It was the better bargain, was picked first, and was given back: what was picked after it covers the rest alone.
    pub given_back: bool,
}

/// Why an action was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionExplanation {
    /// The rule.
    pub rule: Rule,
    /// What the machine asked an hour (acquisition), its victim score (preemption), or its price (the others).
    pub figure: f64,
    /// The share of the demand it adds to what was missing, each demanded resource counted as 1 (acquisition).
    pub share: Option<f64>,
    /// How many resources are demanded: so much a share of the whole demand would be (acquisition).
    pub resources: usize,
    /// The best of those it was preferred to; `None` if there was no other, or it is brief.
    pub runner_up: Option<RunnerUp>,
    /// Only the rule and the figure: nobody looked for a runner-up.
    pub brief: bool,
}

impl Fleet {
    /// Explains actions of the last cycle, whose options must be given; what several of them share is worked out
    /// once.
    pub fn explainer<'a>(&'a self, options: &'a Options) -> Explainer<'a> {
        Explainer {
            fleet: self,
            options,
            turns: OnceCell::new(),
            victims: OnceCell::new(),
            next_free: None,
            looked_at: 0,
            next_victim: Map::default(),
        }
    }

    /// Why an action of the last cycle was chosen. `options` are those of that cycle. `None` if the last
    /// cycle ordered no such thing.
    pub fn explain_action(&self, action: &Action, options: &Options) -> Option<ActionExplanation> {
        self.explainer(options).explain(action)
    }
}

/// When free machines were acquired, as places in precedence order.
struct Turns {
    of_need: Map<(u32, u32), usize>,
    of_machine: Map<u32, usize>,
}

/// What victims are looked for among.
struct Victims<'a> {
    bound: Arc<Lots>,
    claimants: std::borrow::Cow<'a, Claimants>,
    preempted: Bits,
}

/// What a need (by cluster and row) that misses so much would have taken next.
type NextFree = ((u32, u32), Amounts, Option<(Rank, RunnerUp)>);

/// Explains the actions of one cycle.
pub struct Explainer<'a> {
    fleet: &'a Fleet,
    options: &'a Options,
    turns: OnceCell<Turns>,
    victims: OnceCell<Victims<'a>>,
    /// What the need last asked about would have taken next, missing this much.
    next_free: Option<NextFree>,
    looked_at: usize,
    next_victim: Map<(u32, u32), Option<RunnerUp>>,
}

impl<'a> Explainer<'a> {
    /// How many needs had a runner-up looked for so far: the work done is in proportion.
    pub fn needs_looked_at(&self) -> usize {
        self.looked_at + self.next_victim.len()
    }

    /// The rule behind an action and its figure, without a search for the runner-up: for cycles that decide more than can
    /// be explained while they decide. `None` if the last cycle ordered no such thing.
    pub fn brief(&self, action: &Action) -> Option<ActionExplanation> {
        let fleet = self.fleet;
        let machine = fleet.inventory.find_decided(&action.machine)?;
        let row = fleet.inventory.decided(machine);
        let plain = |rule, figure, brief| ActionExplanation {
            rule,
            figure,
            share: None,
            resources: 0,
            runner_up: None,
            brief,
        };
        Some(match action.kind {
            // These were chosen by themselves and not among others.
            ActionKind::Reclaim => plain(Rule::Unclaimed, row.price, false),
            ActionKind::Delete => plain(Rule::HoldOver, row.price, false),
            ActionKind::Preempt => {
                let seen = fleet.seen_exactly(action.need.as_ref()?)?;
                let Victims { claimants, .. } = self.victims(seen.decision);
                let ready = self.options.ready.contains(fleet.name_of_cluster(row.cluster));
                let unclaimed = claimants.of(machine) == Claimants::UNCLAIMED && ready;
                let rule = if unclaimed { Rule::UnclaimedVictim } else { Rule::BestVictim };
                plain(rule, self.score(row.worth, seen.demand().priority()), true)
            }
            ActionKind::Bootstrap | ActionKind::Provision => {
                let seen = fleet.seen_exactly(action.need.as_ref()?)?;
                let asking = self.asking(&seen, free_rank(row));
                let paid_for = matches!(asking.tier, Tier::Fixed | Tier::FixedPinned);
                plain(if paid_for { Rule::PaidFor } else { Rule::Bargain }, asking.usd_per_hour, true)
            }
        })
    }

    /// Why an action was chosen; `None` if the last cycle ordered no such thing.
    pub fn explain(&mut self, action: &Action) -> Option<ActionExplanation> {
        let brief = self.brief(action)?;
        if !brief.brief {
            return Some(brief);
        }
        let fleet = self.fleet;
        let machine = fleet.inventory.find_decided(&action.machine)?;
        let row = fleet.inventory.decided(machine);
        let seen = fleet.seen_exactly(action.need.as_ref()?)?;
        let short = seen.short?;
        let need = (short.cluster, short.row);
        if action.kind == ActionKind::Preempt {
            if !self.next_victim.contains_key(&need) {
                let next = self.next_victim(&seen, short);
                self.next_victim.insert(need, next);
            }
            let runner_up = self.next_victim[&need].clone();
            return Some(ActionExplanation { runner_up, brief: false, ..brief });
        }
        let missing = self.missing_before(&seen, short, machine);
        let asking = self.asking(&seen, free_rank(row));
        let rank = self.rank(&seen, asking, row, &missing);
        let known = self.next_free.as_ref().filter(|(of, at, _)| (*of, at) == (need, &missing));
        let next = if let Some((_, _, next)) = known {
            next.clone()
        } else {
            let next = self.next_free(&seen, short, &missing);
            self.looked_at += 1;
            self.next_free = Some((need, missing, next.clone()));
            next
        };
        // A strict spread passes better bargains over, and gives nothing back.
        let trims = seen.demand().spread.is_none();
        let runner_up = next.map(|(next_rank, next)| {
            let given_back = trims && rank.is_some_and(|rank| next_rank < rank);
            RunnerUp { given_back, ..next }
        });
        Some(ActionExplanation {
            share: rank.map(|rank| rank.share()),
            resources: seen.demand().aggregate.len(),
            runner_up,
            brief: false,
            ..brief
        })
    }

    /// What free machines of a rank ask of a need.
    fn asking(&self, seen: &Seen<'_>, rank: u32) -> Asking {
        Asking::of(rank, seen.demand().need.profile.interruption(), &self.fleet.vocab)
    }

    /// The place of a free machine in a need's bargain order.
    fn rank(&self, seen: &Seen<'_>, asking: Asking, row: &Row, missing: &[(Dim, u64)]) -> Option<Rank> {
        let provides = self.fleet.index.classes.provides_kind(row.kind);
        let Asking { tier, usd_per_hour, speculative } = asking;
        Rank::of((tier, usd_per_hour, speculative), provides, seen.demand(), missing, row.order)
    }

    /// What a need missed when it took a machine, of all it took and did not give back.
    fn missing_before(&self, seen: &Seen<'_>, short: &Short, machine: u32) -> Amounts {
        let Fleet { index, inventory, .. } = self.fleet;
        let mut missing = seen.credit.missing_of(short.row);
        for earlier in short.acquired.iter().take_while(|earlier| **earlier != machine) {
            subtract(&mut missing, index.classes.provides_kind(inventory.decided(*earlier).kind));
        }
        missing
    }

    /// The score of a victim of this worth.
    fn score(&self, worth: u32, preemptor: i32) -> f64 {
        let worth = self.fleet.vocab.worth_of(worth);
        let gap = priority_gap(preemptor, worth.priority);
        let drain_secs = self.options.estimated_drain_nanos as f64 / 1e9;
        victim_score(&self.options.weights, gap, drain_secs, worth.interruption_usd, worth.reclamation_usd)
    }

    fn turns(&self, decision: &Decision) -> &Turns {
        self.turns.get_or_init(|| {
            let shorts = &decision.shorts;
            let mut turns = Turns { of_need: Map::default(), of_machine: Map::default() };
            // Those who got nothing stand in nobody's way, and no action is for them.
            let served: Vec<&Short> = shorts.iter().filter(|short| !short.acquired.is_empty()).collect();
            for (turn, at) in precedence(&served).into_iter().enumerate() {
                turns.of_need.insert((served[at].cluster, served[at].row), turn);
                turns.of_machine.extend(served[at].acquired.iter().map(|machine| (*machine, turn)));
            }
            turns
        })
    }

    /// The free machine a need would have taken instead, missing this much.
    fn next_free(&self, seen: &Seen<'_>, short: &Short, missing: &Amounts) -> Option<(Rank, RunnerUp)> {
        let turns = self.turns(seen.decision);
        let own = turns.of_need[&(short.cluster, short.row)];
        let left = |machine: &u32| turns.of_machine.get(machine).is_none_or(|turn| *turn > own);
        let lots = &self.fleet.index.free;
        // A rank without its last part, the id: equal for all machines of a lot.
        let place = |class: u32, rank: u32| {
            let Asking { tier, usd_per_hour, speculative } = self.asking(seen, rank);
            let provides = self.fleet.index.classes.provides(class);
            Some((
                Rank::of((tier, usd_per_hour, speculative), provides, seen.demand(), missing, 0)?,
                usd_per_hour,
            ))
        };
        let (machine, (rank, asking)) = self.first_of_lots(
            seen,
            short.domain.map(|chosen| chosen.value),
            lots,
            place,
            |a, b| a.0.cmp(&b.0),
            left,
        )?;
        let rank = rank.with_order(self.fleet.inventory.decided(machine).order);
        Some((rank, self.runner_up(machine, asking, Some(rank.share()))))
    }

    /// The victim a need would have taken next.
    fn next_victim(&self, seen: &Seen<'_>, short: &Short) -> Option<RunnerUp> {
        let preemptor = seen.demand().priority();
        let Victims { bound, claimants, preempted } = self.victims(seen.decision);
        let left =
            |machine: &u32| claimants.of(*machine) < i64::from(preemptor) && !preempted.contains(*machine);
        let place = |_: u32, worth: u32| {
            let lower = self.fleet.vocab.worth_of(worth).priority < preemptor;
            lower.then(|| self.score(worth, preemptor))
        };
        let better = |score: f64, best: f64| best.total_cmp(&score);
        let inventory = &self.fleet.inventory;
        // Unclaimed machines come first, whatever their score.
        let unclaimed = |machine: &u32| {
            let cluster = self.fleet.name_of_cluster(inventory.decided(*machine).cluster);
            claimants.of(*machine) == Claimants::UNCLAIMED && self.options.ready.contains(cluster)
        };
        let first = |machine: &u32| left(machine) && unclaimed(machine);
        // A gang may preempt in another domain than the one it was given.
        let domain = short.victims.first().and_then(|victim| seen.domain_of(victim.machine));
        let (machine, score) = self
            .first_of_lots(seen, domain, bound, place, better, first)
            .or_else(|| self.first_of_lots(seen, domain, bound, place, better, left))?;
        Some(self.runner_up(machine, score, None))
    }

    /// The machine that stands first among some lots for a need: `place` gives a lot's place in the order or leaves
    /// it out, `compare` orders places, `left` says which machines are still to be had.
    fn first_of_lots<P: Copy>(
        &self,
        seen: &Seen<'_>,
        value: Option<u32>,
        lots: &Lots,
        place: impl Fn(u32, u32) -> Option<P>,
        compare: impl Fn(P, P) -> std::cmp::Ordering,
        left: impl Fn(&u32) -> bool,
    ) -> Option<(u32, P)> {
        let Fleet { index, inventory, sets, .. } = self.fleet;
        let demand = seen.demand();
        let mut best: Option<(P, u64, u32)> = None;
        let mut consider = |class: u32, rank: u32, machines: &[Shelved]| {
            let Some(place) = place(class, rank) else { return };
            if best.is_some_and(|(first, ..)| compare(place, first).is_gt()) {
                return;
            }
            let Some(machine) = machines.iter().map(|one| &one.machine).find(|machine| left(machine)) else {
                return;
            };
            let order = inventory.decided(*machine).order;
            let precedes = |(first, first_order, _): (P, u64, u32)| {
                compare(place, first).then(order.cmp(&first_order)).is_lt()
            };
            if best.is_none_or(precedes) {
                best = Some((place, order, *machine));
            }
        };
        let admitted = sets.admits(demand.requirements);
        let counts = |class: u32| admitted.contains(class) && index.classes.covers(class, &demand.min_unit);
        if let Some(value) = value {
            let domain = index.classes.domain(demand.same.expect("only gangs have a domain"));
            let cells = &lots.domains[domain];
            for number in cells.of_value(value) {
                let lot = &lots.lots[cells.cells[*number as usize].lot as usize];
                if counts(lot.class) {
                    consider(lot.class, lot.rank, cells.machines(*number));
                }
            }
        } else {
            for class in admitted.iter().filter(|class| counts(*class)) {
                for number in lots.of_class(class) {
                    let lot = &lots.lots[*number as usize];
                    consider(lot.class, lot.rank, lots.machines(*number));
                }
            }
        }
        best.map(|(place, _, machine)| (machine, place))
    }

    /// What victims are looked for among: what phase 2 kept, or else made for those who ask.
    fn victims(&self, decision: &Decision) -> &Victims<'a> {
        self.victims.get_or_init(|| {
            let Fleet { index, inventory, vocab, cache, sets, .. } = self.fleet;
            let mut preempted = Bits::default();
            let victims = decision.shorts.iter().flat_map(|short| &short.victims);
            victims.for_each(|victim| {
                preempted.insert(victim.machine);
            });
            let bound = index.bound.clone().unwrap_or_else(|| {
                let preempting = decision.shorts.iter().filter(|short| !short.victims.is_empty());
                let (mut wanted, mut below) = (Bits::default(), i32::MIN);
                for short in preempting {
                    wanted.union_with(sets.admits(short.demand.requirements));
                    below = below.max(short.demand.priority());
                }
                Arc::new(index.bound_among(inventory, vocab, &wanted, below))
            });
            Victims { bound, claimants: cache.claimants(inventory.bound()), preempted }
        })
    }

    fn runner_up(&self, machine: u32, figure: f64, share: Option<f64>) -> RunnerUp {
        let state = self.fleet.inventory.decided(machine).state.expect("a candidate is a known machine");
        let machine = self.fleet.inventory.id(machine).into();
        RunnerUp { machine, state, figure, share, given_back: false }
    }
}
