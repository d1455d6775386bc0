//! Forgetting what nobody uses any more.
//!
//! Dictionaries only grow while the fleet lives: a spot price that moves all day leaves a word behind with
//! every move, and a machine that is gone leaves its row. A shard runs for months, so the fleet moves into new
//! tables when what is left behind may outweigh what is used. A move costs about as much as a cycle from
//! scratch and comes only after as much new has been learned, so it adds a constant to the cost of learning.
//!
//! No decision depends on a number, only on what it stands for, so a move changes no decision. It happens at
//! the start of a cycle and drops all that was kept from earlier ones. Forks share nothing with the new tables.

use crate::classes::{Interest, RequirementSets};
use crate::cycle::Cache;
use crate::fleet::Fleet;
use crate::index::Index;
use crate::inventory::Row;
use crate::needs::Translator;
use crate::vocab::{Moving, Vocabulary};

/// Below this many bytes of words learned, a move is not worth it.
const WORDS_FLOOR_BYTES: usize = 1 << 20;

/// Below this many rows of removed machines, a move is not worth it.
const REMOVED_FLOOR: usize = 4096;

impl Fleet {
    /// Moves into new tables if what is left behind may outweigh what is used.
    pub(crate) fn compact_if_due(&mut self) {
        // What was learned before the first cycle is taken to be in use.
        let words = self.words_bytes();
        let kept = *self.words_kept_bytes.get_or_insert(words);
        let words_due = words > 2 * kept + WORDS_FLOOR_BYTES;
        let removed_due = self.inventory.removed() > self.inventory.len() + REMOVED_FLOOR;
        if words_due || removed_due {
            self.compact();
        }
    }

    /// Bytes of all words, in use or not.
    fn words_bytes(&self) -> usize {
        self.vocab.words_bytes() + self.sets.words_bytes() + self.needs.folds().words_bytes()
    }

    /// Forgets names, prices and machines that are not in use any more, and everything kept from earlier cycles.
    /// The next decision is the same, and answers about the last one are gone until then. Cycles do this
    /// themselves when it pays.
    pub fn compact(&mut self) {
        self.inventory.forget_removed();
        let mut vocab = Vocabulary::default();
        let mut moving = Moving::new(&self.vocab, &mut vocab);
        self.inventory.rewrite(|row| {
            *row = Row {
                kind: moving.kind(row.kind),
                cluster: moving.cluster(row.cluster),
                key: moving.key(row.key),
                worth: moving.worth(row.worth),
                terms: moving.terms(row.terms),
                draining_for: moving.key(row.draining_for),
                ..*row
            }
        });
        let (mut sets, mut interest) = (RequirementSets::default(), Interest::default());
        let mut translator =
            Translator { vocab: &mut vocab, requirements: &mut sets, interest: &mut interest };
        self.needs.translate_again(&self.vocab, &mut translator);
        (self.vocab, self.sets, self.interest) = (vocab, sets, interest);
        (self.index, self.cache) = (Index::default(), Cache::default());
        self.words_kept_bytes = Some(self.words_bytes());
    }
}
