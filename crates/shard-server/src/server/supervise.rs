//! Watches over the parts of a server, and ends it in order.

use bigfleet_record::FolderWatch;

use crate::core::End;

use super::{
    Arc, AtomicBool, Clock, Core, Duration, HealthReporter, JoinHandle, KeepError, Ordering, RunError,
    Sessions, oneshot, set_serving, watch,
};

/// How long operators may take to be told that the shard stops.
const FAREWELL: Duration = Duration::from_secs(1);

/// How often the data folder is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Why a thread ended whose last word was a panic.
const SEE_LOG: &str = "it panicked; the log has the message and the place";

/// Everything that runs.
pub(super) struct Parts {
    pub(super) core: Core,
    pub(super) callers: Arc<dyn Clock>,
    pub(super) sessions: Sessions,
    pub(super) health: HealthReporter,
    pub(super) is_stopping: Arc<AtomicBool>,
    pub(super) halt: watch::Sender<bool>,
    pub(super) stop_core: oneshot::Sender<()>,
    pub(super) core_thread: oneshot::Receiver<End>,
    pub(super) committer: oneshot::Receiver<Result<(), KeepError>>,
    pub(super) recorder: Option<oneshot::Receiver<Result<(), String>>>,
    pub(super) folder: Option<FolderWatch>,
    pub(super) calls: JoinHandle<Result<(), tonic::transport::Error>>,
    pub(super) http: Option<JoinHandle<std::io::Result<()>>>,
    pub(super) reporting: Option<JoinHandle<()>>,
    pub(super) grace: Duration,
}

/// What ended first.
enum First {
    Stop,
    /// Ended by itself, or `None` if it panicked.
    Core(Option<End>),
    /// `None` if it panicked.
    Committer(Option<Result<(), KeepError>>),
    Recorder(String),
    Folder(String),
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
    let recorder = async {
        match &mut parts.recorder {
            // It runs as long as the committer sends to it, so any end before that one's is a death.
            Some(recorder) => match recorder.await {
                // Whoever feeds it has ended; that one has more to say.
                Ok(Ok(())) => First::Core(Some(End::CommitterGone)),
                Ok(Err(why)) => First::Recorder(why),
                Err(_) => First::Recorder(SEE_LOG.into()),
            },
            None => std::future::pending().await,
        }
    };
    let folder = folder_lost(parts.folder.clone(), parts.callers.clone());
    let first = tokio::select! {
        biased;
        // Also when whoever holds the server lets go of it.
        _ = &mut stop => First::Stop,
        committed = &mut parts.committer => First::Committer(committed.ok()),
        ended = &mut parts.core_thread => First::Core(ended.ok()),
        first = recorder => first,
        why = folder => First::Folder(why),
        ended = &mut parts.calls => First::Calls(format!("{ended:?}")),
        ended = http => First::Http(ended),
    };
    // A thread that ends takes its end of a queue with it before its last word arrives, so that those who feed it or live
    // on it may be seen to end first. Whoever pulled the others down is asked.
    let first = match first {
        First::Core(Some(End::CommitterGone)) => First::Committer((&mut parts.committer).await.ok()),
        First::Committer(Some(Ok(()))) => First::Core((&mut parts.core_thread).await.ok()),
        first => first,
    };
    parts.is_stopping.store(true, Ordering::SeqCst);
    set_serving(&parts.health, false).await;
    let died = |part, why| Err(RunError::Died { part, why });
    let outcome = match first {
        First::Stop => None,
        First::Committer(Some(Err(error))) => Some(Err(RunError::Keep(error))),
        First::Committer(None) => Some(died("the committer thread", SEE_LOG.into())),
        // A committer that has nothing left to do was left by the core thread.
        First::Committer(Some(Ok(()))) | First::Core(Some(_)) => {
            Some(died("the core thread", "nobody was left to tell it anything".into()))
        }
        First::Core(None) => Some(died("the core thread", SEE_LOG.into())),
        First::Folder(why) => Some(Err(RunError::FolderLost(why))),
        First::Recorder(why) => Some(died("the recorder thread", why)),
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

/// Ends when the folder is no longer the one that was taken. The store would go on writing into files that nobody will
/// find, and a new shard on the same path would know nothing of this one.
async fn folder_lost(folder: Option<FolderWatch>, clock: Arc<dyn Clock>) -> String {
    let Some(folder) = folder else { return std::future::pending().await };
    loop {
        clock.sleep(LOOK).await;
        let folder = folder.clone();
        if let Ok(Some(why)) = tokio::task::spawn_blocking(move || folder.lost()).await {
            return why;
        }
    }
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
            return Err(RunError::Died { part: "the committer thread", why: SEE_LOG.into() });
        }
    }
    if let Some(recorder) = recorder {
        match recorder.await {
            Ok(Ok(())) => {}
            Ok(Err(why)) => return Err(RunError::Died { part: "the decision record", why }),
            Err(_) => {
                return Err(RunError::Died { part: "the recorder thread", why: SEE_LOG.into() });
            }
        }
    }
    if let Some(http) = http {
        http.abort();
    }
    tracing::info!("the shard has stopped");
    Ok(())
}

