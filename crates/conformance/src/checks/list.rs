//! LIST: what a listing holds, and what it leaves out. Revisions are in a file of their own.

use std::collections::BTreeSet;

use bigfleet_proto::v1alpha1::{ListFilter, Machine};

use crate::behaviour::checks;
use crate::checks::life::unpriced;
use crate::context::Context;
use crate::moves::{State, is_settled, state_name, state_of};
use crate::verdict::{Verdict, ensure, failed, skipped};

mod revision;

use revision::{
    cap_with_cursor, cursor_ahead, cursor_with_states, deleted_in_delta, delta_covers_several,
    delta_shows_change, delta_shows_end, garbage, head_is_empty, no_cursor, quiet_stays, reads_stay,
    revision_given, revision_moves, revision_opaque_to_states,
};

checks! { List:
    "LIST-001" Core Beside "an empty filter lists everything" => lists_taken():
        "machines in every settled state are in the list",
        "a shard does not know its own machines", "2.2";
    "LIST-002" Core Beside "each machine is listed once" => listed_once():
        "no id is in the list twice", "capacity is counted twice", "2.2";
    "LIST-003" Core Beside "a filter for one state lists that state alone" => one_state():
        "for each of the eight states all listed machines are in it",
        "machines are taken for free that are not", "2.2";
    "LIST-004" Core Beside "a filter for one state lists all of that state" => complete_state():
        "a machine known to be SPECULATIVE, IDLE or CONFIGURED is listed under its state",
        "free machines are overlooked and others are bought", "2.2";
    "LIST-005" Core Beside "several states are their union" => union():
        "IDLE and CONFIGURED together list both and nothing else",
        "some machines are overlooked", "2.2";
    "LIST-006" Core Beside "all states together are everything" => all_states():
        "a filter with all eight states has as many machines as one with none",
        "a state is forgotten", "2.2";
    "LIST-007" Core Beside "a repeated state changes nothing" => repeated_state():
        "IDLE given three times lists every machine once", "capacity is counted twice", "2.2";
    "LIST-008" Core Beside "max_results is never exceeded" => capped(&[1, 2, 3, 5]):
        "caps of 1, 2, 3 and 5 give at most that many, and at least one machine",
        "a caller with little memory is flooded", "2.2";
    "LIST-009" Core Beside "max_results 0 is no cap" => uncapped():
        "0 gives the whole inventory", "machines are overlooked", "2.2";
    "LIST-010" Core Beside "max_results above the inventory gives everything" => high_cap():
        "a cap of the inventory and more gives the whole inventory", "machines are overlooked", "2.2";
    "LIST-011" Core Beside "a cap holds together with states" => cap_with_states():
        "one IDLE machine is asked for and one IDLE machine comes",
        "the cap is applied before the filter and free machines are overlooked", "2.2";
    "LIST-012" Optional Beside "a capped list does not always show the same machine" => order_varies():
        "twenty lists of one machine show at least two different ones",
        "all callers pick the same machine and fight over it", "2.2, 9 edge 3";
    "LIST-013" Core Alone "List agrees with Get" => agrees_with_get():
        "ten settled machines have the same record in both", "decisions rest on stale records", "2";
    "LIST-014" Core Beside "no cursor means everything" => no_cursor():
        "an absent and an empty since_revision give the whole inventory",
        "a shard that starts up sees nothing", "2.2";
    "LIST-015" Core Beside "garbage as a cursor means everything" => garbage(b"\x00\xff\xfenot a cursor\x00"):
        "bytes that are no cursor give the whole inventory, not an error",
        "a shard with a damaged cursor is blind", "2.2";
    "LIST-016" Core Beside "text as a cursor means everything" => garbage(b"12abc"):
        "text that begins like a number gives the whole inventory, not an error",
        "a shard with a damaged cursor is blind", "2.2";
    "LIST-017" Core Beside "a foreign cursor means everything" => garbage(b"6f1d0c1e-7d57-4b1e-9d1c-1f0f5e3b2a10"):
        "another provider's cursor gives the whole inventory, not an error",
        "a shard that changes its provider is blind", "2.2";
    "LIST-018" Core Beside "an oversized cursor means everything" => garbage(&[b'7'; 100_000]):
        "100,000 digits give the whole inventory, not an error",
        "a shard with a damaged cursor is blind", "2.2";
    "LIST-019" Core Beside "a number out of range as a cursor means everything" => garbage(b"-1"):
        "a negative number gives the whole inventory, not an error",
        "a shard with a damaged cursor is blind", "2.2";
    "LIST-020" Optional Alone "a revision is given" => revision_given():
        "List carries a revision", "every listing is a full one; costly above 10,000 machines", "2.2";
    "LIST-021" Optional Alone "nothing has changed at the current revision" => head_is_empty():
        "List since the current revision is empty", "incremental listing saves nothing", "2.2";
    "LIST-022" Optional Alone "the revision moves with each move" => revision_moves():
        "after the ack of Configure the revision is another",
        "a change is never seen by an incremental shard", "2.2";
    "LIST-023" Optional Alone "a changed machine is in the delta" => delta_shows_change():
        "List since the revision before a Configure has the machine, bound",
        "a change is never seen by an incremental shard", "2.2";
    "LIST-024" Optional Alone "the end of a move is in the delta" => delta_shows_end():
        "List since the revision after the ack has the machine once it is CONFIGURED",
        "an incremental shard waits for ever for its machine", "2.2";
    "LIST-025" Optional Alone "a delta covers all changes since" => delta_covers_several():
        "List since a revision three moves ago has all three machines",
        "a shard that was away misses changes", "2.2";
    "LIST-026" Optional Alone "a deleted machine is in the delta as SPECULATIVE" => deleted_in_delta():
        "List since the revision before a Delete has the slot", "an incremental shard keeps the machine for ever", "2.2";
    "LIST-027" Optional Alone "the revision stands still when nothing happens" => quiet_stays():
        "without calls for a while the revision is the same and the delta empty",
        "incremental listing saves nothing", "2.2";
    "LIST-028" Optional Alone "reading does not move the revision" => reads_stay():
        "after Gets and Lists the revision is the same", "shards wake each other up by looking", "2.2";
    "LIST-029" Optional Alone "a cursor and states work together" => cursor_with_states():
        "the delta filtered by CONFIGURED has the bound machine and no machine in another state",
        "one of the two filters is ignored", "2.2";
    "LIST-030" Optional Alone "a cap holds together with a cursor" => cap_with_cursor():
        "a delta of three machines capped at one has one", "a caller with little memory is flooded", "2.2";
    "LIST-031" Optional Alone "a cursor from the future means everything" => cursor_ahead():
        "a number above the current revision gives the whole inventory",
        "after a provider is restored from a backup its shards see nothing", "2.2";
    "LIST-032" Optional Alone "the revision does not depend on the filter" => revision_opaque_to_states():
        "a filtered list at rest carries a revision at which nothing has changed",
        "a cursor from a filtered list hides changes or repeats them", "2.2";
}

