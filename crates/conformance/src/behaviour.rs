//! What a behaviour is, and how a check of one is written down.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::context::Context;
use crate::verdict::Verdict;

/// One thing a provider must do, or must do if it offers the feature at all.
#[derive(Clone, Copy, Debug)]
pub struct Behaviour {
    /// Its name for ever, such as `FENCE-006`. Never given to something else.
    pub id: &'static str,
    /// Where it belongs.
    pub group: Group,
    /// Whether every provider must show it.
    pub level: Level,
    /// A few words.
    pub title: &'static str,
    /// What is looked at.
    pub checks: &'static str,
    /// What goes wrong in a fleet whose provider lacks it.
    pub failure_means: &'static str,
    /// Where the contract says so.
    pub contract: &'static str,
}

/// Whether every provider must show a behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Every provider.
    Core,
    /// Providers that offer the feature; the others have it skipped.
    Optional,
}

impl Level {
    /// As it is written in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Optional => "optional",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a group of behaviours is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// The way of a machine from slot to node and back.
    Life,
    /// Moves that must be refused, and how.
    Move,
    /// Who is let through, by token.
    Fence,
    /// Repeated and racing calls.
    Idem,
    /// The shard's notes, given back unread.
    Meta,
    /// Listing, filters and revisions.
    List,
    /// The shape of a machine's record.
    Field,
    /// Prices and probabilities.
    Cost,
    /// Hostile and odd input.
    Input,
    /// Health and reflection services.
    Health,
    /// Machines that break.
    Fault,
    /// Many machines at once.
    Scale,
    /// The same for a while.
    Soak,
    /// Random calls held against a model.
    Model,
    /// What a restart must not lose.
    Dur,
}

impl Group {
    /// All of them, in the order in which they are run and shown.
    pub const ALL: [Self; 15] = [
        Self::Life,
        Self::Move,
        Self::Fence,
        Self::Idem,
        Self::Meta,
        Self::List,
        Self::Field,
        Self::Cost,
        Self::Input,
        Self::Health,
        Self::Fault,
        Self::Scale,
        Self::Soak,
        Self::Model,
        Self::Dur,
    ];

    /// The first part of its behaviours' ids.
    pub fn name(self) -> &'static str {
        match self {
            Self::Life => "LIFE",
            Self::Move => "MOVE",
            Self::Fence => "FENCE",
            Self::Idem => "IDEM",
            Self::Meta => "META",
            Self::List => "LIST",
            Self::Field => "FIELD",
            Self::Cost => "COST",
            Self::Input => "INPUT",
            Self::Health => "HEALTH",
            Self::Fault => "FAULT",
            Self::Scale => "SCALE",
            Self::Soak => "SOAK",
            Self::Model => "MODEL",
            Self::Dur => "DUR",
        }
    }

    /// What it is about.
    pub fn about(self) -> &'static str {
        match self {
            Self::Life => "the way of a machine from slot to node and back",
            Self::Move => "moves that must be refused, and how",
            Self::Fence => "who is let through, by token",
            Self::Idem => "repeated and racing calls",
            Self::Meta => "the shard's notes, given back unread",
            Self::List => "listing, filters and revisions",
            Self::Field => "the shape of a machine's record",
            Self::Cost => "prices and probabilities",
            Self::Input => "hostile and odd input",
            Self::Health => "health and reflection services",
            Self::Fault => "machines that break",
            Self::Scale => "many machines at once",
            Self::Soak => "the same for a while",
            Self::Model => "random calls held against a model",
            Self::Dur => "what a restart must not lose",
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Whether a check minds others at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It looks at its own machines only.
    Beside,
    /// It looks at the whole inventory, or restarts the provider.
    Alone,
}

pub(crate) type Running = Pin<Box<dyn Future<Output = Verdict> + Send>>;

/// A behaviour and the function that tries it.
#[derive(Clone, Copy)]
pub(crate) struct Check {
    pub(crate) behaviour: Behaviour,
    pub(crate) manner: Manner,
    pub(crate) run: fn(Context) -> Running,
}

/// Writes down the checks of a group:
/// `"ID" Level Manner "title" => function(arguments): "what is checked", "what a failure means", "section";`
macro_rules! checks {
    ($group:ident: $($id:literal $level:ident $manner:ident $title:literal => $run:ident($($argument:expr),*):
        $checks:literal, $means:literal, $contract:literal;)*) => {
        pub(crate) const CHECKS: &[$crate::behaviour::Check] = &[$($crate::behaviour::Check {
            behaviour: $crate::behaviour::Behaviour {
                id: $id,
                group: $crate::behaviour::Group::$group,
                level: $crate::behaviour::Level::$level,
                title: $title,
                checks: $checks,
                failure_means: $means,
                contract: $contract,
            },
            manner: $crate::behaviour::Manner::$manner,
            run: |context| Box::pin($run(context, $($argument),*)),
        }),*];
    };
}
pub(crate) use checks;
