//! Lists on their way to whoever asked: page after page, never more than a few ahead of the reader.

use std::future::Future;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Response, Status};

/// Pages made before the reader took the first of them.
const AHEAD: usize = 2;

/// A stream of pages.
pub(crate) type Stream<T> = ReceiverStream<Result<T, Status>>;

/// Where pages are put.
pub(crate) struct Pages<T>(mpsc::Sender<Result<T, Status>>);

impl<T> Pages<T> {
    /// Sends a page when there is room; an error if nobody reads any more.
    pub(crate) async fn send(&self, page: T) -> Result<(), Status> {
        self.0.send(Ok(page)).await.map_err(|_| Status::cancelled("the reader went away"))
    }

    /// Ends when nobody reads any more.
    pub(crate) async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Starts making pages. An error ends the list with it.
pub(crate) fn stream<T, F>(make: impl FnOnce(Pages<T>) -> F) -> Response<Stream<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<(), Status>> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(AHEAD);
    let made = make(Pages(sender.clone()));
    tokio::spawn(async move {
        if let Err(status) = made.await {
            // Nobody is left to be told if this fails.
            let _ = sender.send(Err(status)).await;
        }
    });
    Response::new(ReceiverStream::new(receiver))
}
