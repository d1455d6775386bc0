//! FENCE: a shard that was replaced and does not know it must not move anything.
//!
//! Most checks look at the fence alone: they ask for a move that begins nothing (Create on an IDLE machine) and
//! see only whether the answer is `FAILED_PRECONDITION`.

use tokio::task::JoinSet;
use tonic::Code;

use crate::behaviour::checks;
use crate::calls::Answer;
use crate::checks::life::unchanged;
use crate::context::Context;
use crate::moves::{Kind, Shard, State, Token, state_name};
use crate::verdict::{Ended, Verdict, ensure};

checks! { Fence:
    "FENCE-001" Core Beside "a token works once" => once():
        "the token of an accepted Configure, shown again, is FAILED_PRECONDITION",
        "a delayed duplicate of a call is obeyed", "2.1 step 3";
    "FENCE-002" Core Beside "a lower sequence number is fenced" => lower((4, 9), (4, 8), "its sequence number is lower"):
        "after (4, 9) the token (4, 8) is FAILED_PRECONDITION", "calls that overtake each other undo each other", "2.1 step 3";
    "FENCE-003" Core Beside "a lower epoch is fenced, whatever its sequence number" => lower((4, 9), (3, 1000), "its epoch is lower"):
        "after (4, 9) the token (3, 1000) is FAILED_PRECONDITION", "a replaced shard goes on moving machines", "2.1 step 3";
    "FENCE-004" Core Beside "a higher epoch passes, whatever its sequence number" => higher((4, 9), (5, 1)):
        "after (4, 9) the token (5, 1) passes", "a restarted shard is locked out of its own machines", "2.1 step 3";
    "FENCE-005" Core Beside "gaps in sequence numbers pass" => higher((1, 1), (1, 100_000)):
        "after (1, 1) the token (1, 100000) passes", "one lost call locks a shard out", "2.1 step 3, 2.3";
    "FENCE-006" Core Beside "a mark is for one machine" => per_machine():
        "after (7, 7) on one machine the same shard's (1, 1) passes on another",
        "calls for different machines fence each other when they arrive out of order", "2.1 step 3, 9 edge 1";
    "FENCE-007" Core Beside "a mark is for one shard" => per_shard():
        "after one shard's (7, 7) another shard's (1, 1) passes on the same machine",
        "shards lock each other out", "2.1 step 3, 9 edge 1";
    "FENCE-008" Core Beside "the fence comes before existence" => before_existence():
        "a used token on an unknown machine is FAILED_PRECONDITION, not NOT_FOUND",
        "a replaced shard learns what exists", "2.1 steps 3 and 4, 9 edge 7";
    "FENCE-009" Core Beside "the fence comes before idempotency" => before_idempotency():
        "Configure repeated with a stale token is FAILED_PRECONDITION, not the recorded operation",
        "a replaced shard believes that it still rules", "2.1 steps 3 and 5, 9 edge 7";
    "FENCE-010" Core Beside "the mark moves although the move is refused" => moves_on_refusal():
        "the token of a refused Drain on SPECULATIVE, shown again, is FAILED_PRECONDITION",
        "a replaced shard passes wherever its successor was refused", "2.1 step 3, 9 edge 7";
    "FENCE-011" Core Beside "the mark moves although the call is a repeat" => moves_on_repeat():
        "the token of a repeated Configure, shown again, is FAILED_PRECONDITION",
        "a replaced shard passes wherever its successor repeated a call", "2.1 step 3";
    "FENCE-012" Core Beside "a fenced call does not move the mark" => refusal_keeps_mark():
        "after (4, 9) and a fenced (4, 3), (4, 9) is still fenced and (4, 10) passes",
        "a replaced shard opens the door for itself", "2.1 step 3";
    "FENCE-013" Core Beside "a fenced call changes nothing" => fenced_changes_nothing():
        "a Drain with a stale token leaves a CONFIGURED machine as it is",
        "a replaced shard drains nodes that are in use", "2.1 step 3";
    "FENCE-014" Core Beside "no token at all passes" => no_token():
        "after (7, 7) a call with an empty shard id, epoch 0 and sequence 0 passes",
        "tools cannot move machines by hand", "2.1 step 3";
    "FENCE-015" Core Beside "(0, 0) with a shard id is a token" => zero_is_a_token():
        "(0, 0) passes once and is FAILED_PRECONDITION the second time",
        "a shard at its very beginning is not fenced", "9 edge 6";
    "FENCE-016" Core Beside "an empty shard id with numbers is a token" => nameless():
        "the token (\"\", 3, high) passes once and is FAILED_PRECONDITION the second time",
        "a shard that forgot its name is not fenced", "2.1 step 3";
    "FENCE-017" Core Beside "negative numbers are ordinary" => negative():
        "(-5, -1) passes, (-5, -2) is fenced, (-4, -9) passes, and none is INVALID_ARGUMENT",
        "the provider refuses what the contract allows", "9 edge 2";
    "FENCE-018" Core Beside "the ends of the range are ordinary" => extremes():
        "the smallest and the largest token pass in this order, and the largest is fenced afterwards",
        "comparison wraps around and lets everybody in", "2.1 step 3";
    "FENCE-019" Core Beside "one mark for all four moves" => across_kinds():
        "the token of an accepted Configure fences a Drain with the same token",
        "a replaced shard passes by asking for something else", "2.1 step 3";
    "FENCE-020" Core Beside "shard ids are compared byte by byte" => byte_by_byte():
        "other case, a trailing space and a NUL make another shard",
        "shards with similar names lock each other out", "2.1 step 3";
    "FENCE-021" Core Beside "Create is fenced" => each_kind(Kind::Create):
        "a stale token is FAILED_PRECONDITION on Create", "a replaced shard buys machines", "2.1 step 3";
    "FENCE-022" Core Beside "Configure is fenced" => each_kind(Kind::Configure):
        "a stale token is FAILED_PRECONDITION on Configure", "a replaced shard binds machines", "2.1 step 3";
    "FENCE-023" Core Beside "Drain is fenced" => each_kind(Kind::Drain):
        "a stale token is FAILED_PRECONDITION on Drain", "a replaced shard drains nodes", "2.1 step 3";
    "FENCE-024" Optional Beside "Delete is fenced" => each_kind(Kind::Delete):
        "a stale token is FAILED_PRECONDITION on Delete", "a replaced shard deletes machines", "2.1 step 3";
    "FENCE-025" Core Beside "FAILED_PRECONDITION means fenced and nothing else" => reserved():
        "no illegal move without a token is answered FAILED_PRECONDITION, in any settled state",
        "every ordinary refusal looks like a replaced shard and pages somebody", "0, 9 edge 8";
    "FENCE-026" Core Beside "after a race the mark is the highest token" => race():
        "of 16 tokens in any order the highest is used up and the next one passes",
        "marks go backwards under load", "2.1 details";
    "FENCE-027" Core Beside "an accepted Create moves the mark" => mark_of_create():
        "the token of an accepted Create, shown again, is FAILED_PRECONDITION",
        "a delayed duplicate of a call is obeyed", "2.1 step 3";
    "FENCE-028" Core Beside "reads are not fenced" => reads_pass():
        "Get and List answer after a fenced call on the machine", "a shard cannot even look", "2.1";
}

