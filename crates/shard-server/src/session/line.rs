//! What waits to be sent on one session, and how it ends.

use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};

use bigfleet_border::session::{Full, Outbox, encoded};
use bigfleet_net::Seat;
use bigfleet_shard::{Frame, SessionId};
use bytes::Bytes;
use tokio::sync::Notify;
use tokio_stream::Stream;
use tonic::Status;

use super::Sessions;

/// One session's line to its operator.
pub(crate) struct Line {
    /// Whose.
    pub(crate) id: SessionId,
    cluster: OnceLock<Arc<str>>,
    connection: OnceLock<Seat>,
    state: Mutex<State>,
    over: Notify,
}

/// How a session ends: with a status for the other end, once, or in silence.
struct End(Option<Status>);

struct State {
    outbox: Outbox<Frame>,
    /// Set once the session is over, with what the other end is told, if anything.
    end: Option<End>,
    stream: Option<Waker>,
}

impl Line {
    pub(crate) fn new(id: SessionId, most_frames: usize) -> Self {
        let state = State { outbox: Outbox::new(most_frames), end: None, stream: None };
        let (cluster, connection) = (OnceLock::new(), OnceLock::new());
        Self { id, cluster, connection, state: Mutex::new(state), over: Notify::new() }
    }

    /// The cluster it speaks for, once it has said hello.
    pub(crate) fn cluster(&self) -> &str {
        self.cluster.get().map_or("(unknown)", |cluster| cluster)
    }

    /// Says which cluster it speaks for.
    pub(crate) fn speaks_for(&self, cluster: Arc<str>) {
        let _ = self.cluster.set(cluster);
    }

    /// Says on which connection it runs.
    pub(crate) fn sits_on(&self, connection: Seat) {
        let _ = self.connection.set(connection);
    }

    /// Puts a frame on the line.
    pub(crate) fn push(&self, frame: Frame) -> Result<(), Full> {
        let key = frame.supersedes();
        self.change(|state| if state.end.is_none() { state.outbox.push(key, frame) } else { Ok(()) })
    }

    /// Sends what waits, then ends.
    pub(crate) fn end(&self, status: impl Into<Option<Status>>) {
        let status = status.into();
        self.change(|state| {
            state.end.get_or_insert(End(status));
        });
        self.over.notify_one();
    }

    /// Ends at once; what waits is not sent.
    pub(crate) fn forget_and_end(&self, status: Status) {
        self.change(|state| state.outbox.clear());
        self.end(status);
    }

    /// Ends although the other end does not read: nothing polite would reach it.
    pub(crate) fn cut(&self, status: Status) {
        self.forget_and_end(status);
        if let Some(connection) = self.connection.get() {
            connection.cut_if_alone();
        }
    }

    /// Ends when the session is over, whoever ended it.
    pub(crate) async fn is_over(&self) {
        self.over.notified().await;
    }

    /// How many frames wait.
    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().expect("no holder panics").outbox.len()
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().expect("no holder panics");
        let changed = change(&mut state);
        let waker = state.stream.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        changed
    }
}

/// What the operator receives.
pub(crate) struct Frames {
    line: Arc<Line>,
    sessions: Sessions,
    /// The second message of a frame that makes two.
    next: Option<Bytes>,
    ended: bool,
}

impl Frames {
    pub(crate) fn new(line: Arc<Line>, sessions: Sessions) -> Self {
        Self { line, sessions, next: None, ended: false }
    }
}

impl Stream for Frames {
    type Item = Result<Bytes, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if let Some(message) = this.next.take() {
            return Poll::Ready(Some(Ok(message)));
        }
        if this.ended {
            return Poll::Ready(None);
        }
        let frame = {
            let mut state = this.line.state.lock().expect("no holder panics");
            match (state.outbox.pop(), &mut state.end) {
                (Some(frame), _) => frame,
                (None, Some(End(status))) => {
                    this.ended = true;
                    return Poll::Ready(status.take().map(Err));
                }
                (None, None) => {
                    state.stream = Some(cx.waker().clone());
                    return Poll::Pending;
                }
            }
        };
        let (message, next) = encoded(&frame, this.line.cluster(), this.sessions.context());
        this.next = next;
        Poll::Ready(Some(Ok(message)))
    }
}

impl Drop for Frames {
    /// The connection is gone, or everything was said.
    fn drop(&mut self) {
        self.line.end(None);
    }
}
