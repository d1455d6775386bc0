//! Why something is refused, and why a store cannot be read.

use thiserror::Error;

/// Why a call is refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// A field is empty.
    #[error("{field} is missing")]
    Missing {
        /// Which.
        field: &'static str,
    },
    /// A field is too long.
    #[error("{field} has {bytes} bytes; at most {most} are taken")]
    TooLong {
        /// Which.
        field: &'static str,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        most: usize,
    },
    /// A field has letters that nobody could see.
    #[error("{field} has letters that cannot be shown")]
    Unreadable {
        /// Which.
        field: &'static str,
    },
    /// There are as many as there may be.
    #[error("there are {most} {what} already, which is the most there may be")]
    Full {
        /// Of what.
        what: &'static str,
        /// How many.
        most: usize,
    },
    /// Too many of something in one message.
    #[error("{field} has {count} entries; at most {most} are taken")]
    TooMany {
        /// Which.
        field: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// Nobody knows it.
    #[error("there is no {what} {name:?}; {remedy}")]
    Unknown {
        /// What kind of thing.
        what: &'static str,
        /// Which one.
        name: Box<str>,
        /// What to do.
        remedy: &'static str,
    },
    /// A domain has an owner.
    #[error(
        "{key}={value} belongs to shard {owner:?}; unassign it first, and it moves once that shard has let go"
    )]
    Owned {
        /// The domain's key.
        key: Box<str>,
        /// The domain's value.
        value: Box<str>,
        /// Its owner.
        owner: Box<str>,
    },
    /// Domains of two keys could overlap.
    #[error(
        "all domains of a fleet have one key, so that no machine can be in two of them: it is {in_use:?} and not {key:?}; \
         unassign the others first if it is to change"
    )]
    OtherKey {
        /// What was asked for.
        key: Box<str>,
        /// What is in use.
        in_use: Box<str>,
    },
    /// A shard is being removed.
    #[error("shard {shard:?} is being removed; register it again when that has ended")]
    Leaving {
        /// Which.
        shard: Box<str>,
    },
    /// A machine is on its way already.
    #[error("machine {machine:?} is being handed over already; try again when that is done")]
    Moving {
        /// Which.
        machine: Box<str>,
    },
    /// A machine was handed over a short while ago.
    #[error("machine {machine:?} was handed over {ago_secs} s ago; it stays for {rest_secs} s")]
    Rests {
        /// Which.
        machine: Box<str>,
        /// How long ago.
        ago_secs: i64,
        /// How long it stays.
        rest_secs: i64,
    },
    /// Something else is wrong with a field.
    #[error("{field} {problem}")]
    Wrong {
        /// Which.
        field: &'static str,
        /// What about it.
        problem: &'static str,
    },
}

/// Why what is in a store is not a fleet. Nobody leads before somebody has looked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LoadError {
    /// A key of nobody.
    #[error("the store has a key {0:?} that is none of ours")]
    Key(String),
    /// A value that cannot be read.
    #[error("the value of {key:?} cannot be read: {problem}")]
    Value {
        /// Of which key.
        key: String,
        /// Why not.
        problem: String,
    },
    /// A value under the key of another.
    #[error("the value of {key:?} belongs under {belongs:?}")]
    Misplaced {
        /// Where it is.
        key: String,
        /// Where it belongs.
        belongs: String,
    },
    /// Written by a newer build.
    #[error("the store is of edition {0}; this build knows {EDITION} and must not lead on it", EDITION = crate::EDITION)]
    Newer(u32),
}
