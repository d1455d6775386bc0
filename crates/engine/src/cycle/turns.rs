//! Phase 1 across clusters: the turns of needs that their own cluster does not settle, in precedence order.
//!
//! At its turn a need that is still short acquires free machines and, if that does not do, takes over what needs after it
//! keep in its cluster. A contested machine goes to the higher precedence and, among equals, to the one that
//! has waited longest. Clusters whose walk depends on this are walked on from here, one turn at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::amounts::{contributes, is_zero, subtract};
use crate::bits::Bits;
use crate::intern::Map;
use crate::needs::Demand;
use crate::vocab::Amounts;

use super::Short;
use super::bargain::{Bargain, Pick};
use super::choice::{Chosen, Contest, NothingFree, choose, contest};
use super::credit::Credit;
use super::market::Market;
use super::spread::Spread;
use super::trim::trim;
use super::walk::{Mode, Stop, Walk};

/// The place of a turn in precedence order. Within a cluster turns are numbered in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    precedence: u64,
    first_seen: i64,
    cluster_rank: u32,
    turn: u32,
}

impl Place {
    fn of(demand: &Demand, cluster_rank: u32, turn: u32) -> Self {
        let first_seen = demand.need.first_seen_unix_nanos;
        Self { precedence: demand.precedence(), first_seen, cluster_rank, turn }
    }
}

/// A machine picked for a need that acquires and takes over.
#[derive(Clone, Copy)]
enum Got {
    Free(Pick),
    /// A machine a later need keeps, by its position in the walk.
    TakenOver {
        position: u32,
        class: u32,
    },
}

impl Got {
    fn class(self) -> u32 {
        match self {
            Self::Free(pick) => pick.class,
            Self::TakenOver { class, .. } => class,
        }
    }
}

/// A cluster that is walked turn by turn, and why it stands still.
pub(crate) struct Stopped<'a> {
    pub(crate) walk: Box<Walk<'a>>,
    pub(crate) stop: Stop,
}

/// Somebody who wants to know how the domain of one gang is chosen.
pub(crate) struct Witness {
    pub(crate) gang: Arc<Demand>,
    pub(crate) seen: Option<Contest>,
}

/// Phase 1 in progress.
pub(crate) struct Turns<'a, 'r, W> {
    market: Market<'a>,
    /// The place of each cluster in the order of their names.
    rank: &'r [u32],
    /// Starts a cluster's walk again.
    walk_again: W,
    /// The clusters walked turn by turn, and which these were or are.
    live: Map<u32, Stopped<'a>>,
    went_live: Bits,
    queue: BinaryHeap<Reverse<(Place, u32)>>,
    /// The needs their own clusters left short, in precedence order.
    shorts: Vec<Short>,
    ended: Vec<Walk<'a>>,
    witness: Option<&'r mut Witness>,
}

/// What came of all turns.
pub(crate) struct Taken<'a> {
    /// The needs their own clusters left short, in precedence order.
    pub(crate) shorts: Vec<Short>,
    /// The walks that went on here, at their ends.
    pub(crate) walks: Vec<Walk<'a>>,
    /// The free machines, and who took which of them.
    pub(crate) market: Market<'a>,
}

