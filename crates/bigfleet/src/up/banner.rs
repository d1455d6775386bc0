//! What `bigfleet up` says at its start and its end.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use bigfleet_proto::v1alpha1::CapacityType;
use bigfleet_provider_kit::Machine;

use super::stage::Stage;
use super::world::Kept;
use super::{Args, cast};
use crate::words;

/// What to try, in two lines.
const TRY: [&str; 5] = [
    "bigfleet get clusters",
    "bigfleet explain cluster ml",
    "bigfleet demand set shop web=90",
    "bigfleet plan",
    "bigfleet fault add zone-outage zone-b --for 10m",
];

/// The same for the live view.
pub(crate) fn notes(stage: &Stage) -> Vec<String> {
    vec![
        format!("page: http://{}", stage.web),
        format!("in another terminal: {}", TRY[..3].join(" | ")),
        format!("{} | simulated cloud and clusters, real shard", TRY[3..].join(" | ")),
    ]
}

/// Everything a newcomer needs, said once everybody answers.
pub(crate) fn text(stage: &Stage, kept: &Kept, args: &Args, started_nanos: u64) -> String {
    let clusters: Vec<String> = cast::clusters().into_iter().map(|part| part.cluster.name).collect();
    let now = stage.clock.now_unix_nanos();
    let mut text = format!(
        "page      http://{}\nBigFleet  SIMULATED cloud and clusters, real shard      seed {}   clock {}x\n",
        stage.web, kept.seed, args.clock
    );
    let mut line = |label: &str, words: String| {
        let _ = writeln!(text, "  {label:<9} {words}");
    };
    let metrics = stage.shard.http.map(|address| format!("   metrics http://{address}/metrics"));
    line("shard", format!("http://{}{}", stage.shard.grpc, metrics.unwrap_or_default()));
    for (name, other) in &stage.others {
        line("", format!("http://{} ({name})", other.grpc));
    }
    if let Some(coordinator) = &stage.coordinator {
        let address = coordinator.address;
        line("fleet", format!("bigfleet get transfers --coordinator {address}; domains and shards likewise"));
    }
    line("clusters", clusters.join(", "));
    line("capacity", capacity(&stage.cloud.handle().machines()));
    let hour = words::span(3_600_000_000_000 / i64::from(args.clock));
    line("time", format!("{}; a simulated hour takes {hour}", words::rfc3339(now - now % 1_000_000_000)));
    for moved in &stage.moved {
        line("moved", moved.clone());
    }
    line("try", TRY[..3].join(" | "));
    line("", TRY[3..].join(" | "));
    let keep = match &args.data {
        None => "ctrl-c stops everything; add --data ./fleet to keep it".to_owned(),
        Some(folder) => format!("ctrl-c stops everything; {} keeps it", folder.display()),
    };
    let _ = writeln!(text, "  {keep}\nready after {} ms", started_nanos / 1_000_000);
    text
}

/// `3 bare-metal  21 reserved …  now $4.56/h`: all slots, and what the hardware there is costs.
fn capacity(machines: &[impl AsRef<Machine>]) -> String {
    let mut counts: BTreeMap<i32, usize> = BTreeMap::new();
    for machine in machines {
        *counts.entry(machine.as_ref().capacity_type).or_default() += 1;
    }
    let hardware = machines.iter().map(AsRef::as_ref).filter(|machine| machine.host.is_some());
    let usd: f64 = hardware.map(|machine| machine.price_per_hour).sum();
    let known = [CapacityType::BareMetal, CapacityType::Reserved, CapacityType::OnDemand, CapacityType::Spot];
    let counted = known.into_iter().map(i32::from).filter_map(|kind| Some((kind, *counts.get(&kind)?)));
    let counted = counted.map(|(kind, count)| format!("{count} {}", words::capacity_type(kind)));
    format!("{}   now {}", counted.collect::<Vec<_>>().join("  "), words::hourly(usd))
}

/// The last words.
pub(crate) fn farewell(folder: Option<&Path>, stopping_nanos: u64) -> String {
    let what = match folder {
        None => "nothing is kept".to_owned(),
        Some(folder) => format!("{} has everything; the same command goes on with it", folder.display()),
    };
    format!("stopped after {} ms; {what}\n", stopping_nanos / 1_000_000)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bigfleet_proto::v1alpha1::HostRef;

    use super::*;

    #[test]
    fn slots_are_counted_and_hardware_is_paid_for() {
        let machine = |kind: CapacityType, price_per_hour, host: bool| {
            let host = host.then(HostRef::default);
            Arc::new(Machine { capacity_type: kind.into(), price_per_hour, host, ..Machine::default() })
        };
        let machines = [
            machine(CapacityType::Spot, 0.5, false),
            machine(CapacityType::BareMetal, 1.25, true),
            machine(CapacityType::Spot, 0.5, true),
        ];
        assert_eq!(capacity(&machines), "1 bare-metal  2 spot   now $1.75/h");
    }

    #[test]
    fn the_end_says_what_is_left() {
        assert_eq!(farewell(None, 12_000_000), "stopped after 12 ms; nothing is kept\n");
        let kept = farewell(Some(Path::new("./fleet")), 0);
        assert_eq!(kept, "stopped after 0 ms; ./fleet has everything; the same command goes on with it\n");
    }
}
