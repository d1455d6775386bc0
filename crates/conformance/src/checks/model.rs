//! MODEL: random calls, drawn from the seed, each answer held against the reference.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_proto::v1alpha1::{ListFilter, Machine, TransitionAck};
use tokio::task::JoinSet;
use tonic::Status;

use crate::behaviour::checks;
use crate::checks::life::unpriced;
use crate::clock::Moment;
use crate::context::Context;
use crate::moves::{CLUSTER, Kind, Order, State, Token, state_of};
use crate::random::Random;
use crate::reference::Reference;
use crate::supply::Lease;
use crate::verdict::{Ended, Verdict, ensure, failed, skipped};

checks! { Model:
    "MODEL-001" Core Alone "one machine under random calls" => one_machine():
        "legal and illegal moves and reads on one machine are answered as the reference allows",
        "some sequence of calls breaks the contract", "2.1";
    "MODEL-002" Core Alone "several machines, callers and stale tokens" => several():
        "calls of three callers with new, used and stale tokens on four machines are answered as the reference allows",
        "some sequence of calls breaks the contract", "2.1";
    "MODEL-003" Core Alone "random metadata" => odd_metadata():
        "bindings with random keys and values come back exactly, at every look",
        "some text is not given back as it came", "2.1, 2.4";
    "MODEL-004" Optional Alone "a mirror fed by deltas equals the inventory" => mirror():
        "a copy of the fleet that only ever takes deltas is, at rest, the same as a full list",
        "an incremental shard drifts away from the truth", "2.2";
    "MODEL-005" Core Alone "racing calls have an order that explains them" => races():
        "for each burst of four calls at once there is an order in which the reference gives the same answers",
        "two calls at once do what no calls in a row can do", "2.1 details";
    "MODEL-006" Core Alone "random calls with crashes in between" => with_crashes():
        "marks, operations, bindings and states after each restart are what the reference allows",
        "some moment of a crash loses what was acknowledged", "2.1 restart";
}

/// What a random walk is made of.
#[derive(Clone, Copy)]
struct Walk {
    machines: usize,
    callers: usize,
    odd_metadata: bool,
    crashes: usize,
}

async fn one_machine(c: Context) -> Verdict {
    walk(&c, Walk { machines: 1, callers: 1, odd_metadata: false, crashes: 0 }).await
}

async fn several(c: Context) -> Verdict {
    walk(&c, Walk { machines: 4, callers: 3, odd_metadata: false, crashes: 0 }).await
}

async fn odd_metadata(c: Context) -> Verdict {
    walk(&c, Walk { machines: 2, callers: 1, odd_metadata: true, crashes: 0 }).await
}

async fn with_crashes(c: Context) -> Verdict {
    if !c.run.config.restart.is_possible() {
        return skipped("no restart command was given (--restart-command)");
    }
    walk(&c, Walk { machines: 3, callers: 2, odd_metadata: true, crashes: 2 }).await
}

/// Machines to play with, some free, some slots.
async fn players(c: &Context, count: usize) -> Result<(Vec<Lease>, Vec<Reference>), Ended> {
    let deletes = c.deletes().await?;
    let mut leases = Vec::new();
    for number in 0..count {
        let state = if number % 2 == 0 { State::Speculative } else { State::Idle };
        leases.push(match c.take(state).await {
            Err(Ended::Skipped(_)) => c.take(State::Idle).await?,
            other => other?,
        });
    }
    let references = leases.iter().map(|lease| Reference::new(&lease.machine, deletes)).collect();
    Ok((leases, references))
}

async fn walk(c: &Context, walk: Walk) -> Verdict {
    let mut random = c.random("walk");
    let (_leases, mut references) = players(c, walk.machines).await?;
    let shards: Vec<String> = (0..walk.callers).map(|_| c.shard().id).collect();
    let (mut operations, started) = (BTreeSet::new(), Moment::now());
    let limits = c.limits().clone();
    let mut steps = 0;
    while steps < limits.model_steps && started.elapsed() < limits.model {
        let chosen = random.below(references.len());
        let reference = &mut references[chosen];
        match random.below(100) {
            0..60 => {
                let order = order(&mut random, reference.guess(), walk.odd_metadata);
                let shard = random.pick(&shards).clone();
                let token = token(&mut random, &shard, reference.mark(&shard));
                let answer = c.act(&order, &reference.id, &token).await?;
                reference.judge(&order, &token, &answer.result, &mut operations)?;
            }
            60..80 => reference.observe(&c.get(&reference.id.clone()).await?, "Get")?,
            80..84 => observe_all(&mut references, &c.list_all().await?.machines)?,
            _ => {
                let machine = c.settle(&reference.id.clone()).await?;
                reference.observe(&machine, "Get at rest")?;
            }
        }
        steps += 1;
        if walk.crashes > 0 && steps % (limits.model_steps / (walk.crashes + 1)).max(1) == 0 {
            c.restart().await?;
            references.iter_mut().for_each(Reference::crash);
            observe_all(&mut references, &c.list_all().await?.machines)?;
        }
    }
    c.note(format!("{steps} steps in {:.1?}", started.elapsed()));
    if walk.crashes > 0 && steps < limits.model_steps / (walk.crashes + 1) {
        return skipped("the time for a model check was over before the first restart (--model-time)");
    }
    Ok(())
}

