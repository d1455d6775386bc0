//! Clusters on one shard, with every part a real process: control planes, provider, shard, pod controllers, operators. The
//! machines alone exist on paper.

#![expect(clippy::print_stderr, reason = "tests report how long each hop took")]

mod bars;
mod brownfield;
mod clocks;
mod cluster;
mod document;
mod explain;
mod faults;
mod fleet;
mod fragments;
mod hops;
mod metal;
mod page;
mod playground;
mod preemption;
#[path = "../support/process.rs"]
mod process;
mod waiting;
mod walk;
#[path = "../support/walk.rs"]
mod walk_through;

use bigfleet_kube_testbed::{Parts, scenarios};

#[test]
fn one_cluster() {
    scenarios(
        Parts::All,
        1,
        scenarios![
            walk::pods_become_nodes_and_nodes_go_politely,
            fragments::awkward_pods_get_their_places_and_then_nothing_moves,
            brownfield::nodes_that_were_there_are_not_bought_again,
            explain::a_pod_is_explained_through_the_cluster_and_through_the_shard,
        ],
    );
}

#[test]
fn pods_that_wait() {
    scenarios(
        Parts::All,
        1,
        scenarios![
            waiting::what_is_on_its_way_says_when_it_is_expected,
            waiting::one_pod_that_nothing_holds_keeps_nobody_waiting,
            waiting::a_stuck_pod_whose_request_comes_late_is_noticed,
        ],
    );
}

#[test]
fn the_document() {
    scenarios(Parts::All, 1, scenarios![document::the_walk_is_as_printed]);
}

#[test]
fn a_playground() {
    playground::a_newcomer_watches_nodes_come();
}

#[test]
fn real_hosts() {
    scenarios(Parts::All, 1, scenarios![metal::hosts_join_as_hollow_nodes_and_leave_again]);
}

#[test]
fn the_document_of_real_hosts() {
    scenarios(Parts::All, 1, scenarios![metal::three_spare_machines_become_a_fleet]);
}

#[test]
fn in_the_browser() {
    scenarios(Parts::All, 1, scenarios![page::the_page_says_why_a_pod_waits]);
}

#[test]
fn two_clusters() {
    scenarios(Parts::All, 1, scenarios![preemption::a_cluster_yields_to_another_and_gets_it_back]);
}

/// One after another: each breaks what the others need.
#[test]
fn under_faults() {
    scenarios(
        Parts::All,
        1,
        scenarios![
            faults::the_api_server_restarts,
            faults::watches_expire,
            faults::a_watch_is_told_that_its_place_is_gone,
            faults::etcd_is_lost_for_a_while,
            faults::the_api_server_stands_still,
            faults::the_api_server_is_slow,
            faults::a_storm_of_writers,
            faults::the_leader_dies,
            clocks::the_operators_clock_is_two_hours_slow,
            clocks::the_operators_clock_is_two_hours_fast,
            faults::hostile_requests_are_marked_and_hold_nobody_up,
        ],
    );
}

#[test]
#[ignore = "minutes; scripts/kube-bars runs it with a release build"]
fn bars() {
    scenarios(
        Parts::All,
        1,
        scenarios![bars::two_thousand_pods_on_two_hundred_nodes, bars::twenty_thousand_requests_at_the_start,],
    );
}
