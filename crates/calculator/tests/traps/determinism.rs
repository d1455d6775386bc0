//! The same fleet and demand give the same bytes, however they arrived and whoever computed them.

use bigfleet_calculator::{answer, engine_options};
use bigfleet_engine::{Fleet, Parallelism};
use bigfleet_model::need::Need;
use bigfleet_oracle::{Size, random_scenario};
use bigfleet_scenario::seed::Seed;
use bigfleet_scenario::{Scenario, input};

use super::build::{gang, idle, need, racked, scenario};

fn shuffled<T>(mut items: Vec<T>, seed: &mut Seed) -> Vec<T> {
    for last in (1..items.len()).rev() {
        items.swap(last, seed.below(last as u64 + 1) as usize);
    }
    items
}

/// Everything a fleet answers that heard of this scenario in a random order, as bytes.
fn answer_bytes(scenario: &Scenario, threads: usize, order: u64) -> Vec<u8> {
    let mut seed = Seed::new(order);
    let mut fleet = Fleet::new(Parallelism { threads, from_clusters: 0 });
    let mut clusters: Vec<&str> = scenario.needs.iter().map(|need| &*need.cluster).collect();
    clusters.sort_unstable();
    clusters.dedup();
    let (first, rest) = clusters.split_at(clusters.len() / 2);
    let mut report = |fleet: &mut Fleet, clusters: &[&str]| {
        for cluster in shuffled(clusters.to_vec(), &mut seed) {
            let rows = scenario.needs.iter().filter(|need| *need.cluster == *cluster).cloned().collect();
            fleet.replace(cluster, shuffled(rows, &mut seed), 0).expect("a valid roll-up");
        }
    };
    report(&mut fleet, first);
    for machine in shuffled(scenario.machines.iter().collect(), &mut Seed::new(order ^ 1)) {
        fleet.observe(machine).expect("a valid machine");
    }
    report(&mut fleet, rest);
    let decision = fleet.cycle(&engine_options(&scenario.options), scenario.now_unix_nanos);
    let mut bytes = Vec::new();
    input::write_vector(&mut bytes, "", "", scenario, &answer(&fleet, &decision)).expect("writing to memory");
    bytes
}

fn assert_one_answer(name: &str, scenario: &Scenario) {
    let expected = answer_bytes(scenario, 1, 0);
    for (order, threads) in (1..).zip([1, 2, 3, 8, 2, 3]) {
        assert!(
            expected == answer_bytes(scenario, threads, order),
            "{name}: {threads} threads, order {order}"
        );
    }
}

#[test]
fn workers_race_at_equal_precedence() {
    // Everybody is equal and there is enough for half of them.
    let clusters: Vec<String> = (0..24).map(|n| format!("c{n:02}")).collect();
    let plain = clusters.iter().map(|cluster| need(cluster, 10, "8", "1"));
    let gangs = clusters
        .iter()
        .map(|cluster| Need { cluster: cluster.as_str().into(), ..gang("g", &[], 10, "16", "8") });
    let machines = (0..36).map(|n| racked(idle(&format!("m{n}"), "8"), &format!("r{}", n % 5)));
    let contested = scenario(machines, plain.chain(gangs));
    assert_one_answer("contested", &contested);
}

#[test]
fn the_answer_depends_on_the_order_of_arrival() {
    for seed in 0..60 {
        let size = if seed % 10 == 0 { Size::Medium } else { Size::Small };
        assert_one_answer(&format!("seed {seed}"), &random_scenario(seed, size));
    }
}
