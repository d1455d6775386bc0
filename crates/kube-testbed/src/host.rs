//! A machine that really runs the pods it is given: each container is a process of this machine, started as a kubelet would, from
//! its arguments, its environment, its Secrets, `ConfigMaps` and volumes. There is no container around it, and no image: whatever an
//! image holds, one program is started.
//!
//! Each pod has a loopback address of its own, so that pods listen on the ports of their charts beside one another.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bigfleet_net::{Clock as _, SystemClock};
use k8s_openapi::api::core::v1::{
    ConfigMap, Container, PersistentVolume, PersistentVolumeClaim, Pod, Probe, Secret, Volume,
};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::http::http_get;
use crate::joiner::{Joiner, NewNode};
use crate::plane::ControlPlane;
use crate::process::Program;

/// What its node is called.
pub const HOST: &str = "host";
/// How often pods are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// What a machine of two processors offers: no room for pods that ask for three.
const OFFERS: [(&str, &str); 2] = [("cpu", "2"), ("memory", "8Gi")];
const DISKS: usize = 4;
const MINE: &str = "spec.nodeName=host";

/// One pod that runs.
struct Running {
    uid: String,
    program: Program,
    address: Ipv4Addr,
    restarts: u32,
    is_ready: bool,
}

/// The machine and what runs on it.
struct Host<'a> {
    plane: &'a ControlPlane,
    client: Client,
    program: PathBuf,
    folder: PathBuf,
    /// The second number of its addresses.
    number: u8,
    addresses: BTreeMap<String, Ipv4Addr>,
    running: BTreeMap<String, Running>,
}

/// Runs the pods that are scheduled to the node [`HOST`], with `program` in the place of every image. `number` tells hosts on this
/// machine apart: the first pod has the address `127.number.0.1`, the next `127.number.0.2`. Never ends; drop it to stop.
pub async fn run_pods_as_processes(plane: &ControlPlane, program: &Path, number: u8) -> kube::Result<()> {
    let client = plane.client().await;
    let joiner = Joiner::heartbeat(client.clone());
    let resources = OFFERS.map(|(name, amount)| (name.to_owned(), amount.to_owned()));
    joiner.join(NewNode { name: HOST.into(), resources: resources.into(), ..NewNode::default() }).await?;
    let mut host = Host {
        plane,
        client,
        program: program.to_owned(),
        folder: plane.folder().join("host"),
        number,
        addresses: BTreeMap::new(),
        running: BTreeMap::new(),
    };
    host.offer_disks().await?;
    let clock = SystemClock::start();
    loop {
        clock.sleep(LOOK_EVERY).await;
        // A server that does not answer is asked again.
        let _ = host.look().await;
    }
}

