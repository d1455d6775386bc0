//! How a world that runs faster paces itself: simulated spans grow where real sockets and threads need their time.

use std::time::Duration;

use bigfleet_net::nanos;
use bigfleet_shard::{Config, ProviderConfig};

/// How many times as fast as real time the world runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Speed(pub(crate) u32);

impl Speed {
    /// What passes in the world during this real span.
    pub(crate) fn simulated(self, real: Duration) -> Duration {
        real.saturating_mul(self.0)
    }

    /// A simulated span, or longer if it would be shorter than `real` in real time.
    fn at_least(self, span: i64, real: Duration) -> i64 {
        span.max(nanos(self.simulated(real)))
    }
}

const TICK: Duration = Duration::from_millis(50);
const SPACING: Duration = Duration::from_millis(10);
const ANSWER: Duration = Duration::from_secs(3);

/// The shard's settings: its defaults, rails on.
pub(crate) fn shard(name: &str, seed: u64, speed: Speed) -> Config {
    let mut config = Config::new(name, 0, Vec::new());
    config.seed = seed;
    config.pace.tick = speed.at_least(config.pace.tick, TICK);
    config.pace.min_spacing = speed.at_least(config.pace.min_spacing, SPACING);
    config.patience.call = speed.at_least(config.patience.call, ANSWER);
    config.patience.list = speed.at_least(config.patience.list, ANSWER);
    config.patience.blob = speed.at_least(config.patience.blob, ANSWER);
    config
}

/// The provider's settings.
pub(crate) fn provider(name: &str, speed: Speed) -> ProviderConfig {
    let mut config = ProviderConfig::named(name);
    config.list_every = speed.at_least(config.list_every, TICK);
    config.list_while_moving = speed.at_least(config.list_while_moving, TICK);
    config.stale_after = speed.at_least(config.stale_after, ANSWER);
    config
}

/// How often operators report.
pub(crate) fn roll_up(speed: Speed) -> Duration {
    Duration::from_secs(10).max(speed.simulated(TICK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_real_time_everything_is_as_in_production() {
        let (ours, usual) = (shard("up", 1, Speed(1)), Config::new("up", 0, Vec::new()));
        assert_eq!((ours.pace.tick, ours.pace.min_spacing), (usual.pace.tick, usual.pace.min_spacing));
        assert_eq!((ours.patience.call, ours.patience.blob), (usual.patience.call, usual.patience.blob));
        assert_eq!(roll_up(Speed(1)), Duration::from_secs(10));
    }

    #[test]
    fn the_fastest_world_leaves_sockets_their_time() {
        let fast = shard("up", 1, Speed(1000));
        assert_eq!((fast.pace.tick, fast.pace.min_spacing), (50_000_000_000, 10_000_000_000));
        assert_eq!((fast.patience.call, fast.patience.blob), (3_000_000_000_000, 3_000_000_000_000));
        assert_eq!(provider("sim", Speed(1000)).stale_after, 3_000_000_000_000);
        assert_eq!(roll_up(Speed(1000)), Duration::from_secs(50));
    }
}
