//! Choosing one domain for a gang.
//!
//! A gang is served in one domain or not at all, and the domain is chosen once a cycle, at the gang's turn. Its own
//! machines weigh most, so a gang stays where it is served: a domain that merely looks better, or cheaper, never
//! moves it. Between domains that have as much of the gang, the one wins where completing it adds least to the bill.

use std::cmp::Ordering;

use bigfleet_model::resource::MAX_AMOUNT;
use smallvec::SmallVec;

use crate::amounts::is_zero;
use crate::classes::Classes;
use crate::intern::NONE;
use crate::needs::Demand;
use crate::vocab::{Amounts, Dim};

use super::sources::Sources;

/// The domain a gang was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// Which domain, as numbered by the classes.
    pub(crate) value: u32,
    /// Whether everything the gang may count on in that domain covers it.
    pub(crate) covers: bool,
}

/// Totals of the demanded dimensions, in the order of the demand.
pub(crate) type Totals = SmallVec<[u64; 4]>;

/// Nothing yet, in every demanded dimension.
fn nothing(demand: &Demand) -> Totals {
    Totals::from_elem(0, demand.aggregate.len())
}

/// Adds a whole machine to totals, saturating.
pub(crate) fn add(totals: &mut Totals, demanded: &[(Dim, u64)], provides: &[u64]) {
    for (total, (dim, _)) in totals.iter_mut().zip(demanded) {
        *total = total.saturating_add(provides[*dim as usize]).min(MAX_AMOUNT);
    }
}

fn add_totals(totals: &mut Totals, more: &[u64]) {
    totals
        .iter_mut()
        .zip(more)
        .for_each(|(total, more)| *total = total.saturating_add(*more).min(MAX_AMOUNT));
}

/// Whether totals reach the demand in every dimension.
pub(crate) fn reaches(totals: &[u64], demanded: &[(Dim, u64)]) -> bool {
    totals.iter().zip(demanded).all(|(total, (_, amount))| total >= amount)
}

/// What totals leave missing of a demand.
fn left(totals: &[u64], demanded: &[(Dim, u64)]) -> Amounts {
    totals.iter().zip(demanded).map(|(total, (dim, amount))| (*dim, amount.saturating_sub(*total))).collect()
}

/// The sum of the shares of the demand that totals reach, each counted as at most 1 when `capped`.
fn score(totals: &[u64], demanded: &[(Dim, u64)], capped: bool) -> f64 {
    let shares = totals.iter().zip(demanded).map(|(total, (_, amount))| *total as f64 / *amount as f64);
    shares.fold(0.0, |sum, share| sum + if capped { share.min(1.0) } else { share })
}

/// What a gang's own machines come to in each domain, given the kinds of those that count.
fn homes(
    demand: &Demand,
    classes: &Classes,
    own_kinds: impl Iterator<Item = u32>,
) -> SmallVec<[(u32, Totals); 4]> {
    let domain = classes.domain(demand.same.expect("only gangs have a home"));
    let mut homes: SmallVec<[(u32, Totals); 4]> = SmallVec::new();
    for kind in own_kinds {
        let value = classes.domain_of_kind(domain, kind);
        let at = homes.iter().position(|(known, _)| *known == value).unwrap_or_else(|| {
            homes.push((value, nothing(demand)));
            homes.len() - 1
        });
        add(&mut homes[at].1, &demand.aggregate, classes.provides_kind(kind));
    }
    homes
}

/// Whether a gang is at home: its own machines in one domain cover it.
pub(crate) fn is_at_home(demand: &Demand, classes: &Classes, own_kinds: impl Iterator<Item = u32>) -> bool {
    homes(demand, classes, own_kinds).iter().any(|(_, own)| reaches(own, &demand.aggregate))
}

