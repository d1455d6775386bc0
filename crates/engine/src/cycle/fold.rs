//! Normalise: gangs that fit one machine become plain needs.
//!
//! A gang whose whole demand fits one machine is together wherever it lands, so it needs no domain. Counting
//! such gangs one machine each would demand several times the fleet; folded, they share machines as the
//! cluster's scheduler will in fact pack them. A gang that already runs on machines of its own in one domain is at home
//! and stays as it is: what runs is not moved because a machine is offered that would hold all of it.

use std::sync::Arc;

use bigfleet_model::need::Need;

use crate::amounts::add_same_dims;
use crate::classes::{Classes, RequirementSets};
use crate::holdings::Supply;
use crate::index::Index;
use crate::intern::NONE;
use crate::needs::{ClusterDemand, Demand, FoldShape, Folds, turns_of};

use super::choice::is_at_home;
use super::sources::Sources;

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

    /// Whether what a cluster holds decides if a gang of this shape is folded: no free machine could hold it, others could.
    pub(crate) fn asks_supply(&self, fold: u32) -> bool {
        let entry = self.entries[fold as usize];
        entry.possible && !entry.fits_free()
    }

    /// Whether some machine could hold a whole gang: one that is free, or that its cluster holds, or is being created
    /// for it, or drains on behalf of the need it would be folded into.
    fn fits(&self, gang: &Demand, supply: &Supply, sources: Sources<'_>) -> bool {
        let Some(folded) = &gang.gang else { return false };
        let entry = self.entries[folded.fold as usize];
        if entry.fits_free() || !entry.possible {
            return entry.fits_free();
        }
        let admitted = sources.sets.admits(gang.requirements);
        let holds = |class: u32| admitted.contains(class) && sources.classes.covers(class, &gang.aggregate);
        supply.all().iter().any(|held| holds(sources.classes.of_kind(held.kind)))
            || sources.index.holdings.draining(folded.key).iter().any(|m| holds(sources.class_of(*m)))
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

/// A cluster's demand after folding, in demand order, and the same in precedence order.
#[derive(Clone)]
pub(crate) struct Normal {
    pub(crate) rows: Arc<[Arc<Demand>]>,
    pub(crate) turns: Arc<[u32]>,
    /// For each row as reported, whether it was folded; empty if none was.
    pub(crate) folded: Vec<bool>,
}

/// Folds a cluster's demand. `before` is what came of it when it was last folded, to be used again if it still holds;
/// `slots` is scratch space, one entry an identity, all [`NONE`].
pub(crate) fn normalise(
    demand: &ClusterDemand,
    memory: &FoldMemory,
    sources: Sources<'_>,
    cluster: u32,
    before: Option<&Normal>,
    slots: &mut [u32],
) -> Normal {
    let untouched = || Normal { rows: demand.rows.clone(), turns: demand.turns.clone(), folded: Vec::new() };
    if demand.folds.is_empty() {
        return untouched();
    }
    let supply = sources.index.holdings.supply(cluster);
    let mut folded: Vec<bool> = demand.rows.iter().map(|row| memory.fits(row, supply, sources)).collect();
    stay_at_home(&demand.rows, &mut folded, supply, sources, slots);
    if !folded.contains(&true) {
        return untouched();
    }
    if let Some(before) = before.filter(|before| before.folded == folded) {
        let (rows, turns) = (before.rows.clone(), before.turns.clone());
        return Normal { rows, turns, folded };
    }
    let mut rows: Vec<Arc<Demand>> = Vec::with_capacity(demand.rows.len());
    let mut folding: Vec<&Arc<Demand>> = Vec::new();
    for (row, folds) in demand.rows.iter().zip(&folded) {
        if *folds { folding.push(row) } else { rows.push(row.clone()) }
    }
    // Gangs of one profile and size come to stand together; among themselves they keep demand order.
    let key = |row: &Demand| row.gang.as_ref().map(|gang| gang.key);
    folding.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.need.aggregate.cmp_by_name(&b.need.aggregate)));
    let alike = |a: &&Arc<Demand>, b: &&Arc<Demand>| key(a) == key(b) && a.need.aggregate == b.need.aggregate;
    rows.extend(folding.chunk_by(alike).map(|gangs| Arc::new(fold(gangs))));
    rows.sort_by(|a, b| a.cmp_in_cluster(b));
    let turns = turns_of(&rows);
    Normal { rows: rows.into(), turns, folded }
}

/// Gangs whose own machines in one domain cover them are not folded.
fn stay_at_home(
    rows: &[Arc<Demand>],
    folded: &mut [bool],
    supply: &Supply,
    sources: Sources<'_>,
    slots: &mut [u32],
) {
    let mut gangs: Vec<(usize, Vec<u32>)> = Vec::new();
    for (at, row) in rows.iter().enumerate().filter(|(at, _)| folded[*at]) {
        slots[row.key as usize] = gangs.len() as u32;
        gangs.push((at, Vec::new()));
    }
    if gangs.is_empty() {
        return;
    }
    for held in supply.all().iter().filter(|held| held.key != NONE) {
        let gang = slots[held.key as usize];
        if gang != NONE {
            gangs[gang as usize].1.push(held.kind);
        }
    }
    for (at, kinds) in gangs {
        let row = &*rows[at];
        slots[row.key as usize] = NONE;
        let counting = kinds.into_iter().filter(|kind| sources.counts(sources.classes.of_kind(*kind), row));
        if is_at_home(row, sources.classes, counting) {
            folded[at] = false;
        }
    }
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
        members: gangs.iter().map(|gang| gang.key).collect(),
    }
}