impl Host<'_> {
    /// Volumes that claims without a class are bound to.
    async fn offer_disks(&self) -> kube::Result<()> {
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        for number in 0..DISKS {
            let path = self.folder.join(format!("disk-{number}"));
            std::fs::create_dir_all(&path).expect("a folder can be made");
            let volume: PersistentVolume = serde_json::from_value(json!({
                "metadata": {"name": format!("disk-{number}")},
                "spec": {
                    "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": path},
                },
            }))
            .expect("a volume");
            volumes.create(&PostParams::default(), &volume).await?;
        }
        Ok(())
    }

    async fn look(&mut self) -> kube::Result<()> {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let mut there = BTreeSet::new();
        for pod in pods.list(&ListParams::default().fields(MINE)).await? {
            let name = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
            let uid = pod.uid().unwrap_or_default();
            if self.running.get(&name).is_some_and(|running| running.uid != uid) {
                self.stop(&name).await;
            }
            there.insert(name.clone());
            if pod.metadata.deletion_timestamp.is_some() {
                self.stop(&name).await;
                let own: Api<Pod> =
                    Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
                let _ = own.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await;
            } else {
                self.tend(&name, &pod).await?;
            }
        }
        let gone: Vec<String> = self.running.keys().filter(|name| !there.contains(*name)).cloned().collect();
        for name in gone {
            self.stop(&name).await;
        }
        Ok(())
    }

    /// Asks it to stop, as a kubelet does, and waits for a while.
    async fn stop(&mut self, name: &str) {
        let Some(mut running) = self.running.remove(name) else { return };
        let clock = SystemClock::start();
        let _ = running.program.terminate();
        for _ in 0..100 {
            if !running.program.is_running() {
                return;
            }
            clock.sleep(Duration::from_millis(100)).await;
        }
    }

    /// Starts a pod, starts it again, or asks it whether it is ready.
    async fn tend(&mut self, name: &str, pod: &Pod) -> kube::Result<()> {
        let Some(container) = pod.spec.as_ref().and_then(|spec| spec.containers.first()) else {
            return Ok(());
        };
        let address = self.address(name);
        let mut restarts = 0;
        if let Some(running) = self.running.get_mut(name) {
            if running.program.is_running() {
                let is_ready = is_ready(container, address).await;
                if is_ready == running.is_ready {
                    return Ok(());
                }
                running.is_ready = is_ready;
                let restarts = running.restarts;
                return self.report(pod, container, address, restarts, is_ready).await;
            }
            restarts = running.restarts + 1;
        }
        // What it needs may not be there yet.
        let Some(program) = self.start(pod, container, address).await? else { return Ok(()) };
        let uid = pod.uid().unwrap_or_default();
        self.running.insert(name.to_owned(), Running { uid, program, address, restarts, is_ready: false });
        self.report(pod, container, address, restarts, false).await
    }

    fn address(&mut self, name: &str) -> Ipv4Addr {
        if let Some(running) = self.running.get(name) {
            return running.address;
        }
        let next = u8::try_from(self.addresses.len() + 1).unwrap_or(u8::MAX);
        *self.addresses.entry(name.to_owned()).or_insert(Ipv4Addr::new(127, self.number, 0, next))
    }

    async fn start(
        &self,
        pod: &Pod,
        container: &Container,
        address: Ipv4Addr,
    ) -> kube::Result<Option<Program>> {
        let folder = self.folder.join(pod.name_any());
        let mut paths = BTreeMap::new();
        for mount in container.volume_mounts.iter().flatten() {
            let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
            let volume = volumes.into_iter().flatten().find(|volume| volume.name == mount.name);
            // The account's token is handed over as a kubeconfig.
            if mount.mount_path.starts_with("/var/run/secrets") {
                continue;
            }
            let Some(volume) = volume else { return Ok(None) };
            let Some(path) = self.mount(pod, volume, &folder).await? else { return Ok(None) };
            paths.insert(mount.mount_path.clone(), path);
        }
        let mut command = vec!["PATH=/nowhere".to_owned(), format!("HOME={}", folder.display())];
        let mut variables = BTreeMap::new();
        for variable in container.env.iter().flatten() {
            let of_pod = variable.value_from.as_ref().and_then(|from| from.field_ref.as_ref());
            let value = match of_pod.map(|field| field.field_path.as_str()) {
                Some("metadata.name") => pod.name_any(),
                Some("metadata.namespace") => pod.namespace().unwrap_or_default(),
                _ => variable.value.clone().unwrap_or_default(),
            };
            command.push(format!("{}={value}", variable.name));
            variables.insert(format!("$({})", variable.name), value);
        }
        let spec = pod.spec.as_ref();
        if spec.and_then(|spec| spec.automount_service_account_token) != Some(false) {
            let account = spec.and_then(|spec| spec.service_account_name.as_deref()).unwrap_or("default");
            let namespace = pod.namespace().unwrap_or_default();
            let kubeconfig = self.plane.kubeconfig_file_of_account(&namespace, account).await;
            let kubeconfig = kubeconfig.expect("a kubeconfig can be written");
            command.push(format!("KUBECONFIG={}", kubeconfig.display()));
        }
        command.push(self.program.display().to_string());
        for argument in container.args.iter().flatten() {
            let mut argument = argument.clone();
            for (variable, value) in &variables {
                argument = argument.replace(variable, value);
            }
            for (inside, outside) in &paths {
                argument = argument.replace(inside, &outside.display().to_string());
            }
            // All addresses of a pod are its one.
            command.push(argument.replace("=0.0.0.0:", &format!("={address}:")));
        }
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let clean = std::iter::once("-i".to_owned()).chain(command);
        Ok(Some(Program::start(Path::new("/usr/bin/env"), clean, &folder).expect("env(1) is there")))
    }

    /// Where a volume is; none if what it is made of is not there yet.
    async fn mount(&self, pod: &Pod, volume: &Volume, folder: &Path) -> kube::Result<Option<PathBuf>> {
        let namespace = pod.namespace().unwrap_or_default();
        let path = folder.join(&volume.name);
        if let Some(name) = volume.secret.as_ref().and_then(|secret| secret.secret_name.as_deref()) {
            let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &namespace);
            let Some(secret) = secrets.get_opt(name).await? else { return Ok(None) };
            let files = secret.data.unwrap_or_default().into_iter().map(|(name, bytes)| (name, bytes.0));
            write(&path, files);
            return Ok(Some(path));
        }
        if let Some(name) = volume.config_map.as_ref().map(|map| map.name.clone()) {
            let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &namespace);
            let Some(map) = maps.get_opt(&name).await? else { return Ok(None) };
            let files =
                map.data.unwrap_or_default().into_iter().map(|(name, text)| (name, text.into_bytes()));
            write(&path, files);
            return Ok(Some(path));
        }
        let Some(claim) = volume.persistent_volume_claim.as_ref() else { return Ok(None) };
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), &namespace);
        let bound = claims.get_opt(&claim.claim_name).await?.and_then(|claim| claim.spec?.volume_name);
        let Some(bound) = bound else { return Ok(None) };
        let disk = Api::<PersistentVolume>::all(self.client.clone()).get(&bound).await?;
        Ok(disk.spec.and_then(|spec| spec.host_path).map(|disk| disk.path.into()))
    }

    async fn report(
        &self,
        pod: &Pod,
        container: &Container,
        address: Ipv4Addr,
        restarts: u32,
        is_ready: bool,
    ) -> kube::Result<()> {
        let now = format!(
            "{:.0}",
            k8s_openapi::jiff::Timestamp::from_nanosecond(i128::from(SystemClock::start().now_unix_nanos(),))
                .expect("the clock shows a time of this age")
        );
        let condition = |type_: &str, holds: bool| -> Value {
            json!({"type": type_, "status": if holds { "True" } else { "False" }, "lastTransitionTime": now})
        };
        let status = json!({"status": {
            "phase": "Running", "startTime": now, "podIP": address.to_string(),
            "podIPs": [{"ip": address.to_string()}],
            "conditions": [
                condition("PodScheduled", true), condition("Initialized", true),
                condition("ContainersReady", is_ready), condition("Ready", is_ready),
            ],
            "containerStatuses": [{
                "name": container.name, "image": container.image, "imageID": "", "ready": is_ready,
                "started": true, "restartCount": restarts, "state": {"running": {"startedAt": now}},
            }],
        }});
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
        pods.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Strategic(&status))
            .await
            .map(drop)
    }
}

fn write(folder: &Path, files: impl Iterator<Item = (String, Vec<u8>)>) {
    std::fs::create_dir_all(folder).expect("a folder can be made");
    for (name, bytes) in files {
        std::fs::write(folder.join(name), bytes).expect("a file can be written");
    }
}

/// Asks its readiness probe. One without a probe is ready while it runs.
async fn is_ready(container: &Container, address: Ipv4Addr) -> bool {
    let Some(Probe { http_get: Some(probe), .. }) = &container.readiness_probe else { return true };
    let named = serde_json::to_value(&probe.port).unwrap_or_default();
    let ports = container.ports.iter().flatten();
    let by_name = |name: &str| {
        ports
            .clone()
            .find(|port| port.name.as_deref() == Some(name))
            .map(|port| i64::from(port.container_port))
    };
    let Some(port) = named.as_i64().or_else(|| by_name(named.as_str()?)) else { return false };
    let answer = http_get(&format!("{address}:{port}"), probe.path.as_deref().unwrap_or("/")).await;
    answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}
