//! SOAK: the same again and again, to see whether something wears out.

use std::collections::BTreeSet;

use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::MachineRef;
use tokio::task::JoinSet;

use crate::behaviour::checks;
use crate::clock::Moment;
use crate::context::Context;
use crate::moves::{Kind, State, state_name, state_of};
use crate::verdict::{Verdict, ensure};

checks! { Soak:
    "SOAK-001" Core Alone "cycle after cycle works" => cycles():
        "a machine is bound and drained again and again, each time with new operations",
        "the provider wears out", "2.1";
    "SOAK-002" Core Alone "reads stay right while machines move" => reads_beside_moves():
        "Get of a moving machine shows only the states of its moves, for the whole time",
        "shards act on records that were never true", "2";
    "SOAK-003" Core Alone "connections come and go" => connections():
        "many short connections are all served", "file handles run out", "0";
    "SOAK-004" Core Alone "marks of machines that do not exist do not crowd out others" => junk_marks():
        "after a thousand tokens on unknown machines an earlier mark on a real one still fences",
        "a replaced shard passes after somebody sent junk", "9 edge 7";
    "SOAK-005" Core Alone "the inventory does not leak" => inventory_stays():
        "after cycles of all moves the same machines are listed", "slots vanish or multiply", "2.2";
}

async fn cycles(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let started = Moment::now();
    let (mut took, mut operations) = (Vec::new(), BTreeSet::new());
    let mut cycles = 0;
    while cycles < 2 || started.elapsed() < c.limits().soak {
        for kind in [Kind::Configure, Kind::Drain] {
            let asked = Moment::now();
            let ack = c.plain(kind, &lease.id, &c.token()).await?.accepted()?;
            took.push(asked.elapsed());
            c.reach(&lease.id, kind.to()).await?;
            let is_new = operations.insert(ack.operation_id.clone());
            ensure(is_new, "a new operation id", || {
                format!("{:?} again in cycle {cycles}", ack.operation_id)
            })?;
        }
        cycles += 1;
    }
    c.measured("ack of Configure and Drain", &took);
    c.note(format!("{cycles} cycles"));
    Ok(())
}

async fn reads_beside_moves(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let (context, id) = (c.clone(), lease.id.clone());
    let moves = async move {
        let started = Moment::now();
        loop {
            context.step(Kind::Configure, &id).await?;
            context.step(Kind::Drain, &id).await?;
            if started.elapsed() >= context.limits().soak {
                return Ok(());
            }
        }
    };
    // In a set, which ends them if the reads end this check first.
    let mut mover = JoinSet::new();
    mover.spawn(moves);
    let mut took = Vec::new();
    loop {
        let asked = Moment::now();
        let machine = c.get(&lease.id).await?;
        took.push(asked.elapsed());
        let state = state_of(&machine);
        let bound = [State::Configuring, State::Configured, State::Draining].contains(&state);
        let honest = (bound || state == State::Idle) && bound != machine.cluster.is_empty();
        ensure(honest, "IDLE, or bound with a cluster", || {
            format!("{} with cluster {:?}", state_name(state), machine.cluster)
        })?;
        if let Some(joined) = mover.try_join_next() {
            let ended: Verdict = joined.expect("moves do not panic");
            ended?;
            break;
        }
    }
    c.measured("Get, beside moves", &took);
    Ok(())
}

async fn connections(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let started = Moment::now();
    let mut took = Vec::new();
    while took.len() < 20 || (started.elapsed() < c.limits().soak && took.len() < 2000) {
        let asked = Moment::now();
        let mut client = transport::provider_client(c.run.target.own_channel());
        let answer =
            c.answered("Get on a new connection", client.get(MachineRef { id: lease.id.clone() })).await?;
        ensure(answer.is_ok(), "the machine", || format!("{answer:?}"))?;
        took.push(asked.elapsed());
    }
    c.measured("connect and Get", &took);
    Ok(())
}

async fn junk_marks(c: Context) -> Verdict {
    let (lease, shard) = (c.take(State::Idle).await?, c.shard());
    c.plain(Kind::Create, &lease.id, &shard.at(5, 5)).await?.passed_the_fence("it is the first")?;
    let mut took = Vec::new();
    for _ in 0..1000 {
        let asked = Moment::now();
        c.plain(Kind::Create, &c.unheard("junk"), &shard.at(9, 9))
            .await?
            .refused("there is no such machine")?;
        took.push(asked.elapsed());
    }
    c.measured("Create of unknown machines", &took);
    c.plain(Kind::Create, &lease.id, &shard.at(5, 5)).await?.fenced("the token was used on this machine")?;
    c.plain(Kind::Create, &lease.id, &shard.at(5, 6)).await?.passed_the_fence("it is higher")
}

async fn inventory_stays(c: Context) -> Verdict {
    let before: BTreeSet<String> = c.quiesce().await?.into_keys().collect();
    let leases = c.take_several(State::Idle, 2).await?;
    for lease in &leases {
        c.step(Kind::Configure, &lease.id).await?;
        c.step(Kind::Drain, &lease.id).await?;
        if c.deletes().await? {
            c.step(Kind::Delete, &lease.id).await?;
            c.step(Kind::Create, &lease.id).await?;
        }
    }
    let after: BTreeSet<String> = c.quiesce().await?.into_keys().collect();
    ensure(before == after, format!("{} machines", before.len()), || format!("{} machines", after.len()))
}
