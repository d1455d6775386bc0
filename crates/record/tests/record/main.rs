//! The store, the tape and replay from outside: values, crashes, damage.

mod codec;
mod damage;
mod editions;
mod first_edition;
mod kill;
mod power;
mod random;
mod recording;
mod replay;
mod size;
mod store;
mod tape;

/// A folder in memory where the system has one: these tests open and sync thousands of times, and a real disk would
/// prove nothing more.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
