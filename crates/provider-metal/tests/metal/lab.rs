//! Hosts on loopback: an sshd each, with keys and a work folder of its own, and a Redfish emulator.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use bigfleet_provider_kit::{Clock as _, SystemClock};
use tempfile::TempDir;

/// Where the real parts are.
pub(crate) struct Parts {
    sshd: String,
    libs: String,
    emulator: String,
}

impl Parts {
    /// An sshd with this configuration.
    pub(crate) fn sshd(&self, config: &Path) -> Process {
        let log = std::fs::File::create(config.with_extension("log")).expect("a log");
        let mut command = Command::new(&self.sshd);
        command.args(["-D", "-e", "-f"]).arg(config).env("LD_LIBRARY_PATH", &self.libs).stderr(log);
        Process::spawn(&mut command)
    }
}

/// Asks `scripts/metal-parts`, which fetches what is missing.
pub(crate) fn parts() -> &'static Parts {
    static PARTS: OnceLock<Parts> = OnceLock::new();
    PARTS.get_or_init(|| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/metal-parts");
        let said = Command::new(script).stderr(Stdio::inherit()).output().expect("the script runs");
        assert!(said.status.success(), "scripts/metal-parts failed: see above");
        let text = String::from_utf8(said.stdout).expect("text");
        let part = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
            line.unwrap_or_else(|| panic!("{name} is not in {text}")).to_owned()
        };
        Parts { sshd: part("sshd"), libs: part("libs"), emulator: part("emulator") }
    })
}

/// Waits a moment.
pub(crate) async fn pause() {
    SystemClock::start().sleep(Duration::from_millis(100)).await;
}

/// Waits until something is so; a test that waits for ever is stopped from outside.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..1800 {
        if is_so().await {
            return;
        }
        pause().await;
    }
    panic!("it never came to be so: {what}");
}

/// A process that ends with the test.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port nobody listens on, for now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// One host.
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) port: u16,
    /// More lines for the inventory, indented by four.
    pub(crate) more: String,
    sshd: Option<Process>,
}

impl Host {
    /// A host where nobody listens.
    pub(crate) fn unanswering(name: &str, more: String) -> Self {
        Self { name: name.into(), port: free_port(), more, sshd: None }
    }
}

/// A folder with hosts.
pub(crate) struct Lab {
    folder: TempDir,
    pub(crate) hosts: Vec<Host>,
    /// The lines of the inventory before `hosts:`.
    pub(crate) head: String,
}

impl Lab {
    /// So many hosts, `h0` and on, each with an sshd that runs.
    pub(crate) async fn new(count: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        key(&folder.path().join("id"));
        let mut lab = Self { folder, hosts: Vec::new(), head: String::new() };
        lab.head = lab.usual_head();
        for number in 0..count {
            lab.hosts.push(Host {
                name: format!("h{number}"),
                port: free_port(),
                more: String::new(),
                sshd: None,
            });
        }
        for number in 0..count {
            key(&lab.path(&format!("h{number}.key")));
            lab.start(number, "").await;
        }
        lab
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Hooks that leave a file per joined host and a line per hook that ran.
    fn usual_head(&self) -> String {
        let at = self.folder.path().display();
        format!(
            "defaults:
  user: {user}
  key_file: {at}/id
  type: vm
  zone: z1
  rack: r1
  price_per_month: 73
  resources: {{cpu: 4, memory: 8Gi}}
  allocatable: {{cpu: 3, memory: 7Gi}}
watch: {{ssh_secs: 1, boot_id_secs: 2, redfish_secs: 5}}
bounds: {{create_secs: 60, configure_secs: 60, drain_secs: 60, delete_secs: 60, leave_grace_secs: 1}}
hooks:
  join: |
    echo join $BIGFLEET_MACHINE $BIGFLEET_CLUSTER $BIGFLEET_OPERATION >>{at}/hooks.log
    sleep 0.3
    touch {at}/$BIGFLEET_MACHINE.joined
  ready: test -e {at}/$BIGFLEET_MACHINE.joined
  reset: |
    echo reset $BIGFLEET_MACHINE $BIGFLEET_OPERATION >>{at}/hooks.log
    rm -f {at}/$BIGFLEET_MACHINE.joined
  clean: test ! -e {at}/$BIGFLEET_MACHINE.joined
",
            user = whoami(),
        )
    }

    /// Writes the inventory with all hosts but those left out, and returns where it is.
    pub(crate) fn inventory_without(&self, left_out: &[&str]) -> PathBuf {
        let mut text = format!("{}hosts:\n", self.head);
        for host in self.hosts.iter().filter(|host| !left_out.contains(&host.name.as_str())) {
            let Host { name, port, more, .. } = host;
            let folder = self.path(&format!("{name}.work"));
            let _ = writeln!(text, "  - name: {name}\n    address: 127.0.0.1\n    port: {port}");
            if !more.contains("work_folder") {
                let _ = writeln!(text, "    work_folder: {}", folder.display());
            }
            text += more;
        }
        let path = self.path("inventory.yaml");
        std::fs::write(&path, text).expect("written");
        path
    }

    pub(crate) fn inventory(&self) -> PathBuf {
        self.inventory_without(&[])
    }

    /// Starts the sshd of a host, with more lines for its configuration.
    pub(crate) async fn start(&mut self, number: usize, more: &str) {
        let at = self.folder.path().display().to_string();
        let Host { name, port, .. } = &self.hosts[number];
        // A host with keys of its own takes no others.
        let own = self.path(&format!("{name}.keys"));
        let keys = if own.exists() { own } else { self.path("id.pub") };
        let keys = keys.display();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/{name}.key\nAuthorizedKeysFile {keys}\n\
             PidFile none\nUsePAM no\nStrictModes no\nMaxStartups 200\n{more}\n"
        );
        let path = self.path(&format!("{name}.sshd"));
        std::fs::write(&path, config).expect("written");
        self.hosts[number].sshd = Some(parts().sshd(&path));
        let port = self.hosts[number].port;
        until("sshd answers", async || tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok())
            .await;
    }

