//! Objects of ours in the cluster: written when they differ from what was last written, a few at a time. And the report
//! about nodes that the shard is given.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, Hasher as _};

use bigfleet_operator::demand::RowId;
use bigfleet_operator::drain::State;
use bigfleet_view::v1;
use foldhash::quality::FixedState;
use serde_json::Value;

use super::Desk;
use crate::amounts::quantities;
use crate::news::{News, Trouble};
use crate::verdicts;

/// Objects being written at a time.
const MOST_UNDER_WAY: usize = 8;
/// How long to wait after the server refused one.
const RETRY_NANOS: i64 = 1_000_000_000;
/// How long changes of nodes are gathered before they are told.
const GATHER_NANOS: i64 = 1_000_000_000;
/// How often the report is sent if nothing changed: the shard may have been started again.
const REPORT_AGAIN_NANOS: i64 = 60_000_000_000;

/// Waiting pods named for one need.
const MOST_EXAMPLES: usize = 50;

/// What an object should be.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Wanted {
    /// A machine: object, then status.
    Upcoming(Value, Value),
    /// No machine.
    NoUpcoming,
    /// A kind of free capacity.
    Available(Value),
}

/// Where objects stand.
#[derive(Debug, Default)]
pub(super) struct Objects {
    wanted: BTreeMap<String, Wanted>,
    /// What was last written, as a digest.
    shown: BTreeMap<String, u64>,
    under_way: BTreeMap<String, u64>,
    not_before: i64,
    /// Machines told of on this session.
    pub(super) told: BTreeSet<String>,
    /// When each machine was first heard of.
    pub(super) started: BTreeMap<String, i64>,
    /// When machines on their way are expected, as shown.
    pub(super) expected: BTreeMap<String, v1::Expected>,
    pub(super) available: BTreeSet<String>,
    /// Nodes on which it is being written which machine they are.
    pub(super) naming: BTreeSet<String>,
    nodes_changed_at: Option<i64>,
    pods_changed_at: Option<i64>,
    reported_at: i64,
}

impl Objects {
    pub(super) fn begin_session(&mut self) {
        self.told.clear();
    }

    pub(super) fn want(&mut self, name: String, wanted: Wanted) {
        if self.shown.get(&name) == Some(&digest(&wanted)) && !self.under_way.contains_key(&name) {
            self.wanted.remove(&name);
        } else {
            self.wanted.insert(name, wanted);
        }
    }

    /// Somebody removed an object of ours.
    pub(super) fn vanished(&mut self, name: &str) {
        self.shown.remove(name);
    }

    pub(super) fn nodes_changed(&mut self, now: i64) {
        self.nodes_changed_at.get_or_insert(now);
    }

    /// Other pods wait than before.
    pub(super) fn pods_changed(&mut self, now: i64) {
        self.pods_changed_at.get_or_insert(now);
    }
}

fn digest(wanted: &Wanted) -> u64 {
    let text = match wanted {
        Wanted::Upcoming(object, status) => format!("{object}{status}"),
        Wanted::NoUpcoming => return 0,
        Wanted::Available(object) => object.to_string(),
    };
    let mut hasher = FixedState::with_seed(0x006f_626a_6563_7473).build_hasher();
    hasher.write(text.as_bytes());
    hasher.finish().max(1)
}

impl Desk {
    /// Writes objects that differ.
    pub(super) fn flush_objects(&mut self, now: i64) -> i64 {
        if self.objects.not_before > now {
            return self.objects.not_before;
        }
        let ready: Vec<String> = self
            .objects
            .wanted
            .keys()
            .filter(|name| !self.objects.under_way.contains_key(*name))
            .take(MOST_UNDER_WAY.saturating_sub(self.objects.under_way.len()))
            .cloned()
            .collect();
        for name in ready {
            let Some(wanted) = self.objects.wanted.remove(&name) else { continue };
            self.objects.under_way.insert(name.clone(), digest(&wanted));
            let hands = self.hands.clone();
            self.spawn(async move {
                let done = match wanted {
                    Wanted::Upcoming(object, status) => hands.apply_upcoming(&name, object, status).await,
                    Wanted::NoUpcoming => hands.delete_upcoming(&name).await,
                    Wanted::Available(object) => hands.apply_available(&name, object).await,
                };
                News::Applied { object: name, done }
            });
        }
        i64::MAX
    }

    pub(super) fn applied(&mut self, object: &str, done: Result<(), Trouble>, now: i64) {
        let digest = self.objects.under_way.remove(object);
        if let Some(node) = object.strip_prefix("Node/") {
            self.objects.naming.remove(node);
        }
        let kind = if object.starts_with("Node/") { "Node" } else { "ours" };
        match done {
            Ok(()) => {
                self.metrics.write(kind, "ok");
                match digest {
                    Some(0) => drop(self.objects.shown.remove(object)),
                    Some(digest) => drop(self.objects.shown.insert(object.into(), digest)),
                    None => {}
                }
            }
            Err(Trouble::Gone | Trouble::Conflict) => self.metrics.write(kind, "gone"),
            Err(Trouble::Failed(why)) => {
                tracing::warn!(object, why, "an object could not be written; trying again");
                self.metrics.write(kind, "failed");
                self.objects.not_before = now.saturating_add(RETRY_NANOS);
                if digest.is_some() {
                    self.show_again(object, now);
                }
            }
        }
    }

