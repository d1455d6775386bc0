//! Pods about which something may have to be done, in order of arrival.
//!
//! Pods that ask for capacity go first: ten thousand leftovers must not keep a new pod waiting. Every fourth is a leftover
//! even so, for they must go some day.

use std::collections::{BTreeSet, VecDeque};

use super::Uid;

/// How many that ask are served before one leftover.
const ASKING_IN_A_ROW: u32 = 3;

/// Why a pod is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// It asks for capacity.
    Asking,
    /// Something is to be tidied up.
    Tidying,
}

/// The two queues. A pod is in at most one of them, once.
#[derive(Debug, Default)]
pub(super) struct Queue {
    queued: BTreeSet<Uid>,
    asking: VecDeque<Uid>,
    tidying: VecDeque<Uid>,
    asking_in_a_row: u32,
}

impl Queue {
    pub(super) fn push(&mut self, uid: Uid, urgency: Urgency) {
        if self.queued.insert(uid.clone()) {
            match urgency {
                Urgency::Asking => self.asking.push_back(uid),
                Urgency::Tidying => self.tidying.push_back(uid),
            }
        }
    }

    pub(super) fn pop(&mut self) -> Option<Uid> {
        let tidy_first = self.asking_in_a_row >= ASKING_IN_A_ROW;
        let asking = if tidy_first && !self.tidying.is_empty() { None } else { self.asking.pop_front() };
        self.asking_in_a_row = if asking.is_some() { self.asking_in_a_row.saturating_add(1) } else { 0 };
        let uid = asking.or_else(|| self.tidying.pop_front())?;
        self.queued.remove(&uid);
        Some(uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_ask_go_first_and_leftovers_go_some_day() {
        let mut queue = Queue::default();
        for leftover in ["x", "y", "z", "x"] {
            queue.push(leftover.into(), Urgency::Tidying);
        }
        for asking in ["a", "b", "c", "d", "a"] {
            queue.push(asking.into(), Urgency::Asking);
        }
        let order: Vec<Uid> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order.join(" "), "a b c x d y z");
        queue.push("a".into(), Urgency::Asking);
        assert_eq!(queue.pop().as_deref(), Some("a"), "one that was served may come again");
    }
}
