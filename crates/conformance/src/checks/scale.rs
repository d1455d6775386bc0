//! SCALE: many machines at once. Times are reported and never judged.

use std::collections::BTreeSet;

use tokio::task::JoinSet;

use crate::behaviour::checks;
use crate::clock::Moment;
use crate::context::Context;
use crate::moves::{Kind, State};
use crate::verdict::{Verdict, ensure, skipped};

checks! { Scale:
    "SCALE-001" Core Alone "many Creates at once all end" => phase(Kind::Create):
        "every free slot, up to the limit, is created together and comes to IDLE", "a growing fleet loses machines", "2.1";
    "SCALE-002" Core Alone "many Configures at once all end" => phase(Kind::Configure):
        "all of them are bound together and come to CONFIGURED", "a growing fleet loses nodes", "2.1";
    "SCALE-003" Core Alone "many Drains at once all end" => phase(Kind::Drain):
        "all of them are drained together and come to IDLE", "a shrinking fleet keeps nodes", "2.1";
    "SCALE-004" Optional Alone "many Deletes at once all end" => phase(Kind::Delete):
        "all that were created are deleted together and come to SPECULATIVE", "a shrinking fleet is paid for", "2.1";
    "SCALE-005" Core Alone "every operation has an id of its own" => distinct_operations():
        "no two moves of the whole wave share an id", "operations are mistaken for each other", "2.1 step 7";
    "SCALE-006" Core Alone "List is complete while machines move" => complete_lists():
        "every List taken during the wave has each machine exactly once", "machines vanish for a moment and are bought again", "2.2";
    "SCALE-007" Core Alone "many reads at once are all answered" => many_reads():
        "500 Gets, 64 at a time, give the machines asked for", "a shard at work starves", "2";
    "SCALE-008" Core Alone "full lists again and again are the same" => repeated_lists():
        "ten full lists at rest hold the same machines", "machines flicker", "2.2";
}

async fn phase(c: Context, kind: Kind) -> Verdict {
    c.needs(kind).await?;
    let wave = c.wave().await?;
    let Some(phase) = wave.phases.iter().find(|phase| phase.kind == kind) else {
        return skipped(format!("no machine could take part in {kind}"));
    };
    c.measured(&format!("{kind}, ack"), &phase.acks);
    c.measured(&format!("{kind}, to its end"), &phase.ends);
    c.note(format!("{} machines", phase.acks.len() + phase.faults.len()));
    ensure(phase.faults.is_empty(), format!("all {} end well", phase.acks.len() + phase.faults.len()), || {
        format!("{} did not, the first: {}", phase.faults.len(), phase.faults[0])
    })
}

async fn distinct_operations(c: Context) -> Verdict {
    let wave = c.wave().await?;
    let all: Vec<&String> = wave.phases.iter().flat_map(|phase| &phase.operations).collect();
    let distinct: BTreeSet<&String> = all.iter().copied().collect();
    ensure(distinct.len() == all.len(), format!("{} ids", all.len()), || format!("{}", distinct.len()))
}

async fn complete_lists(c: Context) -> Verdict {
    let wave = c.wave().await?;
    c.measured("List, while machines move", &wave.lists);
    ensure(wave.list_faults.is_empty(), format!("all {} machines once", wave.ids.len()), || {
        wave.list_faults.join(", ")
    })
}

async fn many_reads(c: Context) -> Verdict {
    let ids: Vec<String> = c.list_all().await?.machines.into_iter().map(|machine| machine.id).collect();
    if ids.is_empty() {
        return skipped("needs a machine");
    }
    let mut tasks = JoinSet::new();
    for reader in 0..64 {
        let (c, ids) = (c.clone(), ids.clone());
        tasks.spawn(async move {
            let mut took = Vec::new();
            for number in 0..8 {
                let id = &ids[(reader * 8 + number) % ids.len()];
                let started = Moment::now();
                let machine = c.get(id).await?;
                took.push(started.elapsed());
                ensure(machine.id == *id, format!("{id:?}"), || format!("{:?}", machine.id))?;
            }
            Ok(took)
        });
    }
    let mut took = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        let samples: Result<Vec<_>, crate::verdict::Ended> = joined.expect("a reader does not panic");
        took.extend(samples?);
    }
    c.measured("Get, 64 at a time", &took);
    Ok(())
}

async fn repeated_lists(c: Context) -> Verdict {
    let first: BTreeSet<String> = c.quiesce().await?.into_keys().collect();
    let mut took = Vec::new();
    for _ in 0..10 {
        let started = Moment::now();
        let list = c.list_all().await?.machines;
        took.push(started.elapsed());
        let now: BTreeSet<String> = list.iter().map(|machine| machine.id.clone()).collect();
        ensure(now == first, format!("{} machines", first.len()), || format!("{}", now.len()))?;
    }
    c.measured(&format!("List of {}", first.len()), &took);
    c.note(format!("{} machines listed, {} of them FAILED", first.len(), failed_count(&c).await?));
    Ok(())
}

async fn failed_count(c: &Context) -> Result<usize, crate::verdict::Ended> {
    Ok(c.list(super::list::of_state(&[State::Failed])).await?.machines.len())
}