/// The domain a gang's own machines cover: then nothing else matters, because no domain has more of the gang. Of several
/// the smaller value wins, because a domain that credit alone covers shows nothing but its value. `None` if its
/// own machines do not settle it.
pub(crate) fn home_of(
    demand: &Demand,
    sources: Sources<'_>,
    own_kinds: impl Iterator<Item = u32>,
) -> Option<Chosen> {
    let classes = sources.classes;
    let homes = homes(demand, classes, own_kinds);
    if demand.aggregate.is_empty() || !homes.iter().any(|(_, own)| reaches(own, &demand.aggregate)) {
        return None;
    }
    let domain = classes.domain(demand.same.expect("only gangs have a home"));
    let full = demand.aggregate.len() as f64;
    let mut best: Option<u32> = None;
    for (value, own) in &homes {
        if reaches(own, &demand.aggregate) {
            let text = |value: u32| sources.vocab.text(classes.domain_value(domain, value));
            best = Some(best.filter(|best| text(*best) < text(*value)).unwrap_or(*value));
        } else if score(own, &demand.aggregate, true) >= full {
            // So close to full that the score cannot tell: let the whole contest decide.
            return None;
        }
    }
    best.map(|value| Chosen { value, covers: true })
}

/// What a gang's cluster has for it in one domain.
#[derive(Clone, Debug)]
struct Tally {
    value: u32,
    own: Totals,
    /// Own machines and what no need keeps.
    creditable: Totals,
    machines: usize,
    /// What needs after it keep.
    others: Totals,
    others_machines: usize,
    /// What drains on its behalf.
    draining: Totals,
    draining_machines: usize,
}

/// What a gang's cluster has for it, by domain.
pub(crate) struct Tallies {
    pub(crate) domain: usize,
    demanded: SmallVec<[(Dim, u64); 4]>,
    by_domain: Vec<Tally>,
}

impl Tallies {
    pub(crate) fn new(demand: &Demand, domain: usize) -> Self {
        Self { domain, demanded: SmallVec::from_slice(&demand.aggregate), by_domain: Vec::new() }
    }

    /// The tally of a domain, made when first met, and what machines of a kind provide.
    fn at(&mut self, value: u32) -> &mut Tally {
        let at = self.by_domain.iter().position(|tally| tally.value == value).unwrap_or_else(|| {
            let zero = Totals::from_elem(0, self.demanded.len());
            self.by_domain.push(Tally {
                value,
                own: zero.clone(),
                creditable: zero.clone(),
                machines: 0,
                others: zero.clone(),
                others_machines: 0,
                draining: zero,
                draining_machines: 0,
            });
            self.by_domain.len() - 1
        });
        &mut self.by_domain[at]
    }

    fn add(&mut self, classes: &Classes, kind: u32, enter: impl FnOnce(&mut Tally, &[(Dim, u64)], &[u64])) {
        let value = classes.domain_of_kind(self.domain, kind);
        if value != NONE {
            let demanded = self.demanded.clone();
            enter(self.at(value), &demanded, classes.provides_kind(kind));
        }
    }

    /// Counts one of the gang's own machines.
    pub(crate) fn own(&mut self, classes: &Classes, kind: u32) {
        self.add(classes, kind, |tally, demanded, provides| {
            add(&mut tally.own, demanded, provides);
            add(&mut tally.creditable, demanded, provides);
            tally.machines += 1;
        });
    }

    /// Counts a machine no need keeps.
    pub(crate) fn unkept(&mut self, classes: &Classes, kind: u32) {
        self.add(classes, kind, |tally, demanded, provides| {
            add(&mut tally.creditable, demanded, provides);
            tally.machines += 1;
        });
    }

    /// Counts a machine a later need keeps.
    pub(crate) fn kept_by_others(&mut self, classes: &Classes, kind: u32) {
        self.add(classes, kind, |tally, demanded, provides| {
            add(&mut tally.others, demanded, provides);
            tally.others_machines += 1;
        });
    }

    /// Counts a machine that drains on the gang's behalf.
    pub(crate) fn draining(&mut self, classes: &Classes, kind: u32) {
        self.add(classes, kind, |tally, demanded, provides| {
            add(&mut tally.draining, demanded, provides);
            tally.draining_machines += 1;
        });
    }
}

/// What is free for a gang, by domain.
pub(crate) trait Free {
    /// The domains where what is free covers the gang alone.
    fn covering(&self) -> Vec<u32>;
    /// Calls `visit` with every domain that has free machines, how many, and what they provide by demanded dimension.
    fn each(&self, visit: &mut dyn FnMut(u32, usize, &[u64]));
    /// How many machines are free in a domain, and what they provide by demanded dimension.
    fn free(&self, value: u32) -> (usize, Totals);
    /// What buying what is missing would add to the bill in a domain, in dollars an hour.
    fn new_money(&mut self, value: u32, missing: Amounts) -> f64;
}

