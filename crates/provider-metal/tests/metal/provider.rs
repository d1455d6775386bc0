//! The provider as a process, and a shard's side of the wire to it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use bigfleet_proto::provider_v1::machine_output_client::MachineOutputClient;
use bigfleet_proto::provider_v1::{ConfigureOutput, ConfigureOutputRequest};
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::capacity_provider_client::CapacityProviderClient;
use bigfleet_proto::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, Machine, MachineRef,
};
use bigfleet_provider_kit::MachineState;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use crate::lab::until;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bigfleet-provider-metal");

/// A provider process, killed at the latest when this is dropped.
pub(crate) struct Provider {
    child: Child,
    pub(crate) address: String,
    pub(crate) client: CapacityProviderClient<Channel>,
    outputs: MachineOutputClient<Channel>,
    inventory: PathBuf,
    state: PathBuf,
    said: Arc<Mutex<String>>,
}

/// The program: ours, or a `bigfleet` built for speed that is to be measured.
fn program() -> Command {
    match std::env::var_os("BIGFLEET_MEASURED") {
        None => Command::new(PROGRAM),
        Some(bigfleet) => {
            let mut command = Command::new(bigfleet);
            command.args(["provider", "metal"]);
            command
        }
    }
}

/// Runs one command of the program to its end.
pub(crate) fn command(inventory: &Path, state: &Path, words: &[&str]) -> Output {
    let mut command = program();
    command.arg("--inventory").arg(inventory).arg("--state").arg(state).args(words);
    command.output().expect("it runs")
}

impl Provider {
    pub(crate) async fn start(inventory: &Path, state: &Path) -> Self {
        Self::start_at(inventory, state, "127.0.0.1:0").await
    }

    pub(crate) async fn start_at(inventory: &Path, state: &Path, address: &str) -> Self {
        Self::start_with(inventory, state, address, &[]).await
    }

    pub(crate) async fn start_with(inventory: &Path, state: &Path, address: &str, more: &[&str]) -> Self {
        let mut child = program()
            .args(more)
            .arg("--inventory")
            .arg(inventory)
            .arg("--state")
            .arg(state)
            .args(["--addr", address])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        let said = Arc::new(Mutex::new(String::new()));
        let hear = {
            let said = said.clone();
            move |line: &str| {
                let mut said = said.lock().expect("no holder panics");
                said.push_str(line);
                said.push('\n');
            }
        };
        let address = lines.find_map(|line| {
            hear(&line);
            line.strip_prefix("listening on ").map(String::from)
        });
        let address = address.unwrap_or_else(|| panic!("it does not start: {}", said.lock().expect("held")));
        // Read on, so that it never waits for a reader; what it says belongs to a failed test.
        let read = move |line: String| {
            hear(&line);
            eprintln!("provider: {line}");
        };
        std::thread::spawn(move || lines.for_each(read));
        let endpoint =
            transport::endpoint(Endpoint::from_shared(format!("http://{address}")).expect("an address"));
        let channel = endpoint.connect().await.expect("it listens");
        let (client, outputs) =
            (transport::provider_client(channel.clone()), MachineOutputClient::new(channel));
        let (inventory, state) = (inventory.into(), state.into());
        Self { child, address, client, outputs, inventory, state, said }
    }

    /// All that it has logged.
    pub(crate) fn said(&self) -> String {
        self.said.lock().expect("no holder panics").clone()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
    }

    /// `kill -9`, and another one on the same state.
    pub(crate) async fn restart(&mut self) {
        self.kill();
        *self = Self::start(&self.inventory.clone(), &self.state.clone()).await;
    }

    pub(crate) async fn get(&self, id: &str) -> Machine {
        self.client.clone().get(MachineRef { id: id.into() }).await.expect("it is there").into_inner()
    }

    pub(crate) async fn state(&self, id: &str) -> MachineState {
        MachineState::from_wire(self.get(id).await.state).expect("a state")
    }

    /// Waits until a machine is in one of the states that a move can end in.
    pub(crate) async fn settled(&self, id: &str) -> Machine {
        use MachineState::{Configuring, Creating, Deleting, Draining};
        until(&format!("{id} is at rest"), async || {
            !matches!(self.state(id).await, Creating | Configuring | Draining | Deleting)
        })
        .await;
        self.get(id).await
    }

    pub(crate) async fn is_in(&self, id: &str, state: MachineState) -> Machine {
        until(&format!("{id} is {state:?}"), async || self.state(id).await == state).await;
        self.get(id).await
    }

    pub(crate) async fn create(&self, id: &str) {
        let (shard_id, shard_epoch, sequence_number) = token();
        let request = CreateRequest { machine_id: id.into(), shard_id, shard_epoch, sequence_number };
        self.client.clone().create(request).await.expect("accepted");
    }

    pub(crate) async fn configure(&self, id: &str, cluster: &str, blob: &[u8]) {
        let (shard_id, shard_epoch, sequence_number) = token();
        let request = ConfigureRequest {
            machine_id: id.into(),
            cluster_id: cluster.into(),
            bootstrap_blob: blob.to_vec(),
            shard_id,
            shard_epoch,
            sequence_number,
            shard_metadata: BTreeMap::from([("key".into(), "a\0b".into())]),
        };
        self.client.clone().configure(request).await.expect("accepted");
    }

    pub(crate) async fn configure_output(
        &self,
        id: &str,
        most_bytes: u32,
    ) -> Result<ConfigureOutput, Status> {
        let request = ConfigureOutputRequest { machine_id: id.into(), most_bytes };
        Ok(self.outputs.clone().get_configure_output(request).await?.into_inner())
    }

    pub(crate) async fn drain(&self, id: &str) {
        let (shard_id, shard_epoch, sequence_number) = token();
        let request = DrainRequest {
            machine_id: id.into(),
            grace_period_seconds: 1,
            shard_id,
            shard_epoch,
            sequence_number,
        };
        self.client.clone().drain(request).await.expect("accepted");
    }

    pub(crate) async fn delete(&self, id: &str) {
        let (shard_id, shard_epoch, sequence_number) = token();
        let request = DeleteRequest { machine_id: id.into(), shard_id, shard_epoch, sequence_number };
        self.client.clone().delete(request).await.expect("accepted");
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let is_coloured = self.said().contains('\u{1b}');
        assert!(
            std::thread::panicking() || !is_coloured,
            "its logs have colours for a terminal, and go to none"
        );
    }
}

fn token() -> (String, i64, i64) {
    static SEQUENCE: AtomicI64 = AtomicI64::new(1);
    ("s".into(), 1, SEQUENCE.fetch_add(1, Ordering::Relaxed))
}
