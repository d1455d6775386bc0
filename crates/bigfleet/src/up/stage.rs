//! Everything in one process: the simulated cloud, the real shard, and the simulated clusters, on real sockets.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bigfleet_model::machine::Machine;
use bigfleet_net::{Clock, SystemClock, dial, until};
use bigfleet_proto::convert::machine::Received;
use bigfleet_provider_kit::{ServeError, Server, Settings as ProviderSettings, Store};
use bigfleet_provider_sim::{Config as CloudConfig, FastClock, Inventory, Service, Sim};
use bigfleet_record::tape::Limits;
use bigfleet_shard_server::{Keep, ProviderAddress, RunError, Running, Settings, StartError};
use bigfleet_web::{self as web, Access, Site};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tonic::transport::Channel;

use super::admin::{self, Demand};
use super::cast;
use super::cluster::{Cluster, Nodes};
use super::fleet;
use super::operator::Operator;
use super::pace::{self, Speed};
use super::ports::Port;
use super::world::{Kept, World};

/// The provider's name, in machine ids.
const CLOUD: &str = "sim";
/// The zones of the cloud.
pub(crate) const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];
/// How many people may change the same cluster at once before they wait.
const COMMANDS: usize = 16;
/// How often the world's time is written down, and how long the cloud's moves may take to end. Real time.
const NOTE_EVERY: Duration = Duration::from_secs(1);
const CLOUD_GRACE: Duration = Duration::from_millis(150);
/// How long the shard may take to stop. Real time.
const SHARD_GRACE: Duration = Duration::from_millis(600);

/// What to put on stage.
pub(crate) struct Plan {
    pub(crate) kept: Kept,
    pub(crate) speed: Speed,
    /// Where everything is kept, if anywhere.
    pub(crate) folder: Option<PathBuf>,
    /// Where the shard would like to listen.
    pub(crate) port: u16,
    /// Where the page would like to be.
    pub(crate) web_port: u16,
    /// How many shards share the cloud.
    pub(crate) shards: usize,
}

/// Everything, running.
pub(crate) struct Stage {
    pub(crate) shard: Running,
    /// The shards beside it, by name.
    pub(crate) others: Vec<(String, Running)>,
    /// Who says what each of them owns, if there are several.
    pub(crate) coordinator: Option<bigfleet_coordinator_server::Running>,
    pub(crate) admin: SocketAddr,
    /// Where the page is.
    pub(crate) web: SocketAddr,
    pub(crate) cloud: Arc<Sim>,
    pub(crate) clock: Arc<dyn Clock>,
    /// A channel to the shard, for whoever looks.
    pub(crate) channel: Channel,
    /// What had to move.
    pub(crate) moved: Vec<String>,
    world: World,
    halt: watch::Sender<bool>,
    provider: tokio::task::JoinHandle<Result<(), ServeError>>,
    /// Operators, the admin service, and whoever writes down the time.
    tasks: JoinSet<()>,
    /// Removed with everything in it at the end, if nothing is to be kept.
    _folder: Option<TempDir>,
}

