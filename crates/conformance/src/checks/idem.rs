//! IDEM: a call that is repeated, or made sixteen times at once, is one operation.

use std::collections::BTreeSet;

use tokio::task::JoinSet;

use crate::behaviour::checks;
use crate::calls::Answer;
use crate::context::Context;
use crate::moves::{
    CLUSTER, Kind, Order, State, Token, has_host, is_settled, metadata, state_name, state_of,
};
use crate::verdict::{Ended, Verdict, ensure, failed, skipped};

/// How many callers race.
const RACERS: usize = 16;

checks! { Idem:
    "IDEM-001" Core Beside "Create repeated while CREATING is the same operation" => repeated_under_way(Kind::Create):
        "a second Create right after the first is answered with the first one's id",
        "a retry buys a second machine", "2.1 step 5";
    "IDEM-002" Core Beside "Configure repeated while CONFIGURING is the same operation" => repeated_under_way(Kind::Configure):
        "a second Configure right after the first is answered with the first one's id",
        "a retry bootstraps a node twice", "2.1 step 5";
    "IDEM-003" Core Beside "Drain repeated while DRAINING is the same operation" => repeated_under_way(Kind::Drain):
        "a second Drain right after the first is answered with the first one's id",
        "a retry starts the drain anew", "2.1 step 5";
    "IDEM-004" Optional Beside "Delete repeated while DELETING is the same operation" => repeated_under_way(Kind::Delete):
        "a second Delete right after the first is answered with the first one's id",
        "a retry deletes what took the place", "2.1 step 5";
    "IDEM-005" Core Beside "Create repeated on IDLE is the same operation" => repeated_at_rest(Kind::Create):
        "Create on the machine it has made is answered with the recorded id and the machine as it is",
        "a shard whose answer was lost never learns of its machine", "2.1 step 5";
    "IDEM-006" Core Beside "Configure repeated on CONFIGURED is the same operation" => repeated_at_rest(Kind::Configure):
        "Configure on the machine it has bound is answered with the recorded id and the machine as it is",
        "a shard whose answer was lost never learns of its node", "2.1 step 5";
    "IDEM-007" Core Beside "Drain repeated on IDLE is the same operation" => repeated_at_rest(Kind::Drain):
        "Drain on the machine it has drained is answered with the recorded id and the machine as it is",
        "a shard whose answer was lost never learns that the node is free", "2.1 step 5";
    "IDEM-008" Optional Beside "Delete repeated on SPECULATIVE is the same operation" => repeated_at_rest(Kind::Delete):
        "Delete on the slot it has emptied is answered with the recorded id and the slot as it is",
        "a shard whose answer was lost never learns that the slot is free", "2.1 step 5";
    "IDEM-009" Core Beside "the kind is the key, not the target state" => keyed_by_kind():
        "after Create, Configure and Drain, Create and Drain on IDLE give their own ids",
        "a shard mistakes one operation for another", "2.1 details";
    "IDEM-010" Core Beside "a new cycle is a new operation" => new_cycle():
        "the second Configure and Drain of a machine have ids unlike the first ones'",
        "a second binding looks like a repeat of the first", "2.1 details";
    "IDEM-011" Core Beside "Configure to another cluster on CONFIGURED changes nothing" => other_cluster():
        "it is answered with the recorded id, and the machine stays in its cluster",
        "a running node changes its cluster", "2.1 details";
    "IDEM-012" Core Beside "Configure with other metadata on CONFIGURED changes nothing" => other_metadata():
        "it is answered with the recorded id, and the metadata stays",
        "a repeat overwrites what the shard has noted", "2.1 details";
    "IDEM-013" Core Beside "sixteen racing Creates are one operation" => race(Kind::Create):
        "all are accepted with one id", "one need buys sixteen machines", "2.1 details";
    "IDEM-014" Core Beside "sixteen racing Configures are one operation" => race(Kind::Configure):
        "all are accepted with one id", "a node is bootstrapped sixteen times", "2.1 details";
    "IDEM-015" Core Beside "sixteen racing Drains are one operation" => race(Kind::Drain):
        "all are accepted with one id", "drains trample on each other", "2.1 details";
    "IDEM-016" Optional Beside "sixteen racing Deletes are one operation" => race(Kind::Delete):
        "all are accepted with one id", "deletes trample on each other", "2.1 details";
    "IDEM-017" Core Beside "racing Configures to different clusters bind one" => race_of_clusters():
        "all are accepted with one id, and every snapshot shows the same cluster",
        "a machine is bound to two clusters", "2.1 details";
    "IDEM-018" Optional Beside "of Configure and Delete at once one wins" => configure_or_delete():
        "one is accepted and the other refused, and the machine comes to the winner's end",
        "a cluster waits for a machine that was deleted", "2.1 details";
    "IDEM-019" Core Beside "ids are unique across machines and kinds" => unique_ids():
        "two machines through Configure and Drain give four different ids",
        "a shard mistakes one machine's operation for another's", "2.1 step 7";
    "IDEM-020" Core Beside "repeats need no token" => repeats_unfenced():
        "Configure repeated without a token is answered with the recorded id",
        "tools see another truth than shards", "2.1 steps 3 and 5";
    "IDEM-021" Core Beside "another shard's repeat is the same operation" => other_shard():
        "Configure repeated by another shard is answered with the recorded id",
        "a shard's successor starts over", "2.1 step 5";
    "IDEM-022" Core Beside "an old record does not answer for a new start" => old_record():
        "Configure on a drained machine begins anew, with the new cluster",
        "a machine can be bound once only and lies about it", "2.1 step 5";
}

