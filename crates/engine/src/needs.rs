//! The needs table: what every cluster wants, as it last said.
//!
//! A roll-up is a cluster's complete desired state. It replaces what was there; nothing is ever merged with
//! an older report. Rows that did not change keep their identity, their place and the time they were first
//! seen, so that waiting is measured from the first request and not from the last report.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use bigfleet_model::need::{Need, NeedKey, aggregate};
use bigfleet_model::profile::{Profile, ProfileError};
use bigfleet_model::text::Quoted;
use thiserror::Error;

use crate::classes::{Interest, RequirementSets};
use crate::intern::Sym;
use crate::vocab::{Amounts, Vocabulary};

/// A need in the engine's numbers, beside the need itself.
#[derive(Debug)]
pub struct Demand {
    /// The need as the phases see it.
    pub need: Need,
    /// Whether it stands for gangs that fit one machine each.
    pub folded: bool,
    pub(crate) key: u32,
    pub(crate) requirements: u32,
    pub(crate) aggregate: Amounts,
    pub(crate) min_unit: Amounts,
    /// The key whose value is the gang's domain.
    pub(crate) same: Option<Sym>,
    /// The key of the strict spread and how far a domain may be ahead.
    pub(crate) spread: Option<(Sym, u64)>,
    /// For a gang: what it becomes when it fits one machine.
    pub(crate) gang: Option<Gang>,
    /// For a folded need: the identities of its gangs, whose machines are its own as well.
    pub(crate) members: Box<[u32]>,
}

/// What a gang becomes when it fits one machine.
#[derive(Debug)]
pub(crate) struct Gang {
    /// The profile without `Same`.
    pub(crate) profile: Arc<Profile>,
    /// Its requirement set.
    pub(crate) requirements: u32,
    /// Its identity, without a group.
    pub(crate) key: u32,
    /// Its strict spread: folding may bring one to life that `Same` had overruled.
    pub(crate) spread: Option<(Sym, u64)>,
    /// Its place in the fold memory.
    pub(crate) fold: u32,
}

impl Demand {
    /// The priority.
    pub fn priority(&self) -> i32 {
        self.need.profile.priority()
    }

    /// Where precedence order begins: smaller goes first. Among equals demand order decides.
    pub(crate) fn precedence(&self) -> u64 {
        let profile = &self.need.profile;
        let upwards = u64::from(profile.priority().cast_unsigned() ^ 1 << 31) << 16
            | (profile.interruption().ordinal() as u64) << 8
            | profile.reclamation().ordinal() as u64;
        !upwards
    }

    /// Reads it once from end to end; see [`touch_all`].
    fn touch(&self) -> u64 {
        let Self { need, key, requirements, aggregate, min_unit, members, .. } = self;
        let first = |amounts: &Amounts| amounts.first().map_or(0, |(_, amount)| *amount);
        u64::from(*key ^ *requirements)
            ^ first(aggregate)
            ^ first(min_unit)
            ^ members.len() as u64
            ^ need.first_seen_unix_nanos.cast_unsigned()
    }

    /// The identities whose machines are the need's own.
    pub(crate) fn own_keys(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::once(self.key).chain(self.members.iter().copied())
    }

    /// Demand order within one cluster.
    pub(crate) fn cmp_in_cluster(&self, other: &Self) -> Ordering {
        self.need
            .cmp_demand(&other.need)
            .then(self.folded.cmp(&other.folded))
            .then_with(|| other.need.min_unit.cmp_by_name(&self.need.min_unit))
    }
}

/// Why a roll-up was refused. The cluster's last good demand stays.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RollupError {
    /// A cluster without a name.
    #[error("a roll-up names no cluster; every report must say whose demand it is")]
    NoCluster,
    /// A row of another cluster.
    #[error("roll-up of {}: row {row} belongs to {}; a cluster may only report its own demand", Quoted(.cluster), Quoted(.other))]
    ForeignRow {
        /// Who reported.
        cluster: String,
        /// Which row.
        row: usize,
        /// Whose need it is.
        other: String,
    },
    /// A row whose profile cannot be taken.
    #[error("roll-up of {}: row {row}: {source}", Quoted(.cluster))]
    Profile {
        /// Who reported.
        cluster: String,
        /// Which row.
        row: usize,
        /// What is wrong.
        source: ProfileError,
    },
    /// A plain need that claims to be parked.
    #[error("roll-up of {}: row {row} is parked but has no Same requirement; only gangs are ever parked", Quoted(.cluster))]
    ParkedWithoutSame {
        /// Who reported.
        cluster: String,
        /// Which row.
        row: usize,
    },
}