impl Stage {
    /// Puts everything on stage. When this returns, everybody answers.
    pub(crate) async fn set(plan: Plan) -> anyhow::Result<Self> {
        let Plan { kept, speed, folder, port, web_port, shards } = plan;
        let clock: Arc<dyn Clock> = Arc::new(FastClock::start_at(kept.resumes_at(speed.0), speed.0));
        let world = World::new(kept.clone(), folder.as_deref(), clock.clone());
        world.note(false).context("the world cannot be written down")?;
        let cloud = Arc::new(open_cloud(kept.seed, folder.as_deref(), clock.clone()).await?);

        let mut ports = [
            Port::new("the simulated cloud", 9000),
            Port::new("the way to change the world", 9001),
            Port::new("the shard", port),
            Port::new("metrics", if port == 0 { 0 } else { 8780 }),
            Port::new("the page", if port == 0 { 0 } else { web_port }),
        ];
        if port == 0 {
            ports[0] = Port::new("the simulated cloud", 0);
            ports[1] = Port::new("the way to change the world", 0);
        }
        let [cloud_port, admin_port, shard_port, http_port, page_port] = &mut ports;
        let server = serve_cloud(&cloud, cloud_port, speed).await?;
        let provider_address = server.grpc_addr();
        let admin_listener = listen(admin_port).await?;
        let admin = admin_listener.local_addr().context("a socket without an address")?;

        let (halt, halted) = watch::channel(false);
        let provider = tokio::spawn(server.run(until(halted.clone())));
        let temporary = match &folder {
            Some(_) => None,
            None => Some(
                tempfile::Builder::new()
                    .prefix("bigfleet-up-")
                    .tempdir()
                    .context("no room for the record")?,
            ),
        };
        let keep_in =
            folder.as_deref().or(temporary.as_ref().map(TempDir::path)).expect("one of the two is there");
        let names = fleet::names(shards);
        let coordinator =
            if shards > 1 { Some(fleet::coordinator(&keep_in.join("coordinator")).await?) } else { None };
        let settings = |name: &str, folder: &str| {
            let mut settings =
                shard_settings(name, kept.seed, speed, provider_address, &keep_in.join(folder));
            settings.coordinator =
                coordinator.as_ref().map(|coordinator| fleet::reporting(coordinator.address, speed));
            settings.shard.is_assigned = coordinator.is_some();
            settings
        };
        let shard = start_shard(settings(&names[0], "shard"), shard_port, http_port, &clock).await?;
        let mut others = Vec::new();
        for name in &names[1..] {
            let beside = Settings { http: None, ..settings(name, &format!("shard-{name}")) };
            others.push((name.clone(), bigfleet_shard_server::start(beside, clock.clone()).await?));
        }
        if let Some(coordinator) = &coordinator {
            fleet::lay_out(coordinator.address, &names).await?;
        }
        let channel = dial(&format!("http://{}", shard.grpc), None)?;
        let served: Vec<SocketAddr> =
            std::iter::once(shard.grpc).chain(others.iter().map(|(_, other)| other.grpc)).collect();

        let mut tasks = JoinSet::new();
        let nodes: Arc<dyn Nodes> = Arc::new(CloudNodes(cloud.clone()));
        let mut operators = Vec::new();
        for (place, part) in cast::clusters().into_iter().enumerate() {
            let fixed = kept.fixed.get(&part.cluster.name).cloned().unwrap_or_default();
            let name = part.cluster.name.clone();
            let cluster = Cluster::new(part, kept.seed, kept.begun_unix_nanos, &fixed);
            let (commands, inbox) = mpsc::channel(COMMANDS);
            operators.push((name, commands));
            let operator = Operator {
                cluster,
                nodes: nodes.clone(),
                // Each has a connection of its own, as operators of real clusters do.
                channel: dial(&format!("http://{}", served[place % served.len()]), None)?,
                clock: clock.clone(),
                every: pace::roll_up(speed),
                commands: inbox,
            };
            tasks.spawn(operator.run());
        }
        let web_listener = listen(page_port).await?;
        let web = web_listener.local_addr().context("a socket without an address")?;
        let site = Site::new(web::Settings {
            shards: std::iter::once((&names[0], &shard))
                .chain(others.iter().map(|(name, other)| (name, other)))
                .map(|(name, shard)| web::Shard::local(name, shard.view()))
                .collect(),
            access: Access::Local,
            tls: false,
        });
        let page = web::serve(web_listener, Arc::new(site), None, until(halted.clone()));
        tasks.spawn(async move {
            if let Err(error) = page.await {
                tracing::error!(%error, "the page is not there any more");
            }
        });
        let demand = Demand::new(operators, world.clone(), clock.clone());
        let control = cloud.control();
        let served = admin::serve(control, demand, admin_listener, until(halted.clone()));
        tasks.spawn(async move {
            if let Err(error) = served.await {
                tracing::error!(%error, "the world cannot be changed any more");
            }
        });
        tasks.spawn(write_down(world.clone()));
        let moved = ports.iter().filter_map(Port::moved).collect();
        Ok(Self {
            shard,
            others,
            coordinator,
            admin,
            web,
            cloud,
            clock,
            channel,
            moved,
            world,
            halt,
            provider,
            tasks,
            _folder: temporary,
        })
    }

    /// Ends when something ended that should not have.
    pub(crate) async fn broken(&mut self) -> anyhow::Error {
        tokio::select! {
            ended = self.shard.ended() => match ended {
                Ok(()) => anyhow::anyhow!("the shard has ended by itself"),
                Err(error) => error.into(),
            },
            error = fleet::broken(&mut self.others) => error,
            ended = &mut self.provider => match ended {
                Ok(Err(error)) => error.into(),
                Ok(Ok(())) => anyhow::anyhow!("the simulated cloud has ended by itself"),
                Err(error) => error.into(),
            },
        }
    }

