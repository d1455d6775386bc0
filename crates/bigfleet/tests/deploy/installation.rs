//! The walk in `docs/install.md`, executed as printed: two private clusters, both charts installed by Helm, their pods run as processes,
//! and pods of both clusters become nodes' pods.

use std::path::Path;

use bigfleet_kube_testbed::Assets;

use crate::helm::helm;
use crate::walk_through::Walk;

#[test]
fn two_clusters_by_copy_and_paste() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    // Addresses of pods are their own, so only the provider's port may be somebody else's.
    let mut walk = Walk::new("docs/install.md", &[":9000"]);
    walk.in_the_checkout();
    // What the script would build, and what it need not fetch again.
    let program = Path::new(env!("CARGO_BIN_EXE_bigfleet"));
    walk.set("BIGFLEET", &program.display().to_string());
    let test_bed = program.with_file_name("examples").join("test-bed");
    assert!(test_bed.exists(), "cargo build -p bigfleet-kube-testbed --example test-bed");
    walk.set("TEST_BED", &test_bed.display().to_string());
    walk.with_programs(helm().parent().unwrap());
    let kubectl = Assets::find().expect("programs of scripts/kube-assets").program("kubectl");
    walk.set("KUBEBUILDER_ASSETS", &kubectl.parent().unwrap().display().to_string());
    // Settings of whoever runs this stay as they are, and out of it.
    let home = walk.home();
    for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "HELM_CONFIG_HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME"]
    {
        walk.set(name, &home);
    }
    let mut played = runtime.block_on(walk.play_and_keep());
    played.stop();
    // What programs may do in their clusters was enough.
    let said = walk.file("test-bed/log");
    let commands = played.end(&said);
    assert!(commands > 22, "a walk has more steps than that");
    assert!(said.contains("--- west: ") && !said.contains("forbidden"), "{said}");
}
