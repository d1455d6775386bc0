//! A roll-up that was made ready beside the core thread: whoever reads it prepares it, and the shard only puts it in place.
//!
//! Everything that takes as long as there are rows, amounts or bytes happens here, on whichever thread reads the roll-up:
//! rows are merged and put in order, profiles are checked, amounts are summed, names are listed, texts become numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_engine::{Draft, RollupError};
use bigfleet_model::need::Need;
use bigfleet_model::resource::{MAX_AMOUNT, ResourceName};

use crate::names::Mentioned;
use crate::profiles::fingerprint_hash;

/// A roll-up that could be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollup {
    /// The cluster it says it is of.
    pub cluster: Arc<str>,
    /// When the cluster took stock, by its own clock.
    pub taken_unix_nanos: i64,
    /// The rows, not stamped, in any order.
    pub needs: Vec<Need>,
}

/// How much is asked for in all, by name.
pub(crate) type Totals = BTreeMap<ResourceName, u64>;

/// A roll-up that was checked, merged, summed and put into numbers.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) cluster: Arc<str>,
    pub(crate) taken_unix_nanos: i64,
    /// By identity.
    pub(crate) needs: Arc<[Need]>,
    /// The same rows as the engine takes them.
    pub(crate) draft: Draft,
    /// Hashes of the rows' profiles.
    pub(crate) profiles: Box<[u64]>,
    pub(crate) mentioned: Mentioned,
    pub(crate) totals: Arc<Totals>,
}

impl Rollup {
    /// Makes it ready to be put in place, or refuses it. Takes time, on the thread it is called on.
    pub fn prepare(self) -> Result<Prepared, RollupError> {
        let Self { cluster, taken_unix_nanos, needs } = self;
        let draft = Draft::new(&cluster, needs)?;
        let needs: Arc<[Need]> = draft.needs().cloned().collect();
        Ok(Prepared {
            profiles: needs.iter().map(|need| fingerprint_hash(&need.profile)).collect(),
            mentioned: Mentioned::in_rows(&needs),
            totals: Arc::new(totals(&needs)),
            cluster,
            taken_unix_nanos,
            needs,
            draft,
        })
    }
}

impl Prepared {
    /// The cluster it says it is of.
    pub fn cluster(&self) -> &Arc<str> {
        &self.cluster
    }

    /// When the cluster took stock, by its own clock.
    pub fn taken_unix_nanos(&self) -> i64 {
        self.taken_unix_nanos
    }

    /// The rows, merged and in the order of their identities.
    pub fn needs(&self) -> &[Need] {
        &self.needs
    }
}

/// As much work as there are amounts, however many names there are.
fn totals(rows: &[Need]) -> Totals {
    let mut totals = Totals::new();
    for (name, amount) in rows.iter().flat_map(|need| need.aggregate.iter()) {
        match totals.get_mut(name) {
            Some(total) => *total = total.saturating_add(amount).min(MAX_AMOUNT),
            None => drop(totals.insert(name.clone(), amount)),
        }
    }
    totals
}