/// A parked gang acquires nothing, so nothing is free for it.
pub(crate) struct NothingFree;

impl Free for NothingFree {
    fn covering(&self) -> Vec<u32> {
        Vec::new()
    }

    fn each(&self, _: &mut dyn FnMut(u32, usize, &[u64])) {}

    fn free(&self, _: u32) -> (usize, Totals) {
        (0, Totals::new())
    }

    fn new_money(&mut self, _: u32, _: Amounts) -> f64 {
        0.0
    }
}

/// What one domain has to show.
#[derive(Clone, Debug)]
struct Entrant {
    value: u32,
    covers: bool,
    own: f64,
    creditable: f64,
    /// Credit alone covers it: then money, tightness and machines play no part.
    by_credit: bool,
    /// Uncapped if it covers (the tightest fit wins), capped if not (the nearest does).
    joint: f64,
    machines: usize,
    /// What is missing after credit and what drains.
    missing: Amounts,
}

impl Entrant {
    /// What a domain has to show of which the gang's cluster has a tally; `None` if there is no machine.
    fn of_tally(tally: &Tally, demanded: &[(Dim, u64)], free: &dyn Free, with_others: bool) -> Option<Self> {
        let (free_machines, free_totals) = free.free(tally.value);
        let (mut creditable, mut machines) = (tally.creditable.clone(), free_machines);
        machines += tally.machines + tally.draining_machines;
        if with_others {
            add_totals(&mut creditable, &tally.others);
            machines += tally.others_machines;
        }
        if machines == 0 {
            return None;
        }
        let by_credit = reaches(&creditable, demanded);
        let creditable_score = score(&creditable, demanded, true);
        let mut joint = creditable;
        add_totals(&mut joint, &tally.draining);
        let missing = left(&joint, demanded);
        add_totals(&mut joint, &free_totals);
        let covers = reaches(&joint, demanded);
        Some(Self {
            value: tally.value,
            covers,
            own: score(&tally.own, demanded, true),
            creditable: creditable_score,
            by_credit,
            joint: score(&joint, demanded, !covers),
            machines,
            missing,
        })
    }

    /// What a domain has to show where there is nothing but free machines.
    fn of_free(value: u32, machines: usize, free: &[u64], demanded: &[(Dim, u64)], covers: bool) -> Self {
        Self {
            value,
            covers,
            own: 0.0,
            creditable: 0.0,
            // Nothing covers a gang that asks for nothing.
            by_credit: is_zero(demanded),
            joint: score(free, demanded, !covers),
            machines,
            missing: Amounts::from_slice(demanded),
        }
    }

    /// The order of domains that do not cover the gang.
    fn cmp_short<'a>(&self, other: &Self, text: &dyn Fn(u32) -> &'a str) -> Ordering {
        other
            .own
            .total_cmp(&self.own)
            .then(other.joint.total_cmp(&self.joint))
            .then(other.creditable.total_cmp(&self.creditable))
            .then(other.machines.cmp(&self.machines))
            .then_with(|| text(self.value).cmp(text(other.value)))
    }
}

