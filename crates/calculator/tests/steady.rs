//! The engine in closed loops: steady demand, every action carried out, and every cycle held against the oracle.
//!
//! `BIGFLEET_SEEDS=FIRST..LAST` tries other seeds than the usual ones; a failure prints the line to repeat it.

use std::collections::BTreeSet;
use std::ops::Range;

use bigfleet_calculator::{answer, engine_options, load};
use bigfleet_engine::{Draft, Fleet, Parallelism};
use bigfleet_oracle::{Steady, as_vector};
use bigfleet_scenario::answer::difference;
use bigfleet_scenario::{Answer, Scenario};

const ALONE: Parallelism = Parallelism { threads: 1, from_clusters: 0 };

fn seeds(usual: u64) -> Range<u64> {
    let Ok(asked) = std::env::var("BIGFLEET_SEEDS") else { return 0..usual };
    let (first, last) = asked.split_once("..").expect("BIGFLEET_SEEDS is FIRST..LAST");
    first.parse().expect("the first seed is a number")..last.parse().expect("the last seed is a number")
}

/// Tells a fleet what changed between two scenarios.
fn catch_up(fleet: &mut Fleet, before: &Scenario, now: &Scenario) {
    for machine in now.machines.iter().filter(|machine| !before.machines.contains(machine)) {
        fleet.observe(machine).expect("a random machine is valid");
    }
    if before.needs == now.needs {
        return;
    }
    let clusters: BTreeSet<&str> = before.needs.iter().chain(&now.needs).map(|need| &*need.cluster).collect();
    for cluster in clusters {
        let rows = now.needs.iter().filter(|need| *need.cluster == *cluster).cloned().collect();
        fleet.adopt(Draft::new(cluster, rows).expect("a random roll-up is valid"), 0);
    }
}

#[test]
fn every_cycle_of_a_steady_world_is_decided_as_the_oracle_does() {
    for seed in seeds(120) {
        let mut known: Option<(Fleet, Scenario)> = None;
        let decide = |scenario: &Scenario| -> Answer {
            let mut fleet = match known.take() {
                None => load(scenario, ALONE).expect("a random scenario is valid"),
                Some((mut fleet, before)) => {
                    catch_up(&mut fleet, &before, scenario);
                    fleet
                }
            };
            let decision = fleet.cycle(&engine_options(&scenario.options), scenario.now_unix_nanos);
            let ours = answer(&fleet, &decision);
            let expected = bigfleet_oracle::decide(scenario);
            if let Some(found) = difference(&expected, &ours) {
                let vector = as_vector("found/steady", "A cycle of a steady world.", scenario);
                panic!(
                    "seed {seed}: {found}\nrepeat with: BIGFLEET_SEEDS={seed}..{} cargo test -p bigfleet-calculator --test steady\n{vector}",
                    seed + 1
                );
            }
            known = Some((fleet, scenario.clone()));
            ours
        };
        Steady::of_seed(seed).run(decide);
    }
}
