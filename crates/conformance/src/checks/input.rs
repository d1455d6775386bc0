//! INPUT: whatever arrives, the provider answers, changes nothing it should not, and goes on serving.

use std::time::Duration;

use bigfleet_proto::v1alpha1::{CreateRequest, ListFilter, Machine, MachineList, TransitionAck};
use prost::Message;
use tonic::Code;

use crate::behaviour::checks;
use crate::calls::in_words;
use crate::checks::life::unchanged;
use crate::checks::list::{capped_at, ids, whole};
use crate::clock;
use crate::context::Context;
use crate::moves::{CLUSTER, Kind, Order, State, Token, state_name, state_of};
use crate::raw::field;
use crate::verdict::{Ended, Verdict, ensure, failed};

const METHODS: [&str; 6] = ["Create", "Configure", "Drain", "Delete", "Get", "List"];

checks! { Input:
    "INPUT-001" Core Beside "Get without an id is INVALID_ARGUMENT" => empty_get(): "the code is INVALID_ARGUMENT", "a bug in a caller looks like a missing machine", "2.1 step 1";
    "INPUT-002" Core Beside "Create without an id is INVALID_ARGUMENT" => empty_id(Kind::Create): "the code is INVALID_ARGUMENT, with and without a token", "a bug in a caller looks like a missing machine", "2.1 step 1";
    "INPUT-003" Core Beside "Configure without an id is INVALID_ARGUMENT" => empty_id(Kind::Configure): "the code is INVALID_ARGUMENT, with and without a token", "a bug in a caller looks like a missing machine", "2.1 step 1";
    "INPUT-004" Core Beside "Drain without an id is INVALID_ARGUMENT" => empty_id(Kind::Drain): "the code is INVALID_ARGUMENT, with and without a token", "a bug in a caller looks like a missing machine", "2.1 step 1";
    "INPUT-005" Core Beside "Delete without an id is INVALID_ARGUMENT" => empty_id(Kind::Delete): "the code is INVALID_ARGUMENT, also where Delete is not supported", "a bug in a caller looks like a missing machine", "2.1 steps 1 and 2";
    "INPUT-006" Core Beside "an empty id leaves no mark" => empty_id_leaves_no_mark():
        "the same token with an empty id is INVALID_ARGUMENT twice, never fenced", "a bug in a caller pages somebody", "2.1 steps 1 and 3";
    "INPUT-007" Core Beside "hostile ids are not found" => hostile_ids():
        "ids with NUL, control characters, paths, quotes and odd Unicode are refused by all calls, never FAILED_PRECONDITION",
        "an id reaches a shell, a path or a query", "2.1";
    "INPUT-008" Core Beside "an id of a megabyte is refused" => huge_id(): "all calls refuse it and the provider goes on", "one call takes the provider down", "2.1";
    "INPUT-009" Core Beside "odd shard ids work or are refused" => odd_shards():
        "shard ids with NUL, newlines, Unicode and 4,000 bytes pass the fence or are refused plainly",
        "a shard with an odd name is taken for a zombie", "2.1 step 3";
    "INPUT-010" Core Beside "large metadata is kept whole or refused whole" => large_metadata():
        "two megabytes of metadata come back exactly, or Configure is refused without effect", "notes are cut in the middle", "2.1 details";
    "INPUT-011" Core Beside "a bootstrap blob of any bytes is taken" => any_blob():
        "a blob with all 256 byte values is accepted", "nodes with a binary bootstrap never join", "2 ConfigureRequest";
    "INPUT-012" Core Beside "a large bootstrap blob is taken or refused" => large_blob():
        "a blob of one megabyte is accepted, or refused without effect", "a machine hangs between two states", "2 ConfigureRequest";
    "INPUT-013" Core Beside "a message above 4 MiB does no harm" => large_message():
        "it is served or refused, and the provider goes on", "one call takes the provider down", "0 message limit";
    "INPUT-014" Core Beside "a negative max_results does no harm" => negative_cap():
        "it is refused or means no cap", "one bug in a caller hides the fleet", "2.2";
    "INPUT-015" Optional Beside "an unknown state in a filter matches nothing" => unknown_state():
        "states of 99 list nothing, or are refused", "a newer shard gets machines it did not ask for", "2.2";
    "INPUT-016" Core Beside "a filter of ten thousand states does no harm" => many_states():
        "IDLE ten thousand times lists each machine once", "one call takes the provider down", "2.2";
    "INPUT-017" Core Beside "ids that are not UTF-8 are refused" => not_utf8():
        "all calls that take an id refuse one, and the provider goes on", "damaged text enters the store", "0 proto3";
    "INPUT-018" Core Beside "a cluster that is not UTF-8 is refused" => cluster_not_utf8():
        "Configure with one is refused, and the machine is as before", "damaged text enters the store", "0 proto3";
    "INPUT-019" Core Beside "a message cut short is refused" => cut_short():
        "every method refuses it, and the provider goes on", "half a message is obeyed", "0 proto3";
    "INPUT-020" Core Beside "unknown fields are ignored" => unknown_fields():
        "Get and List with a field 99 answer as without", "a newer shard cannot talk to the provider", "0 compatibility bar";
    "INPUT-021" Core Beside "retired fields are ignored" => retired_fields():
        "List with the old zone and instance_type filters answers as without, Create with the old labels is not harmed",
        "an older shard cannot talk to the provider", "2 reserved fields";
    "INPUT-022" Optional Beside "an old Delete is understood" => old_delete():
        "Delete with only a machine id, as in MachineRef, is accepted", "an older shard cannot give machines back", "2 DeleteRequest";
    "INPUT-023" Core Beside "an unknown method is UNIMPLEMENTED" => unknown_method():
        "the code is UNIMPLEMENTED", "a newer shard cannot tell what is missing", "0";
    "INPUT-024" Core Beside "a negative grace period does no harm" => negative_grace():
        "Drain is refused, or comes to IDLE", "a node hangs between two states", "2 DrainRequest";
    "INPUT-025" Core Beside "an endless grace period does no harm" => endless_grace():
        "Drain with the largest number is answered, and the provider goes on", "arithmetic overflows and the provider dies", "2 DrainRequest";
    "INPUT-026" Optional Beside "Configure without a cluster binds nothing" => no_cluster():
        "it is refused and the machine stays IDLE", "a machine is bound to nobody, for ever", "2 Machine.cluster";
    "INPUT-027" Core Beside "random bytes do no harm" => random_bytes():
        "a hundred random messages to each method are answered, and the inventory stays", "one call takes the provider down", "0";
    "INPUT-028" Core Beside "a call that is given up does no harm" => given_up():
        "a Create whose caller hangs up leaves the machine in an honest state from which it can go on",
        "half a move is left behind", "2.1 step 7";
    "INPUT-029" Core Beside "tokens of any size do no harm on any move" => token_extremes():
        "the largest and smallest numbers with an unknown machine are NOT_FOUND or fenced, on every move",
        "arithmetic overflows and the provider dies", "2.1 step 3";
}

