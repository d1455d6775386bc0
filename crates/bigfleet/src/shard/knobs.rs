//! The knobs of a shard: pace, rails, guard, patience, release, record. Each has the default of the crate that uses it.

use bigfleet_model::release::ReleasePolicy;
use bigfleet_record::tape::Limits;
use bigfleet_shard::{Config, Mode, ProviderConfig};

use crate::at::nanos;

/// Flags that change a default. Spans are written as 90s, 30m, 1h30m or 2d.
#[derive(clap::Args)]
pub(crate) struct Knobs {
    /// Decide in full and execute nothing
    #[arg(long, help_heading = "Rails")]
    dry_run: bool,
    /// How much is executed without asking where nobody ordered otherwise [default: auto]
    #[arg(long, value_enum, value_name = "MODE", help_heading = "Rails")]
    mode: Option<Trust>,
    /// How long a proposal waits for a yes before it is proposed anew [default: 1h]
    #[arg(long, value_name = "SPAN", value_parser = positive, help_heading = "Rails")]
    proposal_life: Option<i64>,
    /// The share of a cluster's machines that may be reclaimed in one cycle and one window [default: 0.05]
    #[arg(long, value_name = "0..1", value_parser = share, help_heading = "Rails")]
    reclaim_fraction: Option<f64>,
    /// The wall-clock window of that share [default: 30s]
    #[arg(long, value_name = "SPAN", value_parser = positive, help_heading = "Rails")]
    reclaim_window: Option<i64>,
    /// The share of machines lost to a suspicious listing that may be replaced by purchases in one window; 1 for all [default:
    /// 0.05]
    #[arg(long, value_name = "0..1", value_parser = share, help_heading = "Rails")]
    purchase_fraction: Option<f64>,
    /// The wall-clock window of that share; listings that confirm such a loss lie as far apart [default: 30s]
    #[arg(long, value_name = "SPAN", value_parser = positive, help_heading = "Rails")]
    purchase_window: Option<i64>,
    /// What all such replacements may cost an hour, until listings agree [default: 500]
    #[arg(long, value_name = "USD", value_parser = usd, help_heading = "Rails")]
    purchase_usd_per_hour: Option<f64>,
    /// At most so many actions begin in one cycle, preemptions not counted; 0 for no bound [default: 0]
    #[arg(long, value_name = "N", help_heading = "Rails")]
    max_actions_per_cycle: Option<usize>,
    /// Moves under way at once, over all providers [default: 256]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Rails")]
    max_moves: Option<usize>,
    /// Hold idle on-demand machines this long before they are given back; 0s for ever [default: 10m]
    #[arg(long, value_name = "SPAN", value_parser = nanos, help_heading = "Rails")]
    on_demand_hold: Option<i64>,
    /// Hold idle spot machines this long before they are given back; 0s for ever [default: 1m]
    #[arg(long, value_name = "SPAN", value_parser = nanos, help_heading = "Rails")]
    spot_hold: Option<i64>,

    /// A cycle at least this often [default: 10s]
    #[arg(long, value_name = "SPAN", value_parser = positive, help_heading = "Pace")]
    tick: Option<i64>,
    /// Never two cycles closer than this [default: 100ms]
    #[arg(long, value_name = "SPAN", value_parser = positive, help_heading = "Pace")]
    min_spacing: Option<i64>,
    /// How often each provider is listed [default: 10s]
    #[arg(long, value_name = "SPAN", value_parser = positive, help_heading = "Pace")]
    list_every: Option<i64>,
    /// How often a provider is listed while it carries out moves; slower where listings or moves take long [default: 1s]
    #[arg(long, value_name = "SPAN", value_parser = positive, help_heading = "Pace")]
    list_while_moving: Option<i64>,
    /// How often a provider with revisions is listed in full [default: 10m]
    #[arg(long, value_name = "SPAN", value_parser = positive, help_heading = "Pace")]
    full_list_every: Option<i64>,
    /// From this age on a listing is stale: nothing is taken away by it [default: 1m]
    #[arg(long, value_name = "SPAN", value_parser = positive, help_heading = "Pace")]
    stale_after: Option<i64>,

