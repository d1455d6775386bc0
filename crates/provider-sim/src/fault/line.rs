//! Reading faults: `KIND [WORD | NAME=WORD].. [--for SPAN] [--after SPAN]`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use bigfleet_model::text::Quoted;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Fault;
use super::kind::{KINDS, KindInfo, Param, Shape, Value};
use crate::span::{Span, SpanError};
use crate::suggest::{nearest, perhaps};

/// The longest line that is read.
const LENGTH_LIMIT_BYTES: usize = 4096;

/// Why a line is no fault.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FaultError {
    /// Nothing but space.
    #[error("no fault is named; write one like: zone-outage zone-b --for 10m")]
    Empty,
    /// More than anybody would type.
    #[error("the fault has {0} bytes; at most {LENGTH_LIMIT_BYTES} are allowed")]
    TooLong(usize),
    /// No such kind.
    #[error("there is no fault {}{}; kinds are {}", Quoted(.name), perhaps(.suggestion.as_deref()), names())]
    UnknownKind {
        /// What was written.
        name: String,
        /// What was perhaps meant.
        suggestion: Option<String>,
    },
    /// No such word.
    #[error("{kind} takes no {}{}; write {usage}", Quoted(.name), perhaps(.suggestion.as_deref()))]
    UnknownWord {
        /// The kind.
        kind: &'static str,
        /// What was written.
        name: String,
        /// What was perhaps meant.
        suggestion: Option<String>,
        /// How it is typed.
        usage: String,
    },
    /// A word that must be there is not.
    #[error("{kind} needs a {param}; write {usage}")]
    Missing {
        /// The kind.
        kind: &'static str,
        /// The word.
        param: &'static str,
        /// How it is typed.
        usage: String,
    },
    /// The same word twice.
    #[error("{kind} has {param} twice; give it once")]
    Twice {
        /// The kind.
        kind: &'static str,
        /// The word.
        param: String,
    },
    /// A word that is not of its shape.
    #[error("{kind}: {param} cannot be {}: {reason}", Quoted(.value))]
    Value {
        /// The kind.
        kind: &'static str,
        /// The word.
        param: &'static str,
        /// What was written.
        value: String,
        /// What it should be.
        reason: String,
    },
    /// An option that does not exist.
    #[error("there is no option {}; a fault takes --for SPAN and --after SPAN", Quoted(.0))]
    UnknownOption(String),
    /// An option without its span.
    #[error("{0} needs a span of time, such as 10m")]
    NoSpan(String),
    /// An option with something that is no span.
    #[error("{option}: {source}")]
    Span {
        /// Which option.
        option: String,
        /// What is wrong.
        source: SpanError,
    },
    /// A fault that is over at once cannot last.
    #[error("{0} happens once and does not last; leave --for out")]
    Lasting(&'static str),
}

fn names() -> String {
    KINDS.map(|info| info.name).join(", ")
}

/// A fault, when it begins and how long it lasts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Line {
    /// What goes wrong.
    pub fault: Fault,
    /// How long from now.
    pub after: Span,
    /// For how long; until it is lifted, if nothing is said.
    pub lasts: Option<Span>,
}

impl Line {
    /// Reads the words of a line, as a command line gives them.
    pub fn from_words<S: AsRef<str>>(words: &[S]) -> Result<Self, FaultError> {
        let mut words = words.iter().map(AsRef::as_ref);
        let name = words.next().ok_or(FaultError::Empty)?;
        let info = KINDS.iter().find(|info| info.name == name).ok_or_else(|| {
            let suggestion = nearest(name, KINDS.iter().map(|info| info.name));
            FaultError::UnknownKind { name: name.into(), suggestion }
        })?;
        let mut given: BTreeMap<&'static str, Value> = BTreeMap::new();
        let (mut after, mut lasts) = (Span::default(), None);
        while let Some(word) = words.next() {
            if let Some(option) = word.strip_prefix("--") {
                let (option, span) = match option.split_once('=') {
                    Some((option, span)) => (option, Some(span)),
                    None => (option, None),
                };
                if !["for", "after"].contains(&option) {
                    return Err(FaultError::UnknownOption(word.into()));
                }
                let option_name = format!("--{option}");
                let span =
                    span.or_else(|| words.next()).ok_or_else(|| FaultError::NoSpan(option_name.clone()))?;
                let span = span.parse().map_err(|source| FaultError::Span { option: option_name, source })?;
                if option == "for" {
                    lasts = Some(span);
                } else {
                    after = span;
                }
                continue;
            }
            let (param, text) = addressed(info, &given, word)?;
            if given.insert(param.name, value(info, param, text)?).is_some() {
                return Err(FaultError::Twice { kind: info.name, param: param.name.into() });
            }
        }
        if info.once && lasts.is_some() {
            return Err(FaultError::Lasting(info.name));
        }
        for param in info.params {
            if !given.contains_key(param.name) {
                let missing =
                    || FaultError::Missing { kind: info.name, param: param.name, usage: info.usage() };
                given.insert(param.name, value(info, param, param.default.ok_or_else(missing)?)?);
            }
        }
        Ok(Self { fault: Fault { kind: info.kind, values: given }, after, lasts })
    }
}

