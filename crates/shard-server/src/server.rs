//! A whole server: started, supervised, and ended in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bigfleet_net::{Budget, CallLayer, Clock, SystemClock, descriptors, dial, http, reflection, until};
use bigfleet_proto::transport;
use bigfleet_record::tape::Writer;
use bigfleet_record::{FolderWatch, LostMemory, Start, Store};
use bigfleet_shard::{Config, Memory, Shard};
use bigfleet_view::{About, View};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;
use tonic_health::ServingStatus;
use tonic_health::server::{HealthReporter, health_reporter};
use tonic_reflection::server::Builder;

use crate::commit::{self, KeepError, Keeper, NothingKept};
use crate::coordinator::{Bindings, Follower, Leader, Reporter};
use crate::core::{self, Core, Loop};
use crate::hands::{Staff, ask_for_full};
use crate::metrics::Metrics;
use crate::provider::{Asker, Provider};
use crate::ready::Observer;
use crate::recorder;
use crate::session::{SessionService, Sessions, Shared};
use crate::settings::{Keep, RECORD, RunError, Settings, StartError};

mod supervise;

use supervise::{Parts, supervise};

/// How many connections may be open beyond those of sessions.
const MORE_CONNECTIONS: usize = 1024;
/// Of the files this process may open, those that are not for connections that have begun: the store, the record, providers,
/// the HTTP port, and callers that are about to begin.
const KEPT_DESCRIPTORS: usize = 640;

/// A server that runs. It goes on until it is stopped or a part of it dies; dropping this stops it too.
pub struct Running {
    /// Where operators and people call.
    pub grpc: SocketAddr,
    /// Where metrics and health are read, if anywhere.
    pub http: Option<SocketAddr>,
    /// The number of this life.
    pub epoch: i64,
    core: Core,
    view: View<Core>,
    stop: Option<oneshot::Sender<()>>,
    ended: JoinHandle<Result<(), RunError>>,
}

impl Running {
    /// The way to the shard.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// What people see of the shard, for whoever shows it from within this process.
    pub fn view(&self) -> View<Core> {
        self.view.clone()
    }

    /// Ends when the server has ended by itself, which it does only when something died.
    pub async fn ended(&mut self) -> Result<(), RunError> {
        let ended = (&mut self.ended).await;
        ended.unwrap_or_else(|error| Err(RunError::Died { part: "the server", why: error.to_string() }))
    }

    /// Stops it: sessions are told to come back, what was promised is on disk.
    pub async fn stop(mut self) -> Result<(), RunError> {
        if let Some(stop) = self.stop.take() {
            // One that has ended already needs no telling.
            let _ = stop.send(());
        }
        self.ended().await
    }
}

/// What was found on disk, or nothing.
struct Kept {
    keeper: Box<dyn Keeper>,
    writer: Option<Writer>,
    memory: Memory,
    epoch: i64,
    watch: Option<FolderWatch>,
}

fn open(keep: &Keep, lost: LostMemory, now: i64) -> Result<Kept, StartError> {
    match keep {
        Keep::Nothing => Ok(Kept {
            keeper: Box::new(NothingKept),
            writer: None,
            memory: Memory::default(),
            // Lives are longer than a second, so this is above every epoch before.
            epoch: (now / 1_000_000_000).max(1),
            watch: None,
        }),
        Keep::Folder { path, record } => {
            let opened = Store::open_with(path, now, lost)?;
            tracing::info!(folder = %path.display(), epoch = opened.epoch, start = ?opened.start, "the store is open");
            if let Some(reason) = &opened.repaired_epoch {
                tracing::warn!(
                    reason,
                    epoch = opened.epoch,
                    "the epoch file was damaged and is written anew"
                );
            }
            if opened.start == Start::MemoryLost {
                tracing::warn!(
                    "there was no state file: pauses, modes, demand and what was under way are forgotten"
                );
            }
            let watch = Some(opened.store.watch());
            let (writer, damages) = Writer::open(path.join(RECORD), *record)?;
            for damage in damages {
                tracing::warn!(%damage, "a part of the decision record is lost");
            }
            let (keeper, memory, epoch) = (Box::new(opened.store), opened.memory, opened.epoch);
            Ok(Kept { keeper, writer: Some(writer), memory, epoch, watch })
        }
    }
}

