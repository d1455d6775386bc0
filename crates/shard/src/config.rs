//! What a shard is told once, at its start.

use std::sync::Arc;

use bigfleet_engine::Parallelism;
use bigfleet_model::cost::VictimWeights;
use bigfleet_model::release::ReleasePolicy;

/// Nanoseconds in a second.
pub const SECOND: i64 = 1_000_000_000;
/// Nanoseconds in a minute.
pub const MINUTE: i64 = 60 * SECOND;

/// Everything a shard is told once. All spans are nanoseconds.
#[derive(Clone, Debug)]
pub struct Config {
    /// The shard's name, in fencing tokens and reports.
    pub shard_id: Arc<str>,
    /// The epoch of this life: greater than that of every life before it.
    pub epoch: i64,
    /// Seed of the numbers that must not repeat: request and instruction ids.
    pub seed: u64,
    /// The providers, in the order of their [`ProviderId`](crate::ProviderId)s.
    pub providers: Vec<ProviderConfig>,
    /// The domains this shard owns, as (label key, value); empty owns everything its providers list. A machine is
    /// owned if one of them is true of it.
    pub domains: Vec<(Box<str>, Box<str>)>,
    /// Whether a coordinator says what this shard owns; it owns nothing before it was told.
    pub is_assigned: bool,
    /// When cycles run.
    pub pace: Pace,
    /// How much may be done.
    pub rails: RailConfig,
    /// When a roll-up or a List is not believed at once.
    pub guard: GuardConfig,
    /// How long things may take.
    pub patience: Patience,
    /// Bounds of everything that queues.
    pub limits: Limits,
    /// How long idle rented machines are held.
    pub release: ReleasePolicy,
    /// How the parts of the victim score are weighed.
    pub weights: VictimWeights,
    /// How long a drain is expected to take, for the victim score.
    pub estimated_drain_nanos: u64,
    /// How far a cycle may spread over threads.
    pub parallelism: Parallelism,
    /// Whether cycles are put on the tape. Off only where nobody could read it.
    pub record: bool,
    /// A bug on purpose; without the feature `planted` it does nothing.
    pub planted: Option<crate::planted::Bug>,
}

/// One provider.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// Its name, as people know it.
    pub name: Arc<str>,
    /// How often it is listed.
    pub list_every: i64,
    /// How often it is listed while it carries out moves of ours. Held back by moves that have taken long, and by
    /// listings that take long themselves.
    pub list_while_moving: i64,
    /// How often it is listed in full although it advances revisions; in between only changes are asked for.
    pub full_list_every: i64,
    /// Its listing is stale from this age on: no reclaim and no release of its machines.
    pub stale_after: i64,
}

impl ProviderConfig {
    /// A provider under this name, listed every ten seconds, and every second while something moves.
    pub fn named(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            list_every: 10 * SECOND,
            list_while_moving: SECOND,
            full_list_every: 10 * MINUTE,
            stale_after: MINUTE,
        }
    }
}

/// When cycles run: on a ticker and on news, never closer than a minimum.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// A cycle at least this often.
    pub tick: i64,
    /// Never two cycles closer than this.
    pub min_spacing: i64,
}

/// The rails: they may delay or withhold an action, never change the decision.
#[derive(Clone, Copy, Debug)]
pub struct RailConfig {
    /// The share of a cluster's Configured machines that may be reclaimed in one cycle and in one window, at least one
    /// machine.
    pub reclaim_fraction: f64,
    /// The wall-clock window of the reclaim cap.
    pub reclaim_window: i64,
    /// At most so many actions begin in one cycle, preemptions not counted; 0 for no bound. What is left over is
    /// decided again at once.
    pub max_actions_per_cycle: usize,
    /// Nothing is ever executed; cycles run in full and say what they would have done.
    pub dry_run: bool,
    /// How much is executed without asking where nobody ordered otherwise.
    pub mode: crate::modes::Mode,
    /// How long a proposal waits for a yes, and a yes for its chance, before it is proposed anew.
    pub proposal_life: i64,
    /// The share of the machines a cluster lost to a suspicious listing that may be replaced by purchases in one window,
    /// at least one machine; 1 to replace them all at once.
    pub purchase_fraction: f64,
    /// That window. Losses within one window count together, and listings that confirm a loss lie as far apart.
    pub purchase_window: i64,
    /// What all such replacements together may cost an hour, while the losses are not believed.
    pub purchase_usd_per_hour: f64,
}

