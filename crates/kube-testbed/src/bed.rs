//! Several private clusters side by side, each with a host that runs pods as processes, and machines that become nodes: enough to
//! install everything as its charts say, without a container runtime.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::certificates::Identity;
use crate::host::run_pods_as_processes;
use crate::machines::join_machines;
use crate::plane::{ControlPlane, Parts, StartError};

/// The clusters. Dropping it ends everything in them.
pub struct TestBed {
    tasks: Vec<JoinHandle<()>>,
    /// By name.
    planes: Vec<(String, Arc<ControlPlane>)>,
}

impl TestBed {
    /// Starts clusters of these names; `program` is run in the place of every image. Pods of the first have addresses 127.1.0.1,
    /// 127.1.0.2 and so on, those of the second 127.2.0.1.
    pub async fn start(names: &[&str], program: &Path) -> Result<Self, StartError> {
        let mut bed = Self { tasks: Vec::new(), planes: Vec::new() };
        for (number, name) in (1_u8..).zip(names) {
            let plane = Arc::new(ControlPlane::start(Parts::All).await?);
            let (host, program) = (plane.clone(), program.to_owned());
            bed.tasks.push(tokio::spawn(async move {
                if let Err(error) = run_pods_as_processes(&host, &program, number).await {
                    panic!("the host does not start: {error}");
                }
            }));
            bed.tasks.push(tokio::spawn(join_machines(plane.client().await)));
            bed.planes.push(((*name).to_owned(), plane));
        }
        Ok(bed)
    }

    /// Where a kubeconfig for each cluster is, by name.
    pub fn kubeconfigs(&self) -> std::io::Result<Vec<(String, PathBuf)>> {
        let of = |(name, plane): &(String, Arc<ControlPlane>)| {
            Ok((name.clone(), plane.kubeconfig_file(name, &Identity::admin())?))
        };
        self.planes.iter().map(of).collect()
    }

    /// A program beside those of the control planes, such as kubectl.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        self.planes.first()?.1.program(name)
    }

    /// What the programs of pods have said lately, for failures.
    pub fn last_words(&self) -> String {
        let mut text = String::new();
        for (name, plane) in &self.planes {
            for entry in std::fs::read_dir(plane.folder().join("host")).into_iter().flatten().flatten() {
                let Ok(said) = std::fs::read_to_string(entry.path().join("env.log")) else { continue };
                let lines: Vec<&str> = said.lines().collect();
                let last = lines[lines.len().saturating_sub(15)..].join("\n");
                text.extend(["--- ", name, ": ", &entry.file_name().to_string_lossy(), "\n", &last, "\n"]);
            }
        }
        text
    }
}

impl std::fmt::Debug for TestBed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestBed").field("planes", &self.planes.len()).finish_non_exhaustive()
    }
}

impl Drop for TestBed {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}