/// Starts a server on the present runtime.
pub async fn start(settings: Settings, clock: Arc<dyn Clock>) -> Result<Running, StartError> {
    let runtime = Handle::current();
    // Callers live in real time, however fast the shard's clock runs.
    let callers: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let metrics = Metrics::new(&settings.shard.shard_id, env!("CARGO_PKG_VERSION"));
    let mut config = settings.shard.clone();
    config.providers = settings.providers.iter().map(|provider| provider.config.clone()).collect();
    check_names(&config)?;
    let channels = settings.providers.iter().map(|provider| {
        let whom = || format!("provider {}", provider.config.name);
        dial(&provider.address, settings.tls.as_ref())
            .map_err(|source| StartError::Dial { whom: whom(), source })
    });
    let channels = channels.collect::<Result<Vec<_>, _>>()?;
    let coordinator = settings.coordinator.as_ref().map(|reporting| {
        Leader::among(&reporting.address, settings.tls.as_ref())
            .map_err(|source| StartError::Dial { whom: "coordinator".to_owned(), source })
    });
    let coordinator = coordinator.transpose()?;
    let bindings = coordinator
        .as_ref()
        .map(|leader| Bindings::new(config.shard_id.clone(), leader.follow(), callers.clone()));
    let tls = settings.tls.as_ref().map(bigfleet_net::TlsFiles::server_config).transpose()?;
    let grpc = listen(settings.grpc).await?;
    let http = match settings.http {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    let (grpc_addr, http_addr) =
        (address_of(&grpc, settings.grpc), http.as_ref().and_then(|l| l.local_addr().ok()));

    let now = clock.now_unix_nanos();
    let (keep, lost) = (settings.keep.clone(), settings.lost_memory);
    let kept = tokio::task::spawn_blocking(move || open(&keep, lost, now)).await;
    let Kept { keeper, writer, memory, epoch, watch: folder } =
        kept.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?;
    config.epoch = epoch;

    let (core, inbox) = core::channel();
    let term = Arc::<AtomicU64>::default();
    let sessions = Sessions::new(Shared {
        most_sessions: settings.most_sessions,
        most_frames: config.limits.outbox,
        epoch,
        term: term.clone(),
        core: core.clone(),
        clock: clock.clone(),
        callers: callers.clone(),
        metrics: metrics.clone(),
        bindings: bindings.clone(),
    });
    let providers = settings.providers.iter().zip(channels).map(|(provider, channel)| {
        let name = provider.config.name.clone();
        let who = (&*config.shard_id, epoch);
        Provider::new(name, who, channel, core.clone(), clock.clone(), metrics.clone())
    });
    let providers: Vec<Provider> = providers.collect();

    let asker = Asker::new(providers.clone());
    let known =
        providers.iter().cloned().zip(settings.providers.iter().map(|provider| provider.address.clone()));
    let known: Vec<(Provider, String)> = known.collect();

    let (records, recorder) = match writer {
        None => (None, None),
        Some(writer) => {
            let (queue, records) = recorder::channel();
            let (metrics, runtime, core) = (metrics.clone(), runtime.clone(), core.clone());
            let work = move || recorder::run(&records, writer, &metrics, &|| ask_for_full(&runtime, &core));
            (Some(queue), Some(thread("recorder", work)?))
        }
    };
    let staff = Staff {
        runtime: runtime.clone(),
        core: core.clone(),
        providers,
        sessions: sessions.clone(),
        recorder: records,
        metrics: metrics.clone(),
    };
    let (steps, batches) = commit::channel();
    let committer = {
        let (clock, metrics) = (clock.clone(), metrics.clone());
        thread("committer", move || commit::run(&batches, keeper, &staff, &*clock, &metrics))?
    };
    let (stop_core, core_stops) = oneshot::channel();
    let shard_id = config.shard_id.clone();
    let core_thread = {
        let (clock, metrics, runtime) = (clock.clone(), metrics.clone(), runtime.clone());
        let stopwatch = callers.clone();
        let work = move || {
            let now = clock.now_unix_nanos();
            let shard = Shard::new(config, memory, now);
            runtime
                .block_on(Loop { shard, clock, committer: steps, metrics, stopwatch }.run(inbox, core_stops))
        };
        thread("core", work)?
    };

    let is_stopping = Arc::<AtomicBool>::default();
    let (halt, halted) = watch::channel(false);
    let (health, health_service) = health_reporter();
    let view = View::new(
        Arc::new(core.clone()),
        About {
            server_version: env!("CARGO_PKG_VERSION").into(),
            simulated: settings.simulated,
            record_dir: settings.keep.record_folder(),
            record_only: false,
            clock: clock.clone(),
        },
    )
    .asking(asker);
    set_serving(&health, true).await;
    let files = &[bigfleet_view::FILE_DESCRIPTOR_SET];
    let budget = Budget::new(settings.in_flight);
    let layer = CallLayer::new(budget.clone(), callers.clone());
    let routes = transport::server()
        .layer(layer.clone())
        .add_service(SessionService(sessions.clone()))
        .add_service(transport::shard_read_server(view.clone()))
        .add_service(bigfleet_view::cluster_view_server(view.clone()))
        .add_service(bigfleet_view::view_server(view.clone()))
        .add_service(health_service)
        .add_service(reflection(files, Builder::build_v1))
        .add_service(reflection(files, Builder::build_v1alpha));
    let most_connections = settings.most_sessions + MORE_CONNECTIONS;
    let most_connections = most_connections.min(descriptors().saturating_sub(KEPT_DESCRIPTORS).max(1));
    let connections = layer.incoming(grpc, tls, most_connections);
    let calls = tokio::spawn(routes.serve_with_incoming_shutdown(connections, until(halted.clone())));
    let http = http.map(|listener| {
        let observer = Observer {
            core: core.clone(),
            clock: clock.clone(),
            callers: callers.clone(),
            metrics: metrics.clone(),
            sessions: sessions.clone(),
            budget,
            is_stopping: is_stopping.clone(),
        };
        let scraped = observer.clone();
        let app = http::router(move || observer.clone().readiness(), move || scraped.clone().scrape());
        tokio::spawn(http::serve(listener, app, until(halted.clone())))
    });
    let reporting =
        settings.coordinator.zip(coordinator).zip(bindings).map(|((reporting, leader), bindings)| {
            let shard_address = match reporting.shard_address.as_str() {
                "" => grpc_addr.to_string(),
                address => address.to_owned(),
            };
            let addresses = settings.providers.iter().map(|provider| provider.address.as_str());
            let provider_addresses = addresses.collect::<Vec<_>>().join(",");
            let (core, clock, metrics) = (core.clone(), clock.clone(), metrics.clone());
            let (every, hurry) = (reporting.every, Arc::<Notify>::default());
            let follower = Follower {
                shard: shard_id.clone(),
                leader: leader.follow(),
                core: core.clone(),
                clock: callers.clone(),
                bindings,
                sessions: sessions.clone(),
                hurry: hurry.clone(),
                providers: known,
                tls: settings.tls.clone(),
            };
            let reporter = Reporter {
                shard_address,
                provider_addresses,
                every,
                leader,
                core,
                clock,
                metrics,
                term,
                hurry,
            };
            tokio::spawn(async move {
                tokio::join!(reporter.run(), follower.run());
            })
        });
    tracing::info!(shard = &*shard_id, epoch, grpc = %grpc_addr, http = ?http_addr, "the shard is up");

    let (stop, stops) = oneshot::channel();
    let parts = Parts {
        core: core.clone(),
        callers,
        sessions,
        health,
        is_stopping,
        halt,
        stop_core,
        core_thread,
        committer,
        recorder,
        folder,
        calls,
        http,
        reporting,
        grace: settings.stop_grace,
    };
    let ended = tokio::spawn(supervise(parts, stops));
    Ok(Running { grpc: grpc_addr, http: http_addr, epoch, core, view, stop: Some(stop), ended })
}

/// Says of each service whether it is there.
async fn set_serving(health: &HealthReporter, is_serving: bool) {
    let status = if is_serving { ServingStatus::Serving } else { ServingStatus::NotServing };
    for service in [
        "",
        "bigfleet.v1alpha1.Shard",
        "bigfleet.v1alpha1.ShardRead",
        "bigfleet.view.v1.View",
        "bigfleet.view.v1.ClusterView",
    ] {
        health.set_service_status(service, status).await;
    }
}

/// A thread whose end can be waited for.
fn thread<T: Send + 'static>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<oneshot::Receiver<T>, StartError> {
    let (done, ended) = oneshot::channel();
    // If it panics the sender is dropped, and whoever waits knows.
    let work = move || drop(done.send(work()));
    let spawned = std::thread::Builder::new().name(format!("bigfleet-{name}")).spawn(work);
    spawned.map(|_| ended).map_err(|source| StartError::Thread { name, source })
}

fn check_names(config: &Config) -> Result<(), StartError> {
    if config.providers.len() > usize::from(u16::MAX) {
        return Err(StartError::TooManyProviders(config.providers.len()));
    }
    let mut names: Vec<&str> = config.providers.iter().map(|provider| &*provider.name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(StartError::TwoProviders(pair[0].to_owned())),
        None => Ok(()),
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|source| StartError::Listen { address, source })
}

fn address_of(listener: &TcpListener, asked: SocketAddr) -> SocketAddr {
    listener.local_addr().unwrap_or(asked)
}