/// Asks for something that begins nothing; only the fence matters.
async fn probe(c: &Context, id: &str, token: &Token) -> Result<Answer, Ended> {
    c.plain(Kind::Create, id, token).await
}

async fn passes(c: &Context, id: &str, token: &Token, why: &str) -> Verdict {
    probe(c, id, token).await?.passed_the_fence(why)
}

async fn fenced(c: &Context, id: &str, token: &Token, why: &str) -> Verdict {
    probe(c, id, token).await?.fenced(why)
}

async fn once(c: Context) -> Verdict {
    let (lease, token) = (c.take(State::Idle).await?, c.token());
    c.plain(Kind::Configure, &lease.id, &token).await?.accepted()?;
    c.plain(Kind::Configure, &lease.id, &token).await?.fenced("the token was used")?;
    c.reach(&lease.id, State::Configured).await?;
    Ok(())
}

async fn lower(c: Context, mark: (i64, i64), token: (i64, i64), why: &str) -> Verdict {
    let (lease, shard) = (c.take(State::Idle).await?, c.shard());
    c.plain(Kind::Configure, &lease.id, &shard.at(mark.0, mark.1)).await?.accepted()?;
    c.reach(&lease.id, State::Configured).await?;
    c.plain(Kind::Drain, &lease.id, &shard.at(token.0, token.1)).await?.fenced(why)
}