fn observe_all(references: &mut [Reference], machines: &[Machine]) -> Verdict {
    for reference in references {
        match machines.iter().find(|machine| machine.id == reference.id) {
            Some(machine) => reference.observe(machine, "List")?,
            None => return failed(format!("{:?} is listed", reference.id), "it is not"),
        }
    }
    Ok(())
}

/// A move: every other time the one that is legal if the machine stands still.
fn order(random: &mut Random, state: State, odd: bool) -> Order {
    let legal: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| kind.from() == state).collect();
    let kind =
        if random.percent(50) && !legal.is_empty() { *random.pick(&legal) } else { *random.pick(&Kind::ALL) };
    if kind != Kind::Configure {
        return Order::plain(kind);
    }
    let cluster = format!("{CLUSTER}-{}", random.below(3));
    let entries = random.below(4);
    let metadata = (0..entries).map(|_| (text(random, odd), text(random, odd))).collect();
    Order::noted(&cluster, metadata)
}

fn text(random: &mut Random, odd: bool) -> String {
    const ODD: [char; 12] =
        ['\0', '\n', ' ', '\t', '\u{1b}', '\u{7f}', '"', '\\', 'é', '\u{301}', '🦀', '\u{10ffff}'];
    let length = random.below(6);
    let letter = |random: &mut Random| char::from(b'a' + random.below(26) as u8);
    (0..length).map(|_| if odd && random.percent(60) { *random.pick(&ODD) } else { letter(random) }).collect()
}

/// Mostly a higher token, sometimes the same or a lower one, sometimes none.
fn token(random: &mut Random, shard_id: &str, mark: Option<(i64, i64)>) -> Token {
    let (epoch, sequence) = mark.unwrap_or_else(|| (random.small() - 2, random.small() - 2));
    let step = random.small() % 3;
    let (epoch, sequence) = match random.below(100) {
        0..60 => (epoch, sequence + 1 + step),
        60..70 => (epoch + 1, sequence - 10 * step),
        70..80 => (epoch, sequence),
        80..88 => (epoch, sequence - 1 - step),
        88..94 => (epoch - 1, sequence + 100),
        _ => return Token::none(),
    };
    Token { shard_id: shard_id.into(), epoch, sequence }
}

async fn mirror(c: Context) -> Verdict {
    c.quiesce().await?;
    let (leases, _) = players(&c, 4).await?;
    let first = c.list_all().await?;
    if first.revision.is_empty() {
        return skipped("the provider gives no revision");
    }
    let mut mirror: BTreeMap<String, Machine> =
        first.machines.into_iter().map(|m| (m.id.clone(), m)).collect();
    let (mut cursor, mut random, started) = (first.revision, c.random("mirror"), Moment::now());
    for _ in 0..c.limits().model_steps / 2 {
        let lease = random.pick(&leases);
        let order = order(&mut random, state_of(&mirror[&lease.id]), false);
        let _ = c.act(&order, &lease.id, &c.token()).await?;
        if random.percent(30) {
            c.settle(&lease.id).await?;
        }
        if random.percent(60) {
            cursor = absorb(&c, &mut mirror, cursor).await?;
        }
        if started.elapsed() > c.limits().model {
            break;
        }
    }
    let truth = c.quiesce().await?;
    absorb(&c, &mut mirror, cursor).await?;
    for (id, machine) in &truth {
        let copy = mirror.get(id).map(unpriced);
        ensure(copy == Some(unpriced(machine)), format!("{machine:?}"), || {
            format!("in the mirror: {copy:?}")
        })?;
    }
    ensure(mirror.len() == truth.len(), format!("{} machines", truth.len()), || {
        format!("{} in the mirror", mirror.len())
    })
}

