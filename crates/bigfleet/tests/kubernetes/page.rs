//! The page in a real browser, in front of a real cluster: why a pod waits.

use std::path::Path;
use std::process::Command;

use bigfleet_kube_testbed::ControlPlane;
use kube::ResourceExt as _;

use crate::cluster::{Ask, Cluster};
use crate::fleet::Fleet;

pub(crate) async fn the_page_says_why_a_pod_waits(plane: &ControlPlane, namespace: String) {
    let fleet = Fleet::start(60);
    let shop = Cluster::connect(plane, "shop", &fleet).await;
    let ns = namespace.as_str();
    // No machine of this type holds as much.
    shop.deploy(ns, "huge", 1, Ask::of("std-8", "500", "1Gi")).await;
    let name = shop
        .until("the shard to know the pod", async || {
            let name = format!("{ns}/{}", shop.pods(ns).await.pop()?.name_any());
            let words = ["explain", "pod", &name, "--server", fleet.shard(), "--shard-only"];
            let asked =
                Command::new(env!("CARGO_BIN_EXE_bigfleet")).args(words).env_remove("KUBECONFIG").output();
            asked.unwrap().status.success().then_some(name)
        })
        .await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/web");
    let looked = Command::new(script)
        .args(["pods", fleet.page(), &name, "shop", "cpu"])
        .env("BIGFLEET", env!("CARGO_BIN_EXE_bigfleet"))
        .output()
        .expect("scripts/web runs");
    let said = String::from_utf8_lossy(&looked.stdout);
    eprintln!("{said}");
    assert!(looked.status.success(), "{said}{}", String::from_utf8_lossy(&looked.stderr));
    shop.clear(ns).await;
}
