//! What each setting means, for people: printed at the start, and the source of the table in the documentation.

use std::fmt::Write as _;

use crate::models::Models;

/// One sentence for each setting, in the order in which they are printed.
pub const HELP: &[(&str, &str)] = &[
    ("host_loss.on", "hosts die without a word"),
    ("host_loss.per_machine_year", "how many hosts a machine loses in a year"),
    ("latency.configure.least", "no Configure is shorter"),
    ("latency.configure.median", "half of all Configures are shorter (log-normal)"),
    ("latency.configure.p99", "one Configure in a hundred is longer"),
    ("latency.create.least", "no Create of a virtual machine is shorter"),
    ("latency.create.median", "half of all Creates of virtual machines are shorter (log-normal)"),
    ("latency.create.p99", "one Create of a virtual machine in a hundred is longer"),
    ("latency.create_metal.least", "no Create of a whole host is shorter"),
    ("latency.create_metal.median", "half of all Creates of whole hosts are shorter (log-normal)"),
    ("latency.create_metal.p99", "one Create of a whole host in a hundred is longer"),
    ("latency.delete.least", "no Delete is shorter"),
    ("latency.delete.median", "half of all Deletes are shorter (log-normal)"),
    ("latency.delete.p99", "one Delete in a hundred is longer"),
    ("latency.drain.least", "no Drain is shorter, also with a shorter grace"),
    ("latency.drain.median", "half of all Drains are shorter (log-normal, cut off at their grace)"),
    ("latency.drain.p99", "one Drain in a hundred is longer"),
    ("pools.depth", "how many 4-cpu machines of a type a zone holds; larger ones are rarer"),
    ("pools.memory", "how long a pool that ran empty refuses everybody"),
    ("pools.on", "rented capacity can run out"),
    ("pools.refill_per_hour", "how many 4-cpu machines come into a pool in an hour"),
    ("prices.every", "how often spot prices may move"),
    ("prices.mean", "what spot costs on average, as a share of on demand"),
    ("prices.on", "spot prices move"),
    ("prices.spread", "how far spot prices usually stray, as a share of their mean"),
    ("repair.after", "how long a Failed slot takes to become usable again"),
    ("repair.on", "Failed slots become usable again"),
    ("spot.factor", "multiplies the catalogue's rates of spot loss"),
    ("spot.notice", "how long before a spot machine is taken back it is announced"),
    ("spot.on", "spot machines are taken back"),
    ("throttle.burst", "moves taken at once after a pause"),
    ("throttle.moves_per_sec", "moves taken in a second in the long run"),
    ("throttle.on", "moves that come too fast are refused"),
    ("throttle.retry_after", "when a refused caller should come back"),
    ("tick", "how often losses, repairs and prices are looked at"),
];

/// All settings with their values and meanings, one a line; those that differ from the default are marked.
pub fn describe(models: &Models) -> String {
    let defaults = Models::default().settings();
    let mut text = String::new();
    for ((name, value), (_, default)) in models.settings().iter().zip(&defaults) {
        let help = HELP.iter().find(|(named, _)| named == name).map_or("", |(_, help)| help);
        let changed = if value == default { String::new() } else { format!(" (default {default})") };
        writeln!(text, "  {name:<28} = {value:<8} {help}{changed}").expect("a string takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_its_sentence() {
        let settings = Models::default().settings();
        let mut settings: Vec<&str> = settings.iter().map(|(name, _)| name.as_str()).collect();
        settings.sort_unstable();
        assert_eq!(settings, HELP.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }

    #[test]
    fn changed_settings_are_marked() {
        let mut models = Models::default();
        models.set("spot.notice=30s").expect("a setting");
        let text = describe(&models);
        assert!(text.contains("spot.notice                  = 30s"), "{text}");
        assert!(text.contains("(default 2m)"), "{text}");
        assert_eq!(text.matches("(default").count(), 1);
    }
}
