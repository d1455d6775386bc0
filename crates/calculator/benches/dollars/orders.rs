//! Models of ways to buy, to compare rules before anybody writes them into the engine. None of this is the engine.
//!
//! All of them buy machines for one need from offers that count for it, until what is missing is covered.

use super::pods::{Amounts, covers, less, plus};

/// Machines alike that may be bought.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// Effective cost of one.
    pub(crate) cost: f64,
    pub(crate) gives: Amounts,
    /// How many are left.
    pub(crate) left: u64,
}

/// What can be bought; the order is that of machine ids.
pub(crate) type Shelf = Vec<Candidate>;

/// A way to buy: from the shelf, for a need with this demand that misses this; answers which candidates, one entry for each machine.
/// What is on the shelf stays there until [`take`].
pub(crate) type Order = fn(&Shelf, Amounts, Amounts) -> Vec<usize>;

/// All of them, with what they are called in reports.
pub(crate) const ORDERS: [(&str, Order); 14] = [
    ("cheapest machine first", cheapest),
    ("bargain order, judged once", bargain_once),
    ("bargain order, judged anew, trimmed", bargain),
    ("  and swapped", bargain_swapped),
    ("  and ended well", bargain_ended),
    ("  and ended well, swapped", bargain_ended_swapped),
    ("  the same, a twentieth more asked for at first", bargain_ended_swapped_with_room),
    ("  and ended well with two", bargain_ended_with_two),
    ("  larger before smaller, trimmed", larger),
    ("  larger before smaller, ended well", larger_ended),
    ("  larger before smaller, ended well, swapped", larger_ended_swapped),
    ("  shares of what is missing, trimmed", missing_shares),
    ("  shares of what is missing, ended, swapped", missing_shares_ended_swapped),
    ("the cheapest whole cover", integer),
];

/// Takes what was picked off the shelf.
pub(crate) fn take(shelf: &mut Shelf, picks: &[usize]) {
    for pick in picks {
        shelf[*pick].left = shelf[*pick].left.checked_sub(1).expect("an order picks what is there");
    }
}

/// Cheapest machine first, whatever its size: the first edition.
fn cheapest(shelf: &Shelf, _: Amounts, missing: Amounts) -> Vec<usize> {
    let mut order: Vec<usize> = (0..shelf.len()).collect();
    order.sort_by(|a, b| shelf[*a].cost.total_cmp(&shelf[*b].cost));
    in_order(shelf, &order, missing)
}

/// Effective cost for the share of the demand a machine adds, judged once.
fn bargain_once(shelf: &Shelf, demand: Amounts, missing: Amounts) -> Vec<usize> {
    let rank = |at: &usize| shelf[*at].cost / share(shelf[*at].gives, missing, demand);
    let mut order: Vec<usize> = (0..shelf.len()).collect();
    order.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
    in_order(shelf, &order, missing)
}

fn in_order(shelf: &Shelf, order: &[usize], mut missing: Amounts) -> Vec<usize> {
    let mut picks = Vec::new();
    for at in order {
        for _ in 0..shelf[*at].left {
            if missing == [0, 0] {
                return picks;
            }
            picks.push(*at);
            missing = less(missing, shelf[*at].gives);
        }
    }
    assert_eq!(missing, [0, 0], "there is enough of everything");
    picks
}

/// What a machine adds, as shares of a whole.
fn share(gives: Amounts, missing: Amounts, whole: Amounts) -> f64 {
    let part =
        |d: usize| if missing[d] == 0 { 0.0 } else { gives[d].min(missing[d]) as f64 / whole[d] as f64 };
    part(0) + part(1)
}

/// The second edition: judged anew for what is missing after each pick, then trimmed.
fn bargain(shelf: &Shelf, demand: Amounts, missing: Amounts) -> Vec<usize> {
    trimmed(shelf, anew(shelf, missing, |_| demand, 1.0, 0), missing)
}

/// The same; then each pick gives way to the cheapest machine that fills the hole it would leave.
fn bargain_swapped(shelf: &Shelf, demand: Amounts, missing: Amounts) -> Vec<usize> {
    swapped(shelf, bargain(shelf, demand, missing), missing)
}

/// The same; but before every pick it looks at ending with the cheapest machine that covers all that is missing, and the
/// cheapest of these ends is kept.
fn bargain_ended(shelf: &Shelf, demand: Amounts, missing: Amounts) -> Vec<usize> {
    trimmed(shelf, anew(shelf, missing, |_| demand, 1.0, 1), missing)
}