/// Which parameter a word is for, and its text: by name, or the next bare one.
fn addressed<'a>(
    info: &'static KindInfo,
    given: &BTreeMap<&'static str, Value>,
    word: &'a str,
) -> Result<(&'static Param, &'a str), FaultError> {
    let unknown = |name: &str| FaultError::UnknownWord {
        kind: info.name,
        name: name.into(),
        suggestion: nearest(name, info.params.iter().map(|param| param.name)),
        usage: info.usage(),
    };
    if let Some((name, text)) = word.split_once('=') {
        let param = info.params.iter().find(|param| param.name == name).ok_or_else(|| unknown(name))?;
        return Ok((param, text));
    }
    let bare = info.params.iter().find(|param| param.bare && !given.contains_key(param.name));
    Ok((bare.ok_or_else(|| unknown(word))?, word))
}

fn value(info: &KindInfo, param: &'static Param, text: &str) -> Result<Value, FaultError> {
    let wrong =
        |reason: String| FaultError::Value { kind: info.name, param: param.name, value: text.into(), reason };
    match param.shape {
        Shape::Text if text.is_empty() => Err(wrong("it is empty".into())),
        Shape::Text => Ok(Value::Text(text.into())),
        Shape::OneOf(names) if names.contains(&text) => Ok(Value::Text(text.into())),
        Shape::OneOf(names) => Err(wrong(format!("it is one of {}", names.join(", ")))),
        Shape::Span => text.parse().map(Value::Span).map_err(|error: SpanError| wrong(error.to_string())),
        Shape::Number(least, most) => {
            let number: f64 = text.parse().map_err(|_| wrong("it is no number".into()))?;
            if !(least..=most).contains(&number) {
                return Err(wrong(format!("it must be between {least} and {most}")));
            }
            Ok(Value::Number(number))
        }
    }
}

impl FromStr for Line {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        if text.len() > LENGTH_LIMIT_BYTES {
            return Err(FaultError::TooLong(text.len()));
        }
        Self::from_words(&text.split_whitespace().collect::<Vec<_>>())
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fault)?;
        if let Some(lasts) = self.lasts {
            write!(f, " --for {lasts}")?;
        }
        if self.after > Span::default() {
            write!(f, " --after {}", self.after)?;
        }
        Ok(())
    }
}

impl TryFrom<String> for Line {
    type Error = FaultError;

    fn try_from(text: String) -> Result<Self, FaultError> {
        text.parse()
    }
}

impl From<Line> for String {
    fn from(line: Line) -> Self {
        line.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Kind;

    fn line(text: &str) -> Line {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn lines_read_and_print() {
        for (text, printed) in [
            ("zone-outage zone-b --for 10m", "zone-outage zone=zone-b --for 10m"),
            ("zone-outage --for=10m zone=zone-b --after 5s", "zone-outage zone=zone-b --for 10m --after 5s"),
            ("api-outage", "api-outage"),
            ("api-outage p=1", "api-outage"),
            ("fail create p=0.5 zone=zone-a", "fail move=create p=0.5 zone=zone-a"),
            ("stock-out train-96 zone-c", "stock-out type=train-96 zone=zone-c"),
            ("stock-out", "stock-out"),
            ("clock-skew -90", "clock-skew secs=-90"),
            ("stale-list by=5m", "stale-list by=5m"),
            ("host-loss count=3 rack=zone-a-rack-001", "host-loss count=3 rack=zone-a-rack-001"),
        ] {
            assert_eq!(line(text).to_string(), printed);
            assert_eq!(line(printed), line(text));
        }
        assert_eq!(line("slow configure").fault.kind(), Kind::Slow);
        assert_eq!(line("slow configure").fault.number("factor"), 5.0);
    }

    #[test]
    fn every_kind_is_complete_and_can_be_typed() {
        for info in &KINDS {
            let needed: Vec<&str> = info.params.iter().filter(|p| p.default.is_none()).map(|_| "x").collect();
            let text = format!("{} {}", info.name, needed.join(" "));
            assert_eq!(line(&text).fault.kind().info().name, info.name);
        }
    }

    #[test]
    fn bad_lines_say_what_to_write() {
        for (text, words) in [
            ("", "no fault is named"),
            ("zone-outge zone-b", "perhaps \"zone-outage\"?"),
            ("earthquake", "kinds are zone-outage, api-outage"),
            ("zone-outage", "zone-outage needs a zone; write zone-outage ZONE"),
            ("zone-outage a b", "takes no \"b\""),
            ("zone-outage zon=a", "perhaps \"zone\"?"),
            ("zone-outage zone=", "it is empty"),
            ("zone-outage a zone=b", "zone twice"),
            ("zone-outage a --for", "--for needs a span"),
            ("zone-outage a --for soon", "--for: \"soon\" is no span"),
            ("zone-outage a --until 5m", "no option \"--until\""),
            ("fail creat", "one of *, create"),
            ("api-outage p=2", "between 0 and 1"),
            ("api-outage p=often", "no number"),
            ("api-outage p=NaN", "between 0 and 1"),
            ("stale-list by=x", "no span"),
            ("host-loss --for 5m", "happens once"),
        ] {
            let error = text.parse::<Line>().expect_err(text).to_string();
            assert!(error.contains(words), "{text:?}: {error}");
        }
        let long = format!("api-outage {}", "x".repeat(5000));
        assert_eq!(long.parse::<Line>(), Err(FaultError::TooLong(5011)));
    }
}
