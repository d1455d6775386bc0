//! Any bytes, read as a scenario or as the story of a fleet, are decided as the oracle decides them.
//!
//! Run from the root of the repository; new finds go to the first folder, the second one is the saved corpus:
//! `cargo +nightly fuzz run cycle fuzz/corpus/cycle crates/calculator/tests/corpus/cycle`

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/calculator/tests/cycle_laws/check.rs"]
mod check;

fuzz_target!(|bytes: &[u8]| {
    check::check(bytes);
});
