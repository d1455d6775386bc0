//! Scenarios as JSON, read and written.
//!
//! A scenario file is how a fleet leaves one process and enters another: a vector that a person reads, a case
//! that a failing test wrote down, an export of half a million machines. So reading checks everything that
//! enters and names what it refuses, and both ways go row by row without a tree of values in between.
//!
//! Three shapes are understood: the bare input, a vector file with the input under `input`, and lines that
//! each hold one of these. Fields nobody knows are passed over.
//!
//! ```
//! use bigfleet_scenario::input;
//!
//! let text = br#"{"machines": [{"id": "m1", "state": "Idle", "resources": {"cpu": "4"}}], "needs": []}"#;
//! let scenario = input::read(text).unwrap();
//! assert_eq!(scenario.machines[0].provides().to_string(), "cpu 4000m");
//!
//! let mut copy = Vec::new();
//! input::write(&mut copy, &scenario).unwrap();
//! assert_eq!(input::read(&copy).unwrap(), scenario);
//! ```

mod error;
mod layout;
mod lines;
mod parse;
mod rows;
mod write;

use serde::Deserialize;

pub use error::{FieldProblem, InputError};
pub use lines::{Line, Lines, lines};
pub use write::{write, write_line, write_vector};

use crate::{Answer, Scenario};

/// The provider named in the host of a machine that came from a file: files do not speak of hosts.
pub const SCENARIO_PROVIDER: &str = "scenario";

/// Reads one scenario: a bare input, or a vector file, whose `input` is taken.
pub fn read(json: &[u8]) -> Result<Scenario, InputError> {
    parse::scenario(&serde_json::from_slice::<rows::Document<'_>>(json)?.into_input()?)
}

/// A vector file: an input and what must be answered.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorFile {
    /// Topic and file name.
    pub name: String,
    /// One sentence: what this vector shows.
    pub what: String,
    /// The input.
    pub scenario: Scenario,
    /// The answer.
    pub expect: Answer,
}

/// Reads a vector file with its expected answer.
pub fn read_vector(json: &[u8]) -> Result<VectorFile, InputError> {
    #[derive(Deserialize)]
    struct File<'a> {
        name: String,
        what: String,
        #[serde(borrow)]
        input: rows::Input<'a>,
        expect: Answer,
    }
    let File { name, what, input, expect } = serde_json::from_slice(json)?;
    Ok(VectorFile { name, what, scenario: parse::scenario(&input)?, expect })
}