/// The provider still answers.
async fn alive(c: &Context) -> Verdict {
    c.list(capped_at(1)).await.map(drop)
}

async fn empty_get(c: Context) -> Verdict {
    let code = c.look_up("").await?.map_err(|status| status.code());
    ensure(code == Err(Code::InvalidArgument), "INVALID_ARGUMENT", || format!("{code:?}"))
}

async fn empty_id(c: Context, kind: Kind) -> Verdict {
    for token in [c.token(), Token::none()] {
        c.plain(kind, "", &token).await?.has_code(Code::InvalidArgument, "there is no machine id")?;
    }
    Ok(())
}

async fn empty_id_leaves_no_mark(c: Context) -> Verdict {
    let token = c.token();
    for _ in 0..2 {
        c.plain(Kind::Create, "", &token)
            .await?
            .has_code(Code::InvalidArgument, "the id is looked at first")?;
    }
    Ok(())
}

/// Every call that takes an id refuses this one, not as fenced.
async fn refused_everywhere(c: &Context, id: &str) -> Verdict {
    let found = c.look_up(id).await?;
    ensure(found.is_err(), "Get refuses it", || format!("{found:?}"))?;
    for kind in Kind::ALL {
        c.plain(kind, id, &c.token()).await?.refused("there is no such machine")?;
    }
    alive(c).await
}

