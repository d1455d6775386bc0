//! FAULT: a machine that breaks says so, stays as it is, and takes nobody with it.

use bigfleet_proto::v1alpha1::ListFilter;

use crate::behaviour::checks;
use crate::checks::life::unpriced;
use crate::context::Context;
use crate::moves::{Kind, State, Token, state_name, state_of};
use crate::verdict::{Verdict, ensure, failed};

checks! { Fault:
    "FAULT-001" Optional Beside "a Create that fails ends FAILED" => ends_failed():
        "a machine made in a slot labelled conformance.fault/create=error comes to FAILED",
        "a shard waits for ever for a machine that cannot come", "2.1 details, 8";
    "FAULT-002" Optional Beside "FAILED says why" => says_why():
        "last_error is not empty", "operators search in the dark", "2 Machine.last_error";
    "FAULT-003" Optional Beside "FAILED refuses Create" => terminal(Kind::Create):
        "it is refused, not with FAILED_PRECONDITION, and the machine stays FAILED",
        "broken machines are tried for ever", "2.1 details";
    "FAULT-004" Optional Beside "FAILED refuses Configure" => terminal(Kind::Configure):
        "it is refused, not with FAILED_PRECONDITION, and the machine stays FAILED",
        "a broken machine is promised to a cluster", "2.1 details";
    "FAULT-005" Optional Beside "FAILED refuses Drain" => terminal(Kind::Drain):
        "it is refused, not with FAILED_PRECONDITION, and the machine stays FAILED",
        "a broken machine becomes free", "2.1 details";
    "FAULT-006" Optional Beside "FAILED refuses Delete" => terminal(Kind::Delete):
        "it is refused, not with FAILED_PRECONDITION, and the machine stays FAILED",
        "a broken machine becomes a slot and breaks again", "2.1 details";
    "FAULT-007" Optional Beside "the reason stays" => reason_stays():
        "last_error is the same after refused calls", "the first cause is overwritten", "2.1 details";
    "FAULT-008" Optional Beside "FAILED is still listed" => still_listed():
        "the machine is in List and in List of FAILED", "broken machines vanish while they are paid for", "2.1 details";
    "FAULT-009" Optional Beside "other machines are not affected" => neighbours():
        "settled machines are the same before and after the fault", "one fault spreads", "2.1 details";
    "FAULT-010" Optional Beside "FAILED is still fenced" => fenced():
        "a stale token on a FAILED machine is FAILED_PRECONDITION", "a replaced shard learns what broke", "2.1 step 3";
    "FAULT-011" Optional Beside "other machines can still be made" => life_goes_on():
        "after the fault a Create elsewhere comes to IDLE", "one fault stops the fleet", "2.1 details";
}

async fn ends_failed(c: Context) -> Verdict {
    let state = state_of(&c.fault().await?.machine);
    ensure(state == State::Failed, "FAILED", || state_name(state).into())
}

async fn says_why(c: Context) -> Verdict {
    let fault = c.fault().await?;
    ensure(!fault.machine.last_error.is_empty(), "a last_error", || "an empty one".into())
}

async fn terminal(c: Context, kind: Kind) -> Verdict {
    let fault = c.fault().await?;
    c.needs(kind).await?;
    for token in [c.token(), Token::none()] {
        c.plain(kind, &fault.id, &token).await?.refused("the machine is FAILED")?;
    }
    let state = state_of(&c.settle(&fault.id).await?);
    ensure(state == State::Failed, "FAILED", || state_name(state).into())
}

async fn reason_stays(c: Context) -> Verdict {
    let fault = c.fault().await?;
    for kind in Kind::ALL {
        let _ = c.plain(kind, &fault.id, &c.token()).await?;
    }
    let now = c.get(&fault.id).await?.last_error;
    ensure(now == fault.machine.last_error, format!("{:?}", fault.machine.last_error), || format!("{now:?}"))
}

async fn still_listed(c: Context) -> Verdict {
    let fault = c.fault().await?;
    for states in [vec![], vec![State::Failed as i32]] {
        let list = c.list(ListFilter { states, ..ListFilter::default() }).await?.machines;
        if !list.iter().any(|machine| machine.id == fault.id && state_of(machine) == State::Failed) {
            return failed(format!("{:?} is listed as FAILED", fault.id), "it is not");
        }
    }
    Ok(())
}

async fn neighbours(c: Context) -> Verdict {
    let fault = c.fault().await?;
    c.note(format!("{} machines compared", fault.neighbours.len()));
    for (before, after) in &fault.neighbours {
        ensure(unpriced(before) == unpriced(after), format!("{before:?}"), || format!("{after:?}"))?;
    }
    Ok(())
}

async fn fenced(c: Context) -> Verdict {
    let fault = c.fault().await?;
    c.plain(Kind::Create, &fault.id, &fault.shard.at(1, 1)).await?.fenced("the token was used")
}

async fn life_goes_on(c: Context) -> Verdict {
    c.fault().await?;
    let lease = c.take(State::Speculative).await?;
    c.step(Kind::Create, &lease.id).await?;
    Ok(())
}