/// What became of a roll-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replaced {
    /// Rows that were not there before.
    pub added: usize,
    /// Rows that are gone.
    pub removed: usize,
    /// Rows whose amounts or parking changed.
    pub changed: usize,
    /// Rows that are as they were.
    pub kept: usize,
}

impl Replaced {
    /// Whether the roll-up said what the last one said.
    pub fn is_unchanged(&self) -> bool {
        self.added + self.removed + self.changed == 0
    }
}

/// One cluster's rows.
#[derive(Clone, Default)]
pub(crate) struct ClusterDemand {
    /// In identity order.
    by_key: Vec<Arc<Demand>>,
    /// In demand order.
    pub(crate) rows: Arc<[Arc<Demand>]>,
    /// The rows in precedence order.
    pub(crate) turns: Arc<[u32]>,
    /// The places of the gangs' shapes in the fold memory, in demand order.
    pub(crate) folds: Vec<u32>,
}

/// All clusters' rows.
#[derive(Clone, Default)]
pub(crate) struct NeedsTable {
    clusters: Vec<Arc<ClusterDemand>>,
    /// By cluster, the revision that last changed it; apart from the rows, because a cycle looks at all of them.
    versions: Vec<u64>,
    /// `[requirements, aggregate…]` of every gang shape seen, for the fold memory.
    folds: Arc<Folds>,
    rows: usize,
    revision: u64,
}

/// A gang shape: which machines it may use and how much it needs in all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FoldShape {
    pub(crate) requirements: u32,
    pub(crate) aggregate: Amounts,
}

/// The distinct gang shapes, by number.
#[derive(Clone, Default)]
pub(crate) struct Folds {
    shapes: Vec<FoldShape>,
    numbers: crate::intern::Map<FoldShape, u32>,
}

impl Folds {
    pub(crate) fn shapes(&self) -> &[FoldShape] {
        &self.shapes
    }

    /// Bytes of all shapes.
    pub(crate) fn words_bytes(&self) -> usize {
        self.shapes.len() * 2 * size_of::<FoldShape>()
    }

    pub(crate) fn intern(&mut self, shape: FoldShape) -> u32 {
        let next = self.shapes.len() as u32;
        let number = *self.numbers.entry(shape.clone()).or_insert(next);
        if number == next {
            self.shapes.push(shape);
        }
        number
    }
}

/// The dictionaries a row is translated with.
pub(crate) struct Translator<'a> {
    pub(crate) vocab: &'a mut Vocabulary,
    pub(crate) requirements: &'a mut RequirementSets,
    pub(crate) interest: &'a mut Interest,
}

impl Translator<'_> {
    /// The strict spread of a profile, its key noted as one that names domains.
    fn strict_spread(&mut self, profile: &Profile) -> Option<(Sym, u64)> {
        let spread = profile.strict_spread()?;
        let key = self.vocab.string(&spread.key);
        self.interest.note_domain(key);
        Some((key, spread.headroom()))
    }

    /// A need in numbers.
    pub(crate) fn demand(&mut self, need: Need, folds: &mut Folds) -> Demand {
        let requirements = self.requirements.intern(need.profile.requirements(), self.vocab, self.interest);
        let aggregate = self.vocab.amounts(&need.aggregate);
        let same = need.profile.same().map(|r| self.vocab.string(r.key()));
        if let Some(key) = same {
            self.interest.note_domain(key);
        }
        let spread = self.strict_spread(&need.profile);
        let gang = same.map(|_| {
            let profile = Arc::new(need.profile.without_same());
            Gang {
                requirements: self.requirements.intern(profile.requirements(), self.vocab, self.interest),
                key: self.vocab.key(&need.cluster, profile.fingerprint(), ""),
                spread: self.strict_spread(&profile),
                fold: folds.intern(FoldShape { requirements, aggregate: aggregate.clone() }),
                profile,
            }
        });
        Demand {
            key: self.vocab.key(&need.cluster, need.profile.fingerprint(), &need.group),
            requirements,
            aggregate,
            min_unit: self.vocab.amounts(&need.min_unit),
            same,
            spread,
            gang,
            folded: false,
            members: Box::default(),
            need,
        }
    }
}

/// Reads needs one after the other before they are worked with. They lie anywhere in memory, and a processor waits for several
/// pieces of memory as long as for one if it does not have to look at one to know the next.
pub(crate) fn touch_all(rows: &[Arc<Demand>]) {
    std::hint::black_box(rows.iter().fold(0, |all, row| all ^ row.touch()));
}

/// The places of rows that stand in demand order, in precedence order.
pub(crate) fn turns_of(rows: &[Arc<Demand>]) -> Arc<[u32]> {
    let mut turns: Vec<(u64, u32)> = (0..).zip(rows).map(|(place, row)| (row.precedence(), place)).collect();
    turns.sort_unstable();
    turns.into_iter().map(|(_, place)| place).collect()
}

