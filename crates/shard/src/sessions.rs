//! Sessions: one operator per cluster, the newest wins, and each begins with the whole truth.

use std::sync::Arc;

use crate::cluster::{ACKS_DONE, adds};
use crate::effect::{Effect, Frame, HangUp, Step};
use crate::event::SessionId;
use crate::flight::Stage;
use crate::shard::Shard;
use crate::table::Slot;

impl Shard {
    /// An operator came, and may speak for this cluster. A later hello on the same connection is answered again.
    pub(crate) fn open_session(
        &mut self,
        session: SessionId,
        name: &Arc<str>,
        protocol: Box<str>,
        now: i64,
        step: &mut Step,
    ) {
        if self.sessions.get(&session).is_some_and(|spoke_for| spoke_for != name) {
            self.close_session(session, now, step);
        }
        let cluster = self.clusters.entry(name.clone()).or_default();
        let before = cluster.session.replace(session);
        cluster.acks_done = adds(&protocol, ACKS_DONE);
        cluster.protocol = protocol;
        cluster.operator_backoff_until_unix_nanos = 0;
        if let Some(before) = before.filter(|before| *before != session) {
            step.effects.push(Effect::HangUp { session: before, why: HangUp::Replaced });
            self.sessions.remove(&before);
        }
        if before != Some(session) {
            cluster.session_since_unix_nanos = now;
        }
        let bound: Vec<Slot> = cluster.bound.iter().copied().collect();
        let wanted = cluster.demand.len();
        self.sessions.insert(session, name.clone());
        self.hints.forget(name, wanted);
        step.effects.push(Effect::Send { session, frame: Frame::HelloAck });
        for slot in bound {
            let machine = self.table.row(slot).machine.clone();
            step.effects.push(Effect::Send { session, frame: Frame::Node(machine) });
            match self.stage(slot) {
                Some(Stage::LettingGo(_)) => self.announce(slot, now, step),
                // The connection that was asked is gone, and with it the answer.
                Some(Stage::Blob(_)) if before != Some(session) => {
                    self.no_blob(slot, "its operator reconnected before it answered", now, step);
                }
                _ => {}
            }
        }
        // What was withheld because nobody was there to take it may go ahead.
        self.news.demand = true;
    }

    /// A connection ended. Nobody waits for answers that cannot come.
    pub(crate) fn close_session(&mut self, session: SessionId, now: i64, step: &mut Step) {
        let Some(name) = self.sessions.remove(&session) else { return };
        let Some(cluster) = self.clusters.get_mut(&name) else { return };
        if cluster.session != Some(session) {
            return;
        }
        cluster.session = None;
        cluster.closed_unix_nanos = now;
        let bound: Vec<Slot> = cluster.bound.iter().copied().collect();
        for slot in bound {
            if matches!(self.stage(slot), Some(Stage::Blob(_))) {
                self.no_blob(slot, "its operator went away before it answered", now, step);
            }
        }
    }
}