    /// A roll-up that erases more than this share of a cluster's demand is held [default: 0.5]
    #[arg(long, value_name = "0..1", value_parser = share, help_heading = "Guard")]
    guard_demand_drop: Option<f64>,
    /// A listing that loses more than this share of a provider's machines is held; what it takes beyond this share from a
    /// cluster or the fleet falls under the purchase rail [default: 0.2]
    #[arg(long, value_name = "0..1", value_parser = share, help_heading = "Guard")]
    guard_supply_drop: Option<f64>,
    /// How many reports must agree before a held one is believed [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Guard")]
    guard_confirmations: Option<u32>,
    /// Reports closer together than this count as one [default: 5s]
    #[arg(long, value_name = "SPAN", value_parser = nanos, help_heading = "Guard")]
    guard_spacing: Option<i64>,

    /// How long one call to a provider may take [default: 30s]
    #[arg(long, value_name = "SPAN", value_parser = positive, help_heading = "Patience")]
    call_timeout: Option<i64>,
    /// How long one List may take [default: 2m]
    #[arg(long, value_name = "SPAN", value_parser = positive, help_heading = "Patience")]
    list_timeout: Option<i64>,
    /// How long an operator may take to give a bootstrap blob [default: 10s]
    #[arg(long, value_name = "SPAN", value_parser = positive, help_heading = "Patience")]
    bootstrap_timeout: Option<i64>,
    /// How often a call is tried before its machine is left alone for a while [default: 5]
    #[arg(long, value_name = "N", help_heading = "Patience")]
    call_tries: Option<u32>,
    /// How long a machine may be Creating [default: 1h]
    #[arg(long, value_name = "SPAN", value_parser = positive, help_heading = "Patience")]
    creating_timeout: Option<i64>,
    /// How long a machine may be Configuring [default: 20m]
    #[arg(long, value_name = "SPAN", value_parser = positive, help_heading = "Patience")]
    configuring_timeout: Option<i64>,
    /// How long a machine may be Draining beyond its grace [default: 20m]
    #[arg(long, value_name = "SPAN", value_parser = positive, help_heading = "Patience")]
    draining_timeout: Option<i64>,
    /// How long a machine may be Deleting [default: 30m]
    #[arg(long, value_name = "SPAN", value_parser = positive, help_heading = "Patience")]
    deleting_timeout: Option<i64>,
    /// How often a Failed machine is asked about before it is quarantined [default: 6]
    #[arg(long, value_name = "N", help_heading = "Patience")]
    failed_tries: Option<u32>,

    /// How many sessions may be open at once
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = at_least_one, help_heading = "Limits")]
    pub(super) max_sessions: usize,
    /// Frames that may wait for one operator before it counts as stuck [default: 4096]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Limits")]
    max_outbox: Option<usize>,
    /// The most the decision record may take, in MiB [default: 1024]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 30), help_heading = "Limits")]
    record_size: Option<u64>,
    /// How old the decision record may become [default: 7d]
    #[arg(long, value_name = "SPAN", value_parser = positive, help_heading = "Limits")]
    record_age: Option<i64>,
    /// Decides the numbers of requests and instructions; for tests that repeat a run
    #[arg(long, value_name = "NUMBER", help_heading = "Limits")]
    pub(super) seed: Option<u64>,
}

/// How much is executed without asking.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Trust {
    /// What the rails let through
    Auto,
    /// What somebody approved
    Approve,
    /// Nothing
    Observe,
}

impl From<Trust> for Mode {
    fn from(trust: Trust) -> Self {
        match trust {
            Trust::Auto => Self::Auto,
            Trust::Approve => Self::Approve,
            Trust::Observe => Self::Observe,
        }
    }
}