pub(in crate::checks) fn of_state(states: &[State]) -> ListFilter {
    ListFilter { states: states.iter().map(|state| *state as i32).collect(), ..ListFilter::default() }
}

pub(in crate::checks) fn capped_at(max_results: i32) -> ListFilter {
    ListFilter { max_results, ..ListFilter::default() }
}

pub(in crate::checks) fn ids(machines: &[Machine]) -> BTreeSet<&str> {
    machines.iter().map(|machine| machine.id.as_str()).collect()
}

const SETTLED: [State; 3] = [State::Speculative, State::Idle, State::Configured];

const STATES: [State; 8] = [
    State::Speculative,
    State::Creating,
    State::Idle,
    State::Configuring,
    State::Configured,
    State::Draining,
    State::Deleting,
    State::Failed,
];

fn only(machines: &[Machine], states: &[State]) -> Verdict {
    match machines.iter().find(|machine| !states.contains(&state_of(machine))) {
        Some(stray) => failed(
            format!(
                "only machines that are {:?}",
                states.iter().map(|state| state_name(*state)).collect::<Vec<_>>()
            ),
            format!("{:?} is {}", stray.id, state_name(state_of(stray))),
        ),
        None => Ok(()),
    }
}

async fn lists_taken(c: Context) -> Verdict {
    for state in SETTLED {
        let lease = c.take(state).await?;
        let list = c.list_all().await?;
        ensure(ids(&list.machines).contains(lease.id.as_str()), format!("{:?} is listed", lease.id), || {
            format!("{} machines without it", list.machines.len())
        })?;
    }
    Ok(())
}

async fn listed_once(c: Context) -> Verdict {
    let list = c.list_all().await?;
    let distinct = ids(&list.machines).len();
    ensure(distinct == list.machines.len(), "no id twice", || {
        format!("{distinct} ids, {} records", list.machines.len())
    })
}

async fn one_state(c: Context) -> Verdict {
    for state in STATES {
        only(&c.list(of_state(&[state])).await?.machines, &[state])?;
    }
    Ok(())
}