/// Chooses the domain of a gang from what its cluster has and what is free. `None`: no domain has a machine for it.
///
/// Domains of which its cluster has nothing come into question only if none of the others has anything of the gang:
/// there are thousands of them.
pub(crate) fn choose<'a>(
    tallies: &Tallies,
    free: &mut dyn Free,
    text: &dyn Fn(u32) -> &'a str,
) -> Option<Chosen> {
    let demanded = &tallies.demanded[..];
    let is_tallied = |value: u32| tallies.by_domain.iter().any(|tally| tally.value == value);
    let tallied = |free: &dyn Free, with_others: bool| -> Vec<Entrant> {
        let entrant = |tally: &Tally| Entrant::of_tally(tally, demanded, free, with_others);
        tallies.by_domain.iter().filter_map(entrant).collect()
    };
    let mut covering = tallied(free, false);
    covering.retain(|entrant| entrant.covers);
    if !covering.iter().any(|entrant| entrant.own > 0.0 || entrant.creditable > 0.0) {
        for value in free.covering().into_iter().filter(|value| !is_tallied(*value)) {
            let (machines, totals) = free.free(value);
            covering.push(Entrant::of_free(value, machines, &totals, demanded, true));
        }
    }
    if let Some(best) = best_covering(covering, free, text) {
        return Some(Chosen { value: best.value, covers: true });
    }
    // Nothing covers: what other needs keep comes into question.
    let (covering, short): (Vec<Entrant>, Vec<Entrant>) =
        tallied(free, true).into_iter().partition(|entrant| entrant.covers);
    if let Some(best) = best_covering(covering, free, text) {
        return Some(Chosen { value: best.value, covers: true });
    }
    let mut best = short.into_iter().min_by(|a, b| a.cmp_short(b, text));
    if !best.as_ref().is_some_and(|best| best.own > 0.0) {
        free.each(&mut |value, machines, totals| {
            let joint = score(totals, demanded, true);
            let is_worse = best.as_ref().is_some_and(|best| joint < best.joint);
            if !is_worse && !is_tallied(value) {
                let one = Entrant::of_free(value, machines, totals, demanded, false);
                if best.as_ref().is_none_or(|best| one.cmp_short(best, text).is_lt()) {
                    best = Some(one);
                }
            }
        });
    }
    best.map(|best| Chosen { value: best.value, covers: false })
}

/// What decided between the domain a gang was given and the next best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainRule {
    /// The gang's own machines there cover it.
    Home,
    /// No other domain could cover it, or has any machine for it.
    Only,
    /// Most of the gang's own machines, in shares of the demand.
    Own,
    /// Most of its own machines and of those no need keeps, in shares of the demand.
    Creditable,
    /// Least new money: what is bought there adds least to the bill.
    NewMoney,
    /// The tightest fit: what would be left over is least.
    Tightest,
    /// Most of the demand (where no domain covers it), in shares.
    Nearest,
    /// Most machines.
    Machines,
    /// Equal in everything else: the smaller name.
    Name,
}

impl DomainRule {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::Only => "only",
            Self::Own => "own",
            Self::Creditable => "creditable",
            Self::NewMoney => "new_money",
            Self::Tightest => "tightest",
            Self::Nearest => "nearest",
            Self::Machines => "machines",
            Self::Name => "name",
        }
    }
}

/// How a contest of domains ended, with what the rule that decided it compared.
#[derive(Clone, Debug)]
pub(crate) struct Contest {
    pub(crate) chosen: Chosen,
    pub(crate) rule: DomainRule,
    pub(crate) figure: f64,
    pub(crate) next: Option<(u32, f64)>,
}

