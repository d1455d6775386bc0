//! MOVE: what must be refused, and with which codes.

use std::time::Duration;

use bigfleet_proto::transport::code_name;
use bigfleet_proto::v1alpha1::Machine;
use tonic::{Code, Status};

use crate::behaviour::checks;
use crate::calls::{Answer, in_words};
use crate::checks::life::unchanged;
use crate::clock::Moment;
use crate::context::Context;
use crate::moves::{CLUSTER, Kind, Order, State, Token, is_settled, metadata, state_name, state_of};
use crate::verdict::{Ended, Verdict, ensure, failed, skipped};

/// How often a state that passes quickly is tried to be caught.
const ATTEMPTS: usize = 8;

checks! { Move:
    "MOVE-001" Core Beside "no Configure on SPECULATIVE" => refused_at_rest(Kind::Configure, State::Speculative):
        "it is refused, not with FAILED_PRECONDITION, and the machine is as before",
        "a slot without hardware is promised to a cluster", "2.1 step 6";
    "MOVE-002" Core Beside "no Drain on SPECULATIVE" => refused_at_rest(Kind::Drain, State::Speculative):
        "it is refused, not with FAILED_PRECONDITION, and the machine is as before",
        "a slot becomes hardware that was never bought", "2.1 step 6";
    "MOVE-003" Core Beside "no Create on CONFIGURED" => refused_at_rest(Kind::Create, State::Configured):
        "it is refused, not with FAILED_PRECONDITION, and the machine is as before",
        "a running node is built anew under its pods", "2.1 step 6";
    "MOVE-004" Core Beside "no Delete on CONFIGURED" => refused_at_rest(Kind::Delete, State::Configured):
        "it is refused, not with FAILED_PRECONDITION, and the machine is as before",
        "a running node is deleted under its pods", "2.1 step 6";
    "MOVE-005" Core Beside "no Configure on CREATING" => refused_under_way(Kind::Configure, Kind::Create):
        "it is refused while the machine is made, and the machine still comes to IDLE",
        "a machine without a host is promised to a cluster", "2.1 step 6";
    "MOVE-006" Core Beside "no Drain on CREATING" => refused_under_way(Kind::Drain, Kind::Create):
        "it is refused while the machine is made, and the machine still comes to IDLE",
        "moves cross and their outcome is anybody's guess", "2.1 step 6";
    "MOVE-007" Optional Beside "no Delete on CREATING" => refused_under_way(Kind::Delete, Kind::Create):
        "it is refused while the machine is made, and the machine still comes to IDLE",
        "hardware is bought and forgotten", "2.1 step 6";
    "MOVE-008" Core Beside "no Create on CONFIGURING" => refused_under_way(Kind::Create, Kind::Configure):
        "it is refused while the machine joins, and the machine still comes to CONFIGURED",
        "moves cross and their outcome is anybody's guess", "2.1 step 6";
    "MOVE-009" Core Beside "no Drain on CONFIGURING" => refused_under_way(Kind::Drain, Kind::Configure):
        "it is refused while the machine joins, and the machine still comes to CONFIGURED",
        "a node leaves while it joins", "2.1 step 6";
    "MOVE-010" Optional Beside "no Delete on CONFIGURING" => refused_under_way(Kind::Delete, Kind::Configure):
        "it is refused while the machine joins, and the machine still comes to CONFIGURED",
        "a machine is deleted while it joins", "2.1 step 6";
    "MOVE-011" Core Beside "no Create on DRAINING" => refused_under_way(Kind::Create, Kind::Drain):
        "it is refused while the machine drains, and the machine still comes to IDLE",
        "moves cross and their outcome is anybody's guess", "2.1 step 6";
    "MOVE-012" Core Beside "no Configure on DRAINING" => refused_under_way(Kind::Configure, Kind::Drain):
        "it is refused while the machine drains, and the machine still comes to IDLE",
        "a machine is bound to two clusters", "2.1 step 6";
    "MOVE-013" Optional Beside "no Delete on DRAINING" => refused_under_way(Kind::Delete, Kind::Drain):
        "it is refused while the machine drains, and the machine still comes to IDLE",
        "a node is deleted while its pods still leave", "2.1 step 6";
    "MOVE-014" Optional Beside "no Create on DELETING" => refused_under_way(Kind::Create, Kind::Delete):
        "it is refused while the machine is given back, and it still comes to SPECULATIVE",
        "moves cross and their outcome is anybody's guess", "2.1 step 6";
    "MOVE-015" Optional Beside "no Configure on DELETING" => refused_under_way(Kind::Configure, Kind::Delete):
        "it is refused while the machine is given back, and it still comes to SPECULATIVE",
        "a cluster waits for a machine that is going away", "2.1 step 6";
    "MOVE-016" Optional Beside "no Drain on DELETING" => refused_under_way(Kind::Drain, Kind::Delete):
        "it is refused while the machine is given back, and it still comes to SPECULATIVE",
        "moves cross and their outcome is anybody's guess", "2.1 step 6";
    "MOVE-017" Core Beside "Drain on IDLE begins nothing" => begins_nothing(Kind::Drain, State::Idle):
        "it is refused, or answered with the id of an earlier Drain; never a new operation",
        "a machine is drained that belongs to nobody", "2.1 step 5, details";
    "MOVE-018" Optional Beside "Delete on SPECULATIVE begins nothing" => begins_nothing(Kind::Delete, State::Speculative):
        "it is refused, or answered with the id of an earlier Delete; never a new operation",
        "quota is given back twice", "2.1 step 5";
    "MOVE-019" Core Beside "Create on IDLE begins nothing" => begins_nothing(Kind::Create, State::Idle):
        "it is refused, or answered with the id of an earlier Create; never a new operation",
        "hardware is bought twice", "2.1 step 5";
    "MOVE-020" Core Beside "a refused Configure leaves no binding" => no_partial_binding():
        "after a refused Configure neither cluster nor metadata of it are in the record",
        "a machine looks bound that is not", "2.1 step 6";
    "MOVE-021" Core Beside "Get of an unknown machine is NOT_FOUND" => unknown_get():
        "the code is NOT_FOUND", "a shard retries for ever", "2.1 step 4, 2.3";
    "MOVE-022" Core Beside "Create of an unknown machine is NOT_FOUND" => unknown_move(Kind::Create):
        "the code is NOT_FOUND, with and without a token", "a shard retries for ever", "2.1 step 4, 2.3";
    "MOVE-023" Core Beside "Configure of an unknown machine is NOT_FOUND" => unknown_move(Kind::Configure):
        "the code is NOT_FOUND, with and without a token", "a shard retries for ever", "2.1 step 4, 2.3";
    "MOVE-024" Core Beside "Drain of an unknown machine is NOT_FOUND" => unknown_move(Kind::Drain):
        "the code is NOT_FOUND, with and without a token", "a shard retries for ever", "2.1 step 4, 2.3";
    "MOVE-025" Optional Beside "Delete of an unknown machine is NOT_FOUND" => unknown_move(Kind::Delete):
        "the code is NOT_FOUND, with and without a token", "a shard retries for ever", "2.1 step 4, 2.3";
    "MOVE-026" Core Beside "a call for an unknown machine creates no record" => unknown_stays_unknown():
        "after all four moves on an unknown id it is neither listed nor found",
        "machines appear that nobody can pay for", "2.1 step 4";
    "MOVE-027" Optional Beside "a refusal is no other refusal" => refusal_is_plain():
        "an illegal move is not answered NOT_FOUND or UNIMPLEMENTED, which shards take for something else",
        "a shard forgets the machine, or the move", "2.3";
    "MOVE-028" Optional Beside "a refusal says why" => refusal_says_why():
        "the refusal of an illegal move carries a message", "operators search in the dark", "2.1 step 6";
    "MOVE-029" Core Beside "Delete is supported everywhere or nowhere" => delete_is_consistent():
        "a known and an unknown machine agree on whether Delete is UNIMPLEMENTED",
        "a shard counts on machines being given back that never are", "2.1 step 2";
}

