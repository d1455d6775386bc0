//! A cluster's whole demand, checked and put into numbers beside the fleet, on any thread.
//!
//! What costs time in a roll-up is reading its words: profiles are checked, texts become numbers, equal sets of requirements
//! become one. A draft has all that behind it, in dictionaries of its own. To take it in, the fleet looks each of its
//! distinct words up once and changes the numbers where they stand. What was in its place is handed back instead of dropped:
//! giving back the memory of fifty thousand rows takes longer than putting others there.

use std::fmt;
use std::sync::Arc;

use bigfleet_model::need::{Need, aggregate};
use bigfleet_model::profile::Profile;

use crate::classes::{Interest, RequirementSets};
use crate::fleet::Fleet;
use crate::intern::NONE;
use crate::needs::{Demand, FoldShape, Folds, Replaced, RollupError, Row, Translator, identity, validate};
use crate::vocab::{Moving, Vocabulary};

/// A cluster's whole demand, valid, in order and in numbers of its own.
pub struct Draft {
    cluster: Arc<str>,
    vocab: Vocabulary,
    sets: RequirementSets,
    /// By identity.
    rows: Vec<Arc<Demand>>,
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Draft({}, {} rows)", self.cluster, self.rows.len())
    }
}

/// What a draft replaced. It may be dropped wherever there is time.
pub struct Leftover(#[expect(dead_code, reason = "it is kept to be dropped")] Box<dyn Send + Sync>);

impl fmt::Debug for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Leftover")
    }
}

impl Leftover {
    /// Anything else that nobody needs any more.
    pub fn of(what: impl Send + Sync + 'static) -> Self {
        Self(Box::new(what))
    }
}

impl Row for Arc<Demand> {
    fn need(&mut self) -> &mut Need {
        &mut mine(self).need
    }
}

fn mine(row: &mut Arc<Demand>) -> &mut Demand {
    Arc::get_mut(row).expect("a row of a draft is nobody else's")
}

impl Draft {
    /// Checks rows and puts them into numbers. All or none of them are taken.
    pub fn new(cluster: &str, rows: Vec<Need>) -> Result<Self, RollupError> {
        validate(cluster, &rows, None)?;
        let in_order = rows.windows(2).all(|pair| identity(&pair[0]) < identity(&pair[1]));
        let rows = if in_order { rows } else { aggregate(rows) };
        let (mut vocab, mut sets) = (Vocabulary::default(), RequirementSets::default());
        let (mut interest, mut folds) = (Interest::default(), Folds::default());
        let mut translator =
            Translator { vocab: &mut vocab, requirements: &mut sets, interest: &mut interest };
        let rows = rows.into_iter().map(|row| Arc::new(translator.demand(row, &mut folds))).collect();
        Ok(Self { cluster: cluster.into(), vocab, sets, rows })
    }

    /// Its rows, merged and in the order of their identities.
    pub fn needs(&self) -> impl ExactSizeIterator<Item = &Need> {
        self.rows.iter().map(|row| &row.need)
    }

    /// The profiles of its rows, to be replaced by others that are equal.
    pub fn profiles(&mut self) -> impl Iterator<Item = &mut Arc<Profile>> {
        self.rows.iter_mut().map(|row| &mut mine(row).need.profile)
    }

    /// Says that a gang of it is parked; false if it has no such gang.
    pub fn park(&mut self, fingerprint: &str, group: &str) -> bool {
        let found = self.rows.binary_search_by(|row| identity(&row.need).cmp(&(fingerprint, group)));
        let Some(row) = found.ok().map(|at| mine(&mut self.rows[at])) else { return false };
        row.need.parked = row.same.is_some();
        row.need.parked
    }
}

impl Fleet {
    /// Puts a draft in the place of a cluster's whole demand. As with [`Fleet::replace`], a row that was already there keeps
    /// the time it was first seen, and a new one gets `now` if it carries none.
    pub fn adopt(&mut self, draft: Draft, now_unix_nanos: i64) -> (Replaced, Leftover) {
        let Draft { cluster, vocab: words, sets: encoded, rows } = draft;
        let Self { vocab, needs, interest, sets, .. } = self;
        let number = vocab.cluster(&cluster);
        let mut moving = Moving::new(&words, vocab);
        let mut moved = vec![NONE; encoded.len()];
        let make = |mut row: Arc<Demand>, folds: &mut Folds| {
            let mut set = |old: u32, moving: &mut Moving<'_>, interest: &mut Interest| {
                let new = &mut moved[old as usize];
                if *new == NONE {
                    *new = sets.take_over(&encoded, old, moving, interest);
                }
                *new
            };
            let demand = mine(&mut row);
            demand.requirements = set(demand.requirements, &mut moving, interest);
            demand.key = moving.key(demand.key);
            moving.amounts(&mut demand.aggregate);
            moving.amounts(&mut demand.min_unit);
            let domain = |key: &mut u32, moving: &mut Moving<'_>, interest: &mut Interest| {
                *key = moving.string(*key);
                interest.note_domain(*key);
            };
            if let Some(key) = &mut demand.same {
                domain(key, &mut moving, interest);
            }
            if let Some((key, _)) = &mut demand.spread {
                domain(key, &mut moving, interest);
            }
            if let Some(gang) = &mut demand.gang {
                gang.requirements = set(gang.requirements, &mut moving, interest);
                gang.key = moving.key(gang.key);
                if let Some((key, _)) = &mut gang.spread {
                    domain(key, &mut moving, interest);
                }
                let shape =
                    FoldShape { requirements: demand.requirements, aggregate: demand.aggregate.clone() };
                gang.fold = folds.intern(shape);
            }
            row
        };
        let (replaced, superseded) = needs.put(number, rows, now_unix_nanos, make);
        (replaced, Leftover::of((words, encoded, superseded)))
    }

    /// When the rows of a cluster's demand were first seen, in the order of their identities.
    pub fn first_seen_unix_nanos(&self, cluster: &str) -> impl Iterator<Item = i64> + '_ {
        let number = self.vocab.find_cluster(cluster);
        number.into_iter().flat_map(|number| self.needs.first_seen(number))
    }
}
