//! What `scripts/up-kubernetes` starts, and what it tells a newcomer to type, typed.

use std::path::Path;
use std::process::Command;

use bigfleet_kube_testbed::Playground;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};

use crate::walk_through::terminal;

pub(crate) fn a_newcomer_watches_nodes_come() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let flags = ["--seed".to_owned(), "7".to_owned()];
        let playground = match Playground::start(Path::new(env!("CARGO_BIN_EXE_bigfleet")), &flags).await {
            Ok(playground) => playground,
            Err(error) => panic!("{error}"),
        };
        let commands = playground.commands();
        let [environment, commands @ ..] = &commands[..] else { panic!("there are commands") };
        for command in commands {
            let mut shell = Command::new("sh");
            shell
                .args(["-c", &format!("{environment}\n{command}")])
                .env("NO_COLOR", "1")
                .env("COLUMNS", "100");
            let run = tokio::task::spawn_blocking(move || terminal::run(shell));
            let (status, said) = run.await.unwrap();
            eprintln!("$ {command}\n{said}");
            assert!(status.success(), "{command}: {status}\n{said}\n{}", playground.last_words());
            if command.starts_with("kubectl get fleet") {
                assert!(said.contains("upcomingnode") && said.contains("capacityrequest"), "{said}");
                are_as_their_machines(&playground).await;
            }
            if command.starts_with("bigfleet get clusters") {
                assert!(said.contains("playground") && said.contains("shop"), "{said}");
            }
            if command.starts_with("bigfleet explain pod") {
                assert!(said.contains("(Running)"), "{said}");
            }
        }
        playground.stop().await;
    });
}

/// The kubelets speak for themselves: ready, and of their machines' size.
async fn are_as_their_machines(playground: &Playground) {
    let nodes: Api<Node> = Api::all(playground.plane().client().await);
    let nodes = nodes.list(&ListParams::default()).await.unwrap().items;
    assert!(!nodes.is_empty());
    for node in nodes {
        let status = node.status.unwrap();
        let is_ready =
            status.conditions.iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True");
        let runs = status.node_info.map(|info| info.kubelet_version).unwrap_or_default();
        assert!(is_ready && runs.starts_with('v'), "a kubelet says so: {runs:?}");
        assert_ne!(status.capacity.unwrap()["cpu"].0, "1", "it has its machine's size");
    }
}
