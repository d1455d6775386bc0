//! LIFE: the way of a machine from slot to node and back.

use bigfleet_proto::v1alpha1::Machine;

use crate::behaviour::checks;
use crate::context::Context;
use crate::moves::{CLUSTER, Kind, Order, State, Token, has_host, state_name, state_of};
use crate::scenes::life::Seen;
use crate::verdict::{Ended, Verdict, ensure, failed};

checks! { Life:
    "LIFE-001" Core Beside "Create makes an IDLE machine" => ends(Kind::Create):
        "Create on a SPECULATIVE machine is accepted and the machine comes to IDLE",
        "capacity can never be bought", "2, 2.1 step 7";
    "LIFE-002" Core Beside "Configure makes a CONFIGURED machine" => ends(Kind::Configure):
        "Configure on an IDLE machine is accepted and the machine comes to CONFIGURED",
        "no cluster ever gets a node", "2, 2.1 step 7";
    "LIFE-003" Core Beside "Drain makes an IDLE machine" => ends(Kind::Drain):
        "Drain on a CONFIGURED machine is accepted and the machine comes to IDLE",
        "machines cannot be taken back from a cluster", "2, 2.1 step 7";
    "LIFE-004" Optional Beside "Delete leaves a SPECULATIVE slot" => ends(Kind::Delete):
        "Delete on an IDLE machine is accepted and the machine comes to SPECULATIVE",
        "machines that nobody needs are paid for ever", "2, 9 edge 5";
    "LIFE-005" Core Beside "the ack of Create shows the machine on its way" => ack_state(Kind::Create):
        "the ack names an operation and holds the machine in CREATING or already IDLE",
        "a shard cannot tell what it has begun", "2 TransitionAck";
    "LIFE-006" Core Beside "the ack of Configure shows the machine on its way" => ack_state(Kind::Configure):
        "the ack names an operation and holds the machine in CONFIGURING or already CONFIGURED",
        "a shard cannot tell what it has begun", "2 TransitionAck";
    "LIFE-007" Core Beside "the ack of Drain shows the machine on its way" => ack_state(Kind::Drain):
        "the ack names an operation and holds the machine in DRAINING or already IDLE",
        "a shard cannot tell what it has begun", "2 TransitionAck";
    "LIFE-008" Optional Beside "the ack of Delete shows the machine on its way" => ack_state(Kind::Delete):
        "the ack names an operation and holds the machine in DELETING or already SPECULATIVE",
        "a shard cannot tell what it has begun", "2 TransitionAck";
    "LIFE-009" Core Beside "a move is seen by Get as soon as it is acknowledged" => seen_at_once():
        "Get right after the ack of Create no longer shows SPECULATIVE",
        "a shard orders the same machine twice", "2.1 step 7";
    "LIFE-010" Core Beside "a machine can be bound again after a Drain" => bound_again():
        "Configure, Drain and Configure to another cluster end CONFIGURED in that cluster",
        "machines can be used once only", "2, 2.1";
    "LIFE-011" Optional Beside "a slot can be filled again after a Delete" => filled_again():
        "Create, Delete and Create on one slot end IDLE with a host",
        "quota shrinks with every machine given back", "2, 2.2";
    "LIFE-012" Core Beside "the id stays the same for the whole life" => id_stays():
        "every record seen during a life has the id that was asked for",
        "a shard loses the machine it bought", "2 Machine.id";
    "LIFE-013" Core Beside "only the states of the move are passed through" => legal_states():
        "between two settled states only the transitional state of the move is seen",
        "a shard refuses the record or draws wrong conclusions", "2, 2.3";
    "LIFE-014" Core Beside "Get and List show the same machine" => get_equals_list():
        "a settled machine has the same record in Get and in List",
        "decisions rest on one and actions on the other", "2";
    "LIFE-015" Core Beside "reading changes nothing" => reading_changes_nothing():
        "twenty Gets of a settled machine give the same record, apart from its price",
        "a fleet changes by being looked at", "2";
    "LIFE-016" Core Beside "calls without a token are served" => unfenced():
        "Configure and Drain without any token are accepted and come to their ends",
        "tools and tests cannot move machines by hand", "2.1 step 3";
    "LIFE-017" Core Beside "a grace period of seconds is accepted" => drain_with_grace():
        "Drain with a grace period of one second comes to IDLE",
        "nodes can only be drained without mercy", "2 DrainRequest";
    "LIFE-018" Core Beside "moves on different machines do not wait for each other" => independent():
        "two machines created together both come to IDLE, with two operations",
        "a fleet grows one machine at a time", "2.1";
}

async fn ends(c: Context, kind: Kind) -> Verdict {
    c.needs(kind).await?;
    let lease = c.take(kind.from()).await?;
    c.step(kind, &lease.id).await?;
    Ok(())
}

