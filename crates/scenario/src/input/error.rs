//! Why a scenario was refused: which row, which field, what is wrong and what to do about it.

use thiserror::Error;

use bigfleet_model::label::LabelError;
use bigfleet_model::machine::MachineProblem;
use bigfleet_model::penalty::PenaltyError;
use bigfleet_model::requirement::RequirementError;
use bigfleet_model::resource::ResourceError;
use bigfleet_model::text::Quoted;

/// Why a scenario was refused.
#[derive(Debug, Error)]
pub enum InputError {
    /// Not JSON, or JSON of another shape.
    #[error("this is not a scenario: {0}; tests/vectors/README.md lists the fields")]
    Json(#[from] serde_json::Error),
    /// An object, but nothing of a scenario in it.
    #[error("there is neither `input` nor `machines` nor `needs`; give the fleet and the demand")]
    NoInput,
    /// A line of a file of lines.
    #[error("line {line}: {source}")]
    Line {
        /// Which line, counted from 1.
        line: usize,
        /// What is wrong with it.
        source: Box<InputError>,
    },
    /// The source of lines could not be read.
    #[error("line {line} could not be read: {source}")]
    Unreadable {
        /// Which line, counted from 1.
        line: usize,
        /// What the source said.
        source: std::io::Error,
    },
    /// A machine.
    #[error("machine {} (entry {index}), `{field}`: {problem}", Quoted(.id))]
    Machine {
        /// Where it stands in `machines`, counted from 0.
        index: usize,
        /// Its id.
        id: String,
        /// The field at fault.
        field: &'static str,
        /// What is wrong.
        problem: FieldProblem,
    },
    /// A need.
    #[error("need {index} (cluster {}), `{field}`: {problem}", Quoted(.cluster))]
    Need {
        /// Where it stands in `needs`, counted from 0.
        index: usize,
        /// The cluster that asks.
        cluster: String,
        /// The field at fault.
        field: &'static str,
        /// What is wrong.
        problem: FieldProblem,
    },
}

/// What can be wrong with a field.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FieldProblem {
    /// A word outside a fixed list.
    #[error("{} is unknown; use one of {}", Quoted(.value), .known.join(", "))]
    UnknownWord {
        /// What stands there.
        value: String,
        /// What may stand there.
        known: Vec<&'static str>,
    },
    /// Labels.
    #[error(transparent)]
    Labels(#[from] LabelError),
    /// Amounts.
    #[error(transparent)]
    Amounts(#[from] ResourceError),
    /// A requirement.
    #[error(transparent)]
    Requirement(#[from] RequirementError),
    /// A penalty bucket.
    #[error(transparent)]
    Penalty(#[from] PenaltyError),
    /// A rule every machine record must meet.
    #[error("{0}; correct the record")]
    Record(MachineProblem),
    /// A pointer to a need that is not there.
    #[error("points at need {need}, but the file has {count}; needs are counted from 0")]
    NoSuchNeed {
        /// Where it points.
        need: u64,
        /// How many needs there are.
        count: usize,
    },
    /// An identity used twice.
    #[error("has the same identity as entry {first}; merge the two or rename one")]
    Duplicate {
        /// Where it was used first.
        first: usize,
    },
    /// Something that must be said.
    #[error("is missing or empty; say it")]
    Missing,
    /// Parked without `Same`.
    #[error("is set, but only a need with a `Same` requirement can be parked; remove one or add the other")]
    ParkedWithoutSame,
}