/// Holds the contest that [`choose`] decides, and says by what it was decided. Looks at all domains, which who decides need
/// not.
pub(crate) fn contest<'a>(
    tallies: &Tallies,
    free: &mut dyn Free,
    text: &dyn Fn(u32) -> &'a str,
) -> Option<Contest> {
    let demanded = &tallies.demanded[..];
    let is_tallied = |value: u32| tallies.by_domain.iter().any(|tally| tally.value == value);
    let tallied = |free: &dyn Free, with_others: bool| -> Vec<Entrant> {
        let entrant = |tally: &Tally| Entrant::of_tally(tally, demanded, free, with_others);
        tallies.by_domain.iter().filter_map(entrant).collect()
    };
    let mut entrants = tallied(free, false);
    entrants.retain(|entrant| entrant.covers);
    for value in free.covering().into_iter().filter(|value| !is_tallied(*value)) {
        let (machines, totals) = free.free(value);
        entrants.push(Entrant::of_free(value, machines, &totals, demanded, true));
    }
    if entrants.is_empty() {
        entrants = tallied(free, true);
        if entrants.iter().any(|entrant| entrant.covers) {
            entrants.retain(|entrant| entrant.covers);
        } else {
            free.each(&mut |value, machines, totals| {
                if !is_tallied(value) {
                    entrants.push(Entrant::of_free(value, machines, totals, demanded, false));
                }
            });
        }
    }
    let covers = entrants.first()?.covers;
    let mut ranked: Vec<(u32, [Figure; 5])> = entrants
        .into_iter()
        .map(|entrant| {
            // What credit alone covers shows nothing of the last three.
            let money = if covers && !entrant.by_credit {
                free.new_money(entrant.value, entrant.missing.clone())
            } else {
                0.0
            };
            (entrant.value, entrant.figures(money))
        })
        .collect();
    let differ = |a: &[Figure; 5], b: &[Figure; 5]| {
        let mut pairs = a.iter().zip(b).map(|(a, b)| (*a, *b));
        pairs.find(|(a, b)| a.value.total_cmp(&b.value).is_ne())
    };
    ranked.sort_by(|a, b| {
        let by_figures = differ(&a.1, &b.1).map_or(Ordering::Equal, |(a, b)| {
            let up = a.value.total_cmp(&b.value);
            if a.less_is_better { up } else { up.reverse() }
        });
        by_figures.then_with(|| text(a.0).cmp(text(b.0)))
    });
    let chosen = Chosen { value: ranked[0].0, covers };
    let Some((next, others)) = ranked.get(1) else {
        return Some(Contest { chosen, rule: DomainRule::Only, figure: 0.0, next: None });
    };
    let (rule, figure, other) = differ(&ranked[0].1, others)
        .map_or((DomainRule::Name, 0.0, 0.0), |(one, other)| (one.rule, one.value, other.value));
    Some(Contest { chosen, rule, figure, next: Some((*next, other)) })
}

/// What a rule compares.
#[derive(Clone, Copy)]
struct Figure {
    rule: DomainRule,
    value: f64,
    less_is_better: bool,
}

impl Entrant {
    /// What is compared, in this order. `money` is what completing the gang adds to the bill.
    fn figures(&self, money: f64) -> [Figure; 5] {
        let more = |rule, value| Figure { rule, value, less_is_better: false };
        let less = |rule, value| Figure { rule, value, less_is_better: true };
        let machines = self.machines as f64;
        let (own, creditable) =
            (more(DomainRule::Own, self.own), more(DomainRule::Creditable, self.creditable));
        if !self.covers {
            let nearest = more(DomainRule::Nearest, self.joint);
            return [
                own,
                nearest,
                creditable,
                more(DomainRule::Machines, machines),
                less(DomainRule::Name, 0.0),
            ];
        }
        let (joint, machines) = if self.by_credit { (0.0, 0.0) } else { (self.joint, machines) };
        let [money, tightest] = [less(DomainRule::NewMoney, money), less(DomainRule::Tightest, joint)];
        [own, creditable, money, tightest, more(DomainRule::Machines, machines)]
    }
}

/// The best of domains that all cover the gang.
fn best_covering<'a>(
    mut entrants: Vec<Entrant>,
    free: &mut dyn Free,
    text: &dyn Fn(u32) -> &'a str,
) -> Option<Entrant> {
    // Money is looked up for those only that are equal in what the gang has there: it costs a simulated purchase.
    let rank = |a: &Entrant, b: &Entrant| b.own.total_cmp(&a.own).then(b.creditable.total_cmp(&a.creditable));
    let first = entrants.iter().min_by(|a, b| rank(a, b))?;
    let (own, creditable) = (first.own, first.creditable);
    entrants.retain(|entrant| {
        entrant.own.total_cmp(&own).is_eq() && entrant.creditable.total_cmp(&creditable).is_eq()
    });
    if entrants.len() == 1 {
        return entrants.pop();
    }
    let shown = entrants.into_iter().map(|entrant| {
        if entrant.by_credit {
            return (0.0, 0.0, 0, entrant);
        }
        let money = free.new_money(entrant.value, entrant.missing.clone());
        (money, entrant.joint, entrant.machines, entrant)
    });
    let best = shown.min_by(|a, b| -> Ordering {
        a.0.total_cmp(&b.0)
            .then(a.1.total_cmp(&b.1))
            .then(b.2.cmp(&a.2))
            .then_with(|| text(a.3.value).cmp(text(b.3.value)))
    });
    best.map(|(_, _, _, entrant)| entrant)
}
