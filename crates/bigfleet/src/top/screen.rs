//! What can be looked at, and where in it the reader is.

use crate::words;

/// One screen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Screen {
    /// Supply, clusters, unmet needs and what is being decided.
    Fleet,
    Needs,
    Machines,
    Decisions,
    /// One cluster.
    Cluster(String),
    /// One need, by its long id.
    Need(String),
    /// One machine.
    Machine(String),
    /// What one cycle decided about one machine.
    Decision {
        cycle: u64,
        machine: String,
    },
    Help,
}

/// The screens with a number key.
pub(crate) const TABS: [Screen; 4] = [Screen::Fleet, Screen::Needs, Screen::Machines, Screen::Decisions];

impl Screen {
    /// What it is called.
    pub(crate) fn title(&self) -> String {
        match self {
            Self::Fleet => "Fleet".into(),
            Self::Needs => "Needs".into(),
            Self::Machines => "Machines".into(),
            Self::Decisions => "Decisions".into(),
            Self::Cluster(name) => format!("cluster {name}"),
            Self::Need(id) => format!("need {}", id.get(..8).unwrap_or(id)),
            Self::Machine(id) => format!("machine {id}"),
            Self::Decision { cycle, machine } => format!("decision {}/{machine}", words::thousands(*cycle)),
            Self::Help => "help".into(),
        }
    }

    /// The orders `s` goes through, by name; the first is that of the server.
    pub(crate) fn sorts(&self) -> &'static [&'static str] {
        match self {
            Self::Fleet => &["name", "$/h", "machines", "unmet"],
            Self::Needs => &["precedence", "short first", "$/h", "cluster", "age"],
            Self::Machines => &["id", "$/h", "state", "cluster", "type"],
            Self::Decisions => &["newest", "$/h", "cluster", "action", "machine"],
            _ => &[],
        }
    }

    /// Whether `/` means anything here.
    pub(crate) fn filters(&self) -> bool {
        !self.sorts().is_empty()
    }
}

/// A screen, with the reader's place in it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) screen: Screen,
    /// Which stop the cursor is at, if [`Self::key`] is not there.
    pub(crate) cursor: usize,
    /// The row the cursor stays with when rows come and go; none at the top, so that the top shows what is new.
    pub(crate) key: Option<String>,
    /// As typed.
    pub(crate) filter: String,
    /// An index into [`Screen::sorts`].
    pub(crate) sort: usize,
    pub(crate) reversed: bool,
}

impl Place {
    /// At the top of a screen.
    pub(crate) fn at(screen: Screen) -> Self {
        Self { screen, cursor: 0, key: None, filter: String::new(), sort: 0, reversed: false }
    }
}
