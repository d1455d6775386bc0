//! A bound for problems of any size: the stock is put a price on instead of being shared out.
//!
//! With a price on each offer's scarcity the wants no longer compete, and each is a program of as many rows as it has
//! dimensions, two or three. What makes the bound a bound is checked at the end of every round, whatever the steps before it did: for
//! any scarcity prices u ≥ 0 and any values y ≥ 0 of the wanted amounts,
//!
//! > Σ over wants (demand · y − Σ over offers stock × max(0, gives · y − cost − u)) − Σ stock × u
//!
//! is at most the optimum, by weak duality. Good values y come out of a small simplex method, good prices u out of the volume algorithm
//! (Barahona and Anbil, 2000): steps along the *average* of what the rounds used, which oscillates less than the last one.

mod simplex;

use simplex::Simplex;

use crate::columns::Columns;
use crate::problem::{BoundError, Problem};

/// How many rounds [`Problem::bound`](crate::Problem::bound) makes.
pub(crate) const ROUNDS: usize = 400;

/// How much of a round goes into the average.
const MIX: f64 = 0.1;
/// After so many rounds without a better bound, steps become shorter.
const PATIENCE: usize = 10;

/// The best bound of so many rounds, in dollars an hour.
pub(crate) fn solve(problem: &Problem, wants: &[Columns], rounds: usize) -> Result<f64, BoundError> {
    let stock: Vec<f64> = problem.offers.iter().map(|offer| offer.stock as f64).collect();
    let mut weights = dearest(wants, stock.len());
    // Nobody can pay more than everything costs whoever it is for: a bound above that says that there is no cover.
    let everything: f64 = weights.iter().zip(&stock).map(|(dearest, stock)| dearest * stock).sum();
    // What costs nothing is scarce all the same.
    let usual = everything / stock.iter().sum::<f64>().max(1.0);
    for weight in &mut weights {
        *weight = weight.max(usual);
    }
    let mut solvers: Vec<Simplex> = wants.iter().map(Simplex::new).collect();

    let mut scarcity = vec![0.0; stock.len()];
    let mut used = vec![0.0; stock.len()];
    let mut best = round(&mut solvers, wants, &stock, &scarcity, &mut used);
    let mut centre = Centre { scarcity: scarcity.clone(), used: used.clone() };
    let mut average = used.clone();
    let (mut target, mut length, mut waited) = (best * 1.1 + 0.01 * everything, 0.5, 0);
    for _ in 0..rounds {
        let mut steps = centre.steps(&average, &stock, &weights);
        if is_nothing(&steps, everything) {
            // On average nothing is used too much, but the average is of prices further away than it seemed: begin again from here.
            average.copy_from_slice(&centre.used);
            length *= 0.5;
            steps = centre.steps(&average, &stock, &weights);
            if is_nothing(&steps, everything) {
                break;
            }
        }
        let factor = length * (target - best) / steps.iter().map(|step| step * step).sum::<f64>();
        for (at, step) in steps.iter().enumerate() {
            scarcity[at] = (centre.scarcity[at] + factor * step * weights[at]).max(0.0);
        }
        let bound = round(&mut solvers, wants, &stock, &scarcity, &mut used);
        for (average, used) in average.iter_mut().zip(&used) {
            *average += MIX * (used - *average);
        }
        if bound > best {
            length = f64::min(length * 1.1, 2.0);
            waited = 0;
            best = bound;
            centre.scarcity.copy_from_slice(&scarcity);
            centre.used.copy_from_slice(&used);
        } else {
            waited += 1;
            if waited == PATIENCE {
                (length, waited) = (length * 0.66, 0);
            }
        }
        if best > 0.97 * target {
            target = best * 1.05;
        }
        if best > everything * (1.0 + 1e-9) {
            return Err(BoundError::Infeasible);
        }
    }
    Ok(best.max(0.0))
}

/// The prices of the best bound so far, and what was used at them.
struct Centre {
    scarcity: Vec<f64>,
    used: Vec<f64>,
}

impl Centre {
    /// Where to go from here: what is used too much becomes scarcer, what is used too little less so, each in proportion to what
    /// it costs.
    fn steps(&self, used: &[f64], stock: &[f64], weights: &[f64]) -> Vec<f64> {
        let step = |at: usize| {
            let over = (used[at] - stock[at]) * weights[at];
            if over < 0.0 && self.scarcity[at] == 0.0 { 0.0 } else { over }
        };
        (0..stock.len()).map(step).collect()
    }
}

fn is_nothing(steps: &[f64], everything: f64) -> bool {
    steps.iter().map(|step| step * step).sum::<f64>() <= f64::EPSILON * everything * everything
}

/// The dearest each offer is for any want.
fn dearest(wants: &[Columns], offers: usize) -> Vec<f64> {
    let mut dearest = vec![0.0; offers];
    for want in wants {
        for (offer, cost) in want.offers.iter().zip(&want.costs) {
            dearest[*offer as usize] = f64::max(dearest[*offer as usize], *cost);
        }
    }
    dearest
}

/// Solves every want at these scarcity prices; returns the bound and how much of each offer was used.
fn round(
    solvers: &mut [Simplex],
    wants: &[Columns],
    stock: &[f64],
    scarcity: &[f64],
    used: &mut [f64],
) -> f64 {
    used.fill(0.0);
    let mut bound = -stock.iter().zip(scarcity).map(|(stock, price)| stock * price).sum::<f64>();
    for (solver, want) in solvers.iter_mut().zip(wants) {
        let values = solver.solve(want, scarcity);
        bound += values.iter().zip(&want.demand).map(|(value, demand)| value * demand).sum::<f64>();
        for (at, (offer, cost)) in want.offers.iter().zip(&want.costs).enumerate() {
            let worth: f64 = values.iter().zip(want.gives(at)).map(|(value, gives)| value * gives).sum();
            let offer = *offer as usize;
            bound -= stock[offer] * (worth - cost - scarcity[offer]).max(0.0);
        }
        for (place, amount) in solver.basis() {
            used[want.offers[place] as usize] += amount;
        }
    }
    bound
}