    /// Stops everything in order: clusters, shard, cloud. What was to be kept is on disk.
    pub(crate) async fn strike(mut self) -> Result<(), RunError> {
        self.tasks.abort_all();
        let mut stopped = self.shard.stop().await;
        for (_, other) in self.others {
            stopped = stopped.and(other.stop().await);
        }
        if let Some(coordinator) = self.coordinator
            && let Err(error) = coordinator.stop().await
        {
            tracing::warn!(%error, "the coordinator did not stop in order");
        }
        let _ = self.halt.send(true);
        if let Ok(Err(error)) = (&mut self.provider).await {
            tracing::warn!(%error, "the simulated cloud did not stop in order");
        }
        if let Err(error) = self.world.note(true) {
            tracing::warn!(%error, "the world's time could not be written down");
        }
        stopped
    }
}

async fn open_cloud(seed: u64, folder: Option<&Path>, clock: Arc<dyn Clock>) -> anyhow::Result<Sim> {
    let zones = ZONES.map(String::from).to_vec();
    let inventory = Inventory::Fleet { machines: cast::SLOTS, zones };
    let kept_faults = folder.map(|folder| folder.join("cloud.faults"));
    let config = CloudConfig { name: CLOUD.into(), seed, inventory, kept_faults, ..CloudConfig::default() };
    let store = folder.map_or_else(Store::memory, |folder| Store::file(folder.join("cloud.redb")));
    Sim::open(config, store, clock).await.context("the simulated cloud does not open")
}

async fn serve_cloud(cloud: &Sim, port: &mut Port, speed: Speed) -> anyhow::Result<Server<Service>> {
    loop {
        let settings = ProviderSettings {
            stop_grace: speed.simulated(CLOUD_GRACE),
            ..ProviderSettings::plain(port.address())
        };
        match Server::bind(cloud.service(), cloud.handle(), settings).await {
            Err(ServeError::Listen { source, .. }) if port.move_on(&source) => {}
            bound => return Ok(bound?),
        }
    }
}

async fn listen(port: &mut Port) -> anyhow::Result<TcpListener> {
    loop {
        match TcpListener::bind(port.address()).await {
            Err(error) if port.move_on(&error) => {}
            bound => return bound.with_context(|| format!("cannot listen on {}", port.address())),
        }
    }
}

fn shard_settings(name: &str, seed: u64, speed: Speed, provider: SocketAddr, folder: &Path) -> Settings {
    let address = format!("http://{provider}");
    let provider = ProviderAddress { config: pace::provider(CLOUD, speed), address };
    let record = Limits { max_bytes: 256 << 20, ..Limits::default() };
    Settings {
        keep: Keep::Folder { path: folder.into(), record },
        simulated: true,
        stop_grace: speed.simulated(SHARD_GRACE),
        ..Settings::local(pace::shard(name, seed, speed), vec![provider])
    }
}

async fn start_shard(
    settings: Settings,
    grpc: &mut Port,
    http: &mut Port,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Running> {
    loop {
        let settings = Settings { grpc: grpc.address(), http: Some(http.address()), ..settings.clone() };
        match bigfleet_shard_server::start(settings, clock.clone()).await {
            Err(StartError::Listen { address, source }) => {
                let port = if address == grpc.address() { &mut *grpc } else { &mut *http };
                if !port.move_on(&source) {
                    return Err(StartError::Listen { address, source }.into());
                }
            }
            started => return Ok(started?),
        }
    }
}

async fn write_down(world: World) {
    let real = SystemClock::start();
    loop {
        real.sleep(NOTE_EVERY).await;
        if let Err(error) = world.note(false) {
            tracing::warn!(%error, "the world's time could not be written down");
        }
    }
}

/// The cloud as kubelets know it.
struct CloudNodes(Arc<Sim>);

impl Nodes for CloudNodes {
    fn of(&self, cluster: &str) -> BTreeSet<String> {
        let nodes = self.0.nodes().into_iter();
        nodes.filter(|(_, of)| of == cluster).map(|(machine, _)| machine).collect()
    }

    fn machine(&self, id: &str) -> Option<Arc<Machine>> {
        let record = self.0.handle().get(id)?;
        Received::try_from(&*record).ok().map(|received| Arc::new(received.machine))
    }
}
