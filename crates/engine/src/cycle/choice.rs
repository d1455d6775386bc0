//! Choosing one domain for a gang.
//!
//! A gang is served in one domain or not at all, and the domain is chosen once a cycle, for credit and
//! acquisition alike. The order of the rules makes a gang stay where it is served: a fresh domain that
//! merely looks better never moves it.

use std::cmp::Ordering;

use bigfleet_model::resource::MAX_AMOUNT;
use smallvec::SmallVec;

use crate::holdings::Held;
use crate::needs::Demand;
use crate::vocab::Dim;

use super::credit::Chosen;

/// Totals of the demanded dimensions, in the order of the demand.
pub(crate) type Totals = SmallVec<[u64; 4]>;

/// Adds a whole machine to totals, saturating.
pub(crate) fn add(totals: &mut Totals, demanded: &[(Dim, u64)], provides: &[u64]) {
    for (total, (dim, _)) in totals.iter_mut().zip(demanded) {
        *total = total.saturating_add(provides[*dim as usize]).min(MAX_AMOUNT);
    }
}

/// Whether totals reach the demand in every dimension.
pub(crate) fn reaches(totals: &[u64], demanded: &[(Dim, u64)]) -> bool {
    totals.iter().zip(demanded).all(|(total, (_, amount))| total >= amount)
}

/// The sum of the shares of the demand that totals reach, each counted as at most 1 when `capped`.
pub(crate) fn score(totals: &[u64], demanded: &[(Dim, u64)], capped: bool) -> f64 {
    let shares = totals.iter().zip(demanded).map(|(total, (_, amount))| *total as f64 / *amount as f64);
    shares.fold(0.0, |sum, share| sum + if capped { share.min(1.0) } else { share })
}

/// A creditable machine of a gang.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// Where it stands in its cluster's lists; `None` for one being created.
    pub(crate) position: Option<u32>,
    pub(crate) held: Held,
    own: bool,
}

/// The creditable machines of a gang in one domain.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(crate) value: u32,
    members: Vec<Member>,
    demanded: SmallVec<[(Dim, u64); 4]>,
    /// Everything creditable.
    pub(crate) creditable: Totals,
    /// What of it was bound or is being created for this very gang.
    own: Totals,
}

impl Tally {
    pub(crate) fn new(value: u32, demand: &Demand) -> Self {
        let zero = Totals::from_elem(0, demand.aggregate.len());
        let demanded = SmallVec::from_slice(&demand.aggregate);
        Self { value, members: Vec::new(), demanded, creditable: zero.clone(), own: zero }
    }

    pub(crate) fn add(&mut self, position: Option<u32>, held: Held, own: bool, provides: &[u64]) {
        self.members.push(Member { position, held, own });
        add(&mut self.creditable, &self.demanded, provides);
        if own {
            add(&mut self.own, &self.demanded, provides);
        }
    }

    /// How many machines it counts.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// The machines, own ones first, each half in the order they were added.
    pub(crate) fn own_first(&self) -> impl Iterator<Item = &Member> {
        let (own, other) = (self.members.iter().filter(|m| m.own), self.members.iter().filter(|m| !m.own));
        own.chain(other)
    }

    fn creditable_score(&self) -> f64 {
        score(&self.creditable, &self.demanded, true)
    }

    fn own_score(&self) -> f64 {
        score(&self.own, &self.demanded, true)
    }
}

/// What is known of a gang's domain from its own cluster alone.
pub(crate) enum Choice {
    /// Free machines cannot change it.
    Settled(Option<Chosen>),
    /// Free machines, and gangs that come before, decide.
    Open,
}

/// Chooses the domain if the cluster's own machines settle it.
///
/// They do when the gang is parked, for then nothing free counts; and when one domain covers the gang by
/// credit alone and beats every other on credit and own machines, for free machines weigh less than both.
pub(crate) fn settle_at_home<'a>(
    demand: &'a Demand,
    tallies: &[Tally],
    text: &'a dyn Fn(u32) -> &'a str,
) -> Choice {
    if demand.need.parked {
        let mut contest = Contest::new(demand, text);
        for tally in tallies {
            contest.enter(tally.value, Some(tally), &[], 0);
        }
        return Choice::Settled(contest.winner());
    }
    let rank = |tally: &Tally| (tally.creditable_score(), tally.own_score());
    let order = |a: (f64, f64), b: (f64, f64)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1));
    let Some(first) = tallies.iter().max_by(|a, b| order(rank(a), rank(b))) else { return Choice::Open };
    let unique = tallies.iter().filter(|other| order(rank(other), rank(first)).is_eq()).count() == 1;
    if unique && !demand.aggregate.is_empty() && reaches(&first.creditable, &demand.aggregate) {
        return Choice::Settled(Some(Chosen { value: first.value, covers: true }));
    }
    Choice::Open
}

/// What one domain has to show.
#[derive(Clone, Copy, Debug)]
struct Entrant {
    value: u32,
    covers: bool,
    creditable: f64,
    own: f64,
    /// Uncapped if it covers (the tightest fit wins), capped if not (the nearest does).
    joint: f64,
    machines: usize,
}

/// Finds the best of many domains, one at a time.
pub(crate) struct Contest<'a> {
    demanded: &'a [(Dim, u64)],
    /// The text a domain stands for.
    text: &'a dyn Fn(u32) -> &'a str,
    best: Option<Entrant>,
}

impl<'a> Contest<'a> {
    pub(crate) fn new(demand: &'a Demand, text: &'a dyn Fn(u32) -> &'a str) -> Self {
        Self { demanded: &demand.aggregate, text, best: None }
    }

    /// Enters a domain: what is creditable there and `free` totals (by demanded dimension) of `machines`
    /// free machines. An empty domain does not take part.
    pub(crate) fn enter(&mut self, value: u32, tally: Option<&Tally>, free: &[u64], machines: usize) {
        let machines = machines + tally.map_or(0, Tally::len);
        if machines == 0 {
            return;
        }
        let mut joint: Totals =
            tally.map_or_else(|| self.demanded.iter().map(|_| 0).collect(), |t| t.creditable.clone());
        joint
            .iter_mut()
            .zip(free)
            .for_each(|(total, more)| *total = total.saturating_add(*more).min(MAX_AMOUNT));
        let covers = reaches(&joint, self.demanded);
        if !covers && self.best.is_some_and(|best| best.covers) {
            return;
        }
        let entrant = Entrant {
            value,
            covers,
            creditable: tally.map_or(0.0, Tally::creditable_score),
            own: tally.map_or(0.0, Tally::own_score),
            joint: score(&joint, self.demanded, !covers),
            machines,
        };
        if self.best.is_none_or(|best| self.compare(&entrant, &best).is_gt()) {
            self.best = Some(entrant);
        }
    }

    /// Greater is better.
    fn compare(&self, a: &Entrant, b: &Entrant) -> Ordering {
        a.covers
            .cmp(&b.covers)
            .then_with(|| {
                if a.covers {
                    a.creditable
                        .total_cmp(&b.creditable)
                        .then_with(|| a.own.total_cmp(&b.own))
                        .then_with(|| b.joint.total_cmp(&a.joint))
                } else {
                    a.joint.total_cmp(&b.joint).then_with(|| a.creditable.total_cmp(&b.creditable))
                }
            })
            .then_with(|| a.machines.cmp(&b.machines))
            .then_with(|| (self.text)(b.value).cmp((self.text)(a.value)))
    }

    pub(crate) fn winner(&self) -> Option<Chosen> {
        self.best.map(|best| Chosen { value: best.value, covers: best.covers })
    }
}
