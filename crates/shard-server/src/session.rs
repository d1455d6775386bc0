//! Sessions: the connections of operators.
//!
//! A session is three things that never wait for one another: a task that reads what the operator sends, a [`Line`] with
//! what waits to be sent to it, and the response stream that takes from the line whenever the connection has room. The
//! committer puts frames on lines and goes on; a line whose reader has stopped fills up and is dropped, and nobody else
//! notices.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bigfleet_border::session::Context;
use bigfleet_net::Clock;
use bigfleet_shard::{Frame, HangUp, SessionId};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use tokio::sync::Semaphore;
use tonic::Status;

use crate::coordinator::Bindings;
use crate::core::Core;
use crate::metrics::Metrics;

mod line;
mod reader;
mod rollups;

pub(crate) use line::Line;
pub(crate) use reader::SessionService;

/// All sessions.
#[derive(Clone)]
pub(crate) struct Sessions(Arc<Inner>);

struct Inner {
    lines: Mutex<HashMap<SessionId, Arc<Line>, FixedState>>,
    last_id: AtomicU64,
    most_sessions: usize,
    most_frames: usize,
    epoch: i64,
    /// The highest term a coordinator was heard in; only told, never used.
    term: Arc<AtomicU64>,
    core: Core,
    clock: Arc<dyn Clock>,
    /// Real time, in which operators live.
    callers: Arc<dyn Clock>,
    metrics: Metrics,
    /// Which clusters are another shard's, if there is a coordinator.
    bindings: Option<Bindings>,
    /// Whoever reads a huge roll-up.
    huge: Arc<Semaphore>,
}

/// What all sessions share.
pub(crate) struct Shared {
    pub(crate) most_sessions: usize,
    pub(crate) most_frames: usize,
    pub(crate) epoch: i64,
    pub(crate) term: Arc<AtomicU64>,
    pub(crate) core: Core,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) callers: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    pub(crate) bindings: Option<Bindings>,
}

impl Sessions {
    pub(crate) fn new(shared: Shared) -> Self {
        let Shared { most_sessions, most_frames, epoch, term, core, clock, callers, metrics, bindings } =
            shared;
        let (lines, last_id) = (Mutex::default(), AtomicU64::new(0));
        Self(Arc::new(Inner {
            lines,
            last_id,
            most_sessions,
            most_frames,
            epoch,
            term,
            core,
            clock,
            callers,
            metrics,
            bindings,
            huge: Arc::new(Semaphore::new(1)),
        }))
    }

    /// A line for a connection that has said nothing yet.
    pub(crate) fn add(&self) -> Result<Arc<Line>, Status> {
        let mut lines = self.0.lines.lock().expect("no holder panics");
        if lines.len() >= self.0.most_sessions {
            let most = self.0.most_sessions;
            return Err(Status::resource_exhausted(format!("{most} sessions are open; try again later")));
        }
        let id = SessionId(self.0.last_id.fetch_add(1, Ordering::Relaxed) + 1);
        let line = Arc::new(Line::new(id, self.0.most_frames));
        lines.insert(id, line.clone());
        Ok(line)
    }

    /// Forgets a session that has ended.
    pub(crate) fn remove(&self, session: SessionId) {
        self.0.lines.lock().expect("no holder panics").remove(&session);
    }

    fn line(&self, session: SessionId) -> Option<Arc<Line>> {
        self.0.lines.lock().expect("no holder panics").get(&session).cloned()
    }

    /// What every acknowledgement carries.
    fn context(&self) -> Context {
        Context { term: self.0.term.load(Ordering::Relaxed), epoch: self.0.epoch }
    }

    /// Puts a frame on a session's line. A session that has ended needs none.
    pub(crate) fn send(&self, session: SessionId, frame: Frame) {
        let Some(line) = self.line(session) else { return };
        if let Err(full) = line.push(frame) {
            tracing::warn!(session = session.0, cluster = line.cluster(), %full, "a session is dropped");
            self.0.metrics.session_ended("stuck");
            line.cut(Status::resource_exhausted(full.to_string()));
        }
    }

    /// Ends a session from our side.
    pub(crate) fn hang_up(&self, session: SessionId, why: HangUp) {
        let Some(line) = self.line(session) else { return };
        match why {
            HangUp::Replaced => {
                self.0.metrics.session_ended("replaced");
                line.forget_and_end(Status::aborted(format!(
                    "a newer session speaks for cluster {}; only one may",
                    line.cluster()
                )));
            }
            HangUp::Stopping => {
                self.0.metrics.session_ended("stopping");
                line.end(Status::unavailable("the shard is stopping; reconnect in a moment"));
            }
        }
    }

    /// Ends the sessions of clusters that are bound to this shard no more; when they come again they hear where to go.
    pub(crate) fn hang_up_on(&self, clusters: &BTreeSet<String>) {
        let lines: Vec<Arc<Line>> =
            self.0.lines.lock().expect("no holder panics").values().cloned().collect();
        for line in lines.iter().filter(|line| clusters.contains(line.cluster())) {
            self.0.metrics.session_ended("bound_elsewhere");
            line.end(Status::unavailable("the cluster is not bound to this shard any more; connect again"));
        }
    }

    /// Ends every session, also those that have said nothing yet.
    pub(crate) fn hang_up_all(&self) {
        let all: Vec<SessionId> = self.0.lines.lock().expect("no holder panics").keys().copied().collect();
        for session in all {
            self.hang_up(session, HangUp::Stopping);
        }
    }

    /// How many sessions there are, how many frames wait, and how many for the slowest.
    pub(crate) fn depths(&self) -> (usize, usize, usize) {
        let lines = self.0.lines.lock().expect("no holder panics");
        let depths = lines.values().map(|line| line.waiting());
        let (sum, most) = depths.fold((0, 0), |(sum, most), depth| (sum + depth, most.max(depth)));
        (lines.len(), sum, most)
    }
}
