//! The revision part of LIST. These checks run alone: any move anywhere changes the revision.

use bigfleet_proto::v1alpha1::{ListFilter, MachineList};

use super::{ids, of_state, whole};
use crate::clock;
use crate::context::Context;
use crate::moves::{Kind, State, state_name, state_of};
use crate::verdict::{Ended, Verdict, ensure, failed, skipped};

/// How often a list is tried to be taken while a move is under way.
const ATTEMPTS: usize = 8;

fn since(revision: &[u8]) -> ListFilter {
    ListFilter { since_revision: revision.to_vec(), ..ListFilter::default() }
}

pub(super) async fn no_cursor(c: Context) -> Verdict {
    whole(&c, since(b"")).await
}

pub(super) async fn garbage(c: Context, cursor: &'static [u8]) -> Verdict {
    whole(&c, since(cursor)).await
}

/// Where the list stands once nothing moves. Providers without revisions have nothing to check.
async fn head(c: &Context) -> Result<Vec<u8>, Ended> {
    c.quiesce().await?;
    let revision = c.list_all().await?.revision;
    if revision.is_empty() { skipped("the provider gives no revision") } else { Ok(revision) }
}

async fn delta(c: &Context, revision: &[u8]) -> Result<MachineList, Ended> {
    c.list(since(revision)).await
}

pub(super) async fn revision_given(c: Context) -> Verdict {
    head(&c).await.map(drop)
}

pub(super) async fn head_is_empty(c: Context) -> Verdict {
    let head = head(&c).await?;
    let count = delta(&c, &head).await?.machines.len();
    ensure(count == 0, "nothing since the current revision", || format!("{count} machines"))
}

pub(super) async fn revision_moves(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    for kind in [Kind::Configure, Kind::Drain] {
        let before = head(&c).await?;
        c.plain(kind, &lease.id, &c.token()).await?.accepted()?;
        let after = c.list_all().await?.revision;
        ensure(before != after, format!("another revision after {kind}"), || "the same".into())?;
        c.reach(&lease.id, kind.to()).await?;
    }
    Ok(())
}

/// Fails unless the delta has the machine in one of the states.
async fn has(c: &Context, revision: &[u8], id: &str, states: &[State]) -> Verdict {
    let list = delta(c, revision).await?;
    let Some(machine) = list.machines.iter().find(|machine| machine.id == id) else {
        return failed(
            format!("{id:?} in the delta"),
            format!("{} machines without it", list.machines.len()),
        );
    };
    let state = state_of(machine);
    ensure(states.contains(&state), format!("one of {states:?}"), || state_name(state).into())
}

pub(super) async fn delta_shows_change(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let before = head(&c).await?;
    c.plain(Kind::Configure, &lease.id, &c.token()).await?.accepted()?;
    has(&c, &before, &lease.id, &[State::Configuring, State::Configured]).await?;
    c.reach(&lease.id, State::Configured).await?;
    has(&c, &before, &lease.id, &[State::Configured]).await
}

pub(super) async fn delta_shows_end(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    head(&c).await?;
    // The list must fall between the ack and the end, which may take a few tries.
    for _ in 0..ATTEMPTS {
        c.plain(Kind::Configure, &lease.id, &c.token()).await?.accepted()?;
        let list = c.list_all().await?;
        let under_way = list.machines.iter().any(|m| m.id == lease.id && state_of(m) == State::Configuring);
        c.reach(&lease.id, State::Configured).await?;
        if under_way {
            return has(&c, &list.revision, &lease.id, &[State::Configured]).await;
        }
        c.step(Kind::Drain, &lease.id).await?;
    }
    skipped(format!("Configure ends too soon for a List in between, {ATTEMPTS} times"))
}

pub(super) async fn delta_covers_several(c: Context) -> Verdict {
    let leases = c.take_several(State::Idle, 3).await?;
    let before = head(&c).await?;
    for lease in &leases {
        c.step(Kind::Configure, &lease.id).await?;
    }
    for lease in &leases {
        has(&c, &before, &lease.id, &[State::Configured]).await?;
    }
    let list = delta(&c, &before).await?;
    ensure(ids(&list.machines).len() == list.machines.len(), "each machine once", || "one twice".into())
}

pub(super) async fn deleted_in_delta(c: Context) -> Verdict {
    c.needs_delete().await?;
    let lease = c.take(State::Idle).await?;
    let before = head(&c).await?;
    c.step(Kind::Delete, &lease.id).await?;
    has(&c, &before, &lease.id, &[State::Speculative]).await
}

pub(super) async fn quiet_stays(c: Context) -> Verdict {
    let before = head(&c).await?;
    clock::pause(c.limits().quiet).await;
    let list = delta(&c, &before).await?;
    ensure(list.machines.is_empty(), "nothing changed while nothing was done", || {
        format!("{:?} changed", ids(&list.machines))
    })?;
    ensure(list.revision == before, "the same revision", || "another one".into())
}

pub(super) async fn reads_stay(c: Context) -> Verdict {
    let lease = c.take(State::Idle).await?;
    let before = head(&c).await?;
    for _ in 0..5 {
        c.get(&lease.id).await?;
        c.list(of_state(&[State::Idle])).await?;
    }
    let after = c.list_all().await?.revision;
    ensure(before == after, "the same revision", || "another one".into())
}

pub(super) async fn cursor_with_states(c: Context) -> Verdict {
    let (bound, other) = (c.take(State::Idle).await?, c.take(State::Configured).await?);
    let before = head(&c).await?;
    c.step(Kind::Configure, &bound.id).await?;
    c.step(Kind::Drain, &other.id).await?;
    let filter = ListFilter { since_revision: before, ..of_state(&[State::Configured]) };
    let list = c.list(filter).await?.machines;
    ensure(ids(&list).contains(bound.id.as_str()), "the bound machine", || format!("{:?}", ids(&list)))?;
    let stray = list.iter().find(|machine| state_of(machine) != State::Configured);
    ensure(stray.is_none(), "CONFIGURED machines only", || format!("{stray:?}"))
}

pub(super) async fn cap_with_cursor(c: Context) -> Verdict {
    let leases = c.take_several(State::Idle, 3).await?;
    let before = head(&c).await?;
    for lease in &leases {
        c.step(Kind::Configure, &lease.id).await?;
    }
    let list = c.list(ListFilter { max_results: 1, ..since(&before) }).await?;
    ensure(list.machines.len() == 1, "one machine", || format!("{}", list.machines.len()))
}

pub(super) async fn cursor_ahead(c: Context) -> Verdict {
    let head = head(&c).await?;
    let number = std::str::from_utf8(&head).ok().and_then(|text| text.parse::<u64>().ok());
    let Some(number) = number else { return skipped("the revision is no number, so none is ahead of it") };
    whole(&c, since(number.saturating_add(1_000_000).to_string().as_bytes())).await
}

pub(super) async fn revision_opaque_to_states(c: Context) -> Verdict {
    head(&c).await?;
    let filtered = c.list(of_state(&[State::Failed])).await?.revision;
    let list = delta(&c, &filtered).await?;
    ensure(list.machines.is_empty(), "nothing since a filtered list at rest", || {
        format!("{:?}", ids(&list.machines))
    })
}
