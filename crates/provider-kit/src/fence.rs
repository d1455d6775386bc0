//! The fence: what keeps a superseded shard from moving machines.
//!
//! Each call carries who sends it, in which life of the sender, and at which place in that life. Per pair of
//! shard and machine the highest such place is remembered, durably; whatever is not above it is refused. The
//! pair matters: calls for different machines may overtake each other, calls for one machine may not.
//!
//! Marks for machines that exist are kept. Anybody can also send tokens for machines that do not, and each of
//! those must leave a mark too; so these are bounded, and the ones moved longest ago are forgotten first.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// How many shards are remembered per machine.
const SHARDS_PER_MACHINE: usize = 1024;
/// How many marks are kept for machines that do not exist.
const STRANGERS: usize = 8192;
/// How many bytes of names these may take.
const STRANGER_BYTES: usize = 8 << 20;

/// A place in the life of a shard. Any integers; negative ones are ordinary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// Which life.
    pub epoch: i64,
    /// Which place in it.
    pub sequence: i64,
}

/// Who sends a call, and from where in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The sender.
    pub shard_id: String,
    /// Its place.
    pub mark: Mark,
}

impl Token {
    /// The token of a request, or none if the caller does not fence: only all three fields empty means that.
    /// Zero and zero from a named shard is a place like any other.
    pub fn new(shard_id: String, epoch: i64, sequence: i64) -> Option<Self> {
        let fenced = !(shard_id.is_empty() && epoch == 0 && sequence == 0);
        fenced.then_some(Self { shard_id, mark: Mark { epoch, sequence } })
    }

    /// Whether this token may pass a fence that stands at `mark`.
    pub fn passes(&self, mark: Option<Mark>) -> bool {
        mark.is_none_or(|mark| self.mark > mark)
    }
}

/// A mark that was moved, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarkMove {
    pub(crate) machine_id: String,
    pub(crate) shard_id: String,
    pub(crate) mark: Mark,
}

/// Which mark: machine, then shard.
pub(crate) type MarkKey = (Arc<str>, Arc<str>);

/// All marks in memory.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    by_machine: HashMap<Arc<str>, Vec<Entry>, FixedState>,
    /// Marks for machines that do not exist, by when they moved.
    strangers: BTreeMap<u64, MarkKey>,
    stranger_bytes: usize,
    moves: u64,
}

#[derive(Debug)]
struct Entry {
    shard: Arc<str>,
    mark: Mark,
    moved: u64,
}

impl Marks {
    /// Where the fence stands for a pair.
    pub(crate) fn get(&self, machine_id: &str, shard_id: &str) -> Option<Mark> {
        let entries = self.by_machine.get(machine_id)?;
        entries.iter().find(|entry| &*entry.shard == shard_id).map(|entry| entry.mark)
    }

    /// How many times marks have moved; stored with each, so that their order survives a restart.
    pub(crate) fn moves(&self) -> u64 {
        self.moves
    }

    /// How many marks belong to machines that do not exist.
    pub(crate) fn strangers(&self) -> usize {
        self.strangers.len()
    }

    /// Moves a mark, and names those that had to be forgotten for it.
    pub(crate) fn put(&mut self, step: &MarkMove, known: bool) -> Vec<MarkKey> {
        self.moves += 1;
        let moved = self.moves;
        let machine: Arc<str> = match self.by_machine.get_key_value(step.machine_id.as_str()) {
            Some((machine, _)) => machine.clone(),
            None => step.machine_id.as_str().into(),
        };
        let entries = self.by_machine.entry(machine.clone()).or_default();
        let shard = if let Some(entry) = entries.iter_mut().find(|entry| *entry.shard == *step.shard_id) {
            self.strangers.remove(&entry.moved);
            entry.mark = step.mark;
            entry.moved = moved;
            entry.shard.clone()
        } else {
            let shard: Arc<str> = step.shard_id.as_str().into();
            entries.push(Entry { shard: shard.clone(), mark: step.mark, moved });
            if !known {
                self.stranger_bytes += machine.len() + shard.len();
            }
            shard
        };
        let crowded = entries.len() > SHARDS_PER_MACHINE;
        let oldest = entries.iter().min_by_key(|entry| entry.moved).map(|entry| entry.shard.clone());
        if !known {
            self.strangers.insert(moved, (machine.clone(), shard));
        }
        let mut forgotten = Vec::new();
        if let (true, Some(oldest)) = (crowded, oldest) {
            forgotten.push((machine, oldest));
        }
        self.forget_strangers(&mut forgotten);
        for key in &forgotten {
            self.remove(key);
        }
        forgotten
    }

