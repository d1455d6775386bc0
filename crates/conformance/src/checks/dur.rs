//! DUR: what was acknowledged is still there after a crash.
//!
//! Most checks read one scene: everything worth remembering is put in place, moves are started, the provider is
//! restarted once, and each check asks for one thing.

use std::collections::BTreeSet;

use bigfleet_proto::v1alpha1::{ListFilter, Machine};

use crate::behaviour::checks;
use crate::checks::life::unpriced;
use crate::context::Context;
use crate::moves::{Kind, State, has_host, is_settled, state_name, state_of};
use crate::scenes::crash::{Crash, Rested, rests};
use crate::verdict::{Ended, Verdict, ensure, failed, skipped};

checks! { Dur:
    "DUR-001" Core Alone "the inventory survives" => inventory():
        "after a restart the same machines are listed", "a shard buys its fleet a second time", "2.1 restart";
    "DUR-002" Core Alone "machines at rest survive" => at_rest():
        "machines that stood still have the same record after a restart", "the provider's memory is not its disk", "2.1 restart";
    "DUR-003" Core Alone "a created machine survives" => rested(created):
        "an IDLE machine keeps state and host", "hardware is paid for and forgotten", "2.1 restart";
    "DUR-004" Core Alone "a binding survives" => rested(bound):
        "a CONFIGURED machine keeps state, host and cluster", "a node in use is taken for free", "2.1 restart";
    "DUR-005" Core Alone "metadata survives" => metadata_survives():
        "metadata with NUL and empty values comes back", "a shard forgets why machines are bound", "2.1 restart";
    "DUR-006" Core Alone "a drained machine survives" => rested(drained):
        "a drained machine is IDLE, with host and without cluster", "a free machine is taken for a node", "2.1 restart";
    "DUR-007" Core Alone "marks survive" => marks():
        "tokens used before the restart are FAILED_PRECONDITION after it", "a restart lets replaced shards in", "2.1 step 3, restart";
    "DUR-008" Core Alone "marks moved by refused calls survive" => refused_marks():
        "the token of a refused call is FAILED_PRECONDITION after the restart", "a restart lets replaced shards in", "2.1 step 3, 9 edge 7";
    "DUR-009" Optional Alone "marks on unknown machines survive" => unknown_marks():
        "a token used on an unknown id is FAILED_PRECONDITION after the restart", "a restart lets replaced shards in", "2.1 step 3, 9 edge 7";
    "DUR-010" Core Alone "marks of moves in flight survive" => marks_in_flight():
        "tokens acknowledged just before the crash are FAILED_PRECONDITION after it",
        "what was acknowledged is lost", "2.1 step 3";
    "DUR-011" Core Alone "the operation of a Create survives" => operation(Kind::Create):
        "Create repeated after the restart gives the recorded id", "a shard whose answer was lost buys again", "2.1 step 5, restart";
    "DUR-012" Core Alone "the operation of a Configure survives" => operation(Kind::Configure):
        "Configure repeated after the restart gives the recorded id", "a shard whose answer was lost binds again", "2.1 step 5, restart";
    "DUR-013" Core Alone "the operation of a Drain survives" => operation(Kind::Drain):
        "Drain repeated after the restart gives the recorded id", "a shard whose answer was lost waits for ever", "2.1 step 5, restart";
    "DUR-014" Core Alone "operation ids are not used again" => fresh_ids():
        "new operations after the restart have ids never seen before", "an old operation is mistaken for a new one", "2.1 details";
    "DUR-015" Core Alone "a Create in flight is not stuck" => in_flight(Kind::Create):
        "it comes to IDLE, SPECULATIVE or FAILED with a reason", "a slot is lost for ever", "2.1 restart";
    "DUR-016" Core Alone "a Configure in flight is not stuck" => in_flight(Kind::Configure):
        "it comes to CONFIGURED, IDLE or FAILED with a reason", "a machine is lost for ever", "2.1 restart";
    "DUR-017" Core Alone "a Drain in flight is not stuck" => in_flight(Kind::Drain):
        "it comes to IDLE, CONFIGURED or FAILED with a reason", "a machine is lost for ever", "2.1 restart";
    "DUR-018" Optional Alone "a Delete in flight is not stuck" => in_flight(Kind::Delete):
        "it comes to SPECULATIVE, IDLE or FAILED with a reason", "a slot is lost for ever", "2.1 restart";
    "DUR-019" Core Alone "a surviving binding can be undone" => goes_on():
        "a machine bound before the restart is drained after it", "machines of before the restart are stuck", "2.1 restart";
    "DUR-020" Core Alone "an old cursor hides nothing" => old_cursor():
        "List since a revision of before the restart answers, and holds what has changed since", "a shard misses what the crash has done", "2.2";
    "DUR-021" Optional Alone "a broken machine stays broken" => broken():
        "a FAILED machine is FAILED after a restart, with the same reason", "a restart turns broken machines into supply", "2.1 details, restart";
    "DUR-022" Core Alone "a second restart loses nothing either" => twice():
        "after another restart machines at rest have the same record and marks still fence",
        "what is recovered is not kept", "2.1 restart";
}

