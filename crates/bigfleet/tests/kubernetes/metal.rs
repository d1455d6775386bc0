//! Real hosts: `bigfleet provider metal` and three hosts behind real sshd, which join as hollow nodes and leave again.

use std::fmt::Write as _;
use std::path::Path;

use bigfleet_crds::UpcomingNode;
use bigfleet_kube_testbed::{ControlPlane, Identity};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;

use crate::cluster::{Ask, Cluster};
use crate::document::beside;
use crate::fleet::Fleet;
use crate::hops::Hops;
use crate::process::{Process, free_port};

// The hosts of the provider's own tests.
#[allow(dead_code, reason = "this test needs few of their tricks")]
#[path = "../../../provider-metal/tests/metal/lab.rs"]
mod lab;

use lab::Lab;

/// Wire number of a state.
const IDLE: i32 = 3;
const HOSTS: usize = 3;

pub(crate) async fn hosts_join_as_hollow_nodes_and_leave_again(plane: &ControlPlane, namespace: String) {
    let Some(kubemark) = plane.program("kubemark") else {
        eprintln!("  skipped: the Kubernetes programs here have no kubemark");
        return;
    };
    let kubectl = plane.program("kubectl").expect("kubectl comes with the others");
    let kubeconfig = plane.kubeconfig_file("hosts", &Identity::admin()).expect("a file");
    let mut lab = Lab::new(HOSTS).await;
    lab.head = inventory_head(&lab, &format!("{} --kubeconfig {}", kubectl.display(), kubeconfig.display()));
    let inventory = lab.inventory();
    let address = format!("127.0.0.1:{}", free_port());
    let (inventory, state) = (inventory.display().to_string(), lab.path("state").display().to_string());
    let serve = ["provider", "metal", "--inventory", &inventory, "--state", &state, "--addr", &address];
    let fleet = Fleet::behind("metal", Process::start("metal provider", &serve), &address);

    // What the operator hands to a host: a script that makes it a node, as kubeadm join would.
    let ports: Vec<String> = (0..HOSTS).map(|host| format!("h{host}) port={};;", free_port())).collect();
    let template = format!(
        "#!/bin/sh
# joins {{{{ .ClusterID }}}}
case $BIGFLEET_MACHINE in {ports} esac
{kubectl} --kubeconfig {kubeconfig} apply -f - <<END || exit 1
{{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {{\"name\": \"$BIGFLEET_MACHINE\"}}, \"spec\": {{\"providerID\": \"$BIGFLEET_MACHINE\"}}}}
END
TMPDIR={at} setsid {kubemark} --morph=kubelet --name=$BIGFLEET_MACHINE --kubeconfig={kubeconfig} --kubelet-port=$port \\
    --kubelet-read-only-port=0 --node-labels=node.kubernetes.io/instance-type=vm \\
    </dev/null >{at}/$BIGFLEET_MACHINE.kubemark 2>&1 &
echo $! >{at}/$BIGFLEET_MACHINE.pid
",
        ports = ports.join(" "),
        kubectl = kubectl.display(),
        kubeconfig = kubeconfig.display(),
        kubemark = kubemark.display(),
        at = lab.path("").display(),
    );
    let shop = Cluster::connect_hosts(plane, "shop", &fleet, &template).await;
    let ns = namespace.as_str();
    let mut hops = Hops::start();
    let _kubelets = Kubelets(&lab);

    shop.deploy(ns, "web", 2, Ask::of("vm", "600m", "256Mi")).await;
    shop.until("two hosts to join", async || {
        let ready = shop.all::<Node>().await.iter().filter(|node| is_ready(node)).count();
        (ready == 2).then_some(())
    })
    .await;
    hops.reached("pods → requests → shard → SSH → two hosts are nodes");
    shop.all_run(ns, 2).await;
    hops.reached("pods run on them");
    let joined: Vec<String> = shop.all::<Node>().await.iter().map(kube::ResourceExt::name_any).collect();
    shop.scale(ns, "web", 1).await;
    shop.until("one host to leave", async || (shop.all::<Node>().await.len() == 1).then_some(())).await;
    hops.reached("scaled down → reclaimed → drained → the host was reset");
    let stays = shop.all::<Node>().await[0].name_any();
    let left = joined.iter().find(|host| **host != stays).expect("the other one");
    shop.until("it to be idle and clean", async || {
        (fleet.state(left).await? == IDLE && !lab.path(&format!("{left}.pid")).exists()).then_some(())
    })
    .await;
    shop.all_run(ns, 1).await;
    shop.scale(ns, "web", 0).await;
    shop.until("all hosts to leave", async || {
        let machines = fleet.machines().await;
        let all_idle = machines.len() == HOSTS && machines.iter().all(|machine| machine.state == IDLE);
        (all_idle && shop.all::<UpcomingNode>().await.is_empty() && shop.all::<Node>().await.is_empty())
            .then_some(())
    })
    .await;
    hops.reached("nothing is asked for: every host is idle and clean");
    shop.nothing_was_forbidden();
    shop.clear(ns).await;
}

/// `docs/metal.md` from its first line on. Three hosts that share one machine need what a reader's do not: ports, work folders and
/// hooks of their own, and a `kubeadm` that makes hollow nodes.
pub(crate) async fn three_spare_machines_become_a_fleet(plane: &ControlPlane, _namespace: String) {
    let Some(kubemark) = plane.program("kubemark") else {
        eprintln!("  skipped: the Kubernetes programs here have no kubemark");
        return;
    };
    let kubectl = plane.program("kubectl").expect("kubectl comes with the others");
    let kubeconfig = plane.kubeconfig_file("hosts", &Identity::admin()).expect("a file");
    let kubectl = format!("{} --kubeconfig {}", kubectl.display(), kubeconfig.display());
    let mut lab = Lab::new(HOSTS).await;
    let at = lab.path("").display().to_string();
    let programs = lab.path("programs");
    std::fs::create_dir(&programs).unwrap();
    program(
        &programs.join("kubeadm"),
        &format!(
            "#!/bin/sh
# Stands for `kubeadm join --config FILE`: a hollow node with the provider id of the file.
[ \"$1 $2\" = \"join --config\" ] || exit 64
grep -q 'token: [a-z0-9]' \"$3\" || exit 65
id=$(sed -n 's/^ *provider-id: //p' \"$3\")
{kubectl} apply -f - <<END || exit 1
{{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {{\"name\": \"$id\"}}, \"spec\": {{\"providerID\": \"$id\"}}}}
END
TMPDIR={at} setsid {kubemark} --morph=kubelet --name=$id --kubeconfig={kubeconfig} --kubelet-port=$PORT --kubelet-read-only-port=0 \\
    </dev/null >{at}/$id.kubemark 2>&1 &
echo $! >{at}/$id.pid
",
            kubemark = kubemark.display(),
            kubeconfig = kubeconfig.display(),
        ),
    );
    // The reader's key lets him in already; the new one is let in by ssh-copy-id as he would do it.
    program(
        &programs.join("ssh"),
        &format!(
            "#!/bin/sh
case $1 in -F) exec {ssh} \"$@\" ;; esac
for word in \"$@\"; do case $word in -i) exec {ssh} -F {at}ssh.hosts \"$@\" ;; esac done
exec {ssh} -F {at}ssh.hosts -o IdentityFile={at}id \"$@\"
",
            ssh = "/usr/bin/ssh",
        ),
    );
    let mut walk = beside("docs/metal.md", plane);
    let user = lab::whoami();
    let mut known = String::new();
    for number in 0..HOSTS {
        let (address, host) = (format!("10.0.0.1{}", number + 1), format!("h{number}"));
        let home = lab.path(&format!("{host}.home/.ssh"));
        std::fs::create_dir_all(&home).unwrap();
        std::fs::copy(lab.path("id.pub"), lab.path(&format!("{host}.keys"))).unwrap();
        std::os::unix::fs::symlink(lab.path(&format!("{host}.keys")), home.join("authorized_keys")).unwrap();
        lab.stop(number);
        let path = std::env::var("PATH").unwrap_or_default();
        let (home, programs) = (home.parent().unwrap().display(), programs.display());
        lab.start(number, &format!("SetEnv HOME={home} PATH={programs}:{path} PORT={}", free_port())).await;
        let port = lab.hosts[number].port;
        let _ = write!(known, "Host {address}\n  HostName 127.0.0.1\n  Port {port}\n");
        let there = format!("address: 127.0.0.1\n    port: {port}\n    work_folder: {at}{host}.work");
        walk.replace(&format!("address: {address}"), &there);
    }
    known += "Host *\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n";
    std::fs::write(lab.path("ssh.hosts"), known).unwrap();
    walk.replace("user: root", &format!("user: {user}"));
    walk.replace("root@", &format!("{user}@"));
    let hooks = hooks(&at, &kubectl);
    walk.replace("\nhosts:\n", &format!("\n{hooks}hosts:\n"));
    walk.with_programs(&programs);
    let _kubelets = Kubelets(&lab);
    let played = walk.play().await;
    assert!(played >= 15, "the walk has more steps than that");
}

/// Writes a program.
fn program(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

/// An inventory whose hooks know hollow nodes.
fn inventory_head(lab: &Lab, kubectl: &str) -> String {
    let at = lab.path("");
    let at = at.display();
    let begin = lab.head.find("hooks:").expect("the usual head has hooks");
    let head = lab.head[..begin]
        // What a hollow node says it has.
        .replace("resources: {cpu: 4, memory: 8Gi}", "resources: {cpu: 1, memory: 3840Mi}")
        .replace("allocatable: {cpu: 3, memory: 7Gi}", "allocatable: {cpu: 1, memory: 3840Mi}");
    format!("{head}{}", hooks(&at.to_string(), kubectl))
}

/// Hooks that know hollow nodes.
fn hooks(at: &str, kubectl: &str) -> String {
    format!(
        "hooks:
  ready: |
    test \"$({kubectl} get node $BIGFLEET_MACHINE -o 'jsonpath={{.status.conditions[?(@.type==\"Ready\")].status}}')\" = True
  reset: |
    if [ -e {at}/$BIGFLEET_MACHINE.pid ]; then kill $(cat {at}/$BIGFLEET_MACHINE.pid); fi
    {kubectl} delete node $BIGFLEET_MACHINE --ignore-not-found && rm -f {at}/$BIGFLEET_MACHINE.pid
  clean: test ! -e {at}/$BIGFLEET_MACHINE.pid
"
    )
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Hollow kubelets that a failed test leaves behind are ended.
struct Kubelets<'a>(&'a Lab);

impl Drop for Kubelets<'_> {
    fn drop(&mut self) {
        for file in std::fs::read_dir(self.0.path("")).expect("the folder is there").flatten() {
            let is_pid = file.path().extension().is_some_and(|ending| ending == "pid");
            if let Some(pid) = std::fs::read_to_string(file.path()).ok().filter(|_| is_pid) {
                let _ = std::process::Command::new("kill").arg(pid.trim()).status();
            }
        }
    }
}
