//! What a shard knows of one provider: how fresh its listing is and how it has been doing.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::confirmation::Confirmation;
use crate::table::Slot;

/// One provider.
#[derive(Clone, Debug)]
pub struct Provider {
    /// Its name.
    pub name: Arc<str>,
    /// When its last believed listing was begun; `None` for never in this life.
    pub listed_unix_nanos: Option<i64>,
    /// When its last believed full listing was begun.
    pub full_listed_unix_nanos: Option<i64>,
    /// How many machines it has that are ours.
    pub machines: usize,
    /// Listings that failed in a row.
    pub failures: u32,
    /// What it last said when one failed.
    pub last_error: Box<str>,
    /// A listing that lost too much to be believed at once.
    pub held: Option<HeldListing>,
    /// Whether it takes machines back.
    pub supports_delete: bool,
    /// Whether it advances revisions, so that only changes need to be listed.
    pub has_revisions: bool,
    /// Machines that its last full listing, put together from pieces, did not name, and that were asked about.
    pub(crate) left_out: BTreeSet<Slot>,
    /// Whether its last listing was put together from pieces.
    pub(crate) is_pieced: bool,
    /// How many ids the listing under way named twice.
    pub(crate) named_twice: usize,
    /// The machines that all listings miss that agree so far.
    pub(crate) missing: BTreeSet<Slot>,
    pub(crate) revision: Arc<[u8]>,
    pub(crate) listing: Option<Listing>,
    pub(crate) generation: u32,
    /// The place after the machine a listing named last: listings mostly name machines in the order we met them.
    pub(crate) cursor: u32,
    /// When it is listed next; a timer for any other instant means nothing.
    pub(crate) next_list: i64,
    /// No listing is hurried before this, so that listings stay a small part of the time.
    pub(crate) rests_until: i64,
    /// How long its last full listing took.
    pub(crate) full_took: i64,
    /// How long its last listing of changes took.
    pub(crate) changes_took: i64,
    /// Machines that it may be moving; those that have arrived are struck out after each listing.
    pub(crate) moving: BTreeSet<Slot>,
}

/// A listing that waits to be confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldListing {
    /// Since when, and how many agree so far.
    pub confirmation: Confirmation,
    /// How many machines the last one lost.
    pub missing: usize,
}

/// A listing under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listing {
    pub(crate) begun: i64,
    pub(crate) full: bool,
    /// Whether machines became ours while it was under way: what it said of them before was passed over.
    pub(crate) is_outdated: bool,
}

impl Provider {
    pub(crate) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            listed_unix_nanos: None,
            full_listed_unix_nanos: None,
            machines: 0,
            failures: 0,
            last_error: "".into(),
            held: None,
            supports_delete: true,
            has_revisions: false,
            left_out: BTreeSet::new(),
            is_pieced: false,
            named_twice: 0,
            missing: BTreeSet::new(),
            revision: Arc::from([]),
            listing: None,
            generation: 0,
            cursor: 0,
            next_list: i64::MIN,
            rests_until: i64::MIN,
            full_took: 0,
            changes_took: 0,
            moving: BTreeSet::new(),
        }
    }

    /// How old the listing is that we go by; `None` if there is none.
    pub fn age_nanos(&self, now_unix_nanos: i64) -> Option<i64> {
        self.listed_unix_nanos.map(|listed| now_unix_nanos.saturating_sub(listed).max(0))
    }
}
