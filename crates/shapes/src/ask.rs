//! Asks: needs on the drawing board, before their amounts are settled.
//!
//! One ask is one row of demand, or several gang rows that are equal but for their group: small gangs of one
//! profile and size, which a cycle folds into one need.

use std::sync::Arc;

use bigfleet_model::need::Need;
use bigfleet_model::profile::Profile;
use bigfleet_model::stamp::Assignment;

use crate::amount::Amount;
use crate::place::RACK;
use crate::settled;

/// How an ask's rows meet the cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One row without `Same`.
    Plain,
    /// Rows with `Same`, each small enough for one machine: the cycle folds them into one plain need.
    Folded,
    /// One row with `Same`, larger than any one machine.
    Gang,
}

/// A need on the drawing board.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) cluster: u32,
    pub(crate) set: u32,
    pub(crate) form: Form,
    /// The profile of the rows.
    pub(crate) profile: Arc<Profile>,
    /// The profile machines are bound for: that of the rows after folding.
    pub(crate) served_as: Arc<Profile>,
    /// How many rows; more than one only when folded.
    pub(crate) rows: u32,
    /// The number of the first row's gang.
    pub(crate) first_gang: u32,
    pub(crate) first_seen_unix_nanos: i64,
    /// The indivisible piece.
    pub(crate) unit: Amount,
    /// Pieces per row; a plain ask gets its number when it is settled.
    pub(crate) count: u64,
    /// Whether machines are bound for it.
    pub(crate) served: bool,
    /// How many machines it attracts, relative to others.
    pub(crate) weight: f64,
}

impl Ask {
    /// What each machine used for it must hold.
    pub(crate) fn piece(&self) -> Amount {
        if self.form == Form::Folded { self.unit.times(self.count) } else { self.unit }
    }

    /// Everything it asks for.
    pub(crate) fn total(&self) -> Amount {
        self.unit.times(self.count * u64::from(self.rows))
    }

    /// The gang's name of row `row`, as operators spell it: key, NUL, selector. Empty without `Same`.
    pub(crate) fn group(&self, row: u32) -> Arc<str> {
        match self.form {
            Form::Plain => "".into(),
            Form::Folded | Form::Gang => format!("{RACK}\0job=gang-{:06},;", self.first_gang + row).into(),
        }
    }

    /// The stamp of a machine bound for it.
    pub(crate) fn stamp(&self, cluster: &Arc<str>) -> Assignment {
        let group = if self.form == Form::Gang { self.group(0) } else { "".into() };
        settled::stamp(cluster, &self.served_as, &group)
    }

    /// Its rows.
    pub(crate) fn needs(&self, cluster: &Arc<str>) -> impl Iterator<Item = Need> {
        (0..self.rows).map(move |row| Need {
            cluster: cluster.clone(),
            profile: self.profile.clone(),
            group: self.group(row),
            aggregate: self.unit.times(self.count).to_vec(),
            min_unit: self.unit.to_vec(),
            first_seen_unix_nanos: self.first_seen_unix_nanos,
            parked: false,
        })
    }
}