async fn inventory(c: Context) -> Verdict {
    let crash = c.crash().await?;
    let lost: Vec<&String> = crash.before.keys().filter(|id| !crash.after.contains_key(*id)).collect();
    let new: Vec<&String> = crash.after.keys().filter(|id| !crash.before.contains_key(*id)).collect();
    ensure(lost.is_empty() && new.is_empty(), "the same machines", || format!("lost {lost:?}, new {new:?}"))
}

async fn at_rest(c: Context) -> Verdict {
    let crash = c.crash().await?;
    let moving: BTreeSet<&String> = crash.in_flight.values().map(|(id, _)| id).collect();
    let rested = crash.before.iter().filter(|(id, m)| is_settled(state_of(m)) && !moving.contains(id));
    let mut compared = 0;
    for (id, before) in rested {
        let Some(after) = crash.after.get(id) else {
            return failed(format!("{id:?} is listed"), "it is not");
        };
        ensure(unpriced(before) == unpriced(after), format!("{before:?}"), || format!("{after:?}"))?;
        compared += 1;
    }
    c.note(format!("{compared} machines compared"));
    Ok(())
}

fn created(crash: &Crash) -> &Rested {
    &crash.created
}

fn bound(crash: &Crash) -> &Rested {
    &crash.bound
}

fn drained(crash: &Crash) -> &Rested {
    &crash.drained
}

async fn rested(c: Context, which: fn(&Crash) -> &Rested) -> Verdict {
    let crash = c.crash().await?;
    let rested = which(&crash);
    let after = c.get(&rested.id).await?;
    let parts = |m: &Machine| (state_of(m), m.host.clone(), m.cluster.clone());
    ensure(parts(&after) == parts(&rested.before), format!("{:?}", parts(&rested.before)), || {
        format!("{:?}", parts(&after))
    })
}

async fn metadata_survives(c: Context) -> Verdict {
    let crash = c.crash().await?;
    let after = c.get(&crash.bound.id).await?.shard_metadata;
    let before = &crash.bound.before.shard_metadata;
    ensure(after == *before && !after.is_empty(), format!("{before:?}"), || format!("{after:?}"))
}

async fn marks(c: Context) -> Verdict {
    let crash = c.crash().await?;
    for rested in [&crash.created, &crash.bound, &crash.drained] {
        for (epoch, sequence) in [(3, 7), (3, 6), (2, 9)] {
            let token = rested.shard.at(epoch, sequence);
            c.plain(Kind::Create, &rested.id, &token).await?.fenced("(3, 7) was used before the restart")?;
        }
    }
    Ok(())
}

async fn refused_marks(c: Context) -> Verdict {
    let crash = c.crash().await?;
    let answer = c.plain(Kind::Create, &crash.bound.id, &crash.refused.at(5, 5)).await?;
    answer.fenced("the token was used before the restart, in a refused call")
}

async fn unknown_marks(c: Context) -> Verdict {
    let crash = c.crash().await?;
    let (shard, id) = &crash.nowhere;
    c.plain(Kind::Create, id, &shard.at(5, 5)).await?.fenced("the token was used before the restart")
}

async fn marks_in_flight(c: Context) -> Verdict {
    let crash = c.crash().await?;
    for (kind, (id, shard)) in &crash.in_flight {
        c.plain(*kind, id, &shard.at(1, 1)).await?.fenced("it was acknowledged before the crash")?;
    }
    Ok(())
}

