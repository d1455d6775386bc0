//! Any bytes offered as a quantity are read or refused by the laws of `quantity_laws`.
//!
//! Run from the root of the repository; new finds go to the first folder, the second one is the saved corpus:
//! `cargo +nightly fuzz run quantity fuzz/corpus/quantity crates/model/tests/corpus/quantity`

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/model/tests/quantity_laws/check.rs"]
mod check;

fuzz_target!(|bytes: &[u8]| check::check(bytes));