async fn repeated_under_way(c: Context, kind: Kind) -> Verdict {
    c.needs(kind).await?;
    let lease = c.take(kind.from()).await?;
    let shard = c.shard();
    let first = c.plain(kind, &lease.id, &shard.next()).await?.accepted()?;
    let again = c.plain(kind, &lease.id, &shard.next()).await?.accepted()?;
    same(&first.operation_id, &again.operation_id)?;
    let state = state_of(&again.machine);
    ensure(state == kind.during() || state == kind.to(), "the machine on its way", || {
        state_name(state).into()
    })?;
    c.reach(&lease.id, kind.to()).await?;
    Ok(())
}

async fn repeated_at_rest(c: Context, kind: Kind) -> Verdict {
    c.needs(kind).await?;
    let lease = c.take(kind.from()).await?;
    let (first, rested) = c.step(kind, &lease.id).await?;
    for _ in 0..2 {
        let again = c.plain(kind, &lease.id, &c.token()).await?.accepted()?;
        same(&first.operation_id, &again.operation_id)?;
        let state = state_of(&again.machine);
        ensure(state == kind.to(), format!("a snapshot that is {}", state_name(kind.to())), || {
            state_name(state).into()
        })?;
        ensure(has_host(&again.machine) == has_host(&rested), "the host as it is now", || {
            format!("{:?}", again.machine.host)
        })?;
    }
    let after = state_of(&c.get(&lease.id).await?);
    ensure(after == kind.to(), "nothing restarts", || state_name(after).into())
}

async fn keyed_by_kind(c: Context) -> Verdict {
    let lease = c.take(State::Speculative).await?;
    let created = c.step(Kind::Create, &lease.id).await?.0.operation_id;
    c.step(Kind::Configure, &lease.id).await?;
    let drained = c.step(Kind::Drain, &lease.id).await?.0.operation_id;
    for (kind, expected) in [(Kind::Create, &created), (Kind::Drain, &drained)] {
        let again = c.plain(kind, &lease.id, &c.token()).await?.accepted()?;
        same(expected, &again.operation_id)?;
    }
    ensure(created != drained, "two ids", || format!("{created:?} twice"))
}

async fn new_cycle(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let mut ids = Vec::new();
    for kind in [Kind::Configure, Kind::Drain, Kind::Configure, Kind::Drain] {
        ids.push(c.step(kind, &lease.id).await?.0.operation_id);
    }
    let distinct: BTreeSet<&String> = ids.iter().collect();
    ensure(distinct.len() == ids.len(), "four ids", || format!("{ids:?}"))
}

async fn other_cluster(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let (first, _) = c.walk(&Order::to(CLUSTER), &lease.id).await?;
    let again = c.act(&Order::to(&format!("{CLUSTER}-other")), &lease.id, &c.token()).await?.accepted()?;
    same(&first.operation_id, &again.operation_id)?;
    let machine = c.get(&lease.id).await?;
    for seen in [&again.machine.cluster, &machine.cluster] {
        ensure(seen == CLUSTER, format!("cluster {CLUSTER:?}"), || format!("{seen:?}"))?;
    }
    ensure(state_of(&machine) == State::Configured, "CONFIGURED", || state_name(state_of(&machine)).into())
}

async fn other_metadata(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let notes = metadata([("first", "1")]);
    let (first, _) = c.walk(&Order::noted(CLUSTER, notes.clone()), &lease.id).await?;
    let other = Order::noted(CLUSTER, metadata([("second", "2")]));
    let again = c.act(&other, &lease.id, &c.token()).await?.accepted()?;
    same(&first.operation_id, &again.operation_id)?;
    let seen = c.get(&lease.id).await?.shard_metadata;
    ensure(seen == notes, format!("{notes:?}"), || format!("{seen:?}"))
}