async fn operation(c: Context, kind: Kind) -> Verdict {
    let crash = c.crash().await?;
    let rested = match kind {
        Kind::Create => &crash.created,
        Kind::Configure => &crash.bound,
        Kind::Drain | Kind::Delete => &crash.drained,
    };
    let again = c.plain(kind, &rested.id, &c.token()).await?.accepted()?;
    ensure(again.operation_id == rested.operation_id, format!("{:?}", rested.operation_id), || {
        again.operation_id.clone()
    })
}

async fn fresh_ids(c: Context) -> Verdict {
    let crash = c.crash().await?;
    let lease = c.take(State::Idle).await?;
    let mut seen: BTreeSet<String> = crash.operations.iter().cloned().collect();
    for round in 0..4 {
        for kind in [Kind::Configure, Kind::Drain] {
            let id = c.step(kind, &lease.id).await?.0.operation_id;
            ensure(seen.insert(id.clone()), "an id never seen before", || {
                format!("{id:?} in round {round}")
            })?;
        }
    }
    Ok(())
}

async fn in_flight(c: Context, kind: Kind) -> Verdict {
    let crash = c.crash().await?;
    let Some((id, _)) = crash.in_flight.get(&kind) else {
        return skipped("the provider does not support Delete (UNIMPLEMENTED)");
    };
    let machine = c.settle(id).await?;
    let state = state_of(&machine);
    c.note(format!("came to {}", state_name(state)));
    ensure(rests(kind).contains(&state), format!("one of {:?}", rests(kind)), || state_name(state).into())?;
    match state {
        State::Failed => ensure(!machine.last_error.is_empty(), "a last_error", || "an empty one".into()),
        State::Speculative => ensure(!has_host(&machine), "no host", || format!("{:?}", machine.host)),
        State::Configured => ensure(!machine.cluster.is_empty(), "a cluster", || "none".into()),
        _ => ensure(has_host(&machine) && machine.cluster.is_empty(), "a host and no cluster", || {
            format!("{machine:?}")
        }),
    }
}

async fn goes_on(c: Context) -> Verdict {
    c.crash().await?;
    let lease = c.take(State::Idle).await?;
    c.step(Kind::Configure, &lease.id).await?;
    c.restart().await?;
    let state = state_of(&c.get(&lease.id).await?);
    ensure(state == State::Configured, "CONFIGURED", || state_name(state).into())?;
    c.step(Kind::Drain, &lease.id).await?;
    Ok(())
}

async fn old_cursor(c: Context) -> Verdict {
    let crash = c.crash().await?;
    if crash.cursor.is_empty() {
        return skipped("the provider gives no revision");
    }
    let list =
        c.list(ListFilter { since_revision: crash.cursor.clone(), ..ListFilter::default() }).await?.machines;
    for (id, before) in &crash.before {
        let now = c.get(id).await?;
        let listed = list.iter().any(|machine| machine.id == *id);
        let changed = state_of(&now) != state_of(before);
        ensure(listed || !changed, format!("{id:?}, which has changed, in the delta"), || {
            "it is not".into()
        })?;
    }
    Ok(())
}

async fn broken(c: Context) -> Verdict {
    let fault = c.fault().await?;
    c.restart().await?;
    let after = c.get(&fault.id).await?;
    let parts = |m: &Machine| (state_of(m), m.last_error.clone());
    ensure(parts(&after) == parts(&fault.machine), format!("{:?}", parts(&fault.machine)), || {
        format!("{:?}", parts(&after))
    })
}

async fn twice(c: Context) -> Verdict {
    let crash = c.crash().await?;
    let before = settled(&c).await?;
    c.restart().await?;
    let after = settled(&c).await?;
    ensure(before.len() == after.len(), format!("{} machines", before.len()), || format!("{}", after.len()))?;
    for (before, after) in before.iter().zip(&after) {
        ensure(unpriced(before) == unpriced(after), format!("{before:?}"), || format!("{after:?}"))?;
    }
    let token = crash.bound.shard.at(3, 7);
    c.plain(Kind::Create, &crash.bound.id, &token).await?.fenced("the token was used two restarts ago")
}

/// All machines at rest, by id.
async fn settled(c: &Context) -> Result<Vec<Machine>, Ended> {
    Ok(c.quiesce().await?.into_values().collect())
}
