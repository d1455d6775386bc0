//! The indexes over the inventory, and how they follow it.
//!
//! Each index answers one question of a phase without looking at the fleet. Changes are applied one machine
//! at a time. When most of the fleet changed, everything is built anew in one pass over the ids; when needs
//! begin to ask about a new key, only what depends on classes is.

use std::sync::{Arc, OnceLock};

use bigfleet_model::machine::MachineState;

use crate::bits::Bits;
use crate::classes::{Classes, Interest};
use crate::cycle::News;
use crate::holdings::Holdings;
use crate::intern::NONE;
use crate::inventory::{Inventory, Row};
use crate::lots::{Lots, Newcomer, Place};
use crate::vocab::Vocabulary;

/// All indexes.
#[derive(Clone, Default)]
pub(crate) struct Index {
    pub(crate) holdings: Holdings,
    pub(crate) classes: Arc<Classes>,
    pub(crate) free: Arc<Lots>,
    /// Configured machines by what they are worth as victims; made when first needed.
    pub(crate) bound: Option<Arc<Lots>>,
    /// How many Idle and how many Speculative machines there are of each class.
    free_count: [Vec<u32>; 2],
    /// The classes that have any.
    free_classes: [Bits; 2],
    /// How many live machines there are of each class, free or not; counted when first asked for.
    live_count: OnceLock<Vec<u32>>,
    /// The lots of free machines that changed, for the cycle that comes.
    pub(crate) touched_lots: Vec<u32>,
    /// The free machines that came or went, likewise.
    pub(crate) free_news: Vec<News>,
    /// Grows when a class gains its first Idle or Speculative machine or loses its last.
    pub(crate) presence: u64,
    /// The interest the classes were built for; `None` before there are any.
    interest: Option<u64>,
    /// How often the classes were built anew.
    pub(crate) generation: u64,
    built: bool,
}

/// What a free machine asks for, as far as it is the machine's own: its terms, whether it still has to be bought, and
/// whether it is rented by the hour although it stands idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FreeTerms {
    pub(crate) terms: u32,
    pub(crate) speculative: bool,
    pub(crate) idle_elastic: bool,
}

/// The rank of a free machine: its [`FreeTerms`] as one number.
pub(crate) fn free_rank(row: &Row) -> u32 {
    let speculative = is_speculative(row);
    let idle_elastic = !speculative && row.capacity.is_elastic();
    row.terms << 2 | u32::from(idle_elastic) << 1 | u32::from(speculative)
}

fn is_speculative(row: &Row) -> bool {
    row.state == Some(MachineState::Speculative)
}

/// What a free rank stands for.
pub(crate) fn split_free_rank(rank: u32) -> FreeTerms {
    FreeTerms { terms: rank >> 2, speculative: rank & 1 == 1, idle_elastic: rank >> 1 & 1 == 1 }
}

fn is_free(row: &Row) -> bool {
    matches!(row.state, Some(MachineState::Idle | MachineState::Speculative))
}

/// Whether a machine may serve somebody now or later: everything but Deleting and Failed.
pub(crate) fn is_live(row: &Row) -> bool {
    !matches!(row.state, None | Some(MachineState::Deleting | MachineState::Failed))
}

fn is_configured(row: &Row) -> bool {
    row.state == Some(MachineState::Configured) && row.cluster != NONE
}

impl Index {
    /// Catches up with the inventory. True if the classes were built anew.
    pub(crate) fn settle(
        &mut self,
        inventory: &mut Inventory,
        vocab: &Vocabulary,
        interest: &Interest,
    ) -> bool {
        inventory.number_new_ids();
        let changes = inventory.take_changes();
        let bulk = !self.built || changes.len() > 1024 + inventory.len() / 8;
        if bulk {
            self.holdings.rebuild(inventory, vocab);
            self.built = true;
        } else {
            self.holdings.follow(&changes, inventory, vocab);
        }
        if bulk || self.interest != Some(interest.revision()) || self.free.is_sparse() {
            self.rebuild_classes(inventory, vocab, interest);
            return true;
        }
        self.follow_classes(&changes, inventory, vocab);
        // It is made again when victims are next looked for.
        self.bound.take_if(|bound| bound.is_sparse());
        false
    }

    /// Forgets everything that depends on what needs ask about.
    pub(crate) fn forget_classes(&mut self) {
        self.interest = None;
    }

    fn rebuild_classes(&mut self, inventory: &Inventory, vocab: &Vocabulary, interest: &Interest) {
        let mut classes = Classes::new(interest);
        classes.extend(vocab);
        self.generation += 1;
        self.interest = Some(interest.revision());
        self.presence += 1;
        self.bound = None;
        self.touched_lots.clear();
        self.free_news.clear();
        self.free_count = [vec![0; classes.len()], vec![0; classes.len()]];
        self.free_classes = [Bits::default(), Bits::default()];
        self.live_count = OnceLock::new();
        let mut free = Vec::new();
        for (machine, row) in inventory.rows().filter(|(_, row)| is_free(row)) {
            let class = classes.of_kind(row.kind);
            let list = usize::from(is_speculative(row));
            self.free_count[list][class as usize] += 1;
            self.free_classes[list].insert(class);
            let place = Place { class, rank: free_rank(row), kind: row.kind };
            free.push(Newcomer { machine, order: row.order, place });
        }
        self.free = Arc::new(Lots::build(&free, &classes));
        self.classes = Arc::new(classes);
    }

