//! Many scenarios in one file, one a line: what fuzzers and other engines exchange.

use std::io::BufRead;

use super::{InputError, parse, rows};
use crate::Scenario;

/// One line: a name, if it has one, and a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The `name` of the line; empty if it has none.
    pub name: String,
    /// The scenario.
    pub scenario: Scenario,
}

/// The scenarios of a file of lines; empty lines are passed over. One bad line does not end the file.
#[derive(Debug)]
pub struct Lines<R> {
    source: R,
    number: usize,
    buffer: Vec<u8>,
    broken: bool,
}

/// Reads a file with a scenario on every line.
pub fn lines<R: BufRead>(source: R) -> Lines<R> {
    Lines { source, number: 0, buffer: Vec::new(), broken: false }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<Line, InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.broken {
            self.buffer.clear();
            self.number += 1;
            match self.source.read_until(b'\n', &mut self.buffer) {
                Ok(0) => return None,
                Ok(_) if self.buffer.trim_ascii().is_empty() => {}
                Ok(_) => {
                    let line = self.number;
                    return Some(
                        read_line(&self.buffer).map_err(|e| InputError::Line { line, source: Box::new(e) }),
                    );
                }
                Err(source) => {
                    self.broken = true;
                    return Some(Err(InputError::Unreadable { line: self.number, source }));
                }
            }
        }
        None
    }
}

fn read_line(json: &[u8]) -> Result<Line, InputError> {
    let mut document = serde_json::from_slice::<rows::Document<'_>>(json)?;
    let name = document.name.take().unwrap_or_default();
    Ok(Line { name, scenario: parse::scenario(&document.into_input()?)? })
}
