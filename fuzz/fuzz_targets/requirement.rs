//! Any bytes, read as a machine's facts and a profile, are matched or refused by the laws of `laws_requirement`.
//!
//! Run from the root of the repository; new finds go to the first folder, the second one is the saved corpus:
//! `cargo +nightly fuzz run requirement fuzz/corpus/requirement crates/model/tests/corpus/requirement`

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/model/tests/laws_requirement/check.rs"]
mod check;

fuzz_target!(|bytes: &[u8]| {
    check::check(bytes);
});
