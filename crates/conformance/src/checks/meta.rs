//! META: what the shard writes beside a binding comes back exactly, as long as the binding lasts.

use std::collections::BTreeMap;

use bigfleet_proto::v1alpha1::Machine;

use crate::behaviour::checks;
use crate::context::Context;
use crate::moves::{CLUSTER, Kind, Order, State, metadata, state_name, state_of};
use crate::verdict::{Ended, Verdict, ensure, failed, skipped};

checks! { Meta:
    "META-001" Core Beside "metadata comes back" => echo(metadata([("note", "value"), ("another", "one")])):
        "Get on the CONFIGURED machine shows the metadata of Configure, no more and no less",
        "after a restart a shard does not know why a machine is bound", "2 Machine.shard_metadata, 2.4";
    "META-002" Core Beside "metadata is visible when CONFIGURING starts" => visible_at_once():
        "the ack of Configure and the first Get show metadata and cluster",
        "a shard that restarts during a binding loses it", "2.1 details";
    "META-003" Core Beside "metadata stays while DRAINING" => stays_while_draining():
        "the ack of Drain shows metadata and cluster as long as it shows DRAINING",
        "a shard that restarts during a drain takes the machine for free", "2.1 details";
    "META-004" Core Beside "metadata and cluster vanish together at IDLE" => vanishes():
        "after a Drain neither is in the record", "a free machine looks bound", "2.1 details";
    "META-005" Core Beside "a NUL in a value survives" => echo(metadata([("group", "rack\0app=web,;")])):
        "the value comes back byte for byte", "gangs are torn apart after a restart", "2.1 details, 2.4";
    "META-006" Core Beside "control characters in a value survive" => echo(metadata([("control", "\u{1}\u{7f}\u{1b}[0m\r\n\t")])):
        "the value comes back byte for byte", "notes are damaged", "2.1 details";
    "META-007" Core Beside "an empty value survives" => echo(metadata([("empty", ""), ("full", "x")])):
        "the key is still there, with an empty value", "a note that says nothing is lost", "2.1 details";
    "META-008" Core Beside "an empty key survives" => echo(metadata([("", "value"), ("b", "c")])):
        "the empty key comes back with its value", "a note is lost", "2.1 details";
    "META-009" Core Beside "NUL and control characters in a key survive" => echo(metadata([("a\0b", "1"), ("\u{1}\n", "2")])):
        "the keys come back byte for byte", "a note is lost", "2.1 details";
    "META-010" Core Beside "white space is not trimmed" => echo(metadata([(" key ", "  value\n"), ("tabs", "\t")])):
        "keys and values come back with their spaces", "notes are damaged", "2.1 details";
    "META-011" Core Beside "any Unicode survives" => echo(metadata([("ключ", "値 🦀 e\u{301}"), ("\u{feff}", "\u{10ffff}")])):
        "keys and values come back without being normalised", "notes are damaged", "2.1 details";
    "META-012" Core Beside "no metadata is no metadata" => echo(BTreeMap::new()):
        "a Configure without metadata shows none", "somebody else's notes are read", "2 Machine.shard_metadata";
    "META-013" Core Beside "many entries survive" => echo(many()):
        "100 entries of 500 bytes come back", "large notes are cut", "2.1 details";
    "META-014" Core Beside "the shard's own keys survive" => echo(shards_own()):
        "the five keys a shard writes come back exactly",
        "priorities and penalties are forgotten after a restart", "2.4";
    "META-015" Core Beside "values are not interpreted" => echo(metadata([("bigfleet.lucy.sh/assigned-priority", "not a number"), ("zone", "z")])):
        "a malformed value and a key that is forbidden as a label come back",
        "the provider judges what is not its business", "2.4";
    "META-016" Core Beside "a new binding replaces the metadata" => replaced():
        "after Drain and another Configure only the new keys are there",
        "old notes are taken for new ones", "2.1 details";
    "META-017" Core Beside "metadata is in List as in Get" => in_list():
        "List shows the same metadata and cluster", "a shard that lists sees other notes", "2";
    "META-018" Core Beside "metadata stays out of labels" => not_in_labels():
        "the labels of the machine are the same before and after Configure",
        "requirements match what is not there", "2 Machine.labels";
    "META-019" Core Beside "machines keep their own metadata" => not_shared():
        "two machines bound with different metadata show their own",
        "notes of one machine decide about another", "2 Machine.shard_metadata";
}

async fn echo(c: Context, notes: BTreeMap<String, String>) -> Verdict {
    let lease = c.take(State::Idle).await?;
    bind(&c, &lease.id, &notes).await?;
    // Empty the machine's notes again, so that nobody else finds them.
    let (_, machine) = c.step(Kind::Drain, &lease.id).await?;
    ensure(machine.shard_metadata.is_empty(), "no metadata after Drain", || {
        format!("{:?}", machine.shard_metadata)
    })
}

async fn bind(c: &Context, id: &str, notes: &BTreeMap<String, String>) -> Result<Machine, Ended> {
    let (_, machine) = c.walk(&Order::noted(CLUSTER, notes.clone()), id).await?;
    shows(&machine, notes, "Get")?;
    Ok(machine)
}

