//! Random fleets reach every rule: each way in which one can decide is met in many fleets, not by accident.

use std::collections::BTreeMap;

use bigfleet_oracle::{Size, apply, decide_and_tell, random_edits, random_scenario};

/// In how many fleets each of these must decide, by the beginning of its name.
const RULES: &[(&str, u64)] = &[
    // Orders, down to their last question.
    ("demand order: priority", 500),
    ("demand order: first seen", 200),
    ("demand order: cluster", 200),
    ("demand order: fingerprint", 200),
    ("demand order: group", 200),
    ("demand order: folded", 20),
    ("demand order: min_unit", 20),
    ("precedence order: interruption bucket", 200),
    ("precedence order: reclamation bucket", 100),
    ("bargain order: finite", 50),
    ("bargain order: fixed Idle", 200),
    ("bargain order: asking price for its share", 200),
    ("bargain order: Idle", 50),
    ("bargain order: share", 50),
    ("bargain order: size", 30),
    ("bargain order: id", 100),
    ("victim order: unclaimed", 20),
    ("victim order: score", 50),
    ("victim order: id", 20),
    ("victim order: of a cluster that has not reported", 20),
    // Folding.
    ("fold: at home", 100),
    ("fold: with an equal", 20),
    ("fold: by Configured alone", 50),
    ("fold: by Configuring alone", 20),
    ("fold: by Creating alone", 20),
    ("fold: by Draining alone", 10),
    ("fold: by Idle alone", 50),
    ("fold: by Speculative alone", 20),
    // What is kept, and what becomes of it.
    ("keep: Configured", 500),
    ("keep: Configuring", 100),
    ("keep: Creating", 100),
    ("keep: a gang keeps all", 50),
    ("keep: surplus is free", 100),
    ("keep: by the stamp of a folded gang", 10),
    ("keep: superfluous, given back", 20),
    ("keep: superfluous, spared by the spread", 5),
    ("keep: superfluous, spared while part is coming", 10),
    ("credit: own, kept, ", 500),
    ("credit: own, kept by another", 2),
    ("credit: own, not kept", 10),
    ("credit: nobody keeps it, Configured", 500),
    ("credit: nobody keeps it, Configuring", 100),
    ("credit: superfluous, given back", 50),
    ("credit: superfluous, spared by the spread", 20),
    ("credit: superfluous, spared while part is coming", 20),
    // What is gained.
    ("acquire: Idle, a plain need", 200),
    ("acquire: Idle, a folded need", 50),
    ("acquire: Idle, a gang", 100),
    ("acquire: Idle, a spread", 100),
    ("acquire: Speculative, a plain need", 100),
    ("acquire: Speculative, a folded need", 50),
    ("acquire: Speculative, a gang", 50),
    ("acquire: Speculative, a spread", 50),
    ("acquire: let in by what was taken over", 5),
    ("take over: Configured, a plain need", 50),
    ("take over: Configured, a folded need", 20),
    ("take over: Configured, a gang", 50),
    ("take over: Configured, a parked gang", 5),
    ("take over: Configured, a spread", 20),
    ("take over: Configuring", 50),
    ("take over: what acquiring left missing", 50),
    ("gain: superfluous, given back, Idle", 20),
    ("gain: superfluous, given back, Speculative", 20),
    ("gain: superfluous, given back, Config", 5),
    ("gain: superfluous, spared by the spread", 10),
    ("spread: keeps a machine out", 30),
    ("spread: beside what drains for it", 50),
    // Where gangs go.
    ("domain: one covers", 100),
    ("domain: both cover, own", 50),
    ("domain: both cover, creditable", 20),
    ("domain: both cover, new money", 20),
    ("domain: both cover, tightness", 20),
    ("domain: both cover, machines", 2),
    ("domain: none covers, own", 50),
    ("domain: none covers, joint", 100),
    ("domain: none covers, creditable", 20),
    ("domain: none covers, machines", 10),
    ("domain: nothing", 50),
    ("domain: with what others keep", 20),
    ("domain: none", 200),
    // Preemption.
    ("in flight: for the need itself", 100),
    ("in flight: for a folded gang", 20),
    ("in flight: for another need", 10),
    ("in flight: for a gang in its own domain", 20),
    ("in flight: for a gang elsewhere", 10),
    ("preempt: a gang in its own domain", 50),
    ("preempt: a gang away from its domain", 20),
    ("preempt: a gang without a domain", 20),
    ("preempt: a gang by fewest victims", 5),
    ("preempt: a gang by the smaller value", 2),
    ("preempt: a gang that no domain completes", 200),
    ("preempt: superfluous, spared", 20),
    ("preempt: under a spread", 30),
    ("preempt: the spread keeps a victim out", 10),
];

/// In how many fleets each rule decided.
type Met = BTreeMap<String, u64>;

fn count(met: &mut Met, told: BTreeMap<String, u64>) {
    for rule in told.into_keys() {
        *met.entry(rule).or_insert(0) += 1;
    }
}

fn times(met: &Met, beginning: &str) -> u64 {
    met.iter().filter(|(rule, _)| rule.starts_with(beginning)).map(|(_, times)| times).sum()
}

#[test]
fn fleets_from_scratch_reach_every_rule() {
    let mut met = Met::new();
    for (size, seeds) in [(Size::Tiny, 6_000), (Size::Small, 150), (Size::Medium, 4)] {
        for seed in 0..seeds {
            count(&mut met, decide_and_tell(&random_scenario(seed, size)).1);
        }
    }
    for (rule, least) in RULES {
        let found = times(&met, rule);
        assert!(found >= *least, "{rule:?} decided in {found} fleets, not in {least}; all: {met:#?}");
    }
    // A rule that this list does not know is one nobody would miss.
    let unknown: Vec<&String> =
        met.keys().filter(|rule| !RULES.iter().any(|(known, _)| rule.starts_with(known))).collect();
    let expected = ["precedence order: "];
    let unknown: Vec<_> =
        unknown.into_iter().filter(|rule| !expected.iter().any(|e| rule.starts_with(e))).collect();
    assert!(unknown.is_empty(), "not on the list: {unknown:?}");
}

#[test]
fn fleets_after_edits_reach_nearly_every_rule() {
    let mut met = Met::new();
    for seed in 0..900 {
        let mut scenario = random_scenario(seed, Size::Tiny);
        for edit in random_edits(seed, &scenario, 12) {
            apply(&mut scenario, &edit);
            count(&mut met, decide_and_tell(&scenario).1);
        }
    }
    let missed: Vec<&str> = RULES
        .iter()
        .filter(|(rule, least)| *least >= 10 && times(&met, rule) < 3)
        .map(|(rule, _)| *rule)
        .collect();
    assert!(missed.is_empty(), "hardly met: {missed:?}; all: {met:#?}");
}
