//! Every call with what nobody should send: the answer is a refusal or a plain success, the process stands,
//! and the code that means fenced is never given for anything else.

use std::collections::BTreeMap;

use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::{ConfigureRequest, ListFilter};
use tonic::Code;

use crate::cloud::{FREE, World};

fn odd_texts() -> Vec<String> {
    let mut texts: Vec<String> =
        ["\u{0}", "m-0\u{0}", " m-0", "M-0", "../m-0", "\u{202e}", "💡", "%s%n", "\n", "\u{1b}[2J"]
            .map(String::from)
            .into();
    texts.push("x".repeat(4096));
    texts.push("x".repeat(4097));
    texts.push("é".repeat(1 << 20));
    texts
}

const ODD_NUMBERS: [i64; 5] = [i64::MIN, -1, 0, 1, i64::MAX];

#[tokio::test]
async fn odd_machine_ids_are_unknown_or_too_long() {
    let world = World::new(1).await;
    for id in odd_texts() {
        let expected = if id.len() > 4096 { Code::InvalidArgument } else { Code::NotFound };
        assert_eq!(world.create(&id, ("s", 1, 1)).await, Err(expected));
        assert_eq!(world.configure(&id, "c", FREE).await, Err(expected));
        assert_eq!(world.drain(&id, -1, FREE).await, Err(expected));
        assert_eq!(world.delete(&id, FREE).await, Err(expected));
        assert_eq!(world.get(&id).await, Err(Code::NotFound));
    }
}

#[tokio::test]
async fn odd_shards_and_numbers_are_tokens_like_any_other() {
    let world = World::new(1).await;
    for shard in odd_texts() {
        for (index, epoch) in ODD_NUMBERS.into_iter().enumerate() {
            for sequence in ODD_NUMBERS {
                let answer = world.create("m-0", (&shard, epoch, sequence)).await;
                if shard.len() > 4096 {
                    assert_eq!(answer, Err(Code::InvalidArgument));
                } else {
                    assert!(answer.is_ok(), "rising tokens pass: {index} {epoch} {sequence} {answer:?}");
                }
            }
        }
        if shard.len() <= 4096 {
            let last = (shard.as_str(), i64::MAX, i64::MAX);
            assert_eq!(world.create("m-0", last).await, Err(Code::FailedPrecondition));
        }
    }
}

#[tokio::test]
async fn odd_clusters_and_metadata_are_echoed_or_refused_whole() {
    let world = World::new(1).await;
    world.create("m-0", FREE).await.unwrap();
    world.reach("m-0", MachineState::Idle).await;
    let request = |cluster: &str, metadata: BTreeMap<String, String>| ConfigureRequest {
        machine_id: "m-0".into(),
        cluster_id: cluster.into(),
        bootstrap_blob: vec![0; 1 << 20],
        shard_metadata: metadata,
        ..ConfigureRequest::default()
    };
    let huge = BTreeMap::from([("k".to_string(), "v".repeat(2 << 20))]);
    assert_eq!(world.configure_with(request("c", huge)).await, Err(Code::InvalidArgument));
    let long = "c".repeat(5000);
    assert_eq!(world.configure_with(request(&long, BTreeMap::new())).await, Err(Code::InvalidArgument));
    assert_eq!(world.get("m-0").await.unwrap().state, MachineState::Idle.to_wire(), "nothing half done");

    let odd: BTreeMap<String, String> =
        odd_texts().into_iter().filter(|t| t.len() < 4097).map(|t| (t.clone(), t)).collect();
    world.configure_with(request("\u{0}odd\n", odd.clone())).await.unwrap();
    let machine = world.reach("m-0", MachineState::Configured).await;
    assert_eq!((machine.cluster.as_str(), &machine.shard_metadata), ("\u{0}odd\n", &odd));
}

#[tokio::test]
async fn odd_filters_list_something_sensible() {
    let world = World::new(3).await;
    for max_results in [i32::MIN, -1, 0, i32::MAX] {
        let states = vec![MachineState::Speculative.to_wire(); 100_000];
        let filter = ListFilter { states, max_results, since_revision: vec![0; 1 << 16] };
        assert_eq!(world.list(filter).await.machines.len(), 3);
    }
}

#[tokio::test]
async fn junk_does_not_grow_without_bound() {
    let world = World::new(1).await;
    for index in 0..20_000 {
        let _ = world.create(&format!("junk-{index}"), ("s", 1, 1)).await;
    }
    let metrics = world.provider.handle().scrape();
    assert!(metrics.contains("bigfleet_provider_stranger_marks 8192"), "{metrics}");
}