async fn hostile_ids(c: Context) -> Verdict {
    let ids = [
        "\0",
        "a\0b",
        "../../etc/passwd",
        "'; DROP TABLE machines; --",
        "$(reboot)",
        "\u{202e}abc",
        "%s%n",
        " ",
        "\n",
        "💥",
    ];
    for id in ids {
        refused_everywhere(&c, id).await?;
    }
    Ok(())
}

async fn huge_id(c: Context) -> Verdict {
    refused_everywhere(&c, &"x".repeat(1 << 20)).await
}

async fn odd_shards(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let base = c.shard().id;
    for odd in ["\0".to_owned(), "\n\r\t".into(), "🦀".into(), "/../".into(), "x".repeat(4000)] {
        let token = Token { shard_id: format!("{base}{odd}"), epoch: 1, sequence: 1 };
        c.plain(Kind::Create, &lease.id, &token)
            .await?
            .passed_the_fence("no shard of this name was ever here")?;
    }
    unchanged(&c, &lease.machine).await
}

/// Configure does all it says or nothing.
async fn all_or_nothing(c: &Context, order: Order) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let answer = c.act(&order, &lease.id, &c.token()).await?;
    if answer.result.is_err() {
        answer.refused("only the fence may say FAILED_PRECONDITION")?;
        return unchanged(c, &lease.machine).await;
    }
    let machine = c.reach(&lease.id, State::Configured).await?;
    if let Order::Configure { metadata, .. } = &order {
        ensure(machine.shard_metadata == *metadata, "the metadata as it was sent", || {
            format!("{} of {} entries", machine.shard_metadata.len(), metadata.len())
        })?;
    }
    c.step(Kind::Drain, &lease.id).await?;
    Ok(())
}

async fn large_metadata(c: Context) -> Verdict {
    let notes = (0..20).map(|number| (format!("key-{number}"), "v".repeat(100 << 10))).collect();
    all_or_nothing(&c, Order::noted(CLUSTER, notes)).await
}

async fn any_blob(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let blob = (0..=255).collect();
    let order =
        Order::Configure { cluster: CLUSTER.into(), metadata: std::collections::BTreeMap::default(), blob };
    c.walk(&order, &lease.id).await?;
    Ok(())
}

async fn large_blob(c: Context) -> Verdict {
    let metadata = std::collections::BTreeMap::default();
    all_or_nothing(&c, Order::Configure { cluster: CLUSTER.into(), metadata, blob: vec![7; 1 << 20] }).await
}

async fn large_message(c: Context) -> Verdict {
    let filter = ListFilter { since_revision: vec![b'x'; 5 << 20], ..ListFilter::default() };
    // A server that refuses the size may well hang up instead of reading on.
    match c.try_list(filter).await {
        Ok(Ok(list)) => ensure(!list.machines.is_empty(), "the whole inventory", || "nothing".into())?,
        Ok(Err(_)) | Err(_) => c.note("refused"),
    }
    let mut patience = clock::Patience::new(c.limits().call, c.limits().poll);
    while alive(&c).await.is_err() {
        if !patience.wait().await {
            return failed("the provider goes on serving", "it does not answer any more");
        }
    }
    Ok(())
}