/// Makes all calls at once.
async fn at_once(c: &Context, id: &str, orders: Vec<Order>) -> Result<Vec<Answer>, Ended> {
    let mut tasks = JoinSet::new();
    for order in orders {
        let (c, id, token) = (c.clone(), id.to_owned(), c.token());
        tasks.spawn(async move { c.act(&order, &id, &token).await });
    }
    let mut answers = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        answers.push(joined.expect("a call does not panic")?);
    }
    Ok(answers)
}

async fn race(c: Context, kind: Kind) -> Verdict {
    c.needs(kind).await?;
    let lease = c.take(kind.from()).await?;
    let answers = at_once(&c, &lease.id, vec![Order::plain(kind); RACERS]).await?;
    one_operation(answers)?;
    c.reach(&lease.id, kind.to()).await?;
    Ok(())
}

async fn race_of_clusters(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let orders = (0..RACERS).map(|racer| Order::to(&format!("{CLUSTER}-{racer}"))).collect();
    let clusters = one_operation(at_once(&c, &lease.id, orders).await?)?;
    ensure(clusters.len() == 1, "one cluster in all snapshots", || format!("{clusters:?}"))?;
    let cluster = c.reach(&lease.id, State::Configured).await?.cluster;
    ensure(clusters.contains(&cluster), format!("bound to {clusters:?}"), || cluster.clone())
}

/// All were accepted as one operation; gives the clusters their snapshots show.
fn one_operation(answers: Vec<Answer>) -> Result<BTreeSet<String>, Ended> {
    let (mut ids, mut clusters) = (BTreeSet::new(), BTreeSet::new());
    for answer in answers {
        let ack = answer.accepted()?;
        ids.insert(ack.operation_id);
        clusters.insert(ack.machine.cluster);
    }
    ensure(ids.len() == 1, "one operation id", || format!("{ids:?}"))?;
    Ok(clusters)
}

async fn configure_or_delete(c: Context) -> Verdict {
    c.needs_delete().await?;
    let lease = c.take(State::Idle).await?;
    let answers = at_once(&c, &lease.id, vec![Order::plain(Kind::Configure), Order::Delete]).await?;
    let won: Vec<String> =
        answers.iter().filter(|answer| answer.result.is_ok()).map(|a| a.what.clone()).collect();
    let machine = c.settle(&lease.id).await?;
    if won.len() != 1 {
        return failed("one of two is accepted", format!("accepted: {won:?}"));
    }
    for answer in answers.iter().filter(|answer| answer.result.is_err()) {
        answer.refused("the other one won")?;
    }
    let kind = if won[0].starts_with("Configure") { Kind::Configure } else { Kind::Delete };
    let state = state_of(&machine);
    ensure(state == kind.to(), format!("{} after {kind} won", state_name(kind.to())), || {
        state_name(state).into()
    })
}

async fn unique_ids(c: Context) -> Verdict {
    let leases = c.take_several(State::Idle, 2).await?;
    let mut ids = BTreeSet::new();
    for kind in [Kind::Configure, Kind::Drain] {
        for lease in &leases {
            ids.insert(c.step(kind, &lease.id).await?.0.operation_id);
        }
    }
    ensure(ids.len() == 4, "four ids", || format!("{ids:?}"))
}

async fn repeats_unfenced(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let (first, _) = c.step(Kind::Configure, &lease.id).await?;
    let again = c.plain(Kind::Configure, &lease.id, &Token::none()).await?.accepted()?;
    same(&first.operation_id, &again.operation_id)
}

async fn other_shard(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let first = c.plain(Kind::Configure, &lease.id, &c.shard().at(9, 9)).await?.accepted()?;
    let again = c.plain(Kind::Configure, &lease.id, &c.shard().at(1, 1)).await?.accepted()?;
    same(&first.operation_id, &again.operation_id)?;
    c.reach(&lease.id, State::Configured).await?;
    Ok(())
}

async fn old_record(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let (first, _) = c.walk(&Order::to(CLUSTER), &lease.id).await?;
    c.step(Kind::Drain, &lease.id).await?;
    let other = format!("{CLUSTER}-later");
    let ack = c.act(&Order::to(&other), &lease.id, &c.token()).await?.accepted()?;
    ensure(ack.operation_id != first.operation_id, "a new operation", || ack.operation_id.clone())?;
    if is_settled(state_of(&ack.machine)) && state_of(&ack.machine) == State::Idle {
        return skipped("Configure is acknowledged before the machine moves");
    }
    let machine = c.reach(&lease.id, State::Configured).await?;
    ensure(machine.cluster == other, format!("cluster {other:?}"), || format!("{:?}", machine.cluster))
}

fn same(first: &str, again: &str) -> Verdict {
    ensure(first == again, format!("operation {first:?} again"), || format!("{again:?}"))
}
