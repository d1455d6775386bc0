//! A private Kubernetes without nodes, connected to `bigfleet up`: for trying things out with kubectl.
//!
//! Everything is the shipped program but the machines, which become hollow nodes, or nodes on paper where there is no kubemark.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bigfleet_net::{Clock as _, SystemClock};
use thiserror::Error;
use tokio::task::JoinHandle;

use crate::certificates::Identity;
use crate::hollow::Hollow;
use crate::machines::{join_hollow_machines, join_machines};
use crate::plane::{ControlPlane, Parts, StartError};
use crate::process::Program;

/// What machines are given to join with.
const TEMPLATE: &str = "join {{ .ClusterID }} with {{ .JoinToken }}\n";
/// How fast the simulated cloud is if nobody says: a machine that takes a minute to come is there after some seconds.
const CLOCK: [&str; 2] = ["--clock", "10"];
/// How often it is looked whether `bigfleet up` is ready, and how often in all: two minutes.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOKS: usize = 1200;

/// What there is. Dropping it ends all of it, and its files go.
#[derive(Debug)]
pub struct Playground {
    joining: JoinHandle<()>,
    programs: Vec<Program>,
    plane: ControlPlane,
    kubeconfig: PathBuf,
    /// Where bigfleet and kubectl are.
    folders: String,
    server: String,
    page: String,
    is_hollow: bool,
}

