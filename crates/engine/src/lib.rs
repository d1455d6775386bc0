//! The decision engine.

mod action;
mod amounts;
mod bits;
mod classes;
mod compact;
mod cycle;
mod draft;
mod explain;
mod fleet;
mod holdings;
mod index;
mod intern;
mod inventory;
mod keys;
mod lots;
mod needs;
mod options;
mod paged;
mod report;
mod verdict;
mod vocab;

pub use action::{Action, ActionKind};
pub use cycle::{Decision, DomainRule, Step, Trials, Tried, Work};
pub use draft::{Draft, Leftover};
pub use explain::{
    ActionExplanation, Change, DomainChoice, DomainCoverage, Exclusion, Explainer, Filter, Funnel, Holder,
    Lent, MachineStory, Origin, Origins, Remedy, Removed, Rule, RunnerUp, Unlisted,
};
pub use fleet::{Fleet, Footprint, Parallelism};
pub use inventory::Observed;
pub use needs::{Demand, Replaced, RollupError};
pub use options::{Options, Ready};
pub use report::{Available, DomainView, Outcome, Provided, ShortNeed};
pub use verdict::Reason;

/// The edition of the decision rules this engine carries out. Records name the one they were decided under.
pub const EDITION: u32 = 2;
