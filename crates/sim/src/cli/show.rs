//! Answers as text and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::fuzz::Found;
use crate::library;
use crate::run::Outcome;
use crate::soak::Soak;

pub(super) fn text(outcome: &Outcome) -> String {
    let s = &outcome.summary;
    let mut text = String::new();
    let mut line = |name: &str, value: String| writeln!(text, "{name:<22}{value}").expect("memory");
    line("scenario", format!("{} (seed {})", s.name, s.seed));
    line("simulated", format!("{:.0} s, {} cycles, {} calls", s.simulated_secs, s.cycles, s.calls));
    line("money", format!("{:.2} dollars", s.usd));
    line("unmet", format!("{:.3} pod-hours", s.unmet_pod_hours));
    line(
        "pods",
        format!("{} wanted, {} waiting, {} moved by force", s.pods_wanted, s.pods_pending, s.pods_lost),
    );
    line("machines", format!("{} bound, {} failed on the way", s.configured, s.machines_failed));
    line(
        "churn",
        format!(
            "{} bound, {} bought, {} reclaimed, {} given back",
            s.bootstraps + s.carried_on,
            s.provisions,
            s.reclaims,
            s.deletes
        ),
    );
    line("preemptions", s.preempts.to_string());
    line("shortfalls", s.shortfalls.to_string());
    line("last action", format!("after {:.1} s", s.last_action_secs));
    line("trace", format!("{:016x}", outcome.digest));
    for missed in &outcome.missed {
        line("NOT AS EXPECTED", missed.to_string());
    }
    for violation in &outcome.violations {
        line("VIOLATION", violation.to_string());
    }
    text
}

pub(super) fn json(outcome: &Outcome) -> String {
    let value = json!({
        "summary": outcome.summary,
        "trace_digest": format!("{:016x}", outcome.digest),
        "missed": outcome.missed.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "violations": outcome.violations.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "fine": outcome.is_fine(),
    });
    pretty(&value)
}

pub(super) fn library(as_json: bool) -> String {
    if as_json {
        let each = library::all().map(|scenario| json!({ "name": scenario.name, "note": scenario.note }));
        return pretty(&each.collect());
    }
    let mut text = String::new();
    for scenario in library::all() {
        let first = scenario.note.split(". ").next().unwrap_or_default();
        writeln!(text, "{:<34}{first}", scenario.name).expect("memory");
    }
    text
}

pub(super) fn fuzz(seeds: u64, found: &[Found], as_json: bool) -> String {
    if as_json {
        let failures = found.iter().map(failure);
        return pretty(&json!({ "seeds": seeds, "failures": failures.collect::<Vec<_>>() }));
    }
    let mut text = format!("{seeds} seeds, {} failures\n", found.len());
    for found in found {
        writeln!(text, "seed {:<8}{}", found.seed, found.violation).expect("memory");
    }
    text
}

fn failure(found: &Found) -> Value {
    json!({
        "seed": found.seed,
        "violation": found.violation.to_string(),
        "command": format!("bigfleet sim replay {}", found.seed),
        "scenario": serde_json::to_value(&found.scenario).expect("a scenario is plain data"),
    })
}

pub(super) fn soak(soak: &Soak, as_json: bool) -> String {
    if as_json {
        let failures = soak.found.iter().map(failure);
        return pretty(&json!({
            "days": soak.days, "worlds": soak.worlds, "cycles": soak.cycles, "usd": soak.usd,
            "actions": soak.actions, "failures": failures.collect::<Vec<_>>(),
        }));
    }
    format!(
        "{:.1} simulated days in {} worlds: {} cycles, {} actions, {:.0} dollars, {} failures\n",
        soak.days,
        soak.worlds,
        soak.cycles,
        soak.actions,
        soak.usd,
        soak.found.len()
    )
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("plain data") + "\n"
}
