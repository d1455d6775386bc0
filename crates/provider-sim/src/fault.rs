//! Faults: what can be made to go wrong, while it runs, and lifted again.
//!
//! A fault is one line, the same on the command line, in the admin API and in a scenario file:
//! `zone-outage zone-b --for 10m`. The table in `fault/kind.rs` says which kinds there are, which words each
//! takes and what they are if left out; reading, printing and documenting go by that table alone.

mod board;
mod kept;
mod kind;
mod line;

pub use board::{Board, BoardError, Entry, Status};
pub use kept::KeptError;
pub(crate) use kept::KeptFaults;
pub use kind::{KINDS, Kind, KindInfo, Param, Value, markdown};
pub use line::{FaultError, Line};

use std::collections::BTreeMap;
use std::fmt;

use bigfleet_provider_kit::{Machine, OperationKind};

use crate::inventory::RACK_LABEL;
use crate::span::Span;

/// One fault with all its words, also those left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    kind: Kind,
    values: BTreeMap<&'static str, Value>,
}

impl Fault {
    /// What goes wrong.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it concerns this machine: every word about place must fit or be `*`.
    pub fn concerns(&self, machine: &Machine) -> bool {
        let rack = machine.labels.get(RACK_LABEL).map_or("", String::as_str);
        self.fits("machine", &machine.id)
            && self.fits("rack", rack)
            && self.covers(&machine.instance_type, &machine.zone)
    }

    /// Whether it concerns machines of this type in this zone.
    pub fn covers(&self, instance_type: &str, zone: &str) -> bool {
        self.fits("type", instance_type) && self.fits("zone", zone)
    }

    /// Whether it concerns this move.
    pub fn concerns_move(&self, kind: OperationKind) -> bool {
        self.fits("move", &kind.name().to_lowercase())
    }

    /// A text among its words; none if the kind has none of that name.
    pub fn text(&self, word: &str) -> Option<&str> {
        match self.values.get(word) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn fits(&self, word: &str, text: &str) -> bool {
        match self.values.get(word) {
            Some(Value::Text(wanted)) => wanted == "*" || wanted == text,
            _ => true,
        }
    }

    /// A number among its words; 0 if the kind has none of that name.
    pub fn number(&self, word: &str) -> f64 {
        match self.values.get(word) {
            Some(Value::Number(number)) => *number,
            _ => 0.0,
        }
    }

    /// A span among its words; none if the kind has none of that name.
    pub fn span(&self, word: &str) -> Span {
        match self.values.get(word) {
            Some(Value::Span(span)) => *span,
            _ => Span::default(),
        }
    }
}

/// As it would be typed: the kind, and every word that differs from what it is if left out.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.kind.info();
        f.write_str(info.name)?;
        for param in info.params {
            let value = &self.values[param.name];
            if param.default != Some(value.to_string().as_str()) {
                write!(f, " {}={value}", param.name)?;
            }
        }
        Ok(())
    }
}
