//! Work that should have been done once, at the border, and was done for every machine in every cycle.
//!
//! Time is a poor witness in a test, allocations are a good one: a quantity parsed, a name copied or a snapshot
//! rebuilt in the loop shows up as allocations that grow with the fleet.

use allocation_counter::measure;
use bigfleet_engine::{Fleet, Options};
use bigfleet_model::need::Need;

use super::build::{configured, cpu, idle, need, next, priced, running};

const PER_CLUSTER: usize = 10;

/// Clusters with ten machines each, all in use, and as many idle machines as there are clusters.
fn fleet_of(clusters: usize) -> Fleet {
    let bound = (0..clusters * PER_CLUSTER).map(|n| {
        let machine = configured(&format!("bound-{n:06}"), "8", &format!("cluster-{:05}", n / PER_CLUSTER));
        priced(machine, 1.0 + (n % 7) as f64)
    });
    let free = (0..clusters).map(|n| priced(idle(&format!("free-{n:06}"), "8"), 1.0 + (n % 5) as f64));
    let needs = (0..clusters).map(|n| need(&format!("cluster-{n:05}"), 10, "80", "500m"));
    let mut fleet = running(bound.chain(free), needs);
    assert_eq!(next(&mut fleet).actions, [], "everybody is served");
    fleet
}

/// How often a cycle allocates.
fn allocations_of_cycle(fleet: &mut Fleet, options: &Options) -> u64 {
    measure(|| {
        fleet.cycle(options, 2_000);
    })
    .count_total
}

#[test]
fn a_quiet_cycle_allocates() {
    for clusters in [100, 1_000] {
        let mut fleet = fleet_of(clusters);
        let options = Options::default();
        assert_eq!(allocations_of_cycle(&mut fleet, &options), 0, "{clusters} clusters");
    }
}

/// One machine dies, one idle machine changes its price, one cluster asks for more.
fn allocations_of_churn(clusters: usize) -> u64 {
    let mut fleet = fleet_of(clusters);
    let options = Options::default();
    let more = Need { aggregate: cpu("88"), ..need("cluster-00003", 10, "80", "500m") };
    // The first round makes what is made once; the second is what every round costs.
    let mut counts = [0, 0];
    for (round, count) in counts.iter_mut().enumerate() {
        let victim = configured(&format!("bound-{:06}", 50 + round), "8", "cluster-00005");
        let failed = bigfleet_model::machine::Machine {
            state: bigfleet_model::machine::MachineState::Failed,
            last_error: "gone".into(),
            ..victim
        };
        fleet.observe(&failed).expect("a good record");
        fleet.observe(&priced(idle("free-000007", "8"), 2.0 + round as f64)).expect("a good record");
        let demand = cpu(["88", "96"][round]);
        fleet
            .replace("cluster-00003", vec![Need { aggregate: demand, ..more.clone() }], 9)
            .expect("good rows");
        *count = allocations_of_cycle(&mut fleet, &options);
    }
    assert_eq!(next(&mut fleet).actions.len(), 4, "the work was done");
    counts[1]
}

#[test]
fn quantities_parsed_in_the_hot_loop() {
    let (small, large) = (allocations_of_churn(100), allocations_of_churn(1_000));
    assert!(small < 120, "{small} allocations for three changes");
    assert!(large <= small + 8, "{small} allocations with 1,100 machines, {large} with 11,000");
}