fn bargain_ended_swapped(shelf: &Shelf, demand: Amounts, missing: Amounts) -> Vec<usize> {
    swapped(shelf, bargain_ended(shelf, demand, missing), missing)
}

/// The same, but a demand of which all is missing asks for a twentieth more, for the holes between pods: not a rule of buying, but one
/// of asking, to see whether holes are better paid for at once.
fn bargain_ended_swapped_with_room(shelf: &Shelf, demand: Amounts, missing: Amounts) -> Vec<usize> {
    let more = |amount: u64| if demand == missing { amount + amount / 20 } else { amount };
    bargain_ended_swapped(shelf, demand.map(more), missing.map(more))
}

/// Before every pick it also looks at all pairs of machines that cover what is missing: how much there is to gain, not a proposal.
fn bargain_ended_with_two(shelf: &Shelf, demand: Amounts, missing: Amounts) -> Vec<usize> {
    trimmed(shelf, anew(shelf, missing, |_| demand, 1.0, 2), missing)
}

/// A share counts for a little more than its size, so that of two equal bargains the larger machine is taken: fewer holes.
fn larger(shelf: &Shelf, demand: Amounts, missing: Amounts) -> Vec<usize> {
    trimmed(shelf, anew(shelf, missing, |_| demand, LARGER, 0), missing)
}

fn larger_ended(shelf: &Shelf, demand: Amounts, missing: Amounts) -> Vec<usize> {
    trimmed(shelf, anew(shelf, missing, |_| demand, LARGER, 1), missing)
}

fn larger_ended_swapped(shelf: &Shelf, demand: Amounts, missing: Amounts) -> Vec<usize> {
    swapped(shelf, larger_ended(shelf, demand, missing), missing)
}

/// The exponent of a share in [`larger`].
const LARGER: f64 = 1.1;

/// The optimum in whole machines, or the best a solver finds in a second: how much any order leaves to gain in sums.
fn integer(shelf: &Shelf, _: Amounts, missing: Amounts) -> Vec<usize> {
    use microlp::{ComparisonOp, OptimizationDirection, Problem};
    let mut program = Problem::new(OptimizationDirection::Minimize);
    program.set_time_limit(std::time::Duration::from_secs(1));
    let counts: Vec<_> = shelf
        .iter()
        .map(|candidate| program.add_integer_var(candidate.cost, (0, candidate.left as i32)))
        .collect();
    for d in (0..2).filter(|d| missing[*d] > 0) {
        let given = counts
            .iter()
            .zip(shelf)
            .map(|(count, candidate)| (*count, candidate.gives[d] as f64 / missing[d] as f64));
        program.add_constraint(given.collect::<Vec<_>>(), ComparisonOp::Ge, 1.0);
    }
    let solved = program.solve().expect("there is enough of everything");
    let Some(solution) = solved.solution() else { return bargain(shelf, missing, missing) };
    let mut picks = Vec::new();
    for (at, count) in counts.iter().enumerate() {
        picks.extend(std::iter::repeat_n(at, solution.var_value(*count).round() as usize));
    }
    // Rounding in the solver may leave a byte uncovered.
    let rest = less(missing, sum(shelf, &picks));
    if rest != [0, 0] {
        let mut left = shelf.clone();
        take(&mut left, &picks);
        picks.extend(bargain(&left, missing, rest));
    }
    picks
}

/// Shares of what is missing now instead of the whole demand: what there is least of weighs most.
fn missing_shares(shelf: &Shelf, _: Amounts, missing: Amounts) -> Vec<usize> {
    trimmed(shelf, anew(shelf, missing, |missing| missing, 1.0, 0), missing)
}

fn missing_shares_ended_swapped(shelf: &Shelf, _: Amounts, missing: Amounts) -> Vec<usize> {
    let picks = trimmed(shelf, anew(shelf, missing, |missing| missing, 1.0, 1), missing);
    swapped(shelf, picks, missing)
}

