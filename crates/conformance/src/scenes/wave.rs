//! Many machines at once: created, bound, drained and given back together.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_proto::v1alpha1::ListFilter;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::clock::Moment;
use crate::context::Context;
use crate::moves::{Kind, State, state_of};
use crate::supply::Lease;
use crate::verdict::{Ended, skipped};

/// How many calls are under way at once.
const AT_ONCE: usize = 64;

/// One move of all machines.
#[derive(Debug)]
pub(crate) struct Phase {
    pub(crate) kind: Kind,
    /// How long each acknowledgement took.
    pub(crate) acks: Vec<Duration>,
    /// How long each move took to its end.
    pub(crate) ends: Vec<Duration>,
    pub(crate) operations: Vec<String>,
    /// What went wrong, machine by machine.
    pub(crate) faults: Vec<String>,
}

/// What was seen while many machines moved.
#[derive(Debug)]
pub(crate) struct Wave {
    pub(crate) ids: Vec<String>,
    pub(crate) phases: Vec<Phase>,
    /// How long List took while machines moved.
    pub(crate) lists: Vec<Duration>,
    /// Ids that were missing from a List, or in it twice.
    pub(crate) list_faults: Vec<String>,
}

/// Moves as many machines as there are, up to the limit.
pub(crate) async fn play(context: &Context) -> Result<Wave, Ended> {
    let mut leases: Vec<Lease> = Vec::new();
    while leases.len() < context.limits().max_scale.max(2)
        && let Some(lease) = context.run.supply.try_take_as_is(context).await?
    {
        leases.push(lease);
    }
    // Each from where it stands: bringing hundreds of machines elsewhere first would be a wave of its own.
    if leases.len() < 2 {
        return skipped(format!("needs at least 2 free machines; the provider has {}", leases.len()));
    }
    let mut wave = Wave {
        ids: leases.iter().map(|l| l.id.clone()).collect(),
        phases: vec![],
        lists: vec![],
        list_faults: vec![],
    };
    let slots: Vec<&Lease> = leases.iter().filter(|l| state_of(&l.machine) == State::Speculative).collect();
    let slots: Vec<String> = slots.into_iter().map(|lease| lease.id.clone()).collect();
    for kind in Kind::ALL {
        let ids = if matches!(kind, Kind::Create | Kind::Delete) { &slots } else { &wave.ids };
        if ids.is_empty() || (kind == Kind::Delete && !context.deletes().await?) {
            continue;
        }
        let (phase, watched) = tokio::join!(move_all(context, kind, ids), watch(context, &wave.ids));
        wave.phases.push(phase);
        let (took, faults) = watched?;
        wave.lists.extend(took);
        wave.list_faults.extend(faults);
    }
    Ok(wave)
}

/// Makes the same move on all machines.
async fn move_all(context: &Context, kind: Kind, ids: &[String]) -> Phase {
    let gate = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    for id in ids {
        let (context, gate, id) = (context.clone(), gate.clone(), id.clone());
        tasks.spawn(async move {
            let turn = gate.acquire().await.expect("nobody closes it");
            let (started, token) = (Moment::now(), context.token());
            let ack = context.plain(kind, &id, &token).await?.accepted()?;
            let acknowledged = started.elapsed();
            drop(turn);
            context.reach(&id, kind.to()).await?;
            Ok((ack.operation_id, acknowledged, started.elapsed()))
        });
    }
    let mut phase = Phase { kind, acks: vec![], ends: vec![], operations: vec![], faults: vec![] };
    while let Some(joined) = tasks.join_next().await {
        let ended: Result<_, Ended> = joined.expect("a move of a wave does not panic");
        match ended {
            Ok((operation, ack, end)) => {
                phase.operations.push(operation);
                phase.acks.push(ack);
                phase.ends.push(end);
            }
            Err(Ended::Failed { expected, got }) => {
                phase.faults.push(format!("expected {expected}, got {got}"));
            }
            Err(Ended::Skipped(reason)) => phase.faults.push(reason),
        }
    }
    phase
}

/// Lists a few times while others move, and looks for the machines in it.
async fn watch(context: &Context, ids: &[String]) -> Result<(Vec<Duration>, Vec<String>), Ended> {
    let (mut took, mut faults) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let started = Moment::now();
        let listed = context.list(ListFilter::default()).await?.machines;
        took.push(started.elapsed());
        let mut listed: Vec<&str> = listed.iter().map(|machine| machine.id.as_str()).collect();
        listed.sort_unstable();
        faults.extend(
            listed.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| format!("{:?} twice", pair[0])),
        );
        let missing = ids.iter().filter(|id| listed.binary_search(&id.as_str()).is_err());
        faults.extend(missing.map(|id| format!("{id:?} missing")));
    }
    Ok((took, faults))
}
