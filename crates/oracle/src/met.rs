//! Which rules decided, counted on the way.
//!
//! A rule that random fleets never meet is a rule nobody compares. So the places where rules decide say so, and
//! a test asks whether all of them do.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

/// How often each rule decided, by name; nothing at all if nobody asked.
#[derive(Default)]
pub(crate) struct Met(Option<RefCell<BTreeMap<String, u64>>>);

impl Met {
    /// Counts.
    pub(crate) fn counting() -> Self {
        Self(Some(RefCell::default()))
    }

    /// Whether anybody asked.
    pub(crate) fn counts(&self) -> bool {
        self.0.is_some()
    }

    /// Notes that a rule decided.
    pub(crate) fn note(&self, rule: fmt::Arguments<'_>) {
        if let Some(counts) = &self.0 {
            *counts.borrow_mut().entry(rule.to_string()).or_insert(0) += 1;
        }
    }

    /// Notes it if it did.
    pub(crate) fn note_if(&self, decided: bool, rule: &str) {
        if decided {
            self.note(format_args!("{rule}"));
        }
    }

    /// Everything that was noted.
    pub(crate) fn into_counts(self) -> BTreeMap<String, u64> {
        self.0.map(RefCell::into_inner).unwrap_or_default()
    }
}

/// One question of an order, and how two compare in it.
pub(crate) type Question<'a> = (&'static str, &'a dyn Fn() -> Ordering);

/// The first question in which two differ, and how they do; equal in none is equal by "nothing".
pub(crate) fn first_difference(questions: &[Question<'_>]) -> (&'static str, Ordering) {
    let answers = questions.iter().map(|(name, compare)| (*name, compare()));
    answers.into_iter().find(|(_, order)| order.is_ne()).unwrap_or(("nothing", Ordering::Equal))
}
