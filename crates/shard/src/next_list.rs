//! When a provider is listed next.
//!
//! A provider ends moves in its own time and tells nobody: we hear of it when we list. So while a provider carries
//! something out for us it is listed often, and otherwise at leisure. Two things hold the haste back: what has taken long
//! may take longer, and listings must not become most of what a provider does (see docs/adr/0012).

use crate::event::ProviderId;
use crate::flight::Stage;
use crate::provider::Listing;
use crate::shard::Shard;
use crate::table::{Care, Slot};
use crate::timers::Timer;

/// While we are in haste, at most one part of the time in so many is spent on listings of everything.
const PARTS_FOR_ALL: i64 = 10;
/// The same for listings of changes, whose work follows what changed: most of their time is spent waiting.
const PARTS_FOR_CHANGES: i64 = 3;
/// News of a move that has taken so many seconds may come a second later.
const PARTS_OF_AGE: i64 = 10;

impl Shard {
    /// Sets the one instant at which a provider is listed next. Whatever was set before no longer holds.
    pub(crate) fn list_at(&mut self, id: ProviderId, at: i64) {
        self.providers[id.0 as usize].next_list = at;
        self.timers.set(at, Timer::List(id, at));
    }

    /// Whether a timer is the one that holds.
    pub(crate) fn is_next_list(&self, id: ProviderId, at: i64) -> bool {
        self.providers[id.0 as usize].next_list == at
    }

    /// Notes that a machine may be on its way somewhere. Whether it is, is looked at when the next listing has ended.
    pub(crate) fn may_move(&mut self, slot: Slot) {
        let row = self.table.row(slot);
        if row.machine.state.is_transitional() {
            self.providers[row.provider.0 as usize].moving.insert(slot);
        }
    }

    /// A provider has accepted a move: its end is worth an early look. A provider in trouble is left alone.
    pub(crate) fn list_soon(&mut self, id: ProviderId, now: i64) {
        let index = id.0 as usize;
        let provider = &self.providers[index];
        if provider.listing.is_some() || provider.failures > 0 {
            return;
        }
        let at = (now + self.config.providers[index].list_while_moving).max(provider.rests_until);
        if at < provider.next_list {
            self.list_at(id, at);
        }
    }

    /// A listing has ended: sets when the next one begins.
    pub(crate) fn list_again(&mut self, id: ProviderId, ended: Listing, now: i64) {
        let index = id.0 as usize;
        let next_is_full = self.wants_full_list(id, now);
        let latest = self.last_move(id);
        let (provider, settings) = (&mut self.providers[index], &self.config.providers[index]);
        let took = now.saturating_sub(ended.begun).max(0);
        if ended.full {
            provider.full_took = took;
        } else {
            provider.changes_took = took;
        }
        let (takes, parts) = if next_is_full {
            (provider.full_took, PARTS_FOR_ALL)
        } else {
            (provider.changes_took, PARTS_FOR_CHANGES)
        };
        let rest = takes.saturating_mul(parts - 1).min(settings.list_every);
        provider.rests_until = now + rest;
        let wait = latest.map_or(settings.list_every, |latest| {
            let age = now.saturating_sub(latest);
            settings.list_while_moving.max(age / PARTS_OF_AGE).max(rest).min(settings.list_every)
        });
        self.list_at(id, now + wait);
    }

    /// When the latest of the moves that a provider has under way began, if there is one. Machines that are overdue or
    /// failed are asked about one by one.
    fn last_move(&mut self, id: ProviderId) -> Option<i64> {
        let mut moving = std::mem::take(&mut self.providers[id.0 as usize].moving);
        let mut latest = None;
        moving.retain(|slot| {
            let moves = self.table.get(*slot).filter(|row| {
                let known = row.flight.as_ref().map(|flight| flight.stage);
                let begun = known.is_none_or(Stage::provider_may_know);
                row.provider == id && row.machine.state.is_transitional() && begun && row.care == Care::Fine
            });
            latest = latest.max(moves.map(|row| row.since.max(row.touched)));
            moves.is_some()
        });
        self.providers[id.0 as usize].moving = moving;
        latest
    }
}