    fn follow_classes(&mut self, changes: &[(u32, Row)], inventory: &Inventory, vocab: &Vocabulary) {
        if self.classes.is_behind(vocab) {
            Arc::make_mut(&mut self.classes).extend(vocab);
        }
        self.free_count.iter_mut().for_each(|count| count.resize(self.classes.len(), 0));
        if let Some(live) = self.live_count.get_mut() {
            live.resize(self.classes.len(), 0);
        }
        let classes = &*self.classes;
        for (machine, old) in changes {
            let new = inventory.row(*machine);
            let class = |row: &Row| classes.of_kind(row.kind);
            if let Some(live) = self.live_count.get_mut() {
                if is_live(old) {
                    live[class(old) as usize] -= 1;
                }
                if is_live(new) {
                    live[class(new) as usize] += 1;
                }
            }
            if is_free(old) {
                let place = Place { class: class(old), rank: free_rank(old), kind: old.kind };
                let lot = Arc::make_mut(&mut self.free).remove(*machine, place, classes, inventory);
                self.touched_lots.push(lot);
                self.free_news.push(News { kind: old.kind, came: false });
                let list = usize::from(is_speculative(old));
                let count = &mut self.free_count[list][place.class as usize];
                *count -= 1;
                if *count == 0 {
                    self.free_classes[list].remove(place.class);
                    self.presence += 1;
                }
            }
            if is_free(new) {
                let place = Place { class: class(new), rank: free_rank(new), kind: new.kind };
                let lot = Arc::make_mut(&mut self.free).insert(*machine, place, classes, inventory);
                self.touched_lots.push(lot);
                self.free_news.push(News { kind: new.kind, came: true });
                let list = usize::from(is_speculative(new));
                let count = &mut self.free_count[list][place.class as usize];
                *count += 1;
                if *count == 1 {
                    self.free_classes[list].insert(place.class);
                    self.presence += 1;
                }
            }
            let Some(bound) = &mut self.bound else { continue };
            if is_configured(old) {
                let place = Place { class: class(old), rank: old.worth, kind: old.kind };
                Arc::make_mut(bound).remove(*machine, place, classes, inventory);
            }
            if is_configured(new) {
                let place = Place { class: class(new), rank: new.worth, kind: new.kind };
                Arc::make_mut(bound).insert(*machine, place, classes, inventory);
            }
        }
    }

    /// Makes the index of bound machines by worth, unless it is there.
    pub(crate) fn ensure_bound(&mut self, inventory: &Inventory) {
        let classes = &self.classes;
        self.bound.get_or_insert_with(|| {
            let bound = inventory.rows().filter(|(_, row)| is_configured(row)).map(|(machine, row)| {
                let place = Place { class: classes.of_kind(row.kind), rank: row.worth, kind: row.kind };
                Newcomer { machine, order: row.order, place }
            });
            Arc::new(Lots::build(&bound.collect::<Vec<_>>(), classes))
        });
    }

    /// The bound machines of some classes that were bound below a priority, by worth.
    pub(crate) fn bound_among(
        &self,
        inventory: &Inventory,
        vocab: &Vocabulary,
        wanted: &Bits,
        below: i32,
    ) -> Lots {
        let classes = &self.classes;
        let lower: Vec<bool> =
            (0..vocab.worth_count()).map(|worth| vocab.worth_of(worth).priority < below).collect();
        let bound = inventory.decided_rows();
        let bound = bound.filter(|(_, row)| is_configured(row) && lower[row.worth as usize]);
        let bound = bound.filter_map(|(machine, row)| {
            let class = classes.of_kind(row.kind);
            let place = Place { class, rank: row.worth, kind: row.kind };
            wanted.contains(class).then_some(Newcomer { machine, order: row.order, place })
        });
        Lots::build(&bound.collect::<Vec<_>>(), classes)
    }

    /// Whether there are free machines of a class.
    #[inline]
    pub(crate) fn is_any_free(&self, class: u32) -> bool {
        self.free_classes.iter().any(|classes| classes.contains(class))
    }

    /// How many free machines there are of a class.
    pub(crate) fn free_count(&self, class: u32) -> u32 {
        self.free_count.iter().map(|count| count[class as usize]).sum()
    }

    /// How many free machines there are of each class.
    pub(crate) fn free_counts(&self) -> Vec<u32> {
        let [idle, speculative] = &self.free_count;
        idle.iter().zip(speculative).map(|(idle, speculative)| idle + speculative).collect()
    }

    /// How many live machines there are of each class, free or not, as of the last cycle.
    pub(crate) fn live_count(&self, inventory: &Inventory) -> &[u32] {
        self.live_count.get_or_init(|| {
            let mut live = vec![0; self.classes.len()];
            for (_, row) in inventory.decided_rows().filter(|(_, row)| is_live(row)) {
                live[self.classes.of_kind(row.kind) as usize] += 1;
            }
            live
        })
    }

    /// The lot a free machine is in.
    pub(crate) fn free_lot(&self, class: u32, row: &Row) -> u32 {
        self.free.find(class, free_rank(row)).expect("a free machine is in a lot")
    }

    /// Bytes held, for the memory report.
    pub(crate) fn heap_bytes(&self) -> usize {
        let bound = self.bound.as_ref().map_or(0, |bound| bound.heap_bytes());
        self.holdings.heap_bytes() + self.classes.heap_bytes() + self.free.heap_bytes() + bound
    }
}