impl<'a, 'r, W: FnMut(u32) -> Box<Walk<'a>>> Turns<'a, 'r, W> {
    pub(crate) fn new(
        market: Market<'a>,
        rank: &'r [u32],
        walk_again: W,
        witness: Option<&'r mut Witness>,
    ) -> Self {
        Self {
            witness,
            market,
            rank,
            walk_again,
            live: Map::default(),
            went_live: Bits::default(),
            queue: BinaryHeap::new(),
            shorts: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Takes all turns. `planned` are the credits of clusters that were walked to their ends, `stopped` the walks that
    /// were not.
    pub(crate) fn run<'p>(
        mut self,
        planned: impl Iterator<Item = (u32, &'p Credit)>,
        stopped: Vec<Stopped<'a>>,
    ) -> Taken<'a> {
        let mut plan: Vec<(Place, u32, u32, &'p Credit)> = Vec::new();
        for (cluster, credit) in planned {
            let mut turns = (0..).zip(credit.turns.iter());
            for (at, (row, _)) in (0..).zip(&credit.short) {
                let (turn, _) = turns.find(|(_, turn)| *turn == row).expect("a short need has a turn");
                let demand = &credit.rows[*row as usize];
                plan.push((Place::of(demand, self.rank[cluster as usize], turn), cluster, at, credit));
            }
        }
        plan.sort_unstable_by_key(|(place, ..)| *place);
        for stopped in stopped {
            self.enqueue(stopped);
        }
        let mut plan = plan.into_iter().peekable();
        loop {
            let live = self.queue.peek().map(|Reverse((place, _))| *place);
            let is_planned = |(place, ..): &(Place, u32, u32, &Credit)| live.is_none_or(|live| *place < live);
            if let Some((place, cluster, at, credit)) = plan.next_if(is_planned) {
                if !self.went_live.contains(cluster) {
                    self.planned_turn(cluster, place.turn, credit, at as usize);
                }
            } else if let Some(Reverse((_, cluster))) = self.queue.pop() {
                let stopped = self.live.remove(&cluster).expect("a queued walk is live");
                self.live_turn(stopped);
            } else {
                return Taken { shorts: self.shorts, walks: self.ended, market: self.market };
            }
        }
    }

    /// Puts a walk where its next turn comes up.
    fn enqueue(&mut self, stopped: Stopped<'a>) {
        let Stopped { walk, stop } = stopped;
        let cluster = walk.cluster;
        self.went_live.insert(cluster);
        if stop == Stop::End {
            self.ended.push(*walk);
            return;
        }
        let place = Place::of(walk.demand(), self.rank[cluster as usize], walk.turn());
        self.queue.push(Reverse((place, cluster)));
        self.live.insert(cluster, Stopped { walk, stop });
    }

    /// The turn of a short need whose cluster was walked to its end.
    fn planned_turn(&mut self, cluster: u32, turn: u32, credit: &Credit, at: usize) {
        let (row, missing) = &credit.short[at];
        let demand = credit.rows[*row as usize].clone();
        let mut missing = missing.clone();
        let picked = self.market.take_anywhere(&demand, &mut missing);
        if !is_zero(&missing) {
            // Only now does it matter what it might take over. Up to this turn the walk was right: no need before this
            // one took anything over, or the cluster would be walked turn by turn already.
            let mut walk = (self.walk_again)(cluster);
            let stop = walk.advance(Mode::Until(turn));
            debug_assert_eq!((stop, walk.turn()), (Stop::Short, turn), "a walk repeats itself");
            let mut got: Vec<Got> = picked.into_iter().map(Got::Free).collect();
            self.take_over(&walk, &demand, None, &mut missing, &mut got);
            self.end_turn(walk, None, missing, got);
            return;
        }
        let mut picked = picked;
        let (market, wanted) = (&mut self.market, &credit.short[at].1);
        let classes = market.sources.classes;
        trim(&mut picked, wanted, |pick| classes.provides(pick.class), |pick| market.give_back(pick));
        let acquired = picked.into_iter().map(|pick| pick.machine).collect();
        self.shorts.push(Short::new(cluster, *row, demand, None, missing, acquired, 0));
    }

    /// The turn of a need whose cluster waits for it.
    fn live_turn(&mut self, stopped: Stopped<'a>) {
        let Stopped { mut walk, stop } = stopped;
        let demand = walk.demand().clone();
        let chosen = if stop == Stop::Gang {
            let chosen = self.choose_domain(&walk, &demand);
            walk.credit_gang(chosen);
            chosen
        } else {
            None
        };
        let mut missing = walk.missing.clone();
        let mut got: Vec<Got> = Vec::new();
        if is_zero(&missing) {
            walk.end_turn();
            let stop = walk.advance(Mode::Live);
            self.enqueue(Stopped { walk, stop });
            return;
        }
        if let (Some((key, headroom)), None) = (demand.spread, demand.same) {
            self.take_spread(&walk, &demand, key, headroom, &mut missing, &mut got);
        } else {
            if !demand.need.parked {
                let picked = match (demand.same, chosen) {
                    (None, _) => self.market.take_anywhere(&demand, &mut missing),
                    (Some(_), None) => Vec::new(),
                    (Some(key), Some(chosen)) => {
                        let domain = self.market.sources.classes.domain(key);
                        self.market.take_in_domain(&demand, domain, chosen.value, &mut missing)
                    }
                };
                got.extend(picked.into_iter().map(Got::Free));
            }
            if !is_zero(&missing) {
                self.take_over(&walk, &demand, chosen, &mut missing, &mut got);
            }
        }
        self.end_turn(walk, chosen, missing, got);
    }

    /// Chooses the domain of the gang whose turn it is.
    fn choose_domain(&mut self, walk: &Walk<'a>, demand: &Demand) -> Option<Chosen> {
        let sources = self.market.sources;
        let mut tallies = walk.tally(demand);
        for machine in sources.draining_for(demand) {
            tallies.draining(sources.classes, sources.inventory.row(machine).kind);
        }
        let domain = tallies.domain;
        let text = |value: u32| sources.vocab.text(sources.classes.domain_value(domain, value));
        if let Some(witness) =
            self.witness.as_mut().filter(|witness| std::ptr::eq(Arc::as_ptr(&witness.gang), demand))
        {
            witness.seen = if demand.need.parked {
                contest(&tallies, &mut NothingFree, &text)
            } else {
                contest(&tallies, &mut self.market.free_by_domain(demand, domain), &text)
            };
        }
        if demand.need.parked {
            return choose(&tallies, &mut NothingFree, &text);
        }
        choose(&tallies, &mut self.market.free_by_domain(demand, domain), &text)
    }

    /// Picks what needs after this one keep, until nothing is missing.
    fn take_over(
        &self,
        walk: &Walk<'a>,
        demand: &Demand,
        chosen: Option<Chosen>,
        missing: &mut Amounts,
        got: &mut Vec<Got>,
    ) {
        let classes = self.market.sources.classes;
        for position in walk.to_take_over(demand, chosen) {
            let (_, class) = walk.machine(position);
            let provides = classes.provides(class);
            if contributes(provides, missing) {
                got.push(Got::TakenOver { position, class });
                if subtract(missing, provides) {
                    return;
                }
            }
        }
    }

    /// Acquires and takes over under a strict spread: for every pick the first free machine in bargain order whose
    /// domain may take another or, if there is none, the first such machine to take over.
    fn take_spread(
        &mut self,
        walk: &Walk<'a>,
        demand: &Demand,
        key: u32,
        headroom: u64,
        missing: &mut Amounts,
        got: &mut Vec<Got>,
    ) {
        let sources = self.market.sources;
        let classes = sources.classes;
        let domain = classes.domain(key);
        let held = walk.claimed_now().iter().copied().chain(sources.draining_for(demand));
        let mut spread = Spread::new(sources, domain, headroom, held);
        let mut others: Vec<(u32, u32, u32)> = Vec::new();
        for position in walk.to_take_over(demand, None) {
            let (machine, class) = walk.machine(position);
            let value = sources.domain_of(domain, machine);
            spread.open(value);
            others.push((position, class, value));
        }
        let mut lines = self.market.lines_by_domain(demand, domain);
        lines.lines.iter().for_each(|line| spread.open(line.value));
        let shelf = self.market.cells(domain);
        let mut bargain = Bargain::new(&mut lines.lines, shelf, demand, missing, classes);
        loop {
            let limit = spread.limit();
            let (one, value) = if let Some(pick) = bargain.next(missing, |v| spread.permits(v, limit)) {
                (Got::Free(pick), sources.domain_of(domain, pick.machine))
            } else {
                let next = others.iter().position(|(_, class, value)| {
                    spread.permits(*value, limit) && contributes(classes.provides(*class), missing)
                });
                let Some(next) = next else { break };
                let (position, class, value) = others.remove(next);
                (Got::TakenOver { position, class }, value)
            };
            spread.add(value);
            got.push(one);
            if subtract(missing, classes.provides(one.class())) {
                break;
            }
        }
        for one in got.iter() {
            if let Got::Free(pick) = one {
                self.market.take(*pick);
            }
        }
    }

    /// Gives back what is not needed after all, writes down what a need got, and walks its cluster on.
    fn end_turn(
        &mut self,
        mut walk: Box<Walk<'a>>,
        chosen: Option<Chosen>,
        missing: Amounts,
        mut got: Vec<Got>,
    ) {
        let demand = walk.demand().clone();
        let market = &mut self.market;
        let classes = market.sources.classes;
        if is_zero(&missing) && demand.spread.is_none() {
            let give_back = |got: Got| {
                if let Got::Free(pick) = got {
                    market.give_back(pick);
                }
            };
            trim(&mut got, &walk.missing, |got| classes.provides(got.class()), give_back);
        }
        let (mut acquired, mut taken_over) = (Vec::new(), 0);
        for one in got {
            match one {
                Got::Free(pick) => acquired.push(pick.machine),
                Got::TakenOver { position, .. } => {
                    walk.take_over(position);
                    taken_over += 1;
                }
            }
        }
        let (cluster, row) = (walk.cluster, walk.row());
        self.shorts.push(Short::new(cluster, row, demand, chosen, missing, acquired, taken_over));
        walk.end_turn();
        let stop = walk.advance(Mode::Live);
        self.enqueue(Stopped { walk, stop });
    }
}
