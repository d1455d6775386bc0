//! Several shards: each has its zone, and whoever is short gets machines of the others.

use std::collections::BTreeSet;

use crate::process::Up;

#[test]
fn three_shards_share_the_cloud_and_help_each_other() {
    let up = Up::start(&["--port", "0", "--clock", "60", "--shards", "3"]);
    let fleet =
        up.banner.iter().find(|line| line.contains("get transfers --coordinator")).expect("it says how");
    let at =
        fleet.split("--coordinator ").nth(1).and_then(|rest| rest.split(';').next()).expect("an address");
    let domains =
        up.rows_until(&["get", "domains", "--coordinator", at, "--json"], "every zone is held", |rows| {
            rows.len() == 3 && rows.iter().all(|row| row["arriving"] == false && row["leaving"] == false)
        });
    let holders: BTreeSet<&str> = domains.iter().map(|row| row["shard"].as_str().expect("a name")).collect();
    assert_eq!(holders, ["up-1", "up-2", "up-3"].into(), "a zone each");

    // More than one zone has: the others give what they can spare.
    up.ask(&["demand", "set", "shop", "web=3000"]);
    let moved = up.rows_until(
        &["get", "transfers", "--coordinator", at, "--json"],
        "a machine is given to the shard that is short",
        |rows| rows.iter().any(|row| row["to"] == "up-1" && row["step"] == "arrived"),
    );
    assert!(moved.iter().all(|row| row["from"] != row["to"]), "{moved:#?}");
    let (ended, last, _home) = up.interrupt();
    assert!(ended.success(), "{last}");
}