async fn higher(c: Context, mark: (i64, i64), token: (i64, i64)) -> Verdict {
    let (lease, shard) = (c.take(State::Idle).await?, c.shard());
    c.plain(Kind::Configure, &lease.id, &shard.at(mark.0, mark.1)).await?.accepted()?;
    c.reach(&lease.id, State::Configured).await?;
    c.plain(Kind::Drain, &lease.id, &shard.at(token.0, token.1)).await?.accepted()?;
    c.reach(&lease.id, State::Idle).await?;
    Ok(())
}

async fn per_machine(c: Context) -> Verdict {
    let (leases, shard) = (c.take_several(State::Idle, 2).await?, c.shard());
    c.plain(Kind::Configure, &leases[0].id, &shard.at(7, 7)).await?.accepted()?;
    c.plain(Kind::Configure, &leases[1].id, &shard.at(1, 1))
        .await?
        .passed_the_fence("it is another machine")?;
    for lease in &leases {
        c.settle(&lease.id).await?;
    }
    Ok(())
}

async fn per_shard(c: Context) -> Verdict {
    let (lease, one, other) = (c.take(State::Idle).await?, c.shard(), c.shard());
    passes(&c, &lease.id, &one.at(7, 7), "it is the first").await?;
    passes(&c, &lease.id, &other.at(1, 1), "it is another shard's").await
}

async fn before_existence(c: Context) -> Verdict {
    let (id, shard) = (c.unheard("machine"), c.shard());
    c.plain(Kind::Create, &id, &shard.at(2, 2)).await?.has_code(Code::NotFound, "the token is new")?;
    c.plain(Kind::Create, &id, &shard.at(2, 2)).await?.fenced("the token was used on this id")?;
    c.plain(Kind::Drain, &id, &shard.at(1, 9)).await?.fenced("the token is lower")
}

async fn before_idempotency(c: Context) -> Verdict {
    let (lease, shard) = (c.take(State::Idle).await?, c.shard());
    c.plain(Kind::Configure, &lease.id, &shard.at(4, 9)).await?.accepted()?;
    c.reach(&lease.id, State::Configured).await?;
    c.plain(Kind::Configure, &lease.id, &shard.at(4, 1)).await?.fenced("the token is lower")
}

async fn moves_on_refusal(c: Context) -> Verdict {
    let (lease, shard) = (c.take(State::Speculative).await?, c.shard());
    c.plain(Kind::Drain, &lease.id, &shard.at(2, 2)).await?.refused("the machine is SPECULATIVE")?;
    c.plain(Kind::Drain, &lease.id, &shard.at(2, 2)).await?.fenced("the refused call moved the mark")?;
    c.plain(Kind::Drain, &lease.id, &shard.at(2, 1)).await?.fenced("the refused call moved the mark")
}

async fn moves_on_repeat(c: Context) -> Verdict {
    let (lease, shard) = (c.take(State::Idle).await?, c.shard());
    c.plain(Kind::Configure, &lease.id, &shard.at(1, 1)).await?.accepted()?;
    c.reach(&lease.id, State::Configured).await?;
    c.plain(Kind::Configure, &lease.id, &shard.at(1, 5)).await?.accepted()?;
    c.plain(Kind::Drain, &lease.id, &shard.at(1, 5)).await?.fenced("the repeat moved the mark")?;
    c.plain(Kind::Drain, &lease.id, &shard.at(1, 3)).await?.fenced("the repeat moved the mark")
}