/// Why it did not start.
#[derive(Debug, Error)]
pub enum PlaygroundError {
    /// The control plane.
    #[error(transparent)]
    Plane(#[from] StartError),
    /// A file or process could not be made.
    #[error("cannot start: {0}")]
    Io(#[from] std::io::Error),
    /// A program of ours ended, or is not ready.
    #[error("{program} is not ready; its last words:\n{last_words}")]
    NotReady {
        /// Which.
        program: String,
        /// The end of its log.
        last_words: String,
    },
}

impl Playground {
    /// Starts a control plane, `bigfleet up` with these flags, and what connects the two; `bigfleet` is the program.
    pub async fn start(bigfleet: &Path, flags: &[String]) -> Result<Self, PlaygroundError> {
        let plane = ControlPlane::start(Parts::All).await?;
        let kubeconfig = plane.kubeconfig_file("admin", &Identity::admin())?;
        let admin = kubeconfig.display().to_string();
        let start = |name: &str, words: &[&str]| -> std::io::Result<Program> {
            let folder = plane.folder().join(name);
            std::fs::create_dir_all(&folder)?;
            // Whatever else this user runs is not to be found instead, and does not find this.
            let home = format!("XDG_RUNTIME_DIR={}", folder.display());
            let program = bigfleet.display().to_string();
            let words = [home.as_str(), &program].into_iter().chain(words.iter().copied());
            Program::start("/usr/bin/env".as_ref(), words, &folder)
        };
        let world = plane.folder().join("world").display().to_string();
        let mut words = vec!["up", "--no-view", "--port", "0"];
        for [flag, value] in [CLOCK, ["--data", &world]] {
            if !flags.iter().any(|given| given.starts_with(flag)) {
                words.extend([flag, value]);
            }
        }
        words.extend(flags.iter().map(String::as_str));
        let mut up = start("up", &words)?;
        let said = ready(&mut up, &plane.folder().join("up/env.log")).await?;
        let (server, page) = (word(&said, "shard"), word(&said, "page"));

        let install = ["crds", "--install", "--kubeconfig", &admin];
        let installed = tokio::process::Command::new(bigfleet).args(install).output().await?;
        if !installed.status.success() {
            return Err(PlaygroundError::NotReady {
                program: "bigfleet crds --install".into(),
                last_words: String::from_utf8_lossy(&installed.stderr).into_owned(),
            });
        }
        let template = plane.folder().join("bootstrap.tmpl");
        std::fs::write(&template, TEMPLATE)?;
        let template = template.display().to_string();
        let client = plane.client().await;
        let hollow = Hollow::of(&plane).await?;
        let is_hollow = hollow.is_some();
        let joining = match hollow {
            Some(hollow) => tokio::spawn(join_hollow_machines(client, hollow)),
            None => tokio::spawn(join_machines(client)),
        };
        let alone = ["--kubeconfig", &admin, "--no-leader-election", "--metrics", "none"];
        let cluster = [
            "operator",
            "--cluster",
            "playground",
            "--shard",
            &server,
            "--bootstrap-template-file",
            &template,
        ];
        let pace = ["--rollup-interval-secs", "1", "--settle-secs", "5"];
        let programs = vec![
            up,
            start("pod-controller", &[&["pod-controller"][..], &alone].concat())?,
            start("operator", &[&cluster[..], &alone, &pace].concat())?,
        ];
        let kubectl = plane.program("kubectl");
        let folders = [Some(bigfleet), kubectl.as_deref()].into_iter().flatten().filter_map(Path::parent);
        let folders: Vec<String> = folders.map(|folder| folder.display().to_string()).collect();
        let folders = folders.join(":");
        Ok(Self { joining, programs, plane, kubeconfig, folders, server, page, is_hollow })
    }

    /// What a newcomer is told to type: a way in, then commands.
    pub fn commands(&self) -> Vec<String> {
        let Self { kubeconfig, folders, server, .. } = self;
        vec![
            format!(
                "export PATH={folders}:$PATH KUBECONFIG={} BIGFLEET_SERVER={server}",
                kubeconfig.display()
            ),
            "kubectl create deployment web --image=nginx --replicas=6".into(),
            "kubectl set resources deployment web --requests=cpu=2,memory=1Gi".into(),
            "kubectl rollout status deployment web --timeout=240s".into(),
            "kubectl get fleet,nodes,pods --all-namespaces".into(),
            "bigfleet get clusters".into(),
            "bigfleet explain pod default/$(kubectl get pods -o jsonpath='{.items[0].metadata.name}')".into(),
            "kubectl delete deployment web".into(),
            "kubectl wait --for=delete nodes --all --timeout=240s".into(),
        ]
    }

    /// The same with what is to be known.
    pub fn invitation(&self) -> String {
        let nodes = if self.is_hollow { "hollow nodes (kubemark)" } else { "nodes on paper" };
        let mut text = format!(
            "
A cluster without nodes, called playground, beside the three simulated ones of bigfleet up: {}
Its machines are of the simulated cloud and become {nodes}. In another terminal:

",
            self.page
        );
        for command in self.commands() {
            // Writing to a string does not fail.
            let _ = writeln!(text, "  {command}");
        }
        let _ = write!(
            text,
            "
What the programs say is in {}. ctrl-c ends and removes everything.",
            self.plane.folder().display()
        );
        text
    }

    /// The control plane, for a closer look.
    pub fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    /// The last words of our programs, for failures.
    pub fn last_words(&self) -> String {
        self.programs.iter().map(Program::last_words).collect::<Vec<_>>().join("\n---\n")
    }

    /// Ends everything, kubelets before the control plane they speak with.
    pub async fn stop(mut self) {
        self.joining.abort();
        // That it was ended is its only news.
        let _ = (&mut self.joining).await;
    }

    /// Returns when one of the programs has ended, which none should; its last words.
    pub async fn ended(&mut self) -> String {
        let clock = SystemClock::start();
        loop {
            if let Some(ended) = self.programs.iter_mut().find_map(|program| {
                let has_ended = !program.is_running();
                has_ended.then(|| program.last_words())
            }) {
                return ended;
            }
            clock.sleep(LOOK_EVERY).await;
        }
    }
}

impl Drop for Playground {
    fn drop(&mut self) {
        self.joining.abort();
    }
}

/// Waits for the ready line of `bigfleet up`. What it has said until then.
async fn ready(up: &mut Program, log: &Path) -> Result<String, PlaygroundError> {
    let clock = SystemClock::start();
    for _ in 0..LOOKS {
        let said = std::fs::read_to_string(log).unwrap_or_default();
        if said.lines().any(|line| line.starts_with("ready after ")) {
            return Ok(said);
        }
        if !up.is_running() {
            break;
        }
        clock.sleep(LOOK_EVERY).await;
    }
    Err(PlaygroundError::NotReady { program: "bigfleet up".into(), last_words: up.last_words() })
}

/// The word behind a label of its banner.
fn word(banner: &str, label: &str) -> String {
    let mut lines = banner.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next()? == label).then(|| words.next())?).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_from_the_banner() {
        let banner =
            "page      http://127.0.0.1:7\nBigFleet  SIMULATED\n  shard     http://127.0.0.1:9   metrics x\n";
        assert_eq!(word(banner, "page"), "http://127.0.0.1:7");
        assert_eq!(word(banner, "shard"), "http://127.0.0.1:9");
        assert_eq!(word(banner, "none"), "");
    }
}
