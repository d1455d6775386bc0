//! Reading a template: text and actions, nested as deep as the subset allows, which is four.

use super::{Field, List, Part, TemplateError};

/// What `.` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dot {
    Top,
    Requirement,
    Value,
}

/// A range or an if that has not ended.
struct Open {
    is_range: bool,
    list: List,
    /// Where it began, for the message if it never ends.
    at: usize,
    /// What `.` was outside.
    outside: Dot,
    body: Vec<Part>,
    in_else: bool,
}

/// Ifs and ranges within one another.
const DEEPEST: usize = 16;

/// One `{{ … }}`.
struct Action<'a> {
    /// Where its braces begin.
    at: usize,
    inside: &'a str,
    trims_after: bool,
}

pub(super) fn parse(text: &str) -> Result<Vec<Part>, TemplateError> {
    let mut stack: Vec<Open> = Vec::new();
    let mut parts: Vec<Part> = Vec::new();
    let mut dot = Dot::Top;
    let mut rest = text;
    let mut trims = false;
    loop {
        let at = text.len() - rest.len();
        let Some(begin) = rest.find("{{") else {
            push_text(&mut parts, rest, trims, false);
            break;
        };
        let before = &rest[..begin];
        let action = action(text, at + begin)?;
        push_text(&mut parts, before, trims, action.1);
        let (action, end) = (action.0, action.2);
        rest = &text[end..];
        trims = action.trims_after;
        let problem = |problem: String| Err(error(text, action.at, problem));
        let words: Vec<&str> = action.inside.split_whitespace().collect();
        match words[..] {
            ["range" | "if", name] => {
                let Some(list) = list(name, dot) else {
                    return problem(format!("{} cannot be listed here", shown(name)));
                };
                if stack.len() >= DEEPEST {
                    return problem(format!("more than {DEEPEST} ranges and ifs within one another"));
                }
                let is_range = words[0] == "range";
                stack.push(Open {
                    is_range,
                    list,
                    at: action.at,
                    outside: dot,
                    body: std::mem::take(&mut parts),
                    in_else: false,
                });
                // The parts outside wait in `body` until the inside is known.
                if is_range {
                    dot = if list == List::Requirements { Dot::Requirement } else { Dot::Value };
                }
            }
            ["else"] => {
                let Some(open) = stack.last_mut().filter(|open| !open.in_else) else {
                    return problem("an else without its range or if".into());
                };
                open.in_else = true;
                dot = open.outside;
                // The body is set aside behind a marker that the end takes away again.
                let body = std::mem::take(&mut parts);
                open.body.push(Part::If(open.list, body, Vec::new()));
            }
            ["end"] => {
                let Some(mut open) = stack.pop() else {
                    return problem("an end without its range or if".into());
                };
                dot = open.outside;
                let last = std::mem::take(&mut parts);
                let (body, other) = if open.in_else {
                    let Some(Part::If(_, body, _)) = open.body.pop() else {
                        unreachable!("an else leaves its marker")
                    };
                    (body, last)
                } else {
                    (last, Vec::new())
                };
                parts = open.body;
                parts.push(if open.is_range {
                    Part::Range(open.list, body, other)
                } else {
                    Part::If(open.list, body, other)
                });
            }
            [name] => match field(name, dot) {
                Some(field) => parts.push(Part::Field(field)),
                None => return problem(format!("{} is not known here; {}", shown(name), known(dot))),
            },
            [] if action.inside.is_empty() => {}
            _ => {
                return problem(format!(
                    "{} is not in the subset of templates taken here",
                    shown(action.inside.trim())
                ));
            }
        }
    }
    match stack.pop() {
        Some(open) => {
            let what = if open.is_range { "range" } else { "if" };
            Err(error(text, open.at, format!("this {what} has no end")))
        }
        None => Ok(parts),
    }
}

/// The action at `at`; whether it trims the text before it; where it ends. A comment is an empty action.
fn action(text: &str, at: usize) -> Result<(Action<'_>, bool, usize), TemplateError> {
    let inside = &text[at + 2..];
    let (inside, trims_before) = match inside.strip_prefix('-') {
        Some(rest) if rest.starts_with([' ', '\t', '\n', '\r']) => (rest, true),
        _ => (inside, false),
    };
    let start = text.len() - inside.len();
    if let Some(comment) = inside.trim_start().strip_prefix("/*") {
        let Some(length) = comment.find("*/") else {
            return Err(error(text, at, "this comment has no end".into()));
        };
        let tail = &comment[length + 2..];
        let (tail, trims_after) = match tail.strip_prefix(" -") {
            Some(rest) => (rest, true),
            None => (tail, false),
        };
        let Some(after) = tail.strip_prefix("}}") else {
            return Err(error(text, at, "a comment stands alone between its braces".into()));
        };
        let action = Action { at, inside: "", trims_after };
        return Ok((action, trims_before, text.len() - after.len()));
    }
    let Some(length) = inside.find("}}") else {
        return Err(error(text, at, "these braces are not closed".into()));
    };
    let (mut content, mut trims_after) = (&text[start..start + length], false);
    if let Some(rest) = content.strip_suffix('-').filter(|rest| rest.ends_with([' ', '\t', '\n', '\r'])) {
        (content, trims_after) = (rest, true);
    }
    if content.trim().is_empty() {
        return Err(error(text, at, "nothing stands between these braces".into()));
    }
    Ok((Action { at, inside: content, trims_after }, trims_before, start + length + 2))
}

fn push_text(parts: &mut Vec<Part>, text: &str, trim_front: bool, trim_back: bool) {
    let text = if trim_front { text.trim_start() } else { text };
    let text = if trim_back { text.trim_end() } else { text };
    if !text.is_empty() {
        parts.push(Part::Text(text.to_owned()));
    }
}

fn list(name: &str, dot: Dot) -> Option<List> {
    match (name, dot) {
        (".Requirements", Dot::Top) => Some(List::Requirements),
        (".Values", Dot::Requirement) => Some(List::Values),
        _ => None,
    }
}

fn field(name: &str, dot: Dot) -> Option<Field> {
    match (name, dot) {
        (".ClusterID", Dot::Top) | ("$.ClusterID", _) => Some(Field::ClusterId),
        (".JoinToken", Dot::Top) | ("$.JoinToken", _) => Some(Field::JoinToken),
        (".Key", Dot::Requirement) => Some(Field::Key),
        (".Operator", Dot::Requirement) => Some(Field::Operator),
        (".Values", Dot::Requirement) => Some(Field::Values),
        (".", Dot::Value) => Some(Field::Value),
        _ => None,
    }
}

fn known(dot: Dot) -> &'static str {
    match dot {
        Dot::Top => "at the top there are .ClusterID, .JoinToken, and range or if .Requirements",
        Dot::Requirement => "inside range .Requirements there are .Key, .Operator, .Values and $.ClusterID",
        Dot::Value => "inside range .Values there are . and $.ClusterID",
    }
}

/// What stands in the template, not too much of it.
fn shown(text: &str) -> String {
    bigfleet_model::text::Quoted(text).to_string()
}

fn error(text: &str, at: usize, problem: String) -> TemplateError {
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    TemplateError::At { line, column, problem }
}