async fn refused_at_rest(c: Context, kind: Kind, state: State) -> Verdict {
    c.needs(kind).await?;
    let lease = c.take(state).await?;
    for token in [c.token(), Token::none()] {
        let why = format!("the machine is {}", state_name(state));
        c.plain(kind, &lease.id, &token).await?.refused(&why)?;
        unchanged(&c, &lease.machine).await?;
    }
    Ok(())
}

/// Starts one move and tries another while it is under way. A move may end between two calls, so an accepted
/// call says something only if the first move is known to take longer than that.
async fn refused_under_way(c: Context, kind: Kind, under_way: Kind) -> Verdict {
    c.needs(kind).await?;
    c.needs(under_way).await?;
    let mut gaps = Vec::new();
    for _ in 0..ATTEMPTS {
        let lease = c.take(under_way.from()).await?;
        let ack = c.plain(under_way, &lease.id, &c.token()).await?.accepted()?;
        if is_settled(state_of(&ack.machine)) {
            return skipped(format!("{under_way} is over when it is acknowledged: its states cannot be met"));
        }
        let acknowledged = Moment::now();
        let answer = c.plain(kind, &lease.id, &c.token()).await?;
        gaps.push(acknowledged.elapsed());
        if answer.result.is_err() || state_of(&c.get(&lease.id).await?) == under_way.during() {
            answer.refused(&format!("the machine is {}", state_name(under_way.during())))?;
            c.reach(&lease.id, under_way.to()).await?;
            return Ok(());
        }
        c.settle(&lease.id).await?;
    }
    let undisturbed = how_long(&c, under_way).await?;
    gaps.sort_unstable();
    let usual = gaps[gaps.len() / 2];
    if usual < undisturbed / 2 {
        return failed(
            format!("{kind} is refused within {usual:.1?} of {under_way}, which takes {undisturbed:.1?}"),
            format!("accepted {ATTEMPTS} times of {ATTEMPTS}"),
        );
    }
    skipped(format!("{under_way} ends too soon for a call in between, {ATTEMPTS} times"))
}