    /// Stops the sshd of a host, as if the host were gone.
    pub(crate) fn stop(&mut self, number: usize) {
        self.hosts[number].sshd = None;
    }

    /// Gives a host another key than it had.
    pub(crate) fn change_key(&self, number: usize) {
        let path = self.path(&format!("{}.key", self.hosts[number].name));
        std::fs::remove_file(&path).expect("removed");
        key(&path);
    }

    /// How often a hook ran on a host.
    pub(crate) fn hook_runs(&self, hook: &str, host: &str) -> usize {
        let log = std::fs::read_to_string(self.path("hooks.log")).unwrap_or_default();
        log.lines().filter(|line| line.starts_with(&format!("{hook} {host} "))).count()
    }

    pub(crate) fn is_joined(&self, host: &str) -> bool {
        self.path(&format!("{host}.joined")).exists()
    }
}

pub(crate) fn whoami() -> String {
    said(Command::new("id").arg("-un"))
}

fn key(path: &Path) {
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path).stdin(Stdio::null());
    assert!(command.status().expect("ssh-keygen runs").success());
}

/// A Redfish emulator with systems that are off at first.
pub(crate) struct Emulator {
    pub(crate) port: u16,
    command: Command,
    process: Option<Process>,
    folder: TempDir,
}

impl Emulator {
    /// So many systems; with TLS if there are a certificate and a key.
    pub(crate) async fn start(systems: usize, tls: Option<(&Path, &Path)>) -> Self {
        Self::start_with(systems, tls, "").await
    }

    /// With more lines of configuration.
    pub(crate) async fn start_with(systems: usize, tls: Option<(&Path, &Path)>, more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = format!(
            "{more}\nSUSHY_EMULATOR_STATE_DIR = '{}'\nSUSHY_EMULATOR_FAKE_SYSTEMS = [\n",
            folder.path().display()
        );
        for number in 0..systems {
            let uuid = system_id(number);
            let _ = writeln!(
                config,
                "{{'uuid': '{uuid}', 'name': 's{number}', 'power_state': 'Off', 'external_notifier': False, 'nics': []}},"
            );
        }
        config += "]\n";
        let path = folder.path().join("config.py");
        std::fs::write(&path, config).expect("written");
        let port = free_port();
        let mut command = Command::new(&parts().emulator);
        command.args(["--fake", "-i", "127.0.0.1", "-p", &port.to_string(), "--config"]).arg(&path);
        if let Some((certificate, key)) = tls {
            command.arg("--ssl-certificate").arg(certificate).arg("--ssl-key").arg(key);
        }
        let mut emulator = Self { port, command, process: None, folder };
        emulator.spawn().await;
        emulator
    }

    async fn spawn(&mut self) {
        let log = std::fs::File::create(self.folder.path().join("log")).expect("a log");
        self.process = Some(Process::spawn(self.command.stderr(log)));
        let port = self.port;
        until("the emulator answers", async || {
            tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok()
        })
        .await;
    }

    /// Its systems' health becomes another. The emulator knows systems that are well alone: it is started anew from a copy
    /// with another word in its template. Power is as it was.
    pub(crate) async fn becomes(&mut self, health: &str) {
        self.process = None;
        let copy = self.folder.path().join(health);
        if !copy.exists() {
            let python = venv().join("bin/python");
            let code = "import os, sushy_tools; print(os.path.dirname(sushy_tools.__file__))";
            let package = said(Command::new(python).args(["-c", code]));
            std::fs::create_dir(&copy).expect("made");
            assert!(Command::new("cp").args(["-r", &package]).arg(&copy).status().expect("cp").success());
            let template = copy.join("sushy_tools/emulator/templates/system.json");
            let usual = std::fs::read_to_string(&template).expect("a template");
            let changed = usual.replacen("\"Health\": \"OK\"", &format!("\"Health\": \"{health}\""), 1);
            assert!(health == "OK" || usual != changed, "the template has another form");
            std::fs::write(&template, changed).expect("written");
        }
        self.command.env("PYTHONPATH", &copy);
        self.spawn().await;
    }

    /// The lines of the inventory for a host that this powers.
    pub(crate) fn lines(&self, system: usize) -> String {
        self.lines_with(system, "")
    }

    /// With more about its controller.
    pub(crate) fn lines_with(&self, system: usize, more: &str) -> String {
        let (port, id) = (self.port, system_id(system));
        format!(
            "    always_on: false\n    bmc: {{url: \"http://127.0.0.1:{port}\", system: /redfish/v1/Systems/{id}{more}}}\n"
        )
    }
}

/// Where the emulator lives.
fn venv() -> PathBuf {
    Path::new(&parts().emulator).ancestors().nth(2).expect("it is in bin").into()
}

/// A line of a file of passwords, as the emulator takes them.
pub(crate) fn password_line(user: &str, password: &str) -> String {
    let code = "import bcrypt, sys; print(sys.argv[1] + ':' + bcrypt.hashpw(sys.argv[2].encode(), bcrypt.gensalt(4)).decode())";
    said(Command::new(venv().join("bin/python")).args(["-c", code, user, password]))
}

/// What a program prints.
fn said(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

pub(crate) fn system_id(number: usize) -> String {
    format!("27946b59-9e44-4fa7-8e91-{number:012}")
}