async fn ack_state(c: Context, kind: Kind) -> Verdict {
    c.needs(kind).await?;
    let lease = c.take(kind.from()).await?;
    let ack = c.plain(kind, &lease.id, &c.token()).await?.accepted()?;
    let state = state_of(&ack.machine);
    let expected =
        format!("the ack of {kind} shows {} or {}", state_name(kind.during()), state_name(kind.to()));
    ensure(state == kind.during() || state == kind.to(), expected, || state_name(state).into())?;
    ensure(ack.machine.id == lease.id, format!("the ack shows machine {:?}", lease.id), || {
        ack.machine.id.clone()
    })?;
    c.reach(&lease.id, kind.to()).await?;
    Ok(())
}

async fn seen_at_once(c: Context) -> Verdict {
    let lease = c.take(State::Speculative).await?;
    c.plain(Kind::Create, &lease.id, &c.token()).await?.accepted()?;
    let state = state_of(&c.get(&lease.id).await?);
    ensure(state != State::Speculative, "Get after the ack of Create shows CREATING or later", || {
        "SPECULATIVE".into()
    })?;
    c.reach(&lease.id, State::Idle).await?;
    Ok(())
}

async fn bound_again(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let other = format!("{CLUSTER}-other");
    for cluster in [CLUSTER, &other] {
        let (_, machine) = c.walk(&Order::to(cluster), &lease.id).await?;
        ensure(machine.cluster == cluster, format!("cluster is {cluster:?}"), || {
            format!("{:?}", machine.cluster)
        })?;
        c.step(Kind::Drain, &lease.id).await?;
    }
    Ok(())
}

async fn filled_again(c: Context) -> Verdict {
    c.needs_delete().await?;
    let lease = c.take(State::Speculative).await?;
    c.step(Kind::Create, &lease.id).await?;
    c.step(Kind::Delete, &lease.id).await?;
    let (_, machine) = c.step(Kind::Create, &lease.id).await?;
    ensure(has_host(&machine), "the slot filled again has a host", || "no host".into())
}

async fn id_stays(c: Context) -> Verdict {
    let life = c.life().await?;
    let id = &life.seen[0].machine.id;
    let changed = life.seen.iter().find(|seen| seen.machine.id != *id);
    changed.map_or(Ok(()), |seen| {
        failed(format!("id {id:?}"), format!("{:?} in {}", seen.machine.id, seen.place))
    })
}

async fn legal_states(c: Context) -> Verdict {
    let life = c.life().await?;
    let mut before = state_of(&life.seen[0].machine);
    for Seen { place, machine } in &life.seen[1..] {
        let now = state_of(machine);
        let legal = now == before
            || Kind::ALL.iter().any(|kind| {
                (before == kind.from() && (now == kind.during() || now == kind.to()))
                    || (before == kind.during() && now == kind.to())
            });
        ensure(legal, format!("a legal state after {}", state_name(before)), || {
            format!("{} in {place}", state_name(now))
        })?;
        before = now;
    }
    Ok(())
}

async fn get_equals_list(c: Context) -> Verdict {
    let leases = c.take_several(State::Idle, 2).await?;
    for lease in leases {
        // Prices may walk between the two calls.
        let listed = c.list_all().await?.machines.into_iter().find(|machine| machine.id == lease.id);
        let Some(listed) = listed else { return failed(format!("{:?} is listed", lease.id), "it is not") };
        let got = c.get(&lease.id).await?;
        ensure(unpriced(&listed) == unpriced(&got), "the same record in List and Get", || {
            format!("List: {listed:?}; Get: {got:?}")
        })?;
    }
    Ok(())
}

async fn reading_changes_nothing(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let first = unpriced(&c.get(&lease.id).await?);
    for _ in 0..20 {
        let again = unpriced(&c.get(&lease.id).await?);
        ensure(again == first, format!("{first:?}"), || format!("{again:?}"))?;
    }
    Ok(())
}

async fn unfenced(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    for kind in [Kind::Configure, Kind::Drain] {
        c.plain(kind, &lease.id, &Token::none()).await?.accepted()?;
        c.reach(&lease.id, kind.to()).await?;
    }
    Ok(())
}

async fn drain_with_grace(c: Context) -> Verdict {
    let lease = c.take(State::Configured).await?;
    c.walk(&Order::Drain { grace_secs: 1 }, &lease.id).await?;
    Ok(())
}

async fn independent(c: Context) -> Verdict {
    let leases = c.take_several(State::Speculative, 2).await?;
    let mut operations = Vec::new();
    for lease in &leases {
        operations.push(c.plain(Kind::Create, &lease.id, &c.token()).await?.accepted()?.operation_id);
    }
    for lease in &leases {
        c.reach(&lease.id, State::Idle).await?;
    }
    ensure(operations[0] != operations[1], "two operations", || format!("{:?} twice", operations[0]))
}

/// A record without what may change by itself.
pub(crate) fn unpriced(machine: &Machine) -> Machine {
    Machine { price_per_hour: 0.0, interruption_probability: 0.0, ..machine.clone() }
}

/// Fails if the machine is not as it was.
pub(crate) async fn unchanged(c: &Context, before: &Machine) -> Result<(), Ended> {
    let after = c.get(&before.id).await?;
    ensure(unpriced(&after) == unpriced(before), format!("no effect: {:?}", unpriced(before)), || {
        format!("{after:?}")
    })
}
