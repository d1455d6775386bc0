//! A private Kubernetes with nothing in it but a fleet behind it: for trying things out with kubectl. `scripts/up-kubernetes` runs it.
//!
//! Everything is the shipped program but the machines, which become nodes on paper.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;

use bigfleet_kube_testbed::{ControlPlane, Identity, Parts, Program, join_machines};

const TEMPLATE: &str = "join {{ .ClusterID }} with {{ .JoinToken }}\n";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bigfleet = std::env::args().nth(1).ok_or("say where the bigfleet program is")?;
    let mut out = std::io::stdout();
    writeln!(out, "starting a private Kubernetes ...")?;
    let plane = ControlPlane::start(Parts::All).await?;
    let kubeconfig = plane.kubeconfig_file("admin", &Identity::admin())?.display().to_string();
    let template = plane.folder().join("bootstrap.tmpl");
    std::fs::write(&template, TEMPLATE)?;
    let template = template.display().to_string();
    let [provider, shard, operator] = ports()?;
    let (cloud, server) = (format!("http://127.0.0.1:{provider}"), format!("http://127.0.0.1:{shard}"));
    let installed = std::process::Command::new(&bigfleet)
        .args(["crds", "--install", "--kubeconfig", &kubeconfig])
        .status()?;
    if !installed.success() {
        return Err("the custom resources could not be installed".into());
    }
    let joining = tokio::spawn(join_machines(plane.client().await));
    let start = |name: &str, words: &str| -> std::io::Result<Program> {
        let folder = plane.folder().join(name);
        std::fs::create_dir_all(&folder)?;
        Program::start(Path::new(&bigfleet), words.split_whitespace(), &folder)
    };
    let programs = [
        start(
            "provider",
            &format!(
                "provider sim --use-fake-backend --seed-count 200 --addr 127.0.0.1:{provider} --http none"
            ),
        )?,
        start(
            "shard",
            &format!(
                "shard --memory-only --provider sim={cloud} --listen 127.0.0.1:{shard} --metrics none --tick 1s \
                 --list-every 1s --reclaim-window 5s --guard-spacing 2s --on-demand-hold 1m --spot-hold 20s"
            ),
        )?,
        start(
            "pod-controller",
            &format!("pod-controller --kubeconfig {kubeconfig} --no-leader-election --metrics none"),
        )?,
        start(
            "operator",
            &format!(
                "operator --cluster playground --shard {server} --kubeconfig {kubeconfig} --no-leader-election \
                 --bootstrap-template-file {template} --metrics 127.0.0.1:{operator} --rollup-interval-secs 3"
            ),
        )?,
    ];
    writeln!(
        out,
        "
A cluster without nodes, and a fleet of 200 simulated machines behind it. In another terminal:

  export KUBECONFIG={kubeconfig} BIGFLEET_SERVER={server}
  kubectl create deployment web --image=nginx --replicas=6
  kubectl set resources deployment web --requests=cpu=2,memory=1Gi
  kubectl get fleet,nodes,pods --all-namespaces --watch
  bigfleet top
  bigfleet explain pod default/NAME

What the programs say is in {}. ctrl-c ends and removes everything.",
        plane.folder().display()
    )?;
    out.flush()?;
    tokio::signal::ctrl_c().await?;
    joining.abort();
    drop(programs);
    drop(plane);
    Ok(())
}

/// Ports that are free now.
fn ports() -> std::io::Result<[u16; 3]> {
    let held = [bind()?, bind()?, bind()?];
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&held) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

fn bind() -> std::io::Result<TcpListener> {
    TcpListener::bind(("127.0.0.1", 0))
}