    /// A machine has come into being: its marks are no longer a stranger's.
    pub(crate) fn adopt(&mut self, machine_id: &str) {
        for entry in self.by_machine.get(machine_id).into_iter().flatten() {
            if self.strangers.remove(&entry.moved).is_some() {
                self.stranger_bytes -= machine_id.len() + entry.shard.len();
            }
        }
    }

    fn forget_strangers(&self, forgotten: &mut Vec<MarkKey>) {
        let (mut count, mut bytes) = (self.strangers.len(), self.stranger_bytes);
        for key in self.strangers.values() {
            if count <= STRANGERS && bytes <= STRANGER_BYTES {
                break;
            }
            count -= 1;
            bytes -= key.0.len() + key.1.len();
            forgotten.push(key.clone());
        }
    }

    fn remove(&mut self, (machine, shard): &MarkKey) {
        let Some(entries) = self.by_machine.get_mut(machine) else { return };
        let Some(at) = entries.iter().position(|entry| entry.shard == *shard) else { return };
        let entry = entries.swap_remove(at);
        if self.strangers.remove(&entry.moved).is_some() {
            self.stranger_bytes -= machine.len() + shard.len();
        }
        if entries.is_empty() {
            self.by_machine.remove(machine);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(machine: &str, shard: &str, sequence: i64) -> MarkMove {
        let mark = Mark { epoch: 1, sequence };
        MarkMove { machine_id: machine.into(), shard_id: shard.into(), mark }
    }

    #[test]
    fn only_an_entirely_empty_token_is_no_token() {
        assert_eq!(Token::new(String::new(), 0, 0), None);
        assert!(Token::new("s".into(), 0, 0).is_some());
        assert!(Token::new(String::new(), 1, 0).is_some());
        assert!(Token::new(String::new(), 0, -1).is_some());
    }

    #[test]
    fn a_token_must_be_strictly_above_the_mark() {
        let at = |epoch, sequence| Mark { epoch, sequence };
        let token = Token::new("s".into(), 2, 5).unwrap();
        for (mark, passes) in [
            (None, true),
            (Some(at(2, 4)), true),
            (Some(at(1, 900)), true),
            (Some(at(-3, 900)), true),
            (Some(at(2, 5)), false),
            (Some(at(2, 6)), false),
            (Some(at(3, -9)), false),
        ] {
            assert_eq!(token.passes(mark), passes, "{mark:?}");
        }
        let negative = Token::new("s".into(), -2, -5).unwrap();
        assert!(negative.passes(Some(at(-2, -6))));
        assert!(!negative.passes(Some(at(-2, -5))));
    }

    #[test]
    fn marks_are_kept_per_shard_and_machine() {
        let mut marks = Marks::default();
        marks.put(&step("m", "a", 7), true);
        assert_eq!(marks.get("m", "a"), Some(Mark { epoch: 1, sequence: 7 }));
        assert_eq!(marks.get("m", "b"), None);
        assert_eq!(marks.get("n", "a"), None);
    }

    #[test]
    fn junk_machines_are_bounded_and_real_ones_are_not_forgotten() {
        let mut marks = Marks::default();
        marks.put(&step("real", "a", 1), true);
        let mut forgotten = 0;
        for index in 0..STRANGERS + 10 {
            forgotten += marks.put(&step(&format!("junk-{index}"), "a", 1), false).len();
        }
        assert_eq!((marks.strangers(), forgotten), (STRANGERS, 10));
        assert_eq!(marks.get("junk-0", "a"), None, "moved longest ago");
        assert!(marks.get("real", "a").is_some());
        assert!(marks.get(&format!("junk-{}", STRANGERS + 9), "a").is_some());
    }

    #[test]
    fn long_names_are_bounded_by_their_bytes() {
        let mut marks = Marks::default();
        let long = "x".repeat(4096);
        for index in 0..STRANGER_BYTES / 4096 + 10 {
            marks.put(&step(&format!("{index}{long}"), "a", 1), false);
        }
        assert!(marks.stranger_bytes <= STRANGER_BYTES);
        assert!(marks.strangers() < STRANGERS);
    }

    #[test]
    fn moving_a_stranger_again_keeps_the_books_straight() {
        let mut marks = Marks::default();
        for sequence in 0..50 {
            marks.put(&step("junk", "a", sequence), false);
        }
        assert_eq!((marks.strangers(), marks.stranger_bytes), (1, 5));
        marks.adopt("junk");
        assert_eq!((marks.strangers(), marks.stranger_bytes), (0, 0));
        assert!(marks.get("junk", "a").is_some());
    }

    #[test]
    fn shards_per_machine_are_bounded_too() {
        let mut marks = Marks::default();
        for index in 0..=SHARDS_PER_MACHINE {
            marks.put(&step("m", &format!("s{index}"), 1), true);
        }
        assert_eq!(marks.get("m", "s0"), None);
        assert!(marks.get("m", "s1").is_some());
    }
}