async fn refusal_keeps_mark(c: Context) -> Verdict {
    let (lease, shard) = (c.take(State::Idle).await?, c.shard());
    passes(&c, &lease.id, &shard.at(4, 9), "it is the first").await?;
    fenced(&c, &lease.id, &shard.at(4, 3), "it is lower").await?;
    fenced(&c, &lease.id, &shard.at(4, 9), "the mark still stands there").await?;
    passes(&c, &lease.id, &shard.at(4, 10), "it is higher").await
}

async fn fenced_changes_nothing(c: Context) -> Verdict {
    let (lease, shard) = (c.take(State::Configured).await?, c.shard());
    passes(&c, &lease.id, &shard.at(9, 9), "it is the first").await?;
    c.plain(Kind::Drain, &lease.id, &shard.at(9, 8)).await?.fenced("it is lower")?;
    unchanged(&c, &lease.machine).await
}

async fn no_token(c: Context) -> Verdict {
    let (lease, shard) = (c.take(State::Idle).await?, c.shard());
    passes(&c, &lease.id, &shard.at(7, 7), "it is the first").await?;
    for _ in 0..2 {
        passes(&c, &lease.id, &Token::none(), "there is no token").await?;
    }
    fenced(&c, &lease.id, &shard.at(7, 7), "calls without a token leave marks alone").await
}

async fn zero_is_a_token(c: Context) -> Verdict {
    let (lease, shard) = (c.take(State::Idle).await?, c.shard());
    passes(&c, &lease.id, &shard.at(0, 0), "there is no mark yet").await?;
    fenced(&c, &lease.id, &shard.at(0, 0), "it was used").await?;
    passes(&c, &lease.id, &shard.at(0, 1), "it is higher").await
}

async fn nameless(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    // Every run shares the empty name: start above whatever earlier runs have left.
    let sequence = i64::try_from(crate::clock::unix_nanos()).unwrap_or(i64::MAX - 1);
    let token = Token { shard_id: String::new(), epoch: 3, sequence };
    passes(&c, &lease.id, &token, "time has passed since any earlier run").await?;
    fenced(&c, &lease.id, &token, "it was used").await
}

async fn negative(c: Context) -> Verdict {
    let (lease, shard) = (c.take(State::Idle).await?, c.shard());
    for (epoch, sequence, passes) in [
        (-5, -1, true),
        (-5, -2, false),
        (-5, 0, true),
        (-4, -9, true),
        (-5, 9, false),
        (0, 0, true),
        (-1, 5, false),
    ] {
        let answer = probe(&c, &lease.id, &shard.at(epoch, sequence)).await?;
        let code = answer.result.as_ref().err().map(tonic::Status::code);
        ensure(code != Some(Code::InvalidArgument), "negative numbers are not judged", || answer.in_words())?;
        if passes {
            answer.passed_the_fence("it is higher")?;
        } else {
            answer.fenced("it is lower")?;
        }
    }
    Ok(())
}

async fn extremes(c: Context) -> Verdict {
    let (lease, shard) = (c.take(State::Idle).await?, c.shard());
    passes(&c, &lease.id, &shard.at(i64::MIN, i64::MIN), "there is no mark yet").await?;
    fenced(&c, &lease.id, &shard.at(i64::MIN, i64::MIN), "it was used").await?;
    passes(&c, &lease.id, &shard.at(i64::MIN, i64::MAX), "it is higher").await?;
    passes(&c, &lease.id, &shard.at(i64::MAX, i64::MIN), "it is higher").await?;
    fenced(&c, &lease.id, &shard.at(i64::MIN, i64::MAX), "it is lower").await?;
    passes(&c, &lease.id, &shard.at(i64::MAX, i64::MAX), "it is the highest").await?;
    fenced(&c, &lease.id, &shard.at(i64::MAX, i64::MAX), "it was used").await?;
    fenced(&c, &lease.id, &shard.at(1, 1), "it is lower").await
}

