//! This checkout's decision vectors are whole and equal to the shared ones.

use bigfleet_house::workspace::{files, root};
use bigfleet_house::{expect_none, vectors};

#[test]
fn every_vector_is_well_formed() {
    let folder = root().join("tests/vectors");
    assert!(files(&folder, "json").len() > 200, "vectors are missing in tests/vectors");
    expect_none(&vectors::malformed(&folder));
}

/// The shared folder lies beside some checkouts. Where it does not, there is nothing to compare with.
#[test]
fn our_copy_of_the_vectors_is_exact() {
    let shared = root().join("../shared/vectors-2");
    if shared.is_dir() {
        expect_none(&vectors::differences(&root().join("tests/vectors"), &shared));
    }
}