fn shows(machine: &Machine, notes: &BTreeMap<String, String>, place: &str) -> Verdict {
    if machine.shard_metadata == *notes {
        return Ok(());
    }
    let lost: Vec<_> = notes
        .iter()
        .filter(|(key, value)| machine.shard_metadata.get(*key) != Some(*value))
        .take(3)
        .collect();
    let strange: Vec<_> =
        machine.shard_metadata.iter().filter(|(key, _)| !notes.contains_key(*key)).take(3).collect();
    failed(
        format!("{place} shows the metadata of Configure"),
        format!("lost or changed: {lost:?}; not ours: {strange:?}"),
    )
}

async fn visible_at_once(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let notes = metadata([("early", "bird")]);
    let ack = c.act(&Order::noted(CLUSTER, notes.clone()), &lease.id, &c.token()).await?.accepted()?;
    for (place, machine) in
        [("the ack of Configure", ack.machine), ("Get right after it", c.get(&lease.id).await?)]
    {
        shows(&machine, &notes, place)?;
        ensure(machine.cluster == CLUSTER, format!("{place} shows cluster {CLUSTER:?}"), || {
            format!("{:?}", machine.cluster)
        })?;
    }
    c.reach(&lease.id, State::Configured).await?;
    Ok(())
}

async fn stays_while_draining(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let notes = metadata([("until", "the end")]);
    bind(&c, &lease.id, &notes).await?;
    let ack = c.plain(Kind::Drain, &lease.id, &c.token()).await?.accepted()?;
    let mut draining = vec![ack.machine];
    c.settle_watched(&lease.id, |machine| draining.push(machine.clone())).await?;
    draining.retain(|machine| state_of(machine) == State::Draining);
    if draining.is_empty() {
        return skipped("Drain is over when it is acknowledged: DRAINING cannot be met");
    }
    for machine in draining {
        shows(&machine, &notes, "DRAINING")?;
        ensure(machine.cluster == CLUSTER, "the cluster while DRAINING", || {
            format!("{:?}", machine.cluster)
        })?;
    }
    Ok(())
}

async fn vanishes(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    bind(&c, &lease.id, &metadata([("gone", "soon")])).await?;
    let (_, machine) = c.step(Kind::Drain, &lease.id).await?;
    let listed = c.list_all().await?.machines.into_iter().find(|listed| listed.id == lease.id);
    for machine in listed.into_iter().chain([machine]) {
        ensure(
            machine.cluster.is_empty() && machine.shard_metadata.is_empty(),
            "neither cluster nor metadata",
            || {
                format!(
                    "{} with {:?}, {:?}",
                    state_name(state_of(&machine)),
                    machine.cluster,
                    machine.shard_metadata
                )
            },
        )?;
    }
    Ok(())
}

fn many() -> BTreeMap<String, String> {
    (0..100).map(|number| (format!("key-{number}"), format!("{number}-").repeat(125))).collect()
}

fn shards_own() -> BTreeMap<String, String> {
    metadata([
        ("bigfleet.lucy.sh/assigned-priority", "-2147483648"),
        ("bigfleet.lucy.sh/assigned-interruption-penalty-dollars", "0.1"),
        ("bigfleet.lucy.sh/assigned-reclamation-penalty-dollars", "1e+21"),
        ("bigfleet.lucy.sh/assigned-need-fingerprint", "v1;cpu=4;\u{1f}"),
        ("bigfleet.lucy.sh/assigned-group", "topology.bigfleet/rack\0app=web,;"),
    ])
}

async fn replaced(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    bind(&c, &lease.id, &metadata([("old", "1"), ("both", "1")])).await?;
    c.step(Kind::Drain, &lease.id).await?;
    bind(&c, &lease.id, &metadata([("new", "2"), ("both", "2")])).await?;
    Ok(())
}

async fn in_list(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let notes = metadata([("listed", "too\0")]);
    bind(&c, &lease.id, &notes).await?;
    let listed = c.list_all().await?.machines.into_iter().find(|machine| machine.id == lease.id);
    let Some(machine) = listed else { return failed("the machine is listed", "it is not") };
    shows(&machine, &notes, "List")?;
    ensure(machine.cluster == CLUSTER, "List shows the cluster", || format!("{:?}", machine.cluster))
}

async fn not_in_labels(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let machine = bind(&c, &lease.id, &metadata([("label-like", "x")])).await?;
    ensure(machine.labels == lease.machine.labels, format!("{:?}", lease.machine.labels), || {
        format!("{:?}", machine.labels)
    })
}

async fn not_shared(c: Context) -> Verdict {
    let leases = c.take_several(State::Idle, 2).await?;
    let notes = [metadata([("whose", "first")]), metadata([("whose", "second"), ("more", "x")])];
    for (lease, notes) in leases.iter().zip(&notes) {
        bind(&c, &lease.id, notes).await?;
    }
    for (lease, notes) in leases.iter().zip(&notes) {
        shows(&c.get(&lease.id).await?, notes, "Get")?;
    }
    Ok(())
}
