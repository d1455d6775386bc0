//! One replica of the controller: its HTTP port, its part in the election, its orderly end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bigfleet_kube_common::{ConnectError, Connection, Election, ElectionSettings};
use bigfleet_net::{Clock, http};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::controller::Controller;
use crate::metrics::{Leads, Metrics};
use crate::translate::Policy;

/// How long giving the lease back may take at the end.
const LAST_CALL: Duration = Duration::from_secs(2);

/// What a replica is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the cluster is.
    pub connection: Connection,
    /// What the administrator says about pods and machines.
    pub policy: Policy,
    /// The lease that replicas share; without one, this is the only replica.
    pub election: Option<ElectionSettings>,
    /// Where metrics and health are read, if anywhere.
    pub metrics: Option<SocketAddr>,
}

/// Why a replica did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The cluster cannot be reached, or not like this.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The port for metrics is taken.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
}

/// A replica that runs.
#[derive(Debug)]
pub struct Running {
    /// Where metrics and health are read.
    pub metrics: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Running {
    /// Ends it: the work stops, the lease is given back, the port is closed.
    pub async fn stop(self) {
        // Without a receiver everything has ended already.
        let _ = self.stop.send(true);
        for task in self.tasks {
            let _ = task.await;
        }
    }
}

/// Starts a replica.
pub async fn run(settings: Settings, clock: Arc<dyn Clock>) -> Result<Running, StartError> {
    let client = settings.connection.client().await?;
    let metrics = Metrics::new();
    let synced = Arc::new(AtomicBool::new(false));
    let (stop, stopped) = watch::channel(false);
    let mut tasks = Vec::new();
    let mut address = None;
    if let Some(wanted) = settings.metrics {
        let listener = TcpListener::bind(wanted).await;
        let listener = listener.map_err(|source| StartError::Listen { address: wanted, source })?;
        address = listener.local_addr().ok();
        tasks.push(tokio::spawn(serve(listener, metrics.clone(), synced.clone(), stopped.clone())));
    }
    let controller = Controller { client: client.clone(), clock: clock.clone(), metrics, synced };
    let election = settings.election.map(|settings| Election::new(client, settings, clock.clone()));
    tasks.push(tokio::spawn(work(controller, settings.policy, election, clock, stopped)));
    Ok(Running { metrics: address, stop, tasks })
}

async fn serve(
    listener: TcpListener,
    metrics: Metrics,
    synced: Arc<AtomicBool>,
    stopped: watch::Receiver<bool>,
) {
    let ready = move || {
        let synced = synced.load(Ordering::Relaxed);
        async move {
            if synced { Ok(()) } else { Err("the lists of pods and requests are not read yet".to_owned()) }
        }
    };
    let scrape = move || {
        let text = metrics.scrape();
        async move { text }
    };
    if let Err(error) = http::serve(listener, http::router(ready, scrape), asked_to_stop(stopped)).await {
        tracing::error!(%error, "the port for metrics is closed");
    }
}

/// Works whenever the lease is ours, until told to stop.
async fn work(
    controller: Controller,
    policy: Policy,
    mut election: Option<Election>,
    clock: Arc<dyn Clock>,
    stopped: watch::Receiver<bool>,
) {
    let stop = asked_to_stop(stopped);
    tokio::pin!(stop);
    loop {
        let lead = async {
            let Some(election) = &mut election else {
                controller.metrics.leads(Leads::Yes);
                return controller.run(policy.clone()).await;
            };
            // Somebody who waits for its turn is as ready as it will be.
            controller.synced.store(true, Ordering::Relaxed);
            election.acquire().await;
            tracing::info!("this replica leads");
            controller.synced.store(false, Ordering::Relaxed);
            controller.metrics.leads(Leads::Yes);
            tokio::select! {
                () = controller.run(policy.clone()) => {}
                lost = election.hold() => tracing::warn!(reason = lost, "this replica leads no more"),
            }
        };
        let over = tokio::select! {
            () = lead => false,
            () = &mut stop => true,
        };
        controller.metrics.leads(Leads::No);
        if over {
            break;
        }
    }
    if let Some(election) = &mut election {
        tokio::select! {
            given = election.release() => if let Err(error) = given { tracing::warn!(%error, "the lease was not given back") },
            () = clock.sleep(LAST_CALL) => tracing::warn!("the lease was not given back in time"),
        }
    }
}

async fn asked_to_stop(mut stopped: watch::Receiver<bool>) {
    // A sender that is gone asks too.
    let _ = stopped.wait_for(|stop| *stop).await;
}
