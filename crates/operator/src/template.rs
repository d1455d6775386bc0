//! Bootstrap data for new machines, from a template.
//!
//! The template is text in a subset of Go's `text/template`, so that those written for other operators mostly work. All
//! of it is checked when it is read; what is not in the subset is refused with its line and column, and a template that
//! was taken cannot fail later. The subset:
//!
//! | form | gives |
//! |---|---|
//! | `{{ .ClusterID }}` | the cluster |
//! | `{{ .JoinToken }}` | a bootstrap token, minted for this machine |
//! | `{{ range .Requirements }} … {{ else }} … {{ end }}` | its body for each requirement, or the other if there are none |
//! | `{{ .Key }}`, `{{ .Operator }}`, `{{ .Values }}` inside it | the requirement; values as Go prints a list, `[a b]` |
//! | `{{ range .Values }} {{ . }} {{ end }}` inside it | its body for each value |
//! | `{{ if .Requirements }} … {{ else }} … {{ end }}` | one of the two; `.Values` inside the range likewise |
//! | `{{- … -}}` | the same, without the white space beside it |
//! | `{{/* … */}}` | nothing |
//!
//! Variables, pipelines, functions, `with`, `define`, `template`, `block`, `else if`, `break` and literals are refused.

mod parse;

use bigfleet_model::requirement::Requirement;
use thiserror::Error;

/// The longest template.
pub const LONGEST_TEMPLATE_BYTES: usize = 256 << 10;
/// The longest text a template may render to: providers hand it to machines as user data.
pub const LONGEST_RENDERED_BYTES: usize = 1 << 20;

/// A template that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
    wants_token: bool,
}

/// Why a template was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// Something that is not in the subset.
    #[error("line {line}, column {column}: {problem}")]
    At {
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// What is wrong.
        problem: String,
    },
    /// Too long.
    #[error("the template has {0} bytes; at most {LONGEST_TEMPLATE_BYTES} are taken")]
    TooLong(usize),
}

/// The text would be too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the bootstrap data would be longer than {LONGEST_RENDERED_BYTES} bytes")]
pub struct RenderedTooLong;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(Field),
    Range(List, Vec<Part>, Vec<Part>),
    If(List, Vec<Part>, Vec<Part>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    ClusterId,
    JoinToken,
    Key,
    Operator,
    Values,
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Requirements,
    Values,
}

/// What a template is filled with.
#[derive(Clone, Copy, Debug)]
pub struct Fill<'a> {
    /// The cluster.
    pub cluster_id: &'a str,
    /// What the machine must be like.
    pub requirements: &'a [Requirement],
    /// A token to join with; only looked at by templates that [want one](Template::wants_token).
    pub join_token: &'a str,
}

impl Template {
    /// Reads and checks a template.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        if text.len() > LONGEST_TEMPLATE_BYTES {
            return Err(TemplateError::TooLong(text.len()));
        }
        let parts = parse::parse(text)?;
        let wants_token = mentions_token(&parts);
        Ok(Self { parts, wants_token })
    }

    /// Whether it mentions `.JoinToken`.
    pub fn wants_token(&self) -> bool {
        self.wants_token
    }

    /// The bootstrap data.
    pub fn render(&self, fill: Fill<'_>) -> Result<String, RenderedTooLong> {
        let mut out = String::new();
        render(&self.parts, fill, Place::default(), &mut out)?;
        Ok(out)
    }
}

fn mentions_token(parts: &[Part]) -> bool {
    parts.iter().any(|part| match part {
        Part::Field(field) => *field == Field::JoinToken,
        Part::Range(_, body, other) | Part::If(_, body, other) => {
            mentions_token(body) || mentions_token(other)
        }
        Part::Text(_) => false,
    })
}

/// Where in which ranges we are.
#[derive(Clone, Copy, Debug, Default)]
struct Place<'a> {
    requirement: Option<&'a Requirement>,
    value: &'a str,
}

fn render<'a>(
    parts: &[Part],
    fill: Fill<'a>,
    place: Place<'a>,
    out: &mut String,
) -> Result<(), RenderedTooLong> {
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Field(field) => match (field, place.requirement) {
                (Field::ClusterId, _) => out.push_str(fill.cluster_id),
                (Field::JoinToken, _) => out.push_str(fill.join_token),
                (Field::Value, _) => out.push_str(place.value),
                (Field::Key, Some(requirement)) => out.push_str(requirement.key()),
                (Field::Operator, Some(requirement)) => out.push_str(requirement.operator().name()),
                (Field::Values, Some(requirement)) => {
                    out.push('[');
                    out.push_str(&requirement.values().join(" "));
                    out.push(']');
                }
                (Field::Key | Field::Operator | Field::Values, None) => {
                    unreachable!("the parser takes these inside a range only")
                }
            },
            Part::Range(List::Requirements, body, other) => {
                for requirement in fill.requirements {
                    render(body, fill, Place { requirement: Some(requirement), ..place }, out)?;
                }
                if fill.requirements.is_empty() {
                    render(other, fill, place, out)?;
                }
            }
            Part::Range(List::Values, body, other) => {
                let values = place.requirement.map_or(&[][..], Requirement::values);
                for value in values {
                    render(body, fill, Place { value, ..place }, out)?;
                }
                if values.is_empty() {
                    render(other, fill, place, out)?;
                }
            }
            Part::If(list, body, other) => {
                let is_empty = match list {
                    List::Requirements => fill.requirements.is_empty(),
                    List::Values => {
                        place.requirement.is_none_or(|requirement| requirement.values().is_empty())
                    }
                };
                render(if is_empty { other } else { body }, fill, place, out)?;
            }
        }
        if out.len() > LONGEST_RENDERED_BYTES {
            return Err(RenderedTooLong);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