async fn across_kinds(c: Context) -> Verdict {
    let (lease, token) = (c.take(State::Idle).await?, c.token());
    c.plain(Kind::Configure, &lease.id, &token).await?.accepted()?;
    let machine = c.reach(&lease.id, State::Configured).await?;
    for kind in [Kind::Drain, Kind::Create] {
        c.plain(kind, &lease.id, &token).await?.fenced("the token was used by Configure")?;
    }
    unchanged(&c, &machine).await
}

async fn byte_by_byte(c: Context) -> Verdict {
    let (lease, shard) = (c.take(State::Idle).await?, c.shard());
    passes(&c, &lease.id, &shard.at(5, 5), "it is the first").await?;
    for other in [
        shard.id.to_uppercase(),
        format!("{} ", shard.id),
        format!(" {}", shard.id),
        format!("{}\0", shard.id),
    ] {
        let other = Shard::new(other);
        passes(&c, &lease.id, &other.at(1, 1), "it is another shard's").await?;
        fenced(&c, &lease.id, &other.at(1, 1), "it was used").await?;
    }
    fenced(&c, &lease.id, &shard.at(5, 5), "it was used").await
}

async fn each_kind(c: Context, kind: Kind) -> Verdict {
    c.needs(kind).await?;
    let (lease, shard) = (c.take(kind.from()).await?, c.shard());
    // Illegal wherever this move is legal, so that the machine stays where it is.
    let other = if kind == Kind::Drain { Kind::Create } else { Kind::Drain };
    c.plain(other, &lease.id, &shard.at(6, 6)).await?.passed_the_fence("it is the first")?;
    for (epoch, sequence) in [(6, 6), (6, 5), (5, 7)] {
        c.plain(kind, &lease.id, &shard.at(epoch, sequence)).await?.fenced("it is not above the mark")?;
    }
    unchanged(&c, &lease.machine).await
}

async fn reserved(c: Context) -> Verdict {
    for state in [State::Speculative, State::Idle, State::Configured] {
        let lease = c.take(state).await?;
        for kind in Kind::ALL.into_iter().filter(|kind| kind.from() != state) {
            let answer = c.plain(kind, &lease.id, &Token::none()).await?;
            answer.passed_the_fence(&format!("there is no token; the machine is {}", state_name(state)))?;
        }
    }
    Ok(())
}

async fn race(c: Context) -> Verdict {
    let (lease, shard) = (c.take(State::Idle).await?, c.shard());
    let mut sequences: Vec<i64> = (1..=16).collect();
    c.random("order").shuffle(&mut sequences);
    let mut tasks = JoinSet::new();
    for sequence in sequences {
        let (c, id, token) = (c.clone(), lease.id.clone(), shard.at(1, sequence));
        tasks.spawn(async move { probe(&c, &id, &token).await });
    }
    while let Some(joined) = tasks.join_next().await {
        joined.expect("a probe does not panic")?;
    }
    for sequence in [1, 15, 16] {
        fenced(&c, &lease.id, &shard.at(1, sequence), "16 was used").await?;
    }
    passes(&c, &lease.id, &shard.at(1, 17), "it is higher").await
}

async fn mark_of_create(c: Context) -> Verdict {
    let (lease, shard) = (c.take(State::Speculative).await?, c.shard());
    c.plain(Kind::Create, &lease.id, &shard.at(2, 2)).await?.accepted()?;
    c.plain(Kind::Create, &lease.id, &shard.at(2, 2)).await?.fenced("the token was used")?;
    c.reach(&lease.id, State::Idle).await?;
    c.plain(Kind::Configure, &lease.id, &shard.at(2, 2)).await?.fenced("the token was used")
}

async fn reads_pass(c: Context) -> Verdict {
    let (lease, shard) = (c.take(State::Idle).await?, c.shard());
    passes(&c, &lease.id, &shard.at(2, 2), "it is the first").await?;
    fenced(&c, &lease.id, &shard.at(2, 2), "it was used").await?;
    c.get(&lease.id).await?;
    c.list_all().await?;
    Ok(())
}
