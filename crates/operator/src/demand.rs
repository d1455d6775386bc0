//! The cluster's demand: requests in, rows of a roll-up out.
//!
//! Requests that may be served by the same machines at the same urgency are one row. A row knows its requests only as
//! units (one pod's amounts) and how many of each; amounts are added up again for rows that changed and for no others,
//! so the work of a roll-up follows what changed since the last.
//!
//! A request costs its name, two numbers and a share in what it has in common with others: that is what lets a quarter
//! of a million of them fit.

mod apart;
mod unit;

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::need::Need;
use bigfleet_model::profile::Profile;
use bigfleet_model::resource::ResourceVec;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::ask::{Asked, BadRequest};
pub use apart::APART;
use apart::Ceilings;
use unit::{UnitId, Units};

/// A row of the roll-up, as long as it has requests. Never given to another row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(u64);

/// All requests of a cluster.
#[derive(Debug)]
pub struct Demand {
    cluster: Arc<str>,
    requests: HashMap<Box<str>, Entry, FixedState>,
    /// By fingerprint and gang: also the order of rows on the wire.
    by_key: BTreeMap<(Box<str>, Arc<str>), RowId>,
    rows: HashMap<RowId, Row, FixedState>,
    last_row: u64,
    /// Which sizes are asked for apart, by the fingerprint all of them would have together.
    ceilings: BTreeMap<Arc<str>, Ceilings>,
    units: Units,
    bad: usize,
    /// Counts changes; a roll-up of the same number says the same.
    revision: u64,
}

#[derive(Clone, Copy, Debug)]
enum Entry {
    Good {
        row: RowId,
        unit: UnitId,
        /// It is served by what is not the fleet's: known, and not asked for.
        aside: bool,
    },
    Bad,
}

/// One row.
#[derive(Debug)]
struct Row {
    profile: Arc<Profile>,
    group: Arc<str>,
    /// The fingerprint without what sets it apart, and how often it was: 0 for most rows.
    base: Arc<str>,
    level: usize,
    units: BTreeMap<UnitId, u32>,
    /// Requests set aside: they keep the row and add nothing to it.
    aside: u32,
    /// Sum and largest piece, while they are true.
    total: Option<(ResourceVec, ResourceVec)>,
}

impl Demand {
    /// No demand yet.
    pub fn new(cluster: impl Into<Arc<str>>) -> Self {
        Self {
            cluster: cluster.into(),
            requests: HashMap::default(),
            by_key: BTreeMap::new(),
            rows: HashMap::default(),
            last_row: 0,
            ceilings: BTreeMap::new(),
            units: Units::default(),
            bad: 0,
            revision: 0,
        }
    }

    /// A request is there, or changed. One that is refused is left out; the demand it stood for before goes with it.
    pub fn put(&mut self, name: &str, asked: &Asked) -> Result<RowId, BadRequest> {
        match asked.check() {
            Ok(ask) => {
                let unit = self.units.add(&ask.unit);
                let aside = matches!(self.requests.get(name), Some(Entry::Good { aside: true, .. }));
                if let Some(Entry::Good { row, unit: before, .. }) = self.requests.get(name)
                    && *before == unit
                    && *self.rows[row].base == *ask.profile.fingerprint()
                    && self.rows[row].group == ask.group
                {
                    // Seen again, as it was.
                    let row = *row;
                    self.units.drop_one(unit);
                    return Ok(row);
                }
                let level = self.level_of(&ask);
                let row = self.row(ask.profile, ask.group, level);
                self.rows.get_mut(&row).expect("just found").add(unit, aside);
                self.revision += 1;
                // After the new row has it: a row that only changes its amounts keeps its place.
                self.insert(name, Entry::Good { row, unit, aside });
                Ok(row)
            }
            Err(bad) => {
                self.insert(name, Entry::Bad);
                Err(bad)
            }
        }
    }

    /// A request is gone. False if it was not there.
    pub fn remove(&mut self, name: &str) -> bool {
        let Some(before) = self.requests.remove(name) else { return false };
        self.forget(before);
        true
    }

    /// Forgets every request `stays` does not name: what a new list no longer holds is gone.
    pub fn retain(&mut self, mut stays: impl FnMut(&str) -> bool) {
        let gone: Vec<Entry> =
            self.requests.extract_if(|name, _| !stays(name)).map(|(_, entry)| entry).collect();
        for entry in gone {
            self.forget(entry);
        }
    }

    /// Sets a request aside because something that is not the fleet's serves it, or takes it in again.
    pub fn set_aside(&mut self, name: &str, is_aside: bool) {
        let Some(Entry::Good { row, unit, aside }) = self.requests.get_mut(name) else { return };
        if *aside == is_aside {
            return;
        }
        *aside = is_aside;
        let held = self.rows.get_mut(row).expect("a request holds its row");
        held.take(*unit, !is_aside);
        held.add(*unit, is_aside);
        self.revision += 1;
    }

    /// How many requests a row has, those set aside included.
    pub fn requests_of(&self, row: RowId) -> u64 {
        let held = self.rows.get(&row);
        held.map_or(0, |held| {
            held.units.values().map(|count| u64::from(*count)).sum::<u64>() + u64::from(held.aside)
        })
    }

    /// Whether all requests of a row are set aside.
    pub fn is_aside(&self, row: RowId) -> bool {
        self.rows.get(&row).is_some_and(|held| held.units.is_empty() && held.aside > 0)
    }

    /// How many requests are set aside.
    pub fn aside(&self) -> usize {
        self.rows.values().map(|row| row.aside as usize).sum()
    }

