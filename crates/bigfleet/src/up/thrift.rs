//! A world that somebody tries out takes small pages.
//!
//! The allocator asks the system for huge pages, and a huge page is resident as a whole once a byte of it is touched. A shard
//! with half a million machines wants that; of a small world three quarters would be zeroes. The allocator is asked through
//! the environment and reads it before `main`, so the process begins once more, in its own place: same number, same
//! terminal.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Whether the allocator may ask for huge pages.
const HUGE_PAGES: &str = "MIMALLOC_ALLOW_THP";

/// Begins once more without huge pages, unless the user has chosen. Where that cannot be, it goes on as it is: it only takes
/// more memory.
pub(super) fn begin() {
    if std::env::var_os(HUGE_PAGES).is_some() {
        return;
    }
    let Ok(program) = std::env::current_exe() else { return };
    let mut arguments = std::env::args_os();
    let mut again = Command::new(program);
    if let Some(name) = arguments.next() {
        again.arg0(name);
    }
    drop(again.args(arguments).env(HUGE_PAGES, "0").exec());
}
