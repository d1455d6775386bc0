//! What is free, set by set and domain by domain, kept from cycle to cycle.
//!
//! There are thousands of racks and few sets that gangs ask for, so a table is made once and then told what came and went: what
//! changed between two cycles, what was taken in one and, when that is over, what is free again. Each table hears of it when it is
//! next asked.

use std::sync::Arc;

use crate::classes::Classes;
use crate::intern::{Map, NONE};

use super::sets::SupplySet;
use super::totals::DomainTotals;

/// So much news is kept; when there is more, tables are made anew.
const NEWS: usize = 1 << 14;

/// A machine of a kind that came, or went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct News {
    pub(crate) kind: u32,
    pub(crate) came: bool,
}

/// What tables were made from.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Origin {
    /// How often classes were built anew.
    pub(super) generation: u64,
    /// Which numbering of sets.
    pub(super) sets: u64,
    /// How many resources there are.
    pub(super) dims: usize,
}

/// All tables that were asked for, and what happened since.
#[derive(Clone, Default)]
pub(crate) struct Tables {
    origin: Origin,
    by_set: Map<(u32, usize), Arc<DomainTotals>>,
    news: Arc<Vec<News>>,
}

impl Tables {
    /// Forgets everything unless it was made from this, or if too much happened since.
    pub(super) fn open(&mut self, origin: Origin) {
        if self.origin != origin || self.news.len() > NEWS {
            *self = Self { origin, ..Self::default() };
        }
    }

    /// Forgets everything.
    pub(super) fn forget(&mut self) {
        *self = Self { origin: self.origin, ..Self::default() };
    }

    /// Takes note of a machine that came or went.
    pub(super) fn note(&mut self, news: News) {
        Arc::make_mut(&mut self.news).push(news);
    }

    /// Takes note of what changed between two cycles.
    pub(super) fn note_all(&mut self, news: impl ExactSizeIterator<Item = News>) {
        if news.len() > NEWS {
            self.forget();
        } else if news.len() > 0 && !self.by_set.is_empty() {
            Arc::make_mut(&mut self.news).extend(news);
        }
    }

    /// The table of a set, if it is up to date.
    pub(super) fn get(&self, set: u32, domain: usize) -> &DomainTotals {
        &self.by_set[&(set, domain)]
    }

    /// Brings the table of a set up to the present; `make` makes it if there is none.
    pub(super) fn catch_up(
        &mut self,
        (number, set): (u32, &SupplySet),
        domain: usize,
        classes: &Classes,
        make: impl FnOnce(usize) -> DomainTotals,
    ) {
        let Self { by_set, news, .. } = self;
        let key = (number, domain);
        if by_set.get(&key).is_some_and(|table| table.domain_len() != classes.domain_len(domain)) {
            by_set.remove(&key);
        }
        let table = by_set.entry(key).or_insert_with(|| Arc::new(make(news.len())));
        if table.heard == news.len() {
            return;
        }
        let table = Arc::make_mut(table);
        for News { kind, came } in &news[table.heard..] {
            let class = classes.of_kind(*kind);
            let value = classes.domain_of_kind(domain, *kind);
            if value == NONE || !set.members.contains(class) {
                continue;
            }
            if *came {
                table.add(value, 1, classes.provides(class));
            } else {
                table.take(value, classes.provides(class));
            }
        }
        table.heard = news.len();
    }
}
