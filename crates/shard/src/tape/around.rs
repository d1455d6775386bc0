//! What is around the engine: providers, sessions, pauses. Nothing of it decides, and people who look back want to see it.
//!
//! A shard keeps [`Surroundings`] of what its tape last said and writes down how it differs: [`Around`]. Whoever reads the
//! tape does the same from the other end. What changes all the time is kept small: clusters report every few seconds, so
//! a report that changes nothing is a place in the order of names and a second, and one that changes demand costs
//! nothing, because the demand itself says when it came.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::need::NeedKey;

use crate::config::SECOND;
use crate::memory::{HeldRollup, Pause, ShortSince};
use crate::provider::HeldListing;
use crate::tape::Input;

/// Everything around the engine at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surroundings {
    /// What the shard was told at its start.
    pub settings: Settings,
    /// In the order of the settings.
    pub providers: Vec<ProviderSeen>,
    /// All clusters that ever reported, connected or held machines.
    pub clusters: BTreeMap<Arc<str>, ClusterSeen>,
    /// Pauses in force.
    pub pauses: BTreeMap<u64, Pause>,
    /// Moves at providers.
    pub moves: u32,
    /// The books of the purchase rail.
    pub purchases: Purchases,
}

/// What a shard was told at its start, as far as people ask for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// The share of a cluster's machines that may be reclaimed in one window.
    pub reclaim_fraction: f64,
    /// That window.
    pub reclaim_window_nanos: i64,
    /// The bound on actions in one cycle; 0 for none.
    pub max_actions_per_cycle: u64,
    /// Nothing is executed.
    pub dry_run: bool,
    /// Places for moves.
    pub max_moves: u64,
    /// The share of demand that may go at once.
    pub demand_drop: f64,
    /// The share of machines that may go at once.
    pub supply_drop: f64,
    /// How many reports must agree on more.
    pub confirmations: u32,
    /// The share of the machines lost to a suspicious listing that may be replaced in one window. Of this and the next two, older
    /// records say nothing: all are 0 there.
    pub purchase_fraction: f64,
    /// That window.
    pub purchase_window_nanos: i64,
    /// What such replacements may cost an hour in all.
    pub purchase_usd_per_hour: f64,
    /// The providers.
    pub providers: Vec<ProviderSettings>,
}

/// What a shard was told of a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderSettings {
    /// Its name.
    pub name: Arc<str>,
    /// How often it is listed.
    pub list_every_nanos: i64,
    /// From which age on its listing is stale.
    pub stale_after_nanos: i64,
}

/// A provider as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderSeen {
    /// When it was listed, and what came of it.
    pub listed: Listed,
    /// How it was doing.
    pub health: Health,
}

/// What changes with every listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// When the last believed listing was begun.
    pub unix_nanos: Option<i64>,
    /// When the last believed full listing was begun.
    pub full_unix_nanos: Option<i64>,
    /// How many machines it has.
    pub machines: u32,
}

/// What changes when something goes wrong, or right again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Listings that failed in a row.
    pub failures: u32,
    /// What it last said when one failed; cut after [`MOST_TEXT_BYTES`].
    pub error: Box<str>,
    /// A listing that lost too much to be believed at once.
    pub held: Option<HeldListing>,
    /// Whether it takes machines back.
    pub supports_delete: bool,
    /// Whether it tells what changed.
    pub has_revisions: bool,
    /// Its listing was too old to take things away by.
    pub is_stale: bool,
}

/// A cluster as it was, beside its demand and its machines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterSeen {
    /// When it last reported; to the second if the report changed nothing.
    pub reported_unix_nanos: i64,
    /// When its demand last changed.
    pub changed_unix_nanos: i64,
    /// Its connection.
    pub session: Option<Link>,
    /// How its operator was doing.
    pub operator: OperatorSeen,
    /// A report that waited to be confirmed.
    pub held: Option<HeldRollup>,
    /// When and how many machines were reclaimed lately.
    pub reclaims: Vec<(i64, u32)>,
}

/// A connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Its number.
    pub number: u64,
    /// When it was opened.
    pub since_unix_nanos: i64,
    /// What it speaks.
    pub protocol: Box<str>,
}

/// How an operator is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorSeen {
    /// It failed so often in a row.
    pub failures: u32,
    /// It is left alone until then.
    pub backoff_until_unix_nanos: i64,
    /// What it last said when it failed; cut after [`MOST_TEXT_BYTES`].
    pub error: Box<str>,
}

/// How the books of the purchase rail stood.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Purchases {
    /// What replacements cost an hour.
    pub usd_per_hour: f64,
    /// Losses that were not believed yet, by cluster and provider.
    pub losses: Vec<LossSeen>,
}

/// What a cluster had lost by the word of one provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LossSeen {
    /// The cluster.
    pub cluster: Arc<str>,
    /// The provider, by its place in the settings.
    pub provider: u16,
    /// Since when it was suspicious.
    pub since_unix_nanos: i64,
    /// How many machines.
    pub machines: u32,
    /// What they cost an hour.
    pub usd_per_hour: f64,
    /// How many full listings agreed on it.
    pub seen: u32,
    /// How many of them the cluster might replace within a window.
    pub may_replace: u32,
    /// How many it had replaced within the window that ended then.
    pub replaced: u32,
}

