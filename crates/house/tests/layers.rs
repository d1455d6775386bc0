//! This checkout's crates keep to their layers.

use bigfleet_house::expect_none;
use bigfleet_house::layers::{self, LAYERS, PLANNED, PURE, SHIPPED};
use bigfleet_house::workspace::{linked, members};
use std::collections::BTreeSet;

fn names() -> BTreeSet<String> {
    members().into_iter().map(|member| member.name).collect()
}

/// Those of `packages` that are written. One that is neither written nor planned fails here, not silently.
fn existing(packages: &[&'static str]) -> Vec<&'static str> {
    let names = names();
    let (written, absent): (Vec<_>, Vec<_>) = packages.iter().partition(|name| names.contains(**name));
    assert!(absent.iter().all(|name| PLANNED.contains(name)), "not in the workspace: {absent:?}");
    written
}

#[test]
fn every_crate_has_a_place() {
    expect_none(&layers::unplaced(&names(), LAYERS, PLANNED));
}

#[test]
fn no_crate_depends_upwards() {
    for member in members() {
        let layer = LAYERS.iter().find(|layer| layer.name == member.name);
        expect_none(&layers::upward(layer.expect("every_crate_has_a_place"), &member.dependencies));
    }
}

#[test]
fn pure_crates_link_nothing_impure() {
    for package in existing(PURE) {
        expect_none(&layers::impure(package, &linked(package)));
    }
}

#[test]
fn the_binary_links_no_test_crate() {
    for package in existing(&[SHIPPED]) {
        let linked = linked(package);
        assert!(
            linked.contains("bigfleet-engine"),
            "a binary without the engine is not the binary: {linked:?}"
        );
        expect_none(&layers::shipped_tests(&linked));
    }
}

#[test]
fn every_crate_takes_the_workspace_lints() {
    for member in members() {
        expect_none(&layers::own_lints(&member.name, &member.manifest));
    }
}