    /// What failed to be written is wanted again as it is by now.
    fn show_again(&mut self, object: &str, now: i64) {
        if self.objects.wanted.contains_key(object) {
            return;
        }
        self.objects.shown.remove(object);
        let is_machine =
            self.picture.machines.keys().any(|machine| crate::upcoming::name_of(machine) == object);
        if is_machine {
            self.show_machines(now);
        } else if !self.objects.available.contains(object) {
            self.objects.wanted.insert(object.into(), Wanted::NoUpcoming);
        }
    }

    /// Tells the shard what the cluster sees of its nodes, if that changed.
    pub(super) fn report_nodes(&mut self, now: i64) -> i64 {
        let again = self.objects.reported_at.saturating_add(REPORT_AGAIN_NANOS);
        let changed = self.objects.nodes_changed_at.into_iter().chain(self.objects.pods_changed_at).min();
        let due = changed.map_or(again, |at| at.saturating_add(GATHER_NANOS).min(again));
        if due > now {
            return due;
        }
        if self.objects.nodes_changed_at.take().is_some() {
            self.show_machines(now);
        }
        self.objects.pods_changed_at = None;
        self.objects.reported_at = now;
        let nodes = self.node_states();
        let foreign = nodes.iter().filter(|node| node.machine_id.is_empty()).count();
        self.metrics.nodes(self.picture.nodes.len() - foreign, foreign);
        if self.has_verdicts && self.link.is_some() {
            let cluster_id = self.settings.cluster.clone();
            let waiting = self.waiting_by_need();
            let report = v1::NodeReport { cluster_id, nodes, taken_unix_nanos: now, waiting };
            tokio::spawn(verdicts::report(self.channel.clone(), report));
        }
        now.saturating_add(REPORT_AGAIN_NANOS)
    }

    /// Pods without a node and what is asked for beyond sums, by need.
    fn waiting_by_need(&self) -> Vec<v1::Waiting> {
        let mut by_row: BTreeMap<RowId, v1::Waiting> = BTreeMap::new();
        for uid in self.picture.waiting() {
            let row = self.request_of(uid).and_then(|request| self.demand.find(request)).map(|(row, _)| row);
            let (Some(row), Some(pod)) = (row, self.picture.pod(uid)) else { continue };
            let waiting = by_row.entry(row).or_default();
            waiting.pods += 1;
            if waiting.examples.len() < MOST_EXAMPLES {
                waiting.examples.push(format!("{}/{}", pod.namespace, pod.name));
            }
        }
        for row in self.demand.rows() {
            if let Some(extra) = self.reserves.extra(row, &self.demand) {
                by_row.entry(row).or_default().reserved = quantities(&extra).into_iter().collect();
            }
        }
        let named = by_row.into_iter().filter_map(|(row, mut waiting)| {
            let (fingerprint, group) = self.demand.key_of(row)?;
            (waiting.fingerprint, waiting.group) = (fingerprint.into(), group.into());
            waiting.examples.sort();
            Some(waiting)
        });
        named.collect()
    }

    fn node_states(&self) -> Vec<v1::NodeState> {
        let machines = self.picture.machines.keys().map(|machine| {
            let name = self.picture.node_name(machine);
            let node = name.and_then(|name| self.picture.nodes.get(name));
            let mut state = v1::NodeState {
                machine_id: machine.clone(),
                node_name: name.unwrap_or_default().into(),
                provider_id: node.map(|node| node.provider_id.clone()).unwrap_or_default(),
                ready: node.is_some_and(|node| node.is_ready),
                ..v1::NodeState::default()
            };
            if let Some(progress) = self.drain_progress.get(machine) {
                drain_word(progress.state).clone_into(&mut state.drain);
                state.pods_left = progress.pods_left as u32;
                state.pods_blocked = progress.blocked as u32;
                let example = progress.example.as_ref().map(|(pod, why)| format!("{pod}: {why}"));
                let example = example.unwrap_or_default();
                example[..example.floor_char_boundary(1000)].clone_into(&mut state.blocked_example);
            }
            state
        });
        let others = self.picture.foreign_nodes().map(|(name, node)| v1::NodeState {
            node_name: name.into(),
            provider_id: node.provider_id.clone(),
            ready: node.is_ready,
            allocatable: quantities(&node.allocatable).into_iter().collect(),
            ..v1::NodeState::default()
        });
        machines.chain(others).collect()
    }
}

fn drain_word(state: State) -> &'static str {
    match state {
        State::NotFound => "not_found",
        State::Cordoning => "cordoning",
        State::Held => "held",
        State::Evicting => "evicting",
        State::Empty => "empty",
        State::GraceOver => "grace_over",
        State::TakenBack => "taken_back",
    }
}
