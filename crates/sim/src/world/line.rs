//! One session as its host keeps it, with the border's own parts: what reads, what knows roll-ups again, what waits.

use bigfleet_border::session::{Context, Full, Outbox, Rollups, Session, Taken, encoded};
use bigfleet_shard::{Event, Frame, SessionId};
use bytes::Bytes;
use tonic::Status;

use super::happening::Happening;
use super::{Moment, World};

/// A session.
pub(crate) struct Line {
    /// Whose operator is at the other end.
    pub(super) cluster: usize,
    session: Session,
    rollups: Option<Rollups>,
    outbox: Outbox<Frame>,
}

impl Line {
    pub(super) fn new(cluster: usize, id: SessionId, most_frames: usize) -> Self {
        Self { cluster, session: Session::new(id), rollups: None, outbox: Outbox::new(most_frames) }
    }

    fn push(&mut self, frame: Frame) -> Result<(), Full> {
        self.outbox.push(frame.supersedes(), frame)
    }
}

impl World {
    /// A frame of an operator reaches its shard.
    pub(super) fn frame(&mut self, host: usize, id: SessionId, frame: &Bytes) {
        let Some(line) = self.hosts[host].sessions.get_mut(&id) else { return };
        let own = &*self.scenario.clusters[line.cluster].name;
        let vouch = |name: &str| if name == own { Ok(()) } else { Err(format!("{name} is not {own}")) };
        match line.session.take(frame, vouch) {
            Ok(Taken::Tell(event)) => {
                if let Event::ReclaimAcked { instruction, nodes_started, .. } = &event {
                    self.show(&Moment::Acked { instruction: instruction.0, nodes: *nodes_started });
                }
                self.tell(host, event);
            }
            Ok(Taken::Rollup(bytes)) => self.rollup(host, id, &bytes),
            Ok(Taken::Ignored) => {}
            Err(status) => self.end_session(host, id, &status),
        }
    }

    fn rollup(&mut self, host: usize, id: SessionId, bytes: &[u8]) {
        let Some(line) = self.hosts[host].sessions.get_mut(&id) else { return };
        let Some(name) = line.session.cluster().cloned() else { return };
        let rollups = line.rollups.get_or_insert_with(|| Rollups::new(id, name.clone()));
        let (said, again) = rollups.recognise(bytes);
        let event = again.unwrap_or_else(|| rollups.read(bytes));
        if let Event::Rollup { rollup, .. } = &event {
            let needs = rollup.as_ref().ok().map(|rollup| rollup.needs());
            self.trace.note(self.now, format_args!("{name} reports {:?} rows", needs.map(<[_]>::len)));
            self.show(&Moment::Reported { cluster: &name, needs });
        }
        self.tell(host, event);
        let host = &mut self.hosts[host];
        let taken = host.shard.as_ref().is_some_and(|shard| shard.has_taken_rollup(id));
        if let Some(rollups) = host.sessions.get_mut(&id).and_then(|line| line.rollups.as_mut()) {
            rollups.judged(said, taken);
        }
    }

    /// A session ends from the shard's side because of what its operator did.
    fn end_session(&mut self, host: usize, id: SessionId, status: &Status) {
        let Some(line) = self.hosts[host].sessions.remove(&id) else { return };
        self.trace.note(self.now, format_args!("host {host} ends session {}: {}", id.0, status.message()));
        if line.session.cluster().is_some() {
            self.tell(host, Event::Closed { session: id });
        }
        self.hung_up(line.cluster, id);
    }

    /// A shard sends a frame.
    pub(super) fn send(&mut self, host: usize, id: SessionId, frame: Frame) {
        let Some(cluster) = self.hosts[host].sessions.get(&id).map(|line| line.cluster) else { return };
        if let Frame::RollupAck(reception) = &frame {
            let cluster = &self.scenario.clusters[cluster].name;
            let shard = self.hosts[host].shard.as_ref();
            if let Some(shard) = shard.filter(|_| !self.setup.unwatched) {
                self.watch.see(self.now, &Moment::Received { host, cluster, reception, shard });
            }
        }
        let line = self.hosts[host].sessions.get_mut(&id).expect("it was there");
        if let Err(full) = line.push(frame) {
            return self.end_session(host, id, &Status::resource_exhausted(full.to_string()));
        }
        if !self.active.is_stuck(&self.scenario.clusters[cluster].name) {
            self.flush(host, id);
        }
    }

    /// Sends what waits on a session.
    pub(super) fn flush(&mut self, host: usize, id: SessionId) {
        let at = self.now + self.scenario.latency.nanos();
        let host = &mut self.hosts[host];
        let Some(line) = host.sessions.get_mut(&id) else { return };
        let name = &self.scenario.clusters[line.cluster].name;
        let context = Context { term: 0, epoch: host.epoch };
        while let Some(frame) = line.outbox.pop() {
            let (first, second) = encoded(&frame, name, context);
            for frame in [Some(first), second].into_iter().flatten() {
                let cluster = line.cluster;
                self.queue.put(at, Happening::Frame { cluster, session: id, frame });
            }
        }
    }
}
