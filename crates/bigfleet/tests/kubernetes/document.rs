//! Pages that need a cluster, played beside one.

use std::path::Path;

use bigfleet_kube_testbed::{ControlPlane, Identity, join_machines};

use crate::walk_through::Walk;

pub(crate) async fn the_walk_is_as_printed(plane: &ControlPlane, _namespace: String) {
    let walk = beside("docs/kubernetes.md", plane);
    walk.in_the_checkout();
    let joining = tokio::spawn(join_machines(plane.client().await));
    let played = walk.play().await;
    joining.abort();
    assert!(played >= 12, "a walk has more steps than that");
}

/// A document, with this control plane as its cluster.
pub(crate) fn beside(document: &'static str, plane: &ControlPlane) -> Walk {
    let mut walk = Walk::new(document, &[":9000", ":7780"]);
    let kubectl = plane.program("kubectl").expect("kubectl: WITH_KUBECTL=1 scripts/kube-assets builds it");
    walk.with_programs(kubectl.parent().unwrap_or(Path::new("/")));
    let kubeconfig = plane.kubeconfig_file("walk", &Identity::admin()).unwrap();
    walk.set("KUBECONFIG", &kubeconfig.display().to_string());
    let shard = walk.here("http://127.0.0.1:7780");
    walk.set("BIGFLEET_SERVER", &shard);
    walk
}
