//! Nodes that are the kubelet's own code over a pretended container runtime: kubemark. They register, beat, run pods and let them
//! end as real ones do, at some 60 MB each.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bigfleet_model::quantity::Quantity;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;
use thiserror::Error;

use crate::certificates::Identity;
use crate::joiner::{LEASES, NewNode, gone_is_fine};
use crate::plane::{ControlPlane, free_ports};
use crate::process::Program;

/// What a hollow node has if its machine does not say: what kubemark pretends by itself.
const USUAL_CPUS: u64 = 1;
const USUAL_MEMORY_BYTES: u64 = 3840 << 20;

/// Hollow nodes of one control plane. Dropping it ends their kubelets and leaves the objects as they are.
pub struct Hollow {
    client: Client,
    kubemark: PathBuf,
    kubeconfig: PathBuf,
    folder: PathBuf,
    kubelets: BTreeMap<String, Program>,
}

impl std::fmt::Debug for Hollow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hollow").field("kubelets", &self.kubelets).finish_non_exhaustive()
    }
}

/// Why a machine is no hollow node.
#[derive(Debug, Error)]
pub enum HollowError {
    /// The server refuses.
    #[error("the node cannot be written: {0}")]
    Api(#[from] kube::Error),
    /// Its kubelet does not start.
    #[error("kubemark does not start: {0}")]
    Io(#[from] std::io::Error),
}

impl Hollow {
    /// Begins without a node. None if the programs have no kubemark, or one that would listen on more than loopback: upstream's does,
    /// that of `scripts/kube-assets` does not and says so.
    pub async fn of(plane: &ControlPlane) -> std::io::Result<Option<Self>> {
        let Some(kubemark) =
            plane.program("kubemark").filter(|path| path.with_file_name(".hollow").is_file())
        else {
            return Ok(None);
        };
        let folder = plane.folder().join("hollow");
        std::fs::create_dir_all(&folder)?;
        let kubeconfig = plane.kubeconfig_file("kubelets", &Identity::admin())?;
        let client = plane.client().await;
        Ok(Some(Self { client, kubemark, kubeconfig, folder, kubelets: BTreeMap::new() }))
    }

    /// Makes a node and starts its kubelet, which says when it is ready.
    pub async fn join(&mut self, new: NewNode) -> Result<(), HollowError> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        // The kubelet takes a node that is there and adds what it knows.
        let mut labels = new.labels;
        labels.insert("kubernetes.io/hostname".into(), new.name.clone());
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": new.name, "labels": labels},
            "spec": {"providerID": new.provider_id, "taints": new.taints},
        }))
        .expect("a node");
        match nodes.create(&PostParams::default(), &node).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            made => drop(made?),
        }
        let folder = self.folder.join(&new.name);
        std::fs::create_dir_all(&folder)?;
        let [port] = free_ports()?;
        let (cpus, memory) = size(&new.resources);
        let arguments = [
            // It makes itself a folder, and leaves it.
            format!("TMPDIR={}", folder.display()),
            format!("HOLLOW_CPUS={cpus}"),
            format!("HOLLOW_MEMORY_BYTES={memory}"),
            self.kubemark.display().to_string(),
            "--morph=kubelet".into(),
            format!("--name={}", new.name),
            format!("--kubeconfig={}", self.kubeconfig.display()),
            format!("--kubelet-port={port}"),
            "--kubelet-read-only-port=0".into(),
        ];
        let kubelet = Program::start("/usr/bin/env".as_ref(), arguments, &folder)?;
        self.kubelets.insert(new.name, kubelet);
        Ok(())
    }

    /// Removes a node, as a machine that is gone: no kubelet, no object.
    pub async fn leave(&mut self, name: &str) -> kube::Result<()> {
        drop(self.kubelets.remove(name));
        let (client, delete) = (self.client.clone(), DeleteParams::default());
        gone_is_fine(Api::<Node>::all(client.clone()).delete(name, &delete).await)?;
        gone_is_fine(Api::<Lease>::namespaced(client, LEASES).delete(name, &delete).await)
    }
}

/// Whole processors, and bytes.
fn size(resources: &BTreeMap<String, String>) -> (u64, u64) {
    let amount = |name: &str, usual: u64| {
        let said = resources.get(name).and_then(|text| Quantity::parse(text).ok()?.to_units_ceil().ok());
        said.unwrap_or(usual)
    };
    (amount("cpu", USUAL_CPUS), amount("memory", USUAL_MEMORY_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hollow_node_has_whole_processors_and_bytes() {
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, amount)| ((*name).to_owned(), (*amount).to_owned())).collect()
        };
        assert_eq!(size(&map(&[("cpu", "7920m"), ("memory", "30Gi")])), (8, 30 << 30));
        assert_eq!(size(&map(&[("cpu", "64"), ("memory", "much")])), (64, 3840 << 20));
        assert_eq!(size(&map(&[])), (1, 3840 << 20));
    }
}
