//! A world that somebody tries out stays small, however long it runs.

use crate::process::Up;

/// What the process itself may take at its peak. The program's own pages come on top: they are shared, and how many there
/// are depends on how it was built.
const MOST_MIB: u64 = 50;

#[test]
fn two_simulated_days_stay_small() {
    let mut up = Up::start(&["--port", "0", "--web-port", "0", "--clock", "1000"]);
    let mut most_kib = 0;
    // Once in a simulated hour it says what everything costs.
    for _ in 0..48 {
        up.line_with(" in all: ");
        most_kib = most_kib.max(up.own_kib());
    }
    eprintln!("at most {} MiB over two simulated days", most_kib >> 10);
    assert!(most_kib <= MOST_MIB << 10, "{most_kib} KiB are more than {MOST_MIB} MiB");
}
