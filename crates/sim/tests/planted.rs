//! Bugs planted on purpose are found, each by the invariant that is meant for it.
//!
//! The table is printed at the end of a run (see `scripts/nextest.toml`), so that CI shows it.

use std::fmt::Write as _;

use bigfleet_shard::Bug;
use bigfleet_sim::{INVARIANTS, PANIC, Planted, Setup, fuzz, library, run};

/// How a bug is found.
#[derive(Clone, Copy)]
enum By {
    /// By a random world of one of the first so many seeds.
    Seeds(u64),
    /// By a scenario of the library.
    Scenario(&'static str),
}
use By::{Scenario, Seeds};

/// Each bug, the invariant that is meant for it, and how it is found. 0 stands for what the scenario expects, and for a panic in
/// a random world, which is a finding with a seed like any other.
const TABLE: [(Planted, usize, By); 41] = [
    (Planted::PodsAreMachines, 9, Seeds(10)),
    (Planted::SupplyCountedTwice, 12, Seeds(60)),
    (Planted::DomainChosenTwice, 12, Seeds(400)),
    (Planted::GangsRoundedUp, 9, Seeds(30)),
    (Planted::DeadCounted, 11, Seeds(60)),
    (Planted::PreemptionsForgotten, 15, Seeds(200)),
    (Planted::CapPerCall, 6, Seeds(40)),
    (Planted::GuardOff, 9, Seeds(40)),
    (Planted::StaleAdopted, 10, Seeds(20)),
    (Planted::FenceIgnored, 14, Seeds(300)),
    (Planted::FixedDeleted, 2, Seeds(20)),
    (Planted::AgesForgotten, 19, Seeds(100)),
    (Planted::Code(Bug::OnOrderForgotten), 21, Seeds(400)),
    (Planted::Code(Bug::OverdueCounted), 11, Seeds(400)),
    (Planted::Code(Bug::OlderListingAdopted), 25, Seeds(400)),
    (Planted::Code(Bug::IdleHoldHalved), 23, Seeds(100)),
    (Planted::Code(Bug::DrainForgotten), 24, Seeds(400)),
    (Planted::Code(Bug::PauseForgotten), 7, Seeds(400)),
    (Planted::Code(Bug::GateOpen), 8, Seeds(400)),
    (Planted::Code(Bug::FailedUnmet), 13, Seeds(400)),
    (Planted::Code(Bug::RemovalUnrecorded), 17, Seeds(400)),
    (Planted::Code(Bug::PlacesUnbounded), 18, Seeds(100)),
    (Planted::Code(Bug::BillLeaks), 20, Seeds(100)),
    (Planted::Code(Bug::ListingGuardOff), 26, Seeds(100)),
    (Planted::Code(Bug::ListsUncompared), 26, Scenario("other-half-each-time")),
    (Planted::Code(Bug::PurchaseRailOff), 0, Scenario("shown-failed")),
    (Planted::Code(Bug::DeniedIsLost), 21, Seeds(400)),
    (Planted::Code(Bug::GraceHalved), 27, Seeds(400)),
    (Planted::Code(Bug::RefusedRepeated), 9, Seeds(400)),
    (Planted::Code(Bug::StaleTaken), 28, Seeds(400)),
    (Planted::Code(Bug::SequenceStands), 14, Seeds(10)),
    (Planted::Code(Bug::ReclaimsForgotten), 6, Seeds(400)),
    (Planted::Code(Bug::HeldTaken), 9, Seeds(100)),
    (Planted::Code(Bug::FailureUntold), 29, Seeds(400)),
    (Planted::Code(Bug::PlaceKept), 22, Seeds(10)),
    (Planted::Code(Bug::ListTimerLost), 22, Seeds(100)),
    (Planted::Code(Bug::IdleSinceLost), 16, Scenario("refused-and-unwanted")),
    (Planted::Code(Bug::PanicsOnUndoing), 0, Seeds(20)),
    (Planted::Code(Bug::ParkedActs), 30, Seeds(400)),
    (Planted::Code(Bug::ProposalsApproved), 31, Scenario("asked-first")),
    (Planted::Code(Bug::ModeForgotten), 31, Scenario("observed-over-restart")),
];

/// Where a bug is found by its invariant, and what else found it before that.
fn find(bug: Planted, meant: usize, by: By) -> Result<String, String> {
    let mut others: Vec<usize> = Vec::new();
    match by {
        Seeds(most) => {
            for seed in 1..=most {
                let found = fuzz::run_seed_through(seed, Some(bug));
                if found.iter().any(|violation| violation.number == meant) {
                    return Ok(format!("seed {seed}"));
                }
                others.extend(found.iter().map(|violation| violation.number));
            }
        }
        Scenario(name) => {
            let scenario = library::find(name).expect("it is in the library");
            let outcome = run(&scenario, Setup { planted: Some(bug), ..Setup::default() });
            let is_missed = meant == 0 && !outcome.missed.is_empty();
            if is_missed || outcome.violations.iter().any(|violation| violation.number == meant) {
                return Ok(format!("scenario {name}"));
            }
            others.extend(outcome.violations.iter().map(|violation| violation.number));
        }
    }
    others.sort_unstable();
    others.dedup();
    Err(format!("{}: not found by invariant {meant}; others that found it: {others:?}", bug.name()))
}

/// Finds every bug of one part of the table, and prints it.
#[expect(clippy::print_stdout, reason = "the table is what people look for in a run")]
fn part(part: usize, parts: usize) {
    let (mut table, mut missed) = (String::new(), Vec::new());
    for (bug, meant, by) in TABLE.iter().skip(part).step_by(parts) {
        let what = match (meant, by) {
            (0, Seeds(_)) => PANIC,
            (0, Scenario(_)) => "what the scenario expects",
            (number, _) => INVARIANTS[number - 1],
        };
        match find(*bug, *meant, *by) {
            Ok(place) => {
                let _ = writeln!(table, "{:<22} {place:<32} {meant:>2} {what}", bug.name());
            }
            Err(why) => missed.push(why),
        }
    }
    println!("{table}");
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn planted_bugs_are_found_first_part() {
    part(0, 4);
}

#[test]
fn planted_bugs_are_found_second_part() {
    part(1, 4);
}

#[test]
fn planted_bugs_are_found_third_part() {
    part(2, 4);
}

#[test]
fn planted_bugs_are_found_fourth_part() {
    part(3, 4);
}

#[test]
fn the_table_names_every_bug_once() {
    let mut named: Vec<Planted> = TABLE.iter().map(|(bug, ..)| *bug).collect();
    named.sort_unstable();
    let mut all: Vec<Planted> = Planted::all().collect();
    all.sort_unstable();
    assert_eq!(named, all);
    assert!(all.len() >= 30);
}