/// How long a move takes when nobody interferes.
async fn how_long(c: &Context, kind: Kind) -> Result<Duration, Ended> {
    let lease = c.take(kind.from()).await?;
    c.plain(kind, &lease.id, &c.token()).await?.accepted()?;
    let acknowledged = Moment::now();
    let mut last_seen = Duration::ZERO;
    let watch = |machine: &Machine| {
        if state_of(machine) == kind.during() {
            last_seen = acknowledged.elapsed();
        }
    };
    c.settle_watched(&lease.id, watch).await?;
    Ok(last_seen)
}

/// The machine stands where the move would end. Whether such a move was ever made before is not known here, so
/// both answers are right: a refusal, or the id of back then. Twice the same, and nothing moves.
async fn begins_nothing(c: Context, kind: Kind, state: State) -> Verdict {
    c.needs(kind).await?;
    let lease = c.take(state).await?;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let answer = c.plain(kind, &lease.id, &c.token()).await?;
        match &answer.result {
            Ok(ack) => {
                let now = ack.machine.as_ref().map(state_of);
                ensure(now == Some(state), format!("{} begins nothing", answer.what), || answer.in_words())?;
                ids.push(ack.operation_id.clone());
            }
            Err(_) => answer.refused(&format!("the machine is {}", state_name(state)))?,
        }
        unchanged(&c, &lease.machine).await?;
    }
    ids.dedup();
    ensure(ids.len() <= 1, format!("{kind} on {} is answered the same each time", state_name(state)), || {
        format!("operations {ids:?}")
    })
}

async fn no_partial_binding(c: Context) -> Verdict {
    let lease = c.take(State::Speculative).await?;
    let order = Order::noted(CLUSTER, metadata([("left", "behind")]));
    c.act(&order, &lease.id, &c.token()).await?.refused("the machine is SPECULATIVE")?;
    let machine = c.get(&lease.id).await?;
    let clean = machine.cluster.is_empty() && machine.shard_metadata.is_empty();
    ensure(clean, "no cluster, no metadata", || {
        format!("{:?}, {:?}", machine.cluster, machine.shard_metadata)
    })?;
    let listed = c.list_all().await?.machines.into_iter().find(|machine| machine.id == lease.id);
    ensure(listed.is_some_and(|machine| machine.cluster.is_empty()), "listed without a cluster", || {
        "otherwise".into()
    })
}

async fn unknown_get(c: Context) -> Verdict {
    let code = c.look_up(&c.unheard("machine")).await?.map_err(|status| status.code());
    ensure(code == Err(Code::NotFound), "NOT_FOUND", || format!("{code:?}"))
}

async fn unknown_move(c: Context, kind: Kind) -> Verdict {
    c.needs(kind).await?;
    for token in [c.token(), Token::none()] {
        c.plain(kind, &c.unheard("machine"), &token)
            .await?
            .has_code(Code::NotFound, "there is no such machine")?;
    }
    Ok(())
}

async fn unknown_stays_unknown(c: Context) -> Verdict {
    let id = c.unheard("machine");
    for kind in Kind::ALL {
        let answer = c.plain(kind, &id, &c.token()).await?;
        ensure(answer.result.is_err(), "a refusal", || answer.in_words())?;
    }
    let found = c.look_up(&id).await?;
    ensure(found.is_err(), "Get does not find it", || format!("{found:?}"))?;
    let listed = c.list_all().await?.machines.iter().any(|machine| machine.id == id);
    ensure(!listed, "List does not show it", || "it does".into())
}

/// Illegal whatever happened to the machine before.
async fn surely_illegal(c: &Context) -> Result<Answer, Ended> {
    let lease = c.take(State::Configured).await?;
    c.plain(Kind::Create, &lease.id, &c.token()).await
}

async fn refusal_is_plain(c: Context) -> Verdict {
    let answer = surely_illegal(&c).await?;
    let code = answer.result.as_ref().err().map(Status::code);
    let special = [Code::NotFound, Code::Unimplemented, Code::FailedPrecondition];
    let plain = code.is_some_and(|code| !special.contains(&code));
    ensure(plain, "a code that means nothing else, such as INTERNAL", || answer.in_words())
}

async fn refusal_says_why(c: Context) -> Verdict {
    match surely_illegal(&c).await?.result {
        Err(status) => ensure(!status.message().is_empty(), "a message", || in_words(&status)),
        Ok(_) => failed("a refusal", "OK"),
    }
}

async fn delete_is_consistent(c: Context) -> Verdict {
    let deletes = c.deletes().await?;
    let lease = c.take(State::Configured).await?;
    for id in [lease.id.as_str(), &c.unheard("machine")] {
        let code = c.plain(Kind::Delete, id, &Token::none()).await?.result.err().map(|status| status.code());
        let expected = if deletes { "not UNIMPLEMENTED" } else { "UNIMPLEMENTED" };
        ensure((code == Some(Code::Unimplemented)) != deletes, expected, || {
            format!("{:?}", code.map(code_name))
        })?;
    }
    Ok(())
}
