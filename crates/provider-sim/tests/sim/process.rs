//! The binary as a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use bigfleet_model::machine::MachineState;
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::capacity_provider_client::CapacityProviderClient;
use bigfleet_proto::v1alpha1::{Machine, MachineRef};
use bigfleet_provider_kit::{Clock as _, SystemClock};
use tonic::transport::{Channel, Endpoint};

pub(crate) fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_bigfleet-provider-sim"))
}

/// A client of a provider at this address.
pub(crate) fn client(address: &str) -> CapacityProviderClient<Channel> {
    let endpoint =
        transport::endpoint(Endpoint::from_shared(format!("http://{address}")).expect("an address"));
    transport::provider_client(endpoint.connect_lazy())
}

/// Asks until the machine is in a state.
pub(crate) async fn reach(
    client: &mut CapacityProviderClient<Channel>,
    id: &str,
    state: MachineState,
) -> Machine {
    loop {
        let machine = client.get(MachineRef { id: id.into() }).await.expect("it answers").into_inner();
        if machine.state == state.to_wire() {
            return machine;
        }
        SystemClock::start().sleep(Duration::from_millis(5)).await;
    }
}

/// A running provider; killed at the latest when this is dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: String,
    pub(crate) http: String,
    pub(crate) admin: String,
}

impl Process {
    /// The standard test binary on this state.
    pub(crate) fn standard(address: &str, count: usize, state: &Path) -> Self {
        let count = count.to_string();
        Self::start(
            &[
                &["--addr", address, "--provider", "p", "--use-fake-backend", "--seed-count", &count][..],
                &["--idle-count", "8", "--fault-slots", "4", "--state"],
            ]
            .concat(),
            state,
        )
    }

    pub(crate) fn start(flags: &[&str], state: &Path) -> Self {
        let mut child = command()
            .args(flags)
            .arg(state)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary is built");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        let (mut said, mut address, mut http, mut admin) = (vec![], None, String::new(), String::new());
        let wants_admin = flags.contains(&"--admin");
        for line in lines.by_ref() {
            if let Some(found) = line.strip_prefix("listening on ") {
                address = Some(found.to_string());
            } else if let Some(found) = line.strip_prefix("metrics on http://") {
                http = found.trim_end_matches("/metrics").to_string();
            } else if let Some(found) = line.strip_prefix("faults on ") {
                admin = found.to_string();
            }
            said.push(line);
            if address.is_some() && !http.is_empty() && (!wants_admin || !admin.is_empty()) {
                break;
            }
        }
        let address = address.unwrap_or_else(|| panic!("it did not start: {said:#?}"));
        // Read on, so that the child never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address, http, admin }
    }

    pub(crate) fn client(&self) -> CapacityProviderClient<Channel> {
        client(&self.address)
    }

    /// `kill -9`: no handler runs, nothing is flushed.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is ours");
    }

    /// Asks it to stop, by the signal of this name, and waits until it has.
    pub(crate) fn signal(mut self, name: &str) -> ExitStatus {
        let sent = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status();
        assert!(sent.expect("there is a kill").success());
        self.child.wait().expect("it is ours")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the binary to its end: exit code, standard output, standard error.
pub(crate) fn ended(flags: &[&str]) -> (Option<i32>, String, String) {
    let mut child = command()
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary is built");
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().expect("piped").read_to_string(&mut out).expect("text");
    child.stderr.take().expect("piped").read_to_string(&mut err).expect("text");
    (child.wait().expect("it is ours").code(), out, err)
}
