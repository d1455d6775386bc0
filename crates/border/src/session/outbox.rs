//! What waits to be sent to one operator.
//!
//! Newer news about the same thing replaces the older while it waits, in its place: a machine that changed three times
//! is told once, as it is now. So replaceable frames are as many as there are things to tell about, however slowly the
//! other end reads. Frames that cannot be replaced are few; when they pile up the other end has stopped reading, and
//! holding on to it would only cost memory.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use thiserror::Error;

/// The other end does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{waiting} frames wait; the operator does not read")]
pub struct Full {
    /// How many wait.
    pub waiting: usize,
}

/// Frames in the order in which they will be sent.
#[derive(Debug)]
pub struct Outbox<T> {
    waiting: VecDeque<(Option<String>, T)>,
    /// The place of each replaceable frame, counted from the first frame ever.
    places: HashMap<String, u64, FixedState>,
    /// How many frames were taken.
    taken: u64,
    most_plain: usize,
    most_replaceable: usize,
}

impl<T> Outbox<T> {
    /// Room for so many frames that cannot be replaced. Of the others there may be many more: one per machine.
    pub fn new(most_plain: usize) -> Self {
        let most_replaceable = most_plain.saturating_mul(64);
        Self { waiting: VecDeque::new(), places: HashMap::default(), taken: 0, most_plain, most_replaceable }
    }

    /// Puts a frame at the end, or in the place of the one it replaces.
    pub fn push(&mut self, key: Option<String>, frame: T) -> Result<(), Full> {
        let full = Full { waiting: self.waiting.len() };
        let Some(key) = key else {
            if self.waiting.len() - self.places.len() >= self.most_plain {
                return Err(full);
            }
            self.waiting.push_back((None, frame));
            return Ok(());
        };
        if let Some(place) = self.places.get(&key) {
            self.waiting[(place - self.taken) as usize].1 = frame;
            return Ok(());
        }
        if self.places.len() >= self.most_replaceable {
            return Err(full);
        }
        self.places.insert(key.clone(), self.taken + self.waiting.len() as u64);
        self.waiting.push_back((Some(key), frame));
        Ok(())
    }

    /// The next frame to send.
    pub fn pop(&mut self) -> Option<T> {
        let (key, frame) = self.waiting.pop_front()?;
        self.taken += 1;
        if let Some(key) = key {
            self.places.remove(&key);
        }
        self.give_back_room();
        Some(frame)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Forgets everything that waits.
    pub fn clear(&mut self) {
        self.taken += self.waiting.len() as u64;
        self.waiting.clear();
        self.places.clear();
        self.give_back_room();
    }

    /// A line that was long once, when its session began, need not keep the room for it.
    fn give_back_room(&mut self) {
        if self.waiting.is_empty() {
            self.waiting = VecDeque::new();
            self.places = HashMap::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A frame for one of a few keys, one without, or somebody who reads so many.
    #[derive(Clone, Debug)]
    enum Act {
        Push(Option<u8>),
        Pop(u8),
        Clear,
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            6 => proptest::option::of(0..5_u8).prop_map(Act::Push),
            3 => (0..4_u8).prop_map(Act::Pop),
            1 => Just(Act::Clear),
        ]
    }

    proptest! {
        /// Against the simplest thing that could be right: a list in which the newest of a key takes the oldest's place.
        #[test]
        fn the_newest_of_each_key_is_sent_in_the_place_of_the_first(acts in vec(act(), 0..120), most in 1..4_usize) {
            let mut outbox = Outbox::new(most);
            let mut plain: Vec<(Option<u8>, usize)> = Vec::new();
            let mut newest_taken: BTreeMap<u8, usize> = BTreeMap::new();
            for (number, act) in acts.into_iter().enumerate() {
                match act {
                    Act::Push(key) => {
                        let held = plain.iter().filter(|(key, _)| key.is_none()).count();
                        let pushed = outbox.push(key.map(|key| key.to_string()), number);
                        if key.is_none() && held == most {
                            prop_assert_eq!(pushed, Err(Full { waiting: plain.len() }));
                            continue;
                        }
                        prop_assert_eq!(pushed, Ok(()));
                        match plain.iter_mut().find(|(other, _)| key.is_some() && *other == key) {
                            Some(place) => place.1 = number,
                            None => plain.push((key, number)),
                        }
                    }
                    Act::Pop(count) => for _ in 0..count {
                        let expected = (!plain.is_empty()).then(|| plain.remove(0));
                        prop_assert_eq!(outbox.pop(), expected.map(|(_, number)| number));
                        if let Some((Some(key), number)) = expected {
                            let before = newest_taken.insert(key, number);
                            prop_assert!(before < Some(number), "key {} went back in time", key);
                        }
                    },
                    Act::Clear => { outbox.clear(); plain.clear(); }
                }
                prop_assert_eq!(outbox.len(), plain.len());
            }
        }
    }

    #[test]
    fn replaceable_frames_do_not_fill_it() {
        let mut outbox = Outbox::new(1);
        for round in 0..1000 {
            assert_eq!(outbox.push(Some("a".into()), round), Ok(()));
        }
        assert_eq!(outbox.push(None, 1), Ok(()));
        assert_eq!(outbox.push(None, 2), Err(Full { waiting: 2 }));
        assert_eq!((outbox.pop(), outbox.pop(), outbox.pop()), (Some(999), Some(1), None));
    }

    #[test]
    fn even_replaceable_frames_have_a_bound() {
        let mut outbox = Outbox::new(1);
        for key in 0..64 {
            assert_eq!(outbox.push(Some(key.to_string()), key), Ok(()));
        }
        assert_eq!(outbox.push(Some("one more".into()), 64), Err(Full { waiting: 64 }));
        assert_eq!(outbox.push(Some("0".into()), 65), Ok(()), "this one is replaced");
    }
}
