//! The simplex method for one want: as many rows as dimensions, as many columns as offers, costs that change from round to round.
//!
//! It keeps its basis between rounds, so that a round costs a few passes over the columns. It may stop early or lose digits: the
//! caller takes any values for a bound and pays for those that are not feasible.

use crate::columns::Columns;

/// A column of the basis.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Basic {
    /// An offer, by its place.
    Offer(usize),
    /// More than is wanted of a dimension.
    Surplus(usize),
    /// Nothing real: where a start is missing. Dear enough to be left at once.
    Artificial(usize),
}

/// The basis of one want.
pub(super) struct Simplex {
    basis: Vec<Basic>,
    /// What of each basic column is used.
    amounts: Vec<f64>,
    /// The inverse of the basis, row by row.
    inverse: Vec<f64>,
    artificial_cost: f64,
}

/// The most pivots of one call, for each dimension.
const PIVOTS: usize = 40;
/// Smaller than this is nothing.
const EPSILON: f64 = 1e-10;

impl Simplex {
    pub(super) fn new(want: &Columns) -> Self {
        let n = want.dimensions();
        let dearest = want.costs.iter().copied().fold(1.0, f64::max);
        // The smallest amount an offer gives decides how dear a unit of a dimension can be.
        let least = want.gives.iter().copied().filter(|gives| *gives > 0.0).fold(1.0, f64::min);
        Self {
            basis: (0..n).map(Basic::Artificial).collect(),
            amounts: want.demand.clone(),
            inverse: identity(n),
            artificial_cost: 100.0 * dearest / least,
        }
    }

    /// The offers used and how much of each.
    pub(super) fn basis(&self) -> impl Iterator<Item = (usize, f64)> {
        self.basis.iter().zip(&self.amounts).filter_map(|(basic, amount)| match basic {
            Basic::Offer(place) => Some((*place, *amount)),
            _ => None,
        })
    }

    /// The value of a unit of each dimension when offers cost their scarcity price on top.
    pub(super) fn solve(&mut self, want: &Columns, scarcity: &[f64]) -> Vec<f64> {
        let n = want.dimensions();
        self.refresh(want);
        let cost = |place: usize| want.costs[place] + scarcity[want.offers[place] as usize];
        let mut values = vec![0.0; n];
        for _ in 0..PIVOTS * n {
            for (at, value) in values.iter_mut().enumerate() {
                let paid = self.basis.iter().enumerate().map(|(row, basic)| {
                    let each = match basic {
                        Basic::Offer(place) => cost(*place),
                        Basic::Surplus(_) => 0.0,
                        Basic::Artificial(_) => self.artificial_cost,
                    };
                    each * self.inverse[row * n + at]
                });
                *value = paid.sum();
            }
            let mut entering = (-EPSILON, None);
            for place in 0..want.offers.len() {
                let worth: f64 =
                    values.iter().zip(want.gives(place)).map(|(value, gives)| value * gives).sum();
                let reduced = cost(place) - worth;
                if reduced < entering.0 {
                    entering = (reduced, Some(Basic::Offer(place)));
                }
            }
            for (dimension, value) in values.iter().enumerate() {
                if *value < entering.0 {
                    entering = (*value, Some(Basic::Surplus(dimension)));
                }
            }
            let Some(entering) = entering.1 else { break };
            if !self.pivot(want, entering) {
                break;
            }
        }
        for value in &mut values {
            *value = value.max(0.0);
        }
        values
    }

    /// Brings a column into the basis; false if nothing would leave it.
    fn pivot(&mut self, want: &Columns, entering: Basic) -> bool {
        let n = want.dimensions();
        let column = self.direction(&entry(want, entering));
        let leaving = (0..n)
            .filter(|row| column[*row] > EPSILON)
            .map(|row| (row, self.amounts[row] / column[row]))
            .min_by(|a, b| a.1.total_cmp(&b.1));
        let Some((leaving, _)) = leaving else { return false };
        self.replace(leaving, &column, entering);
        self.settle(want);
        true
    }

    /// A column in terms of the basis.
    fn direction(&self, column: &[f64]) -> Vec<f64> {
        let n = column.len();
        let row = |row: usize| self.inverse[row * n..][..n].iter().zip(column).map(|(a, b)| a * b).sum();
        (0..n).map(row).collect()
    }

    /// Puts a column in the place of another and updates the inverse.
    fn replace(&mut self, leaving: usize, column: &[f64], entering: Basic) {
        let n = column.len();
        for at in 0..n {
            self.inverse[leaving * n + at] /= column[leaving];
        }
        for row in (0..n).filter(|row| *row != leaving) {
            for at in 0..n {
                self.inverse[row * n + at] -= column[row] * self.inverse[leaving * n + at];
            }
        }
        self.basis[leaving] = entering;
    }

    /// The amounts that follow from the basis.
    fn settle(&mut self, want: &Columns) {
        self.amounts = self.direction(&want.demand);
        for amount in &mut self.amounts {
            *amount = amount.max(0.0);
        }
    }

    /// Computes the inverse anew, so that rounding does not add up over rounds.
    fn refresh(&mut self, want: &Columns) {
        let n = want.dimensions();
        let basis = std::mem::replace(&mut self.basis, (0..n).map(Basic::Artificial).collect());
        self.inverse = identity(n);
        // One column after the other takes the place of the artificial one it depends on most.
        for basic in basis {
            if let Basic::Artificial(_) = basic {
                continue;
            }
            let column = self.direction(&entry(want, basic));
            let free = (0..column.len()).filter(|row| matches!(self.basis[*row], Basic::Artificial(_)));
            let place = free.max_by(|a, b| column[*a].abs().total_cmp(&column[*b].abs()));
            if let Some(place) = place.filter(|place| column[*place].abs() > EPSILON) {
                self.replace(place, &column, basic);
            }
        }
        self.settle(want);
    }
}

fn identity(n: usize) -> Vec<f64> {
    let mut matrix = vec![0.0; n * n];
    for diagonal in matrix.iter_mut().step_by(n + 1) {
        *diagonal = 1.0;
    }
    matrix
}

/// A column as it stands in the program.
fn entry(want: &Columns, basic: Basic) -> Vec<f64> {
    let unit = |dimension: usize, value: f64| {
        let mut column = vec![0.0; want.dimensions()];
        column[dimension] = value;
        column
    };
    match basic {
        Basic::Offer(place) => want.gives(place).to_vec(),
        Basic::Surplus(dimension) => unit(dimension, -1.0),
        Basic::Artificial(dimension) => unit(dimension, 1.0),
    }
}