async fn negative_cap(c: Context) -> Verdict {
    for cap in [-1, i32::MIN] {
        match c.try_list(capped_at(cap)).await? {
            Ok(_) => whole(&c, capped_at(cap)).await?,
            Err(status) => {
                let code = status.code();
                ensure(code == Code::InvalidArgument, "INVALID_ARGUMENT or no cap", || in_words(&status))?;
            }
        }
    }
    alive(&c).await
}

async fn unknown_state(c: Context) -> Verdict {
    match c.try_list(ListFilter { states: vec![99, -1], ..ListFilter::default() }).await? {
        Ok(list) => ensure(list.machines.is_empty(), "no machine", || format!("{}", list.machines.len()))?,
        Err(status) => {
            ensure(status.code() == Code::InvalidArgument, "INVALID_ARGUMENT", || in_words(&status))?;
        }
    }
    alive(&c).await
}

async fn many_states(c: Context) -> Verdict {
    let list =
        c.list(ListFilter { states: vec![State::Idle as i32; 10_000], ..ListFilter::default() }).await?;
    let distinct = ids(&list.machines).len();
    ensure(distinct == list.machines.len(), "each machine once", || {
        format!("{distinct} of {}", list.machines.len())
    })
}

/// Sends bytes that must be refused by each method.
async fn refuses(c: &Context, methods: &[&str], bytes: &[u8]) -> Verdict {
    for method in methods {
        match c.send_bytes(method, bytes.to_vec()).await? {
            Ok(_) => return failed(format!("{method} refuses these {} bytes", bytes.len()), "OK"),
            Err(status) => {
                let code = status.code();
                ensure(
                    code != Code::FailedPrecondition,
                    format!("{method}: not FAILED_PRECONDITION"),
                    || in_words(&status),
                )?;
            }
        }
    }
    alive(c).await
}

async fn not_utf8(c: Context) -> Verdict {
    refuses(&c, &METHODS[..5], &field(1, b"conformance-\xff\xfe")).await
}

async fn cluster_not_utf8(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let bytes = [field(1, lease.id.as_bytes()), field(2, b"conformance-cluster-\xc3\x28")].concat();
    refuses(&c, &["Configure"], &bytes).await?;
    unchanged(&c, &lease.machine).await
}

async fn cut_short(c: Context) -> Verdict {
    // Announces a hundred bytes of field 1 and brings three. On List field 1 is the states, packed.
    refuses(&c, &METHODS, &[0x0a, 100, b'a', b'b', b'c']).await
}

async fn send<T: Message + Default>(c: &Context, method: &str, bytes: Vec<u8>) -> Result<T, Ended> {
    match c.send_bytes(method, bytes).await? {
        Ok(answer) => T::decode(answer.as_slice())
            .or_else(|error| failed("a message of the contract", error.to_string())),
        Err(status) => failed(format!("{method} answers"), in_words(&status)),
    }
}

async fn unknown_fields(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let strange = field(99, b"from the future");
    let machine: Machine = send(&c, "Get", [field(1, lease.id.as_bytes()), strange.clone()].concat()).await?;
    ensure(machine.id == lease.id, format!("machine {:?}", lease.id), || format!("{:?}", machine.id))?;
    let (list, all): (MachineList, _) = (send(&c, "List", strange).await?, c.list_all().await?);
    ensure(list.machines.len() == all.machines.len(), "the whole inventory", || {
        format!("{}", list.machines.len())
    })
}

async fn retired_fields(c: Context) -> Verdict {
    let old = [field(2, b"no-such-zone"), field(3, b"no-such-type")].concat();
    let (list, all): (MachineList, _) = (send(&c, "List", old).await?, c.list_all().await?);
    ensure(list.machines.len() == all.machines.len(), "the whole inventory", || {
        format!("{}", list.machines.len())
    })?;
    let lease = c.take(State::Speculative).await?;
    let token = c.token();
    let create = CreateRequest {
        machine_id: lease.id.clone(),
        shard_id: token.shard_id,
        shard_epoch: token.epoch,
        sequence_number: token.sequence,
    };
    let labels = field(2, &[field(1, b"old"), field(2, b"label")].concat());
    let _: TransitionAck = send(&c, "Create", [create.encode_to_vec(), labels].concat()).await?;
    c.reach(&lease.id, State::Idle).await?;
    Ok(())
}