/// One pick after the other, the best bargain for what is missing. Before each pick, it looks at ends of up to `ends` machines.
fn anew(
    shelf: &Shelf,
    wanted: Amounts,
    whole: impl Fn(Amounts) -> Amounts,
    exponent: f64,
    ends: usize,
) -> Vec<usize> {
    let (mut picks, mut missing, mut paid) = (Vec::new(), wanted, 0.0);
    let mut left: Vec<u64> = shelf.iter().map(|candidate| candidate.left).collect();
    let mut best: Option<(f64, Vec<usize>)> = None;
    while missing != [0, 0] {
        if let Some(end) = cheapest_end(shelf, &left, missing, ends) {
            let all = paid + cost(shelf, &end);
            if best.as_ref().is_none_or(|(known, _)| all < *known) {
                best = Some((all, [&picks[..], &end[..]].concat()));
            }
        }
        let whole = whole(missing);
        let judged = (0..shelf.len()).filter(|at| left[*at] > 0).map(|at| {
            let share = share(shelf[at].gives, missing, whole);
            (at, shelf[at].cost / if exponent == 1.0 { share } else { share.powf(exponent) }, share)
        });
        let pick = judged
            .filter(|(.., share)| *share > 0.0)
            .min_by(|a, b| a.1.total_cmp(&b.1).then(b.2.total_cmp(&a.2)))
            .expect("there is enough of everything")
            .0;
        picks.push(pick);
        left[pick] -= 1;
        paid += shelf[pick].cost;
        missing = less(missing, shelf[pick].gives);
    }
    let trimmed = trimmed(shelf, picks, wanted);
    let cost = cost(shelf, &trimmed);
    best.filter(|(known, _)| *known < cost).map_or(trimmed, |(_, picks)| picks)
}

/// The cheapest machine, or pair of machines, that covers all that is missing.
fn cheapest_end(shelf: &Shelf, left: &[u64], missing: Amounts, machines: usize) -> Option<Vec<usize>> {
    let one = |missing: Amounts, left: &dyn Fn(usize) -> u64| {
        let covering = (0..shelf.len()).filter(|at| left(*at) > 0 && covers(shelf[*at].gives, missing));
        covering.min_by(|a, b| shelf[*a].cost.total_cmp(&shelf[*b].cost))
    };
    match machines {
        0 => None,
        1 => one(missing, &|at| left[at]).map(|end| vec![end]),
        _ => {
            let pairs = (0..shelf.len()).filter(|first| left[*first] > 0).filter_map(|first| {
                let rest = less(missing, shelf[first].gives);
                let second = one(rest, &|at| left[at] - u64::from(at == first))?;
                Some(if rest == [0, 0] { vec![first] } else { vec![first, second] })
            });
            pairs.min_by(|a, b| cost(shelf, a).total_cmp(&cost(shelf, b)))
        }
    }
}

pub(crate) fn cost(shelf: &Shelf, picks: &[usize]) -> f64 {
    picks.iter().map(|at| shelf[*at].cost).sum()
}

fn sum(shelf: &Shelf, picks: &[usize]) -> Amounts {
    picks.iter().fold([0; 2], |sum, at| plus(sum, shelf[*at].gives))
}

/// Gives back, last pick first, what the others cover without.
fn trimmed(shelf: &Shelf, mut picks: Vec<usize>, wanted: Amounts) -> Vec<usize> {
    let mut all = sum(shelf, &picks);
    for at in (0..picks.len()).rev() {
        let without = less(all, shelf[picks[at]].gives);
        if covers(without, wanted) {
            all = without;
            picks.remove(at);
        }
    }
    picks
}

/// Last pick first: the cheapest machine that covers what would be missing without it takes its place.
fn swapped(shelf: &Shelf, mut picks: Vec<usize>, wanted: Amounts) -> Vec<usize> {
    let mut left: Vec<u64> = shelf.iter().map(|candidate| candidate.left).collect();
    for at in &picks {
        left[*at] -= 1;
    }
    let mut all = sum(shelf, &picks);
    for at in (0..picks.len()).rev() {
        let (old, without) = (picks[at], less(all, shelf[picks[at]].gives));
        let hole = less(wanted, without);
        let cheaper = (0..shelf.len()).filter(|new| {
            left[*new] > 0 && shelf[*new].cost < shelf[old].cost && covers(shelf[*new].gives, hole)
        });
        if let Some(new) = cheaper.min_by(|a, b| shelf[*a].cost.total_cmp(&shelf[*b].cost)) {
            (left[old], left[new]) = (left[old] + 1, left[new] - 1);
            all = plus(without, shelf[new].gives);
            picks[at] = new;
        }
    }
    picks
}
