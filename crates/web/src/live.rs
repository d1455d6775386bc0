//! The newest state of every shard, kept once for everybody who looks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bigfleet_net::Clock;
use bigfleet_tell::feed::Fresh;
use bigfleet_view::v1::{
    CycleTimes, Decision, Fate, FateCount, ResourceUse, Summary, SupplyCell, WatchEvent, WatchRequest,
};
use tokio::sync::watch;

use crate::history::{Columns, History};
use crate::way::Shard;

/// The least time between two states; eyes do not need more.
const EVERY_MILLIS: u32 = 400;
/// How long to wait before a shard that went away is asked again, at first and at most.
const PAUSE: Duration = Duration::from_millis(300);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Decisions kept for the feed.
const FEED: usize = 1000;

/// All shards.
pub(crate) struct Live {
    shards: Vec<Mutex<State>>,
    /// Counts changes of anything.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    name: String,
    connected: bool,
    /// Why not.
    trouble: String,
    /// When it was last heard, by this machine's clock.
    heard_unix_nanos: i64,
    summary: Option<Arc<Summary>>,
    history: History,
    feed: VecDeque<(u64, Decision)>,
    fresh: Fresh,
    last_cycle: u64,
}

/// How one shard can be reached.
#[derive(Clone, Debug, serde::Serialize)]
pub(crate) struct Link {
    pub(crate) shard: String,
    pub(crate) connected: bool,
    pub(crate) trouble: String,
    /// How long it has not been heard, in seconds of this machine's clock; none if it never was.
    pub(crate) silent_secs: Option<f64>,
    /// Its last cycle, and how long the last ones took, in milliseconds: of how many, the last, half of them less, the worst.
    pub(crate) cycle: u64,
    pub(crate) cycle_millis: Option<(u32, f64, f64, f64)>,
}

impl Live {
    /// Watches shards for as long as the answer lives.
    pub(crate) fn watch(shards: &[Shard], clock: &Arc<dyn Clock>) -> Arc<Self> {
        let states = shards.iter().map(|shard| {
            let trouble = "not reached yet".into();
            Mutex::new(State { name: shard.name.clone(), trouble, ..State::default() })
        });
        let live = Arc::new(Self { shards: states.collect(), changes: watch::Sender::new(0) });
        for (at, shard) in shards.iter().enumerate() {
            let (shard, clock, weak) = (shard.clone(), clock.clone(), Arc::downgrade(&live));
            tokio::spawn(async move {
                let mut pause = PAUSE;
                while let Some(after) = weak.upgrade().map(|live| live.state(at).last_cycle) {
                    let request = WatchRequest {
                        min_interval_millis: EVERY_MILLIS,
                        decisions_after_cycle: after,
                        decisions: 1,
                    };
                    let ended = match shard.client().watch(request).await {
                        Err(status) => status.message().to_owned(),
                        Ok(answer) => {
                            let mut events = answer.into_inner();
                            loop {
                                match events.message().await {
                                    Ok(Some(event)) => {
                                        let Some(live) = weak.upgrade() else { return };
                                        live.heard(at, event, clock.now_unix_nanos());
                                        pause = PAUSE;
                                    }
                                    Ok(None) => break "it ended the conversation".to_owned(),
                                    Err(status) => break status.message().to_owned(),
                                }
                            }
                        }
                    };
                    let Some(live) = weak.upgrade() else { return };
                    live.lost(at, ended);
                    drop(live);
                    clock.sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            });
        }
        live
    }

    fn state(&self, at: usize) -> MutexGuard<'_, State> {
        self.shards[at].lock().expect("no holder panics")
    }

    fn heard(&self, at: usize, event: WatchEvent, now_unix_nanos: i64) {
        let change = self.changes.borrow().wrapping_add(1);
        {
            let mut state = self.state(at);
            state.connected = true;
            state.trouble.clear();
            state.heard_unix_nanos = now_unix_nanos;
            let begun = event.decisions.iter().filter(|one| one.fate() == Fate::Begun).count() as u32;
            for decision in event.decisions {
                state.last_cycle = state.last_cycle.max(decision.cycle);
                if state.fresh.is_new(&decision) {
                    state.feed.push_back((change, decision));
                }
            }
            while state.feed.len() > FEED {
                state.feed.pop_front();
            }
            if let Some(summary) = event.summary {
                let cycle = summary.as_of.as_ref().map_or(0, |as_of| as_of.cycle);
                state.last_cycle = state.last_cycle.max(cycle);
                if let Some(as_of) = &summary.as_of {
                    state.name.clone_from(&as_of.shard_id);
                }
                state.history.add(&summary, begun);
                state.summary = Some(Arc::new(summary));
            }
        }
        self.changes.send_replace(change);
    }

    fn lost(&self, at: usize, trouble: String) {
        {
            let mut state = self.state(at);
            state.connected = false;
            state.trouble = trouble;
            // A shard that begins anew counts its cycles from where its memory ends.
            state.last_cycle = 0;
        }
        self.changes.send_modify(|change| *change += 1);
    }

