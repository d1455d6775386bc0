//! Normalise: gangs that fit one machine become plain needs.
//!
//! A gang whose whole demand fits one machine is together wherever it lands, so it needs no domain. Counting
//! such gangs one machine each would demand several times the fleet; folded, they share machines as the
//! cluster's scheduler will in fact pack them.

use std::sync::Arc;

use bigfleet_model::need::Need;

use crate::amounts::add_same_dims;
use crate::classes::{Classes, RequirementSets};
use crate::holdings::Supply;
use crate::index::Index;
use crate::intern::NONE;
use crate::needs::{ClusterDemand, Demand, FoldShape, Folds};

/// For each gang shape, whether a free machine could hold the whole gang.
#[derive(Clone, Default)]
pub(crate) struct FoldMemory {
    entries: Vec<Entry>,
    classes: usize,
    generation: u64,
    presence: u64,
    /// Grows when a shape that fitted a free machine fits none any more, or the other way round.
    pub(crate) revision: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    /// Whether any class could hold it, free or not: most gangs that span machines fail here for good.
    possible: bool,
    /// A class that could hold it and had a free machine when last asked.
    witness: u32,
}

impl Entry {
    fn fits_free(self) -> bool {
        self.witness != NONE
    }
}

impl FoldMemory {
    /// Brings the memory up to the shapes, classes and free machines there are now.
    pub(crate) fn refresh(&mut self, folds: &Folds, index: &Index, sets: &RequirementSets) {
        let classes = &index.classes;
        let mut before = Vec::new();
        if (self.classes, self.generation) != (classes.len(), index.generation) {
            before = std::mem::take(&mut self.entries);
            (self.classes, self.generation) = (classes.len(), index.generation);
        } else if self.presence == index.presence && self.entries.len() == folds.shapes().len() {
            return;
        }
        self.presence = index.presence;
        let known = self.entries.len();
        for shape in &folds.shapes()[known..] {
            let possible = holders(shape, classes, sets).next().is_some();
            self.entries.push(Entry { possible, witness: NONE });
        }
        let mut flipped = false;
        for (at, (entry, shape)) in self.entries.iter_mut().zip(folds.shapes()).enumerate() {
            if !entry.possible || entry.witness != NONE && index.is_any_free(entry.witness) {
                continue;
            }
            let fitted = entry.fits_free();
            entry.witness = holders(shape, classes, sets).find(|c| index.is_any_free(*c)).unwrap_or(NONE);
            flipped |= at < known && entry.fits_free() != fitted;
        }
        flipped |= before.iter().zip(&self.entries).any(|(old, new)| old.fits_free() != new.fits_free());
        self.revision += u64::from(flipped);
    }

    /// Whether a free machine could hold a whole gang of this shape.
    pub(crate) fn fits_free(&self, fold: u32) -> bool {
        self.entries[fold as usize].fits_free()
    }

    fn fits_held(
        &self,
        gang: &Demand,
        fold: u32,
        supply: &Supply,
        classes: &Classes,
        sets: &RequirementSets,
    ) -> bool {
        let admitted = sets.admits(gang.requirements);
        let fits = |class: u32| admitted.contains(class) && classes.covers(class, &gang.aggregate);
        self.entries[fold as usize].possible
            && supply
                .configured
                .iter()
                .chain(&supply.configuring)
                .any(|held| fits(classes.of_kind(held.kind)))
    }
}

/// The classes whose machines could hold a whole gang.
fn holders<'a>(
    shape: &'a FoldShape,
    classes: &'a Classes,
    sets: &'a RequirementSets,
) -> impl Iterator<Item = u32> + 'a {
    sets.admits(shape.requirements).iter().filter(|class| classes.covers(*class, &shape.aggregate))
}

/// A cluster's demand after folding, in demand order.
pub(crate) fn normalise(
    demand: &ClusterDemand,
    memory: &FoldMemory,
    supply: &Supply,
    classes: &Classes,
    sets: &RequirementSets,
) -> Arc<[Arc<Demand>]> {
    if demand.folds.is_empty() {
        return demand.rows.clone();
    }
    let mut rows: Vec<Arc<Demand>> = Vec::with_capacity(demand.rows.len());
    let mut folding: Vec<&Arc<Demand>> = Vec::new();
    for row in demand.rows.iter() {
        let foldable = row.gang.as_ref().is_some_and(|gang| {
            memory.fits_free(gang.fold) || memory.fits_held(row, gang.fold, supply, classes, sets)
        });
        if foldable { folding.push(row) } else { rows.push(row.clone()) }
    }
    if folding.is_empty() {
        return demand.rows.clone();
    }
    // Gangs of one profile and size come to stand together; among themselves they keep demand order.
    folding.sort_by(|a, b| {
        let key = |row: &Demand| row.gang.as_ref().map(|gang| gang.key);
        key(a).cmp(&key(b)).then_with(|| a.need.aggregate.cmp_by_name(&b.need.aggregate))
    });
    let alike = |a: &&Arc<Demand>, b: &&Arc<Demand>| {
        let key = |row: &Demand| row.gang.as_ref().map(|gang| gang.key);
        key(a) == key(b) && a.need.aggregate == b.need.aggregate
    };
    rows.extend(folding.chunk_by(alike).map(|gangs| Arc::new(fold(gangs))));
    rows.sort_by(|a, b| a.cmp_in_cluster(b));
    rows.into()
}

/// One plain need for gangs of one profile and size.
fn fold(gangs: &[&Arc<Demand>]) -> Demand {
    let one = gangs[0];
    let gang = one.gang.as_ref().expect("only gangs are folded");
    let (mut total, mut amounts) = (one.need.aggregate.clone(), one.aggregate.clone());
    for other in &gangs[1..] {
        total = total.add(&other.need.aggregate);
        add_same_dims(&mut amounts, &other.aggregate);
    }
    let first_seen = gangs.iter().map(|gang| gang.need.first_seen_unix_nanos).min();
    Demand {
        need: Need {
            cluster: one.need.cluster.clone(),
            profile: gang.profile.clone(),
            group: Arc::from(""),
            aggregate: total,
            min_unit: one.need.aggregate.clone(),
            first_seen_unix_nanos: first_seen.unwrap_or_default(),
            parked: false,
        },
        folded: true,
        key: gang.key,
        requirements: gang.requirements,
        aggregate: amounts,
        min_unit: one.aggregate.clone(),
        same: None,
        spread: gang.spread,
        gang: None,
    }
}
