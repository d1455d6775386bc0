//! The program itself, given to the solver.

use microlp::{ComparisonOp, Error, LinearExpr, OptimizationDirection, Variable};

use crate::columns::Columns;
use crate::problem::{BoundError, Problem};

/// The optimum in dollars an hour.
pub(crate) fn solve(problem: &Problem, wants: &[Columns]) -> Result<f64, BoundError> {
    let mut program = microlp::Problem::new(OptimizationDirection::Minimize);
    let mut users: Vec<Vec<Variable>> = vec![Vec::new(); problem.offers.len()];
    for want in wants {
        let variables: Vec<Variable> = want
            .offers
            .iter()
            .zip(&want.costs)
            .map(|(offer, cost)| {
                let stock = problem.offers[*offer as usize].stock as f64;
                let variable = program.add_var(*cost, (0.0, stock));
                users[*offer as usize].push(variable);
                variable
            })
            .collect();
        for (dimension, demand) in want.demand.iter().enumerate() {
            let given =
                variables.iter().enumerate().map(|(at, variable)| (*variable, want.gives(at)[dimension]));
            let given: LinearExpr = given.filter(|(_, amount)| *amount > 0.0).collect();
            program.add_constraint(given, ComparisonOp::Ge, *demand);
        }
    }
    for (offer, users) in problem.offers.iter().zip(users) {
        // The bound of a variable says the same where one want alone may use the offer.
        if users.len() > 1 {
            let all: LinearExpr = users.into_iter().map(|variable| (variable, 1.0)).collect();
            program.add_constraint(all, ComparisonOp::Le, offer.stock as f64);
        }
    }
    let solved = program.solve().map_err(|error| match error {
        Error::Infeasible => BoundError::Infeasible,
        other => BoundError::Solver(other.to_string()),
    })?;
    let solution =
        solved.into_solution().map_err(|_| BoundError::Solver("no limit was set, yet it stopped".into()))?;
    Ok(solution.objective())
}