    /// Tells of changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// How each shard can be reached.
    pub(crate) fn links(&self, now_unix_nanos: i64) -> Vec<Link> {
        let link = |at: usize| {
            let state = self.state(at);
            let heard = (state.heard_unix_nanos > 0).then_some(state.heard_unix_nanos);
            let summary = state.summary.as_ref();
            let millis = |nanos: i64| nanos as f64 / 1e6;
            let times = summary.and_then(|summary| summary.cycle_times.as_ref()).map(|times| {
                let CycleTimes { cycles, last_nanos, median_nanos, worst_nanos } = *times;
                (cycles, millis(last_nanos), millis(median_nanos), millis(worst_nanos))
            });
            Link {
                cycle: summary.and_then(|summary| summary.as_of.as_ref()).map_or(0, |as_of| as_of.cycle),
                cycle_millis: times,
                shard: state.name.clone(),
                connected: state.connected,
                trouble: state.trouble.clone(),
                silent_secs: heard.map(|heard| now_unix_nanos.saturating_sub(heard).max(0) as f64 / 1e9),
            }
        };
        (0..self.shards.len()).map(link).collect()
    }

    /// All shards as one; none before the first was heard.
    pub(crate) fn summary(&self) -> Option<Summary> {
        let known = (0..self.shards.len()).filter_map(|at| self.state(at).summary.clone());
        let known: Vec<Arc<Summary>> = known.collect();
        match &known[..] {
            [] => None,
            [one] => Some(Summary { recent: Vec::new(), ..Summary::clone(one) }),
            several => Some(together(several)),
        }
    }

    /// The names of the shards, in order.
    pub(crate) fn name(&self, at: usize) -> String {
        self.state(at).name.clone()
    }

    /// The history of the shard that has the most to tell, and its name.
    pub(crate) fn history(&self) -> Vec<(String, Columns)> {
        let one = |at: usize| {
            let state = self.state(at);
            (state.name.clone(), state.history.columns())
        };
        (0..self.shards.len()).map(one).collect()
    }

    /// Decisions after a change, oldest first, with the shard each is of; and how far that goes.
    pub(crate) fn feed(&self, after: u64) -> (u64, Vec<(String, Decision)>) {
        let now = *self.changes.borrow();
        let mut new = Vec::new();
        for at in 0..self.shards.len() {
            let state = self.state(at);
            let later = state.feed.iter().filter(|(change, _)| *change > after && *change <= now);
            new.extend(later.map(|(_, decision)| (state.name.clone(), decision.clone())));
        }
        new.sort_by_key(|(_, decision)| decision.unix_nanos);
        (now, new)
    }
}

/// Several shards as one fleet.
fn together(several: &[Arc<Summary>]) -> Summary {
    let mut all = Summary { as_of: several[0].as_of.clone(), ..Summary::default() };
    let mut supply: BTreeMap<(i32, i32), SupplyCell> = BTreeMap::new();
    let mut withheld: BTreeMap<(i32, i32), FateCount> = BTreeMap::new();
    let mut used: BTreeMap<&str, ResourceUse> = BTreeMap::new();
    for one in several {
        for cell in &one.supply {
            let sum = supply.entry((cell.capacity_type, cell.state)).or_insert_with(|| SupplyCell {
                machines: 0,
                usd_per_hour: 0.0,
                ..*cell
            });
            sum.machines += cell.machines;
            sum.usd_per_hour += cell.usd_per_hour;
        }
        for count in &one.withheld {
            let sum = withheld.entry((count.kind, count.fate)).or_insert(FateCount { actions: 0, ..*count });
            sum.actions += count.actions;
        }
        for line in &one.r#use {
            let sum = used
                .entry(&line.resource)
                .or_insert_with(|| ResourceUse { resource: line.resource.clone(), ..ResourceUse::default() });
            sum.asked += line.asked;
            sum.provided += line.provided;
            sum.idle += line.idle;
        }
        all.lanes.extend(one.lanes.iter().cloned());
        all.worst.extend(one.worst.iter().cloned());
        all.providers.extend(one.providers.iter().cloned());
        all.usd_per_hour += one.usd_per_hour;
        all.idle_usd_per_hour += one.idle_usd_per_hour;
        all.needs += one.needs;
        all.unmet += one.unmet;
        all.short += one.short;
        all.pauses += one.pauses;
        all.proposals += one.proposals;
        // The strictest has the highest number.
        all.mode = all.mode.max(one.mode);
        all.moves += one.moves;
        all.dry_run |= one.dry_run;
    }
    all.r#use = used.into_values().collect();
    all.supply = supply.into_values().collect();
    all.withheld = withheld.into_values().collect();
    all.lanes.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    all.worst.sort_by_key(|one| (std::cmp::Reverse(one.priority), one.since_unix_nanos));
    all.worst.truncate(20);
    all
}

#[cfg(test)]
mod tests {
    use bigfleet_view::v1::{AsOf, Lane, Shortfall};

    use super::*;

    fn shard(name: &str, machines: u32, priority: i32) -> Arc<Summary> {
        Arc::new(Summary {
            as_of: Some(AsOf { shard_id: name.into(), ..AsOf::default() }),
            supply: vec![SupplyCell { capacity_type: 4, state: 5, machines, usd_per_hour: 0.5 }],
            lanes: vec![Lane { cluster: name.into(), machines, ..Lane::default() }],
            worst: vec![Shortfall { priority, ..Shortfall::default() }],
            usd_per_hour: 0.5,
            unmet: 1,
            ..Summary::default()
        })
    }

    #[test]
    fn several_shards_add_up_to_one_fleet() {
        let all = together(&[shard("b", 2, 10), shard("a", 3, 20)]);
        assert_eq!((all.supply.len(), all.supply[0].machines, all.usd_per_hour, all.unmet), (1, 5, 1.0, 2));
        assert_eq!(all.lanes.iter().map(|lane| &*lane.cluster).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(all.worst.iter().map(|one| one.priority).collect::<Vec<_>>(), [20, 10]);
    }
}
