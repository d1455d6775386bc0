//! Watches over the parts of a server, and ends it in order.

use super::{
    Arc, AtomicBool, Clock, Core, Duration, HealthReporter, JoinHandle, KeepError, Ordering, RunError,
    Sessions, oneshot, set_serving, watch,
};

/// How long operators may take to be told that the shard stops.
const FAREWELL: Duration = Duration::from_secs(1);

/// Everything that runs.
pub(super) struct Parts {
    pub(super) core: Core,
    pub(super) callers: Arc<dyn Clock>,
    pub(super) sessions: Sessions,
    pub(super) health: HealthReporter,
    pub(super) is_stopping: Arc<AtomicBool>,
    pub(super) halt: watch::Sender<bool>,
    pub(super) stop_core: oneshot::Sender<()>,
    pub(super) core_thread: oneshot::Receiver<()>,
    pub(super) committer: oneshot::Receiver<Result<(), KeepError>>,
    pub(super) recorder: Option<oneshot::Receiver<Result<(), String>>>,
    pub(super) calls: JoinHandle<Result<(), tonic::transport::Error>>,
    pub(super) http: Option<JoinHandle<std::io::Result<()>>>,
    pub(super) reporting: Option<JoinHandle<()>>,
    pub(super) grace: Duration,
}

/// What ended first.
enum First {
    Stop,
    Core,
    Committer(Result<(), KeepError>),
    Calls(String),
    Http(String),
}

/// Runs until it is told to stop or a part dies, and ends what is left.
pub(super) async fn supervise(mut parts: Parts, mut stop: oneshot::Receiver<()>) -> Result<(), RunError> {
    let http = async {
        match &mut parts.http {
            Some(http) => format!("{:?}", http.await),
            None => std::future::pending().await,
        }
    };
    let first = tokio::select! {
        // Also when whoever holds the server lets go of it.
        _ = &mut stop => First::Stop,
        committed = &mut parts.committer => {
            First::Committer(committed.unwrap_or_else(|_| Err(KeepError("the committer thread died".into()))))
        }
        _ = &mut parts.core_thread => First::Core,
        ended = &mut parts.calls => First::Calls(format!("{ended:?}")),
        ended = http => First::Http(ended),
    };
    parts.is_stopping.store(true, Ordering::SeqCst);
    set_serving(&parts.health, false).await;
    let died = |part, why| Err(RunError::Died { part, why });
    let outcome = match first {
        First::Stop => None,
        First::Committer(Err(error)) => Some(Err(RunError::Keep(error))),
        First::Committer(Ok(())) => Some(died("the committer thread", "it had nothing left to do".into())),
        First::Core => Some(died("the core thread", "see the log for a panic".into())),
        First::Calls(why) => Some(died("the gRPC server", why)),
        First::Http(why) => Some(died("the HTTP server", why)),
    };
    if let Some(Err(error)) = &outcome {
        tracing::error!(%error, alarm = true, "the shard cannot go on");
    }
    let clock = parts.callers.clone();
    let grace = parts.grace;
    let committed = tokio::select! {
        committed = end(parts, outcome.is_some()) => committed,
        () = clock.sleep(grace) => Err(RunError::SlowStop(grace)),
    };
    outcome.unwrap_or(committed)
}

/// Ends what is left: sessions first, then calls, then the threads, each after those that feed it.
async fn end(parts: Parts, is_broken: bool) -> Result<(), RunError> {
    let Parts {
        core,
        callers: clock,
        sessions,
        halt,
        stop_core,
        core_thread,
        committer,
        recorder,
        calls,
        http,
        ..
    } = parts;
    if let Some(reporting) = parts.reporting {
        reporting.abort();
    }
    if !is_broken {
        tokio::select! {
            _ = core.act(|shard, _, step| shard.stop(step)) => {}
            () = clock.sleep(FAREWELL) => {}
        }
    }
    sessions.hang_up_all();
    let _ = halt.send(true);
    if !calls.is_finished() {
        let stop_calls = calls.abort_handle();
        tokio::select! {
            _ = calls => {}
            // Somebody who does not read, or watches health, would keep the server for ever.
            () = clock.sleep(FAREWELL) => stop_calls.abort(),
        }
    }
    // The core thread may be gone already; then so is what it feeds.
    let _ = stop_core.send(());
    if is_broken {
        return Ok(());
    }
    let _ = core_thread.await;
    match committer.await {
        Ok(committed) => committed?,
        Err(_) => {
            return Err(RunError::Died {
                part: "the committer thread",
                why: "see the log for a panic".into(),
            });
        }
    }
    if let Some(recorder) = recorder {
        match recorder.await {
            Ok(Ok(())) => {}
            Ok(Err(why)) => return Err(RunError::Died { part: "the decision record", why }),
            Err(_) => {
                return Err(RunError::Died {
                    part: "the recorder thread",
                    why: "see the log for a panic".into(),
                });
            }
        }
    }
    if let Some(http) = http {
        http.abort();
    }
    tracing::info!("the shard has stopped");
    Ok(())
}