pub(crate) fn identity(need: &Need) -> (&str, &str) {
    (need.profile.fingerprint(), &need.group)
}

impl ClusterDemand {
    fn new(by_key: Vec<Arc<Demand>>) -> Self {
        let mut rows = by_key.clone();
        // Demand order within one cluster; the rest of it is the order they stand in.
        rows.sort_by_key(|row| (Reverse(row.priority()), row.need.first_seen_unix_nanos));
        let folds = rows.iter().filter_map(|row| row.gang.as_ref()).map(|gang| gang.fold).collect();
        let turns = turns_of(&rows);
        Self { by_key, rows: rows.into(), turns, folds }
    }

    /// The row of an identity.
    pub(crate) fn row(&self, fingerprint: &str, group: &str) -> Option<&Arc<Demand>> {
        let at = self.by_key.binary_search_by(|row| identity(&row.need).cmp(&(fingerprint, group)));
        at.ok().map(|at| &self.by_key[at])
    }
}

impl NeedsTable {
    /// The clusters that have rows.
    pub(crate) fn clusters_with_rows(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.clusters).filter(|(_, demand)| !demand.rows.is_empty()).map(|(cluster, _)| cluster)
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// How many rows there are in all.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    pub(crate) fn folds(&self) -> &Folds {
        &self.folds
    }

    /// A cluster's rows; nothing if it never reported.
    pub(crate) fn cluster(&self, cluster: u32) -> Option<&Arc<ClusterDemand>> {
        self.clusters.get(cluster as usize)
    }

    /// Changes whenever a cluster's rows do; 0 if it never reported.
    pub(crate) fn version(&self, cluster: u32) -> u64 {
        self.versions.get(cluster as usize).copied().unwrap_or(0)
    }

    /// Replaces a cluster's demand. Nothing changes if any row is refused.
    ///
    /// A row already known keeps the time it was first seen; a new one that carries no time gets `now`.
    pub(crate) fn replace(
        &mut self,
        cluster: &str,
        rows: Vec<Need>,
        now_unix_nanos: i64,
        translator: &mut Translator<'_>,
    ) -> Result<Replaced, RollupError> {
        let known = translator.vocab.find_cluster(cluster).and_then(|number| self.cluster(number));
        validate(cluster, &rows, known.map(|known| &**known))?;
        let number = translator.vocab.cluster(cluster);
        let in_order = rows.windows(2).all(|pair| identity(&pair[0]) < identity(&pair[1]));
        let rows = if in_order { rows } else { aggregate(rows) };
        let make = |row, folds: &mut Folds| Arc::new(translator.demand(row, folds));
        Ok(self.put(number, rows, now_unix_nanos, make).0)
    }

    /// Puts rows in the place of a cluster's: in identity order, and each is made only if it is not there as it is. Also
    /// what was in their place, and rows that were not needed.
    pub(crate) fn put<R: Row>(
        &mut self,
        number: u32,
        rows: Vec<R>,
        now_unix_nanos: i64,
        mut make: impl FnMut(R, &mut Folds) -> Arc<Demand>,
    ) -> (Replaced, Superseded<R>) {
        if self.clusters.len() <= number as usize {
            self.clusters.resize_with(number as usize + 1, Arc::default);
            self.versions.resize(number as usize + 1, 0);
        }
        let old = self.clusters[number as usize].clone();
        let mut replaced = Replaced::default();
        let (mut by_key, mut spare) = (Vec::with_capacity(rows.len()), Vec::new());
        let mut before = old.by_key.iter().peekable();
        for mut row in rows {
            let need = row.need();
            let known = loop {
                let Some(known) = before.peek() else { break None };
                match identity(&known.need).cmp(&identity(need)) {
                    Ordering::Less => replaced.removed += usize::from(before.next().is_some()),
                    Ordering::Equal => break before.next(),
                    Ordering::Greater => break None,
                }
            };
            need.first_seen_unix_nanos = match (known, need.first_seen_unix_nanos) {
                (Some(known), _) => known.need.first_seen_unix_nanos,
                (None, 0) => now_unix_nanos,
                (None, stamp) => stamp,
            };
            match known {
                Some(known) if says_the_same(&known.need, need) => {
                    replaced.kept += 1;
                    by_key.push(known.clone());
                    spare.push(row);
                    continue;
                }
                Some(_) => replaced.changed += 1,
                None => replaced.added += 1,
            }
            by_key.push(make(row, Arc::make_mut(&mut self.folds)));
        }
        replaced.removed += before.count();
        if replaced.is_unchanged() {
            return (replaced, Superseded { _demand: old, _unchanged: by_key, _spare: spare });
        }
        self.revision += 1;
        self.rows = self.rows + by_key.len() - old.by_key.len();
        self.clusters[number as usize] = Arc::new(ClusterDemand::new(by_key));
        self.versions[number as usize] = self.revision;
        (replaced, Superseded { _demand: old, _unchanged: Vec::new(), _spare: spare })
    }

    /// When the rows of a cluster were first seen, in identity order.
    pub(crate) fn first_seen(&self, number: u32) -> impl Iterator<Item = i64> + '_ {
        let rows = self.cluster(number).into_iter().flat_map(|demand| &demand.by_key);
        rows.map(|row| row.need.first_seen_unix_nanos)
    }

    /// Marks a gang as parked or not; false if there is no such gang or nothing changed.
    pub(crate) fn set_parked(
        &mut self,
        key: &NeedKey,
        parked: bool,
        translator: &mut Translator<'_>,
    ) -> bool {
        let Some(number) = translator.vocab.find_cluster(&key.cluster) else { return false };
        let Some(demand) = self.clusters.get(number as usize) else { return false };
        let Some(row) = demand.row(&key.fingerprint, &key.group) else { return false };
        if row.same.is_none() || row.need.parked == parked {
            return false;
        }
        let mut rows: Vec<Need> = demand.by_key.iter().map(|row| row.need.clone()).collect();
        for row in &mut rows {
            if identity(row) == (&*key.fingerprint, &*key.group) {
                row.parked = parked;
            }
        }
        let replaced = self.replace(&key.cluster, rows, 0, translator);
        replaced.expect("rows that were accepted once are accepted again").changed == 1
    }

    /// Translates all rows with new dictionaries. `old` knows the clusters' names.
    pub(crate) fn translate_again(&mut self, old: &Vocabulary, translator: &mut Translator<'_>) {
        let mut folds = Folds::default();
        let versions = std::mem::take(&mut self.versions);
        for ((number, before), version) in (0..).zip(std::mem::take(&mut self.clusters)).zip(versions) {
            if before.rows.is_empty() {
                continue;
            }
            let number = translator.vocab.cluster(old.cluster_name(number)) as usize;
            let again = |row: &Arc<Demand>| Arc::new(translator.demand(row.need.clone(), &mut folds));
            let by_key: Vec<Arc<Demand>> = before.by_key.iter().map(again).collect();
            if self.clusters.len() <= number {
                self.clusters.resize_with(number + 1, Arc::default);
                self.versions.resize(number + 1, 0);
            }
            self.clusters[number] = Arc::new(ClusterDemand::new(by_key));
            self.versions[number] = version;
        }
        self.folds = Arc::new(folds);
    }

    /// Bytes held by the rows, roughly, for the memory report.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.rows * (size_of::<Demand>() + 32)
    }
}