fn set<T: Copy>(to: &mut T, from: Option<T>) {
    if let Some(value) = from {
        *to = value;
    }
}

impl Knobs {
    /// Turns what was given.
    pub(super) fn turn(&self, config: &mut Config) {
        let Config { pace, rails, guard, patience, limits, .. } = config;
        set(&mut pace.tick, self.tick);
        set(&mut pace.min_spacing, self.min_spacing);
        rails.dry_run = self.dry_run;
        set(&mut rails.mode, self.mode.map(Into::into));
        set(&mut rails.proposal_life, self.proposal_life);
        set(&mut rails.reclaim_fraction, self.reclaim_fraction);
        set(&mut rails.reclaim_window, self.reclaim_window);
        set(&mut rails.max_actions_per_cycle, self.max_actions_per_cycle);
        set(&mut rails.purchase_fraction, self.purchase_fraction);
        set(&mut rails.purchase_window, self.purchase_window);
        set(&mut rails.purchase_usd_per_hour, self.purchase_usd_per_hour);
        set(&mut guard.demand_drop, self.guard_demand_drop);
        set(&mut guard.supply_drop, self.guard_supply_drop);
        set(&mut guard.confirmations, self.guard_confirmations);
        set(&mut guard.spacing, self.guard_spacing);
        set(&mut patience.call, self.call_timeout);
        set(&mut patience.list, self.list_timeout);
        set(&mut patience.blob, self.bootstrap_timeout);
        set(&mut patience.retry_budget, self.call_tries);
        set(&mut patience.creating, self.creating_timeout);
        set(&mut patience.configuring, self.configuring_timeout);
        set(&mut patience.draining, self.draining_timeout);
        set(&mut patience.deleting, self.deleting_timeout);
        set(&mut patience.failed_tries, self.failed_tries);
        set(&mut limits.flights, self.max_moves);
        set(&mut limits.outbox, self.max_outbox);
        let hold = |given: Option<i64>, usual| given.map_or(usual, i64::unsigned_abs);
        let usual = |hold: Option<std::num::NonZeroU64>| hold.map_or(0, std::num::NonZeroU64::get);
        config.release = ReleasePolicy::from_nanos(
            hold(self.on_demand_hold, usual(config.release.on_demand_hold_nanos)),
            hold(self.spot_hold, usual(config.release.spot_hold_nanos)),
        );
    }

    /// A provider, listed as often as wanted.
    pub(super) fn provider(&self, name: &str) -> ProviderConfig {
        let mut config = ProviderConfig::named(name);
        set(&mut config.list_every, self.list_every);
        set(&mut config.list_while_moving, self.list_while_moving);
        set(&mut config.full_list_every, self.full_list_every);
        set(&mut config.stale_after, self.stale_after);
        config
    }

    /// How much of the past is kept.
    pub(super) fn record(&self) -> Limits {
        let mut limits = Limits::default();
        set(&mut limits.max_bytes, self.record_size.map(|mib| mib << 20));
        set(&mut limits.max_age_nanos, self.record_age);
        limits
    }
}

pub(super) fn positive(text: &str) -> anyhow::Result<i64> {
    let span = nanos(text)?;
    anyhow::ensure!(span > 0, "it must be longer than nothing");
    Ok(span)
}

fn share(text: &str) -> anyhow::Result<f64> {
    let share: f64 = text.parse()?;
    anyhow::ensure!((0.0..=1.0).contains(&share), "a share is between 0 and 1, such as 0.05");
    Ok(share)
}

fn usd(text: &str) -> anyhow::Result<f64> {
    let usd: f64 = text.parse()?;
    anyhow::ensure!(usd.is_finite() && usd >= 0.0, "it is dollars an hour, such as 500");
    Ok(usd)
}

fn at_least_one(text: &str) -> anyhow::Result<usize> {
    let number: usize = text.parse()?;
    anyhow::ensure!(number > 0, "it must be at least 1");
    Ok(number)
}