/// The most of a text of somebody else that goes on the tape.
pub const MOST_TEXT_BYTES: usize = 500;

/// How surroundings changed since the record before; everything, if it comes with a full state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Around {
    /// Present with a full state: what was known before is void.
    pub settings: Option<Box<Settings>>,
    /// Providers that were listed, by their place in the settings.
    pub listed: Vec<(u16, Listed)>,
    /// Providers that are doing better or worse.
    pub health: Vec<(u16, Health)>,
    /// Clusters that are new, and that no demand in the same record names, by name.
    pub came: Vec<Arc<str>>,
    /// Clusters that are known no more.
    pub went: Vec<Arc<str>>,
    /// What changed about clusters. Each is named by its rank: its place in the order of names, after the demand of the
    /// record was taken in and clusters came and went. Ranks only ever rise.
    pub clusters: Vec<(u32, ClusterChange)>,
    /// Clusters that reported what they had reported before, by rank, and when, in Unix seconds; 0 for not in this life.
    pub reported: Vec<(u32, i64)>,
    /// Pauses that began or ended.
    pub pauses: Vec<(u64, Option<Pause>)>,
    /// Needs that are short since then, or no longer.
    pub short: Vec<(NeedKey, Option<ShortSince>)>,
    /// Whose the observed machines of the record are, in the order of its inputs; empty if there is one provider.
    pub owners: Vec<u16>,
    /// Moves at providers.
    pub moves: u32,
    /// The books of the purchase rail, whole, if they are different.
    pub purchases: Option<Purchases>,
}

/// What changed about a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum ClusterChange {
    /// It connected or went away.
    Session(Option<Link>),
    /// Its operator is doing better or worse.
    Operator(OperatorSeen),
    /// A report is held, or no longer.
    Held(Option<HeldRollup>),
    /// What was reclaimed lately.
    Reclaims(Vec<(i64, u32)>),
    /// When its demand changed, if the demand does not say so itself.
    Changed(i64),
}

/// Whole seconds, rounded down.
pub(crate) fn seconds(unix_nanos: i64) -> i64 {
    unix_nanos.div_euclid(SECOND)
}

impl Surroundings {
    /// Takes in what demand says about those who reported it.
    pub fn take_inputs(&mut self, inputs: &[Input]) {
        for input in inputs {
            if let Input::Replace { cluster, at_unix_nanos, .. } = input {
                let seen = self.clusters.entry(cluster.clone()).or_default();
                (seen.changed_unix_nanos, seen.reported_unix_nanos) = (*at_unix_nanos, *at_unix_nanos);
            }
        }
    }

    /// Takes in changes; first of all the inputs of the same record must be taken.
    pub fn take(&mut self, around: &Around) {
        if let Some(settings) = &around.settings {
            self.settings = (**settings).clone();
            self.providers = vec![ProviderSeen::default(); settings.providers.len()];
        }
        for (place, listed) in &around.listed {
            if let Some(provider) = self.providers.get_mut(usize::from(*place)) {
                provider.listed = *listed;
            }
        }
        for (place, health) in &around.health {
            if let Some(provider) = self.providers.get_mut(usize::from(*place)) {
                provider.health = health.clone();
            }
        }
        for name in &around.went {
            self.clusters.remove(name);
        }
        for name in &around.came {
            self.clusters.entry(name.clone()).or_default();
        }
        self.take_clusters(around);
        for (number, pause) in &around.pauses {
            match pause {
                Some(pause) => self.pauses.insert(*number, pause.clone()),
                None => self.pauses.remove(number),
            };
        }
        self.moves = around.moves;
        if let Some(purchases) = &around.purchases {
            self.purchases.clone_from(purchases);
        }
    }

    fn take_clusters(&mut self, around: &Around) {
        if around.clusters.is_empty() && around.reported.is_empty() {
            return;
        }
        let mut by_rank: Vec<&mut ClusterSeen> = self.clusters.values_mut().collect();
        for (rank, change) in &around.clusters {
            let Some(seen) = by_rank.get_mut(*rank as usize) else { continue };
            match change {
                ClusterChange::Session(session) => seen.session.clone_from(session),
                ClusterChange::Operator(operator) => seen.operator.clone_from(operator),
                ClusterChange::Held(held) => seen.held.clone_from(held),
                ClusterChange::Reclaims(reclaims) => seen.reclaims.clone_from(reclaims),
                ClusterChange::Changed(unix_nanos) => seen.changed_unix_nanos = *unix_nanos,
            }
        }
        for (rank, unix_secs) in &around.reported {
            if let Some(seen) = by_rank.get_mut(*rank as usize) {
                seen.reported_unix_nanos = unix_secs.saturating_mul(SECOND);
            }
        }
    }
}