/// Whether a row of the same identity, seen since the same time, asks for the same.
fn says_the_same(known: &Need, row: &Need) -> bool {
    known.aggregate == row.aggregate && known.min_unit == row.min_unit && known.parked == row.parked
}

/// A row on its way into the table: the need itself, or already in numbers.
pub(crate) trait Row {
    /// Its need.
    fn need(&mut self) -> &mut Need;
}

impl Row for Need {
    fn need(&mut self) -> &mut Need {
        self
    }
}

/// What is in nobody's way any more. Dropping it takes time.
pub(crate) struct Superseded<R> {
    _demand: Arc<ClusterDemand>,
    _unchanged: Vec<Arc<Demand>>,
    _spare: Vec<R>,
}

/// Whether two profiles are equal part by part. Their fingerprints say the same only once both are valid.
fn is_same_profile(a: &Arc<Profile>, b: &Arc<Profile>) -> bool {
    Arc::ptr_eq(a, b) || a == b && a.requirements() == b.requirements() && a.spread() == b.spread()
}

/// Checks all rows; a profile the cluster already uses was checked when it came.
pub(crate) fn validate(
    cluster: &str,
    rows: &[Need],
    known: Option<&ClusterDemand>,
) -> Result<(), RollupError> {
    if cluster.is_empty() {
        return Err(RollupError::NoCluster);
    }
    for (row, need) in rows.iter().enumerate() {
        let name = || cluster.to_string();
        if *need.cluster != *cluster {
            return Err(RollupError::ForeignRow { cluster: name(), row, other: need.cluster.to_string() });
        }
        let known = known.and_then(|known| known.row(need.profile.fingerprint(), &need.group));
        if !known.is_some_and(|known| is_same_profile(&known.need.profile, &need.profile)) {
            let refuse = |source| RollupError::Profile { cluster: name(), row, source };
            need.profile.validate().map_err(refuse)?;
        }
        if need.parked && need.profile.same().is_none() {
            return Err(RollupError::ParkedWithoutSame { cluster: name(), row });
        }
    }
    Ok(())
}
