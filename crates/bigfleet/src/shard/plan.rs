//! What the flags mean together.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use bigfleet_net::{Clock as _, SystemClock};
use bigfleet_record::LostMemory;
use bigfleet_shard::Config;
use bigfleet_shard_server::{Keep, ProviderAddress, Reporting, Settings};

use super::Args;
use crate::daemon::metrics_address;

/// `NAME=URL` of a provider.
pub(super) fn provider(text: &str) -> anyhow::Result<(String, String)> {
    let (name, url) = pair(text).context("write NAME=URL, such as metal=http://127.0.0.1:9000")?;
    ensure!(url.contains("://"), "{url:?} has no scheme; write {name}=http://{url}");
    Ok((name, url))
}

/// `KEY=VALUE`, neither of them empty.
pub(super) fn pair(text: &str) -> anyhow::Result<(String, String)> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key.into(), value.into())),
        _ => bail!("{text:?} is not KEY=VALUE"),
    }
}

/// Everything the server is told.
pub(super) fn settings(args: &Args) -> anyhow::Result<Settings> {
    let tls = args.tls.files()?;
    ensure!(
        tls.is_some() || args.insecure || args.listen.ip().is_loopback(),
        "--listen {} takes calls from other machines, and without TLS anybody could speak for any cluster; \
         give --tls-cert, --tls-key and --tls-ca, or say --insecure",
        args.listen
    );
    let http = metrics_address(&args.metrics, "127.0.0.1:8780")?;
    ensure!(
        args.insecure || args.insecure_metrics || http.is_none_or(|address| address.ip().is_loopback()),
        "--metrics {} shows names and figures of the fleet in plaintext to other machines; put it behind something that \
         guards it, or say --insecure-metrics",
        args.metrics
    );
    let mut config = Config::new(args.shard_id.as_str(), 0, Vec::new());
    config.seed = args.knobs.seed.unwrap_or_else(|| SystemClock::start().now_unix_nanos().unsigned_abs());
    config.domains =
        args.domains.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect();
    // Two words about one thing would be one too many.
    ensure!(
        args.coordinator.is_none() || args.domains.is_empty(),
        "with --coordinator this shard owns what it is assigned, and --domain says it owns something else; \
         assign domains with `bigfleet assign KEY=VALUE --to {}`, or leave the coordinator out",
        args.shard_id
    );
    config.is_assigned = args.coordinator.is_some();
    args.knobs.turn(&mut config);
    ensure!(config.pace.min_spacing <= config.pace.tick, "--min-spacing must not be longer than --tick");
    let providers = args.providers.iter().map(|(name, address)| ProviderAddress {
        config: args.knobs.provider(name),
        address: address.clone(),
    });
    let providers: Vec<ProviderAddress> = providers.collect();
    let keep = match &args.data {
        Some(path) => Keep::Folder { path: path.clone(), record: args.knobs.record() },
        None => Keep::Nothing,
    };
    let coordinator = args.coordinator.as_ref().map(|address| Reporting {
        shard_address: args.advertise.clone().unwrap_or_default(),
        every: Duration::from_nanos(args.report_every.unsigned_abs()),
        ..Reporting::to(address)
    });
    Ok(Settings {
        keep,
        lost_memory: if args.accept_lost_memory { LostMemory::Accept } else { LostMemory::Refuse },
        grpc: args.listen,
        http,
        tls,
        most_sessions: args.knobs.max_sessions,
        coordinator,
        ..Settings::local(config, providers)
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Shard {
        #[command(flatten)]
        args: Args,
    }

    fn planned(flags: &str) -> Result<Settings, String> {
        let parsed = Shard::try_parse_from(std::iter::once("shard").chain(flags.split_whitespace()));
        let parsed = parsed.map_err(|error| error.to_string())?;
        settings(&parsed.args).map_err(|error| format!("{error:#}"))
    }

    const PLAIN: &str = "--memory-only --provider a=http://127.0.0.1:9000";

    #[test]
    fn flags_become_settings() {
        let settings = planned(&format!(
            "{PLAIN} --provider b=http://127.0.0.1:9001 --domain topology.kubernetes.io/zone=a --dry-run --tick 5s \
             --reclaim-fraction 0.1 --spot-hold 0s --metrics none --stale-after 90s --max-moves 7 --record-size 2"
        ))
        .unwrap();
        let names: Vec<&str> = settings.providers.iter().map(|provider| &*provider.config.name).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(settings.providers[1].config.stale_after, 90_000_000_000);
        let shard = &settings.shard;
        assert_eq!(
            (shard.pace.tick, shard.rails.dry_run, shard.rails.reclaim_fraction),
            (5_000_000_000, true, 0.1)
        );
        assert_eq!((shard.limits.flights, shard.release.spot_hold_nanos), (7, None));
        assert_eq!(
            shard.release.on_demand_hold_nanos,
            Config::new("", 0, vec![]).release.on_demand_hold_nanos
        );
        assert_eq!(shard.domains, [("topology.kubernetes.io/zone".into(), "a".into())]);
        assert!(!shard.is_assigned, "it has domains of its own");
        let assigned = planned(&format!("{PLAIN} --coordinator http://c:1 --report-every 2s")).unwrap();
        assert!(assigned.shard.is_assigned);
        assert_eq!(assigned.coordinator.map(|to| to.every), Some(Duration::from_secs(2)));
        assert!(settings.http.is_none() && matches!(settings.keep, Keep::Nothing));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_remedy() {
        for (flags, part) in [
            ("--provider a=http://h:1", "--data <DIR>"),
            ("--memory-only", "--provider <NAME=URL>"),
            ("--memory-only --data d --provider a=http://h:1", "cannot be used with"),
            ("--memory-only --provider a", "write NAME=URL"),
            ("--memory-only --provider a=h:1", "write a=http://h:1"),
            ("--memory-only --provider =http://h:1", "write NAME=URL"),
        ] {
            let error = planned(flags).unwrap_err();
            assert!(error.contains(part), "{flags}: {error}");
        }
        for (more, part) in [
            ("--listen 0.0.0.0:7780", "or say --insecure"),
            ("--metrics 0.0.0.0:8780", "or say --insecure-metrics"),
            ("--tls-cert c", "--tls-key"),
            ("--reclaim-fraction 2", "between 0 and 1"),
            ("--tick 0s", "longer than nothing"),
            ("--tick 1s --min-spacing 2s", "must not be longer than --tick"),
            ("--tick soon", "is not a span"),
            ("--metrics here", "neither an address"),
            ("--domain zone", "is not KEY=VALUE"),
            ("--domain zone=a --coordinator http://c:1", "bigfleet assign KEY=VALUE"),
            ("--max-sessions 0", "at least 1"),
            ("--advertise h:1", "--coordinator"),
            ("--shard-id=", "shard-id"),
        ] {
            let error = planned(&format!("{PLAIN} {more}")).unwrap_err();
            assert!(error.contains(part), "{more}: {error}");
        }
        assert!(planned(&format!("{PLAIN} --listen 0.0.0.0:7780 --insecure")).is_ok());
        assert!(planned(&format!("{PLAIN} --metrics 0.0.0.0:8780 --insecure-metrics")).is_ok());
    }
}
