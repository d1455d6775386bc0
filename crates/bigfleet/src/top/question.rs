//! What a screen has to ask the shard beyond the watched summary, and the answers.

use bigfleet_view::v1::{
    ClusterExplanation, Decision, DecisionExplanation, Machine, MachineExplanation, Need, NeedExplanation,
};

use super::filter::{Filter, Pair, decisions_request, machines_request, needs_request};
use super::screen::{Place, Screen};

/// A question. Two places with the same question share its answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Question {
    Needs(Vec<Pair>),
    Machines(Vec<Pair>),
    Decisions(Vec<Pair>),
    Cluster(String),
    Need(String),
    Machine(String),
    Decision { cycle: u64, machine: String },
}

impl Question {
    /// What this place asks; nothing if the summary has it all, or if its filter makes no sense.
    pub(crate) fn of(place: &Place) -> Option<Self> {
        if problem(place).is_some() {
            return None;
        }
        let pairs = || Filter::read(&place.filter).pairs;
        match &place.screen {
            Screen::Fleet | Screen::Help => None,
            Screen::Needs => Some(Self::Needs(pairs())),
            Screen::Machines => Some(Self::Machines(pairs())),
            Screen::Decisions => Some(Self::Decisions(pairs())),
            Screen::Cluster(name) => Some(Self::Cluster(name.clone())),
            Screen::Need(id) => Some(Self::Need(id.clone())),
            Screen::Machine(id) => Some(Self::Machine(id.clone())),
            Screen::Decision { cycle, machine } => {
                Some(Self::Decision { cycle: *cycle, machine: machine.clone() })
            }
        }
    }

    /// How old an answer may be before a new cycle makes it worth asking again. Explanations cost the server a search
    /// for remedies, and a decision that was made stays as it is.
    pub(crate) fn refresh_nanos(&self) -> i64 {
        const SECOND: i64 = 1_000_000_000;
        match self {
            Self::Needs(_) | Self::Machines(_) | Self::Decisions(_) => 2 * SECOND,
            Self::Cluster(_) | Self::Need(_) | Self::Machine(_) => 4 * SECOND,
            Self::Decision { .. } => i64::MAX,
        }
    }
}

/// What is wrong with the filter of a place.
pub(crate) fn problem(place: &Place) -> Option<String> {
    let pairs = Filter::read(&place.filter).pairs;
    match &place.screen {
        Screen::Needs => needs_request(&pairs).err(),
        Screen::Machines => machines_request(&pairs).err(),
        Screen::Decisions => decisions_request(&pairs).err(),
        Screen::Fleet if !pairs.is_empty() => {
            Some("this screen is filtered by words; key=value works on the others".into())
        }
        _ => None,
    }
}

/// An answer to a [`Question`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Needs {
        needs: Vec<Need>,
        /// That pass the filter.
        total: u64,
    },
    Machines {
        machines: Vec<Machine>,
        /// There are, filter or not.
        known: u64,
    },
    Decisions(Vec<Decision>),
    Cluster(Box<ClusterExplanation>),
    Need(Box<NeedExplanation>),
    Machine(Box<MachineExplanation>),
    Decision(Box<DecisionExplanation>),
}