async fn complete_state(c: Context) -> Verdict {
    for state in SETTLED {
        let lease = c.take(state).await?;
        let list = c.list(of_state(&[state])).await?;
        ensure(
            ids(&list.machines).contains(lease.id.as_str()),
            format!("{:?} under {}", lease.id, state_name(state)),
            || format!("{} machines without it", list.machines.len()),
        )?;
    }
    Ok(())
}

async fn union(c: Context) -> Verdict {
    let (idle, bound) = (c.take(State::Idle).await?, c.take(State::Configured).await?);
    for states in [[State::Idle, State::Configured], [State::Configured, State::Idle]] {
        let list = c.list(of_state(&states)).await?;
        only(&list.machines, &states)?;
        for id in [&idle.id, &bound.id] {
            ensure(ids(&list.machines).contains(id.as_str()), format!("{id:?} is listed"), || {
                "it is not".into()
            })?;
        }
    }
    Ok(())
}

async fn all_states(c: Context) -> Verdict {
    let (all, every) = (c.list_all().await?, c.list(of_state(&STATES)).await?);
    let (all, every) = (ids(&all.machines), ids(&every.machines));
    ensure(all == every, format!("{} machines", all.len()), || format!("{} machines", every.len()))
}

async fn repeated_state(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let list = c.list(of_state(&[State::Idle; 3])).await?;
    only(&list.machines, &[State::Idle])?;
    let times = list.machines.iter().filter(|machine| machine.id == lease.id).count();
    ensure(times == 1, "listed once", || format!("{times} times"))
}

async fn capped(c: Context, caps: &'static [i32]) -> Verdict {
    let total = c.list_all().await?.machines.len();
    for cap in caps {
        let list = c.list(capped_at(*cap)).await?;
        let most = total.min(*cap as usize);
        let right = list.machines.len() <= most && (total == 0 || !list.machines.is_empty());
        ensure(right, format!("1 to {most} machines for max_results {cap}"), || {
            format!("{}", list.machines.len())
        })?;
        let distinct = ids(&list.machines).len();
        ensure(distinct == list.machines.len(), "no id twice", || {
            format!("{distinct} of {}", list.machines.len())
        })?;
    }
    Ok(())
}

async fn uncapped(c: Context) -> Verdict {
    whole(&c, capped_at(0)).await
}

async fn high_cap(c: Context) -> Verdict {
    let total = i32::try_from(c.list_all().await?.machines.len()).unwrap_or(i32::MAX);
    for cap in [total, total.saturating_add(10), i32::MAX] {
        whole(&c, capped_at(cap.max(1))).await?;
    }
    Ok(())
}

/// The filter gives the whole inventory. What the inventory is, a plain List says before and after.
pub(in crate::checks) async fn whole(c: &Context, filter: ListFilter) -> Verdict {
    let before = c.list_all().await?;
    let list = match c.try_list(filter).await? {
        Ok(list) => list,
        Err(status) => return failed("the whole inventory, not an error", crate::calls::in_words(&status)),
    };
    let (before, got) = (ids(&before.machines), ids(&list.machines));
    ensure(before == got, format!("{} machines", before.len()), || format!("{} machines", got.len()))
}

async fn cap_with_states(c: Context) -> Verdict {
    let _one = c.take(State::Idle).await?;
    // Again and again: where the list begins elsewhere each time, luck does not last.
    for _ in 0..20 {
        let list = c.list(ListFilter { max_results: 1, ..of_state(&[State::Idle]) }).await?;
        only(&list.machines, &[State::Idle])?;
        ensure(list.machines.len() == 1, "one machine", || format!("{}", list.machines.len()))?;
    }
    Ok(())
}

async fn order_varies(c: Context) -> Verdict {
    if c.list_all().await?.machines.len() < 2 {
        return skipped("needs two machines");
    }
    let mut first = BTreeSet::new();
    for _ in 0..20 {
        first.extend(c.list(capped_at(1)).await?.machines.into_iter().map(|machine| machine.id));
    }
    ensure(first.len() > 1, "at least two different machines in twenty lists", || format!("always {first:?}"))
}

async fn agrees_with_get(c: Context) -> Verdict {
    c.quiesce().await?;
    let list = c.list_all().await?.machines;
    for listed in list.iter().filter(|machine| is_settled(state_of(machine))).take(10) {
        let got = c.get(&listed.id).await?;
        ensure(unpriced(&got) == unpriced(listed), format!("{listed:?}"), || format!("{got:?}"))?;
    }
    Ok(())
}
