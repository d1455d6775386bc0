//! Any bytes offered as a roll-up are read or refused with work bounded by their number, counted in memory asked for.
//!
//! Run from the root of the repository: `cargo +nightly fuzz run rollup`

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/border/tests/work/check.rs"]
mod check;

fuzz_target!(|bytes: &[u8]| {
    check::check(bytes);
});