/// Takes a delta into the mirror and gives the next cursor.
async fn absorb(
    c: &Context,
    mirror: &mut BTreeMap<String, Machine>,
    since_revision: Vec<u8>,
) -> Result<Vec<u8>, Ended> {
    let list = c.list(ListFilter { since_revision, ..ListFilter::default() }).await?;
    mirror.extend(list.machines.into_iter().map(|machine| (machine.id.clone(), machine)));
    Ok(list.revision)
}

type Answered = (Order, Token, Result<TransitionAck, Status>);

async fn races(c: Context) -> Verdict {
    let mut random = c.random("races");
    let (_leases, mut references) = players(&c, 2).await?;
    let shards: Vec<String> = (0..2).map(|_| c.shard().id).collect();
    let (mut operations, started) = (BTreeSet::new(), Moment::now());
    let mut bursts = 0;
    while bursts < c.limits().model_steps / 10 + 1 && started.elapsed() < c.limits().model {
        let chosen = random.below(references.len());
        let reference = &mut references[chosen];
        let mut tasks = JoinSet::new();
        for _ in 0..4 {
            let order = order(&mut random, reference.guess(), false);
            let shard = random.pick(&shards).clone();
            let token = token(&mut random, &shard, reference.mark(&shard));
            let (c, id) = (c.clone(), reference.id.clone());
            tasks.spawn(async move {
                c.act(&order, &id, &token).await.map(|answer| (order, token, answer.result))
            });
        }
        let mut answers: Vec<Answered> = Vec::new();
        while let Some(joined) = tasks.join_next().await {
            answers.push(joined.expect("a call does not panic")?);
        }
        // Several orders may explain the answers; the one to go on with must also explain where it ended.
        let rest = c.settle(&reference.id.clone()).await?;
        let Some((explained, seen)) = explain(reference, &answers, &operations, &rest) else {
            let list: Vec<String> = answers.iter().map(in_words).collect();
            let list = list.join("; ");
            let (_, blamed) = blame(reference, &answers, &operations, 0);
            // If some order explains every answer, it is the machine at rest that does not follow from them.
            return if blamed.is_empty() {
                let expected = "a machine at rest that follows from the four answers";
                failed(expected, format!("{list}; at rest {:?}", state_of(&rest)))
            } else {
                failed(
                    "an order of the four calls that explains their answers",
                    format!("{blamed}; all four: {list}"),
                )
            };
        };
        (*reference, operations) = (explained, seen);
        bursts += 1;
    }
    c.note(format!("{bursts} bursts in {:.1?}", started.elapsed()));
    Ok(())
}

/// Tries every order of the calls.
fn explain(
    reference: &Reference,
    answers: &[Answered],
    operations: &BTreeSet<String>,
    rest: &Machine,
) -> Option<(Reference, BTreeSet<String>)> {
    if answers.is_empty() {
        let mut reference = reference.clone();
        return reference.observe(rest, "Get at rest").is_ok().then(|| (reference, operations.clone()));
    }
    (0..answers.len()).find_map(|first| {
        let (mut reference, mut operations) = (reference.clone(), operations.clone());
        let (order, token, answer) = &answers[first];
        reference.judge(order, token, answer, &mut operations).ok()?;
        let others: Vec<Answered> = answers
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != first)
            .map(|(_, answer)| answer.clone())
            .collect();
        explain(&reference, &others, &operations, rest)
    })
}

/// The first answer that no order of the calls allows: of the orders that explain most, what stops them. Empty if one
/// explains all.
fn blame(
    reference: &Reference,
    answers: &[Answered],
    operations: &BTreeSet<String>,
    explained: usize,
) -> (usize, String) {
    let mut best: Option<(usize, String)> = None;
    for (place, answered) in answers.iter().enumerate() {
        let (mut reference, mut operations) = (reference.clone(), operations.clone());
        let (order, token, answer) = answered;
        let found = match reference.judge(order, token, answer, &mut operations) {
            Ok(()) => {
                let mut others = answers.to_vec();
                drop(others.remove(place));
                blame(&reference, &others, &operations, explained + 1)
            }
            Err(Ended::Failed { expected, got }) => {
                (explained, format!("{}: expected {expected}, got {got}", in_words(answered)))
            }
            Err(Ended::Skipped(_)) => continue,
        };
        if found.1.is_empty() {
            return found;
        }
        if best.as_ref().is_none_or(|(most, _)| found.0 > *most) {
            best = Some(found);
        }
    }
    best.unwrap_or((explained, String::new()))
}

fn in_words((order, token, answer): &Answered) -> String {
    let answer = match answer {
        Ok(ack) => format!("OK {:?} {:?}", ack.operation_id, ack.machine.as_ref().map(state_of)),
        Err(status) => crate::calls::in_words(status),
    };
    format!("{}({token}) -> {answer}", order.kind())
}
