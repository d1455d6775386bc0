//! `bigfleet top` in a real terminal, against a real shard with a simulated cloud: tmux is the terminal, and what it
//! shows is read back.

#[allow(
    dead_code,
    clippy::disallowed_methods,
    clippy::cast_possible_wrap,
    reason = "shared with tests that use more of it"
)]
#[path = "support/operator.rs"]
mod operator;
#[allow(dead_code, reason = "shared with tests that use more of it")]
#[path = "support/process.rs"]
mod process;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use bigfleet_proto::v1alpha1::CapacityNeed;
use operator::Operator;
use process::{Process, free_port};

/// How often something is looked for before the test gives up, a tenth of a second apart. Not a bar: an end to waiting.
const TRIES: u32 = 900;

/// A terminal of our own: its server has its own socket and no settings of the user.
struct Tmux {
    folder: tempfile::TempDir,
}

impl Tmux {
    /// A terminal of this size with a plain shell in it; none if there is no tmux.
    fn start(width: u16, height: u16) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let tmux = Self { folder };
        let (width, height) = (width.to_string(), height.to_string());
        let started = tmux
            .command()
            .args(["-f", "/dev/null", "new-session", "-d", "-s", "top", "-x", &width, "-y", &height, "sh"])
            .env("TERM", "screen-256color")
            .env("LANG", "C.UTF-8")
            .env_remove("NO_COLOR")
            .stdin(Stdio::null())
            .status();
        match started {
            Ok(status) => {
                assert!(status.success(), "tmux is there and does not start");
                Some(tmux)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => panic!("tmux cannot be started: {error}"),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        // UTF-8 whatever the locale of whoever runs the tests.
        command.arg("-u").arg("-S").arg(self.socket());
        command
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("tmux")
    }

    fn tell(&self, arguments: &[&str]) -> String {
        let output = self.command().args(arguments).output().expect("tmux runs");
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("tmux speaks UTF-8")
    }

    fn press(&self, key: &str) {
        self.tell(&["send-keys", "-t", "top", key]);
    }

    /// Types a text and Enter.
    fn enter(&self, text: &str) {
        self.tell(&["send-keys", "-t", "top", "-l", text]);
        self.press("Enter");
    }

    fn screen(&self) -> String {
        self.tell(&["capture-pane", "-p", "-t", "top"])
    }

    /// Whether a program has taken the screen over.
    fn is_taken(&self) -> bool {
        self.tell(&["display-message", "-p", "-t", "top", "#{alternate_on}"]).trim() == "1"
    }

    /// Waits until all of these are seen.
    fn until(&self, wanted: &[&str]) -> String {
        self.until_so(&format!("{wanted:?} to be seen"), |screen| {
            wanted.iter().all(|text| screen.contains(text))
        })
    }

    #[expect(clippy::disallowed_methods, reason = "another process draws, and tells nobody when it has")]
    fn until_so(&self, what: &str, is: impl Fn(&str) -> bool) -> String {
        for _ in 0..TRIES {
            let screen = self.screen();
            if is(&screen) {
                return screen;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("waited in vain for {what}; the screen is\n{}", self.screen());
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // Nothing may outlive the test. Ours alone: the socket is in our folder.
        let _ = self.command().arg("kill-server").output();
    }
}

struct Scene {
    folder: tempfile::TempDir,
    cloud_port: u16,
    shard_port: u16,
    metrics_port: u16,
}

impl Scene {
    fn cloud(&self) -> Process {
        let address = format!("127.0.0.1:{}", self.cloud_port);
        let state = self.folder.path().join("cloud");
        let state = state.to_str().expect("a plain path");
        let arguments =
            ["provider", "sim", "--use-fake-backend", "--seed-count", "24", "--provider", "cloud"];
        Process::start(
            "cloud",
            &[&arguments[..], &["--addr", &address, "--state", state, "--http", "none"]].concat(),
        )
    }

    fn shard(&self) -> Process {
        let provider = format!("cloud=http://127.0.0.1:{}", self.cloud_port);
        let (listen, metrics) = (self.address(), format!("127.0.0.1:{}", self.metrics_port));
        let data = self.folder.path().join("shard");
        let data = data.to_str().expect("a plain path");
        let arguments =
            ["shard", "--shard-id", "s1", "--data", data, "--provider", &provider, "--listen", &listen];
        Process::start("shard", &[&arguments[..], &["--metrics", &metrics]].concat())
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.shard_port)
    }
}

fn want(cpu: &str, priority: i32) -> CapacityNeed {
    CapacityNeed {
        aggregate_resources: [("cpu".to_owned(), cpu.to_owned())].into(),
        min_unit: [("cpu".to_owned(), "1".to_owned())].into(),
        priority,
        ..CapacityNeed::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_terminal_shows_a_real_shard_and_is_given_back() {
    let Some(tmux) = Tmux::start(110, 32) else {
        // Past the harness, which keeps what passing tests say to itself.
        let _ = std::io::stderr().write_all(
            b"\n*** SKIPPED: there is no tmux, so `bigfleet top` was NOT tried in a real terminal. Install tmux. ***\n\n",
        );
        return;
    };
    let scene = Scene {
        folder: tempfile::tempdir().expect("a folder"),
        cloud_port: free_port(),
        shard_port: free_port(),
        metrics_port: free_port(),
    };
    let _cloud = scene.cloud();
    let shard = scene.shard();
    let url = format!("http://{}", scene.address());
    let every = Duration::from_millis(250);
    let _shop = Operator::start(&url, "shop", every, vec![want("16", 1_000)]);
    let _batch = Operator::start(&url, "batch", every, vec![want("100000", 10)]);
    // Nobody listens there: the command ends and says so, and the terminal stays as it is.
    let binary = env!("CARGO_BIN_EXE_bigfleet");
    tmux.until_so("a prompt", |screen| !screen.trim().is_empty());
    tmux.enter(&format!("{binary} top --server 127.0.0.1:1; echo code=$?"));
    tmux.until(&["nobody listens at http://127.0.0.1:1", "code=3"]);
    assert!(!tmux.is_taken());

    // The shard may still be starting: the command is repeated until it finds it.
    tmux.enter("clear");
    tmux.enter(&format!("until {binary} top --server {}; do sleep 0.2; done; echo code=$?", scene.address()));
    tmux.until(&["BigFleet  s1  cycle", "live", "1 Fleet", "shop", "batch", "supply", "decisions"]);
    assert!(tmux.is_taken());
    // The greedy cluster stays short, and its need is found under its reason.
    tmux.until(&["unmet", "WHY SHORT"]);

    // Into a cluster and back.
    tmux.press("Enter");
    tmux.until(&["cluster batch", "session", "short needs", "Esc back"]);
    tmux.press("Escape");
    tmux.until(&["1 Fleet", "p pause", "/ filter"]);

    // What is under the cursor is paused, and resumed by a command; the shard says so itself.
    tmux.press("p");
    tmux.until(&[":pause batch for 30m because"]);
    tmux.enter("a look");
    tmux.until(&["paused everything in batch", "1 PAUSE"]);
    tmux.enter(":resume batch");
    tmux.until_so("the pause to be over", |screen| !screen.contains("1 PAUSE"));
    tmux.until(&["the last "]);

    // The machines, filtered by the server.
    tmux.press("3");
    tmux.until(&["machines ", "STATE"]);
    tmux.press("/");
    tmux.enter("cluster=shop");
    tmux.until_so("machines of one cluster only", |screen| {
        let rows = screen.lines().filter(|line| line.contains("Configured"));
        screen.contains("/cluster=shop")
            && rows.clone().count() > 0
            && rows.clone().all(|row| row.contains("shop"))
    });
    // Into a machine: an explanation.
    tmux.press("Enter");
    tmux.until(&["machine ", "price", "provides"]);
    tmux.press("1");

    // Another size is another picture.
    tmux.tell(&["resize-window", "-t", "top", "-x", "60", "-y", "16"]);
    let small = tmux
        .until_so("a smaller picture", |screen| screen.contains("q quit") || screen.contains("1-4 screens"));
    assert!(small.lines().all(|line| line.chars().count() <= 60), "{small}");
    tmux.tell(&["resize-window", "-t", "top", "-x", "110", "-y", "32"]);

    // The shard goes, and comes back.
    shard.kill();
    tmux.until(&["STALE", "nobody listens"]);
    let shard = scene.shard();
    tmux.until_so("the shard to be heard again", |screen| {
        screen.contains(" live") && !screen.contains("STALE")
    });

    // Leaving gives the terminal back.
    tmux.press("q");
    tmux.until(&["code=0"]);
    assert!(!tmux.is_taken());
    // And so does being told to end.
    tmux.enter("clear");
    let pid = scene.folder.path().join("pid");
    let pid = pid.to_str().expect("a plain path");
    // The shell becomes the program under the same number.
    tmux.enter(&format!(
        "sh -c 'echo $$ > {pid}; exec {binary} top --server {}'; echo again=$?",
        scene.address()
    ));
    tmux.until(&["BigFleet  s1  cycle", "live"]);
    assert!(tmux.is_taken());
    let number = std::fs::read_to_string(pid).expect("the shell wrote it");
    let told = Command::new("kill").args(["-TERM", number.trim()]).status().expect("kill(1) is there");
    assert!(told.success());
    tmux.until(&["again=0"]);
    assert!(!tmux.is_taken());
    assert_eq!(shard.stop(), Some(0));
}

/// Where there is no terminal there is nothing to draw on, and it says what to do instead.
#[test]
fn without_a_terminal_it_names_the_alternative() {
    let output = Command::new(env!("CARGO_BIN_EXE_bigfleet"))
        .args(["top", "--server", "127.0.0.1:1"])
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("top needs a terminal") && said.contains("bigfleet get decisions --watch"),
        "{said}"
    );
    assert!(output.stdout.is_empty());
}
