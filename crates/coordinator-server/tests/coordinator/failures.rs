//! Members of etcd are killed and frozen; what was acknowledged stays, and work goes on when there is a majority.

use crate::etcd::{Members, until};
use crate::replicas::{caller, leader, replica};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_every_member() {
    let mut members = Members::start();
    let replicas = [replica(members.store("kills")).await, replica(members.store("kills")).await];
    leader(&[&replicas[0], &replicas[1]]).await;
    let mut acknowledged = Vec::new();
    for round in 0..6_usize {
        let member = round % 3;
        // Alternately dead and only silent.
        if round % 2 == 0 {
            members.kill(member);
        } else {
            members.freeze(member);
        }
        for number in 0..5 {
            let shard = format!("s{round}-{number}");
            until("a report is taken by a majority", async || {
                let at = leader(&[&replicas[0], &replicas[1]]).await;
                caller(&replicas[at]).report(&shard, 1, Vec::new()).await
            })
            .await;
            acknowledged.push(shard);
        }
        if round % 2 == 0 {
            members.begin(member);
        } else {
            members.go_on(member);
        }
    }
    // Without a majority nothing is taken, and nobody is told that it was.
    members.kill(0);
    members.kill(1);
    let refused = caller(&replicas[0]).report("lonely", 1, Vec::new()).await;
    let also = caller(&replicas[1]).report("lonely", 1, Vec::new()).await;
    assert!(refused.is_none() && also.is_none(), "one member of three is no majority");
    members.begin(0);
    members.begin(1);
    let known = until("all that was acknowledged is there", async || {
        let at = leader(&[&replicas[0], &replicas[1]]).await;
        let mut caller = caller(&replicas[at]);
        let shards = caller.wire.list_shards(bigfleet_proto::v1alpha1::ListShardsRequest {}).await.ok()?;
        let known: Vec<String> = shards.into_inner().shards.into_iter().map(|shard| shard.shard_id).collect();
        (known.len() >= acknowledged.len()).then_some(known)
    })
    .await;
    for shard in &acknowledged {
        assert!(known.contains(shard), "{shard} was acknowledged and is gone");
    }
    for running in replicas {
        running.stop().await.expect("it stops");
    }
}