#[cfg(test)]
mod tests {
    use bigfleet_net::{SystemClock, VirtualClock};

    use super::*;
    use crate::core::{self, Inbox};
    use crate::metrics::Metrics;
    use crate::session::Shared;

    /// What keeps the parts of a server alive that are not about to die.
    struct Alive {
        core: oneshot::Sender<End>,
        committer: oneshot::Sender<Result<(), KeepError>>,
        _inbox: Inbox,
    }

    fn parts(recorder: oneshot::Receiver<Result<(), String>>) -> (Parts, Alive) {
        let (core, inbox) = core::channel();
        let (keep_core, core_thread) = oneshot::channel();
        let (keep_committer, committer) = oneshot::channel();
        let clock: Arc<dyn Clock> = Arc::new(VirtualClock::at(0));
        let sessions = Sessions::new(Shared {
            most_sessions: 1,
            most_frames: 1,
            epoch: 1,
            term: Arc::default(),
            core: core.clone(),
            clock: clock.clone(),
            callers: clock.clone(),
            metrics: Metrics::new("s", "0"),
            bindings: None,
        });
        let parts = Parts {
            core,
            callers: Arc::new(SystemClock::start()),
            sessions,
            health: tonic_health::server::health_reporter().0,
            is_stopping: Arc::default(),
            halt: watch::channel(false).0,
            stop_core: oneshot::channel().0,
            core_thread,
            committer,
            recorder: Some(recorder),
            folder: None,
            calls: tokio::spawn(async {
                std::future::pending::<()>().await;
                Ok(())
            }),
            http: None,
            reporting: None,
            grace: Duration::from_secs(5),
        };
        (parts, Alive { core: keep_core, committer: keep_committer, _inbox: inbox })
    }

    #[tokio::test]
    async fn a_recorder_that_dies_ends_the_server_with_its_name() {
        let (records, recorder) = oneshot::channel();
        let (parts, _alive) = parts(recorder);
        let (_stop, stops) = oneshot::channel();
        let server = tokio::spawn(supervise(parts, stops));
        // As when the thread panics.
        drop(records);
        let error = server.await.unwrap().unwrap_err().to_string();
        assert!(error.starts_with("the recorder thread has ended: it panicked"), "{error}");
    }
    /// The committer lets go of its queue before its last word arrives, so that the core thread may end first; it once was
    /// said to have panicked.
    #[tokio::test]
    async fn a_disk_that_fails_is_named_although_the_core_thread_ends_first() {
        let (_records, recorder) = oneshot::channel();
        let (parts, alive) = parts(recorder);
        let (_stop, stops) = oneshot::channel();
        let server = tokio::spawn(supervise(parts, stops));
        alive.core.send(End::CommitterGone).unwrap();
        tokio::task::yield_now().await;
        assert!(!server.is_finished(), "the committer has not said why");
        alive.committer.send(Err(KeepError("no space left".into()))).unwrap();
        let error = server.await.unwrap().unwrap_err().to_string();
        assert!(error.starts_with("no space left; the shard stops"), "{error}");
    }

    #[tokio::test]
    async fn a_thread_that_panics_is_named() {
        for (is_core, words) in [
            (true, "the core thread has ended: it panicked"),
            (false, "the committer thread has ended: it panicked"),
        ] {
            let (_records, recorder) = oneshot::channel();
            let (parts, alive) = parts(recorder);
            let (_stop, stops) = oneshot::channel();
            let server = tokio::spawn(supervise(parts, stops));
            let Alive { core, committer, _inbox } = alive;
            if is_core {
                drop(core);
                tokio::task::yield_now().await;
                // It drains what is left and closes.
                let _ = committer.send(Ok(()));
            } else {
                // The other finds its queue closed.
                core.send(End::CommitterGone).unwrap();
                drop(committer);
            }
            let error = server.await.unwrap().unwrap_err().to_string();
            assert!(error.starts_with(words), "{error}");
        }
    }
}