/// When a report is not believed at once.
#[derive(Clone, Copy, Debug)]
pub struct GuardConfig {
    /// A roll-up that erases more than this share of the accepted demand, by rows or by amounts, is held.
    pub demand_drop: f64,
    /// A full List that loses more than this share of a provider's machines is held; one that takes more than this share of
    /// what a cluster or the fleet is bound to is suspicious, see [`RailConfig::purchase_fraction`].
    pub supply_drop: f64,
    /// Below so many machines of a provider, a cluster or the fleet losses are believed at once.
    pub supply_floor: usize,
    /// How many reports must agree before a held one is believed, the first included.
    pub confirmations: u32,
    /// Confirmations closer together than this count once.
    pub spacing: i64,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// One provider call other than List.
    pub call: i64,
    /// One List.
    pub list: i64,
    /// An operator's answer with a bootstrap blob.
    pub blob: i64,
    /// How often a call is tried again before its machine is given up for this time.
    pub retry_budget: u32,
    /// The first wait between two tries; it doubles.
    pub retry_first: i64,
    /// The longest wait between two tries.
    pub retry_most: i64,
    /// How long a machine may be Creating.
    pub creating: i64,
    /// How long a machine may be Configuring.
    pub configuring: i64,
    /// How long a machine may be Draining beyond its grace.
    pub draining: i64,
    /// How long a machine may be Deleting.
    pub deleting: i64,
    /// How long a cluster that nobody reports for and that holds nothing is remembered.
    pub gone_cluster: i64,
    /// How often a Failed machine is asked about before it is quarantined.
    pub failed_tries: u32,
    /// How long a cluster whose operator refused or did not answer is left alone at first; it doubles.
    pub operator_backoff_first: i64,
    /// At most.
    pub operator_backoff_most: i64,
}

/// Bounds of everything that queues.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Moves under way at once, over all providers. Preemptions and reclaims that wait for their cluster to let go of
    /// a machine do not count: they occupy nobody.
    pub flights: usize,
    /// Frames waiting for one session.
    pub outbox: usize,
    /// Shortfalls reported to the coordinator.
    pub reported_shortfalls: usize,
    /// Needs whose hints are looked at in one cycle.
    pub hints_per_cycle: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { tick: 10 * SECOND, min_spacing: SECOND / 10 }
    }
}

impl Default for RailConfig {
    fn default() -> Self {
        Self {
            reclaim_fraction: 0.05,
            reclaim_window: 30 * SECOND,
            max_actions_per_cycle: 0,
            dry_run: false,
            mode: crate::modes::Mode::Auto,
            proposal_life: 60 * MINUTE,
            purchase_fraction: 0.05,
            purchase_window: 30 * SECOND,
            purchase_usd_per_hour: 500.0,
        }
    }
}

impl Default for GuardConfig {
    fn default() -> Self {
        Self { demand_drop: 0.5, supply_drop: 0.2, supply_floor: 10, confirmations: 3, spacing: 5 * SECOND }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            call: 30 * SECOND,
            list: 2 * MINUTE,
            blob: 10 * SECOND,
            retry_budget: 5,
            retry_first: SECOND,
            retry_most: 30 * SECOND,
            creating: 60 * MINUTE,
            configuring: 20 * MINUTE,
            draining: 20 * MINUTE,
            deleting: 30 * MINUTE,
            gone_cluster: 60 * MINUTE,
            failed_tries: 6,
            operator_backoff_first: 5 * SECOND,
            operator_backoff_most: 5 * MINUTE,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { flights: 256, outbox: 4096, reported_shortfalls: 100, hints_per_cycle: 256 }
    }
}

impl Config {
    /// A shard with these providers and the defaults of everything else.
    pub fn new(shard_id: impl Into<Arc<str>>, epoch: i64, providers: Vec<ProviderConfig>) -> Self {
        Self {
            shard_id: shard_id.into(),
            epoch,
            seed: 0,
            providers,
            domains: Vec::new(),
            is_assigned: false,
            pace: Pace::default(),
            rails: RailConfig::default(),
            guard: GuardConfig::default(),
            patience: Patience::default(),
            limits: Limits::default(),
            release: ReleasePolicy::default(),
            weights: VictimWeights::default(),
            estimated_drain_nanos: 30_000_000_000,
            parallelism: Parallelism::default(),
            record: true,
            planted: None,
        }
    }
}