    fn insert(&mut self, name: &str, entry: Entry) {
        self.bad += usize::from(matches!(entry, Entry::Bad));
        let before = match self.requests.get_mut(name) {
            Some(held) => Some(std::mem::replace(held, entry)),
            None => self.requests.insert(name.into(), entry),
        };
        if let Some(before) = before {
            self.forget(before);
        }
    }

    fn forget(&mut self, entry: Entry) {
        let Entry::Good { row, unit, aside } = entry else {
            self.bad -= 1;
            return;
        };
        self.revision += 1;
        self.units.drop_one(unit);
        let held = self.rows.get_mut(&row).expect("a request holds its row");
        held.take(unit, aside);
        if held.units.is_empty()
            && held.aside == 0
            && let Some(gone) = self.rows.remove(&row)
        {
            self.by_key.remove(&(Box::from(gone.profile.fingerprint()), gone.group));
            self.row_gone(&gone.base, gone.level);
        }
    }

    /// The row of a profile and gang at a level, made if there is none.
    fn row(&mut self, plain: Profile, group: Arc<str>, level: usize) -> RowId {
        let base = if level == 0 { None } else { Some(Arc::from(plain.fingerprint())) };
        let profile = apart::profile(plain, level);
        let key = (Box::from(profile.fingerprint()), group);
        if let Some(row) = self.by_key.get(&key) {
            return *row;
        }
        let held = Row {
            base: base.unwrap_or_else(|| profile.fingerprint().into()),
            profile: Arc::new(profile),
            group: key.1.clone(),
            level,
            units: BTreeMap::new(),
            aside: 0,
            total: None,
        };
        self.row_made(&held);
        self.last_row += 1;
        let row = RowId(self.last_row);
        self.rows.insert(row, held);
        self.by_key.insert(key, row);
        row
    }

    /// The whole demand, one need per row, in the order of fingerprint and gang; `extra` is what a row asks for beyond
    /// the sum of its requests.
    pub fn rollup(&mut self, mut extra: impl FnMut(RowId) -> Option<ResourceVec>) -> Vec<Need> {
        let mut needs = Vec::with_capacity(self.by_key.len());
        for row in self.by_key.values() {
            let held = self.rows.get_mut(row).expect("a row with a key is there");
            if held.units.is_empty() {
                continue;
            }
            let (sum, most) = held.total(&self.units);
            let (sum, min_unit) = (sum.clone(), most.clone());
            let aggregate = match extra(*row) {
                Some(extra) => sum.add(&extra),
                None => sum,
            };
            needs.push(Need {
                cluster: self.cluster.clone(),
                profile: held.profile.clone(),
                group: held.group.clone(),
                aggregate,
                min_unit,
                first_seen_unix_nanos: 0,
                parked: false,
            });
        }
        needs
    }

    /// What the requests of a row add up to.
    pub fn asked(&mut self, row: RowId) -> Option<ResourceVec> {
        let held = self.rows.get_mut(&row)?;
        Some(held.total(&self.units).0.clone())
    }

    /// How many requests of a row ask for exactly this.
    pub fn count_of(&self, row: RowId, unit: &ResourceVec) -> u64 {
        let held = self.rows.get(&row);
        let count = || held?.units.get(&self.units.find(unit)?).copied();
        count().unwrap_or(0).into()
    }

    /// The row of a request and what it asks for, unless it was refused.
    pub fn find(&self, name: &str) -> Option<(RowId, &ResourceVec)> {
        match self.requests.get(name)? {
            Entry::Good { row, unit, .. } => Some((*row, self.units.get(*unit))),
            Entry::Bad => None,
        }
    }

    /// The row with this fingerprint and gang.
    pub fn find_row(&self, fingerprint: &str, group: &str) -> Option<RowId> {
        self.by_key.get(&(Box::from(fingerprint), Arc::from(group))).copied()
    }

    /// Fingerprint and gang of a row.
    pub fn key_of(&self, row: RowId) -> Option<(&str, &str)> {
        let held = self.rows.get(&row)?;
        Some((held.profile.fingerprint(), &held.group))
    }

    /// The rows there are.
    pub fn rows(&self) -> impl Iterator<Item = RowId> + '_ {
        self.by_key.values().copied()
    }

    /// The requests of all rows by name, and the refused ones with none.
    pub fn requests(&self) -> impl Iterator<Item = (&str, Option<RowId>)> {
        self.requests.iter().map(|(name, entry)| match entry {
            Entry::Good { row, .. } => (&**name, Some(*row)),
            Entry::Bad => (&**name, None),
        })
    }

    /// How many requests there are, refused ones included.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether nobody asks for anything.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// How many requests were refused.
    pub fn bad(&self) -> usize {
        self.bad
    }

    /// A number that changes whenever the demand does.
    pub fn revision(&self) -> u64 {
        self.revision
    }
}

impl Row {
    fn add(&mut self, unit: UnitId, aside: bool) {
        if aside {
            self.aside += 1;
            return;
        }
        *self.units.entry(unit).or_insert(0) += 1;
        self.total = None;
    }

    fn take(&mut self, unit: UnitId, aside: bool) {
        if aside {
            self.aside -= 1;
            return;
        }
        self.total = None;
        let count = self.units.get_mut(&unit).expect("a request holds its unit");
        *count -= 1;
        if *count == 0 {
            self.units.remove(&unit);
        }
    }

    fn total(&mut self, units: &Units) -> &(ResourceVec, ResourceVec) {
        self.total.get_or_insert_with(|| {
            let zero = (ResourceVec::ZERO, ResourceVec::ZERO);
            self.units.iter().fold(zero, |(sum, most), (unit, count)| {
                let unit = units.get(*unit);
                (sum.add(&unit.scale(u64::from(*count))), most.max(unit))
            })
        })
    }
}

#[cfg(test)]
mod tests;