async fn old_delete(c: Context) -> Verdict {
    c.needs_delete().await?;
    let lease = c.take(State::Idle).await?;
    let _: TransitionAck = send(&c, "Delete", field(1, lease.id.as_bytes())).await?;
    c.reach(&lease.id, State::Speculative).await?;
    Ok(())
}

async fn unknown_method(c: Context) -> Verdict {
    let code = c.send_bytes("Watch", Vec::new()).await?.map_or_else(|status| status.code(), |_| Code::Ok);
    ensure(code == Code::Unimplemented, "UNIMPLEMENTED", || format!("{code:?}"))
}

async fn negative_grace(c: Context) -> Verdict {
    let lease = c.take(State::Configured).await?;
    let answer = c.act(&Order::Drain { grace_secs: i64::MIN }, &lease.id, &c.token()).await?;
    if answer.result.is_err() {
        answer.refused("only the fence may say FAILED_PRECONDITION")?;
        return unchanged(&c, &lease.machine).await;
    }
    c.reach(&lease.id, State::Idle).await?;
    Ok(())
}

async fn endless_grace(c: Context) -> Verdict {
    let lease = c.take(State::Configured).await?;
    let id = lease.id.clone();
    let answer = c.act(&Order::Drain { grace_secs: i64::MAX }, &id, &c.token()).await?;
    answer.passed_the_fence("the token is new")?;
    let state = state_of(&c.get(&id).await?);
    let honest = [State::Draining, State::Idle, State::Configured].contains(&state);
    // It may drain for ever now, and rightly so: nobody else should wait for it.
    lease.keep();
    ensure(honest, "DRAINING, IDLE or still CONFIGURED", || state_name(state).into())?;
    alive(&c).await
}

async fn no_cluster(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    c.act(&Order::to(""), &lease.id, &c.token()).await?.refused("there is no cluster to join")?;
    unchanged(&c, &lease.machine).await
}

async fn random_bytes(c: Context) -> Verdict {
    let mut random = c.random("bytes");
    let before = c.list_all().await?;
    for _ in 0..100 {
        for method in METHODS {
            let length = random.below(64);
            let bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
            let _ = c.send_bytes(method, bytes).await?;
        }
    }
    let after = c.list_all().await?;
    ensure(ids(&before.machines) == ids(&after.machines), "the same machines", || {
        format!("{} machines", after.machines.len())
    })
}

async fn given_up(c: Context) -> Verdict {
    for micros in [0, 50, 200, 1000] {
        let lease = c.take(State::Speculative).await?;
        let order = Order::Create;
        let token = c.token();
        let call = c.act(&order, &lease.id, &token);
        let _ = clock::within(Duration::from_micros(micros), call).await;
        let machine = c.settle(&lease.id).await?;
        let state = state_of(&machine);
        ensure([State::Speculative, State::Idle].contains(&state), "SPECULATIVE or IDLE", || {
            state_name(state).into()
        })?;
        // Whether it arrived or not, asking again works.
        c.step(Kind::Create, &lease.id).await?;
    }
    Ok(())
}

async fn token_extremes(c: Context) -> Verdict {
    for kind in Kind::ALL {
        for (epoch, sequence) in [(i64::MIN, i64::MAX), (i64::MAX, i64::MIN), (-1, -1)] {
            let token = c.shard().at(epoch, sequence);
            let answer = c.plain(kind, &c.unheard("machine"), &token).await?;
            answer.refused("there is no such machine")?;
        }
    }
    alive(&c).await
}
