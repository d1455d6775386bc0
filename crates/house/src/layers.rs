//! Which crate may know which.
//!
//! The table is exhaustive on purpose: a crate that is not in it fails the test, so that a new crate comes with a
//! decision about its place.

use std::collections::BTreeSet;

/// One crate of ours and those of ours it may name as a normal dependency.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    /// The package name.
    pub name: &'static str,
    /// What it may use. A crate may use less.
    pub may_use: &'static [&'static str],
}

/// The whole workspace, from the bottom up. The same order as the code map in `ARCHITECTURE.md`.
pub const LAYERS: &[Layer] = &[
    Layer { name: "bigfleet-model", may_use: &[] },
    Layer { name: "bigfleet-durable", may_use: &[] },
    Layer { name: "bigfleet-engine", may_use: &["bigfleet-model"] },
    Layer { name: "bigfleet-bound", may_use: &["bigfleet-model"] },
    Layer { name: "bigfleet-scenario", may_use: &["bigfleet-model"] },
    Layer { name: "bigfleet-shapes", may_use: &["bigfleet-model", "bigfleet-scenario"] },
    Layer { name: "bigfleet-oracle", may_use: &["bigfleet-model", "bigfleet-scenario"] },
    Layer { name: "bigfleet-proto", may_use: &["bigfleet-model"] },
    Layer {
        name: "bigfleet-provider-kit",
        may_use: &["bigfleet-model", "bigfleet-durable", "bigfleet-proto", "bigfleet-net"],
    },
    Layer {
        name: "bigfleet-provider-sim",
        may_use: &["bigfleet-model", "bigfleet-proto", "bigfleet-net", "bigfleet-provider-kit"],
    },
    Layer {
        name: "bigfleet-provider-metal",
        may_use: &["bigfleet-model", "bigfleet-durable", "bigfleet-net", "bigfleet-provider-kit"],
    },
    Layer { name: "bigfleet-conformance", may_use: &["bigfleet-model", "bigfleet-proto"] },
    Layer {
        name: "bigfleet-calculator",
        may_use: &["bigfleet-model", "bigfleet-engine", "bigfleet-scenario"],
    },
    Layer { name: "bigfleet-shard", may_use: &["bigfleet-model", "bigfleet-engine"] },
    Layer { name: "bigfleet-border", may_use: &["bigfleet-model", "bigfleet-proto", "bigfleet-shard"] },
    Layer {
        name: "bigfleet-record",
        may_use: &["bigfleet-model", "bigfleet-durable", "bigfleet-engine", "bigfleet-shard"],
    },
    Layer { name: "bigfleet-net", may_use: &["bigfleet-model", "bigfleet-proto"] },
    Layer { name: "bigfleet-coordinator", may_use: &["bigfleet-model"] },
    Layer {
        name: "bigfleet-sim",
        may_use: &[
            "bigfleet-border",
            "bigfleet-coordinator",
            "bigfleet-model",
            "bigfleet-engine",
            "bigfleet-scenario",
            "bigfleet-shard",
            "bigfleet-record",
            "bigfleet-proto",
            "bigfleet-provider-kit",
            "bigfleet-provider-sim",
        ],
    },
    Layer {
        name: "bigfleet-view",
        may_use: &[
            "bigfleet-model",
            "bigfleet-engine",
            "bigfleet-bound",
            "bigfleet-shard",
            "bigfleet-record",
            "bigfleet-sim",
            "bigfleet-proto",
            "bigfleet-net",
        ],
    },
    Layer { name: "bigfleet-tell", may_use: &["bigfleet-model", "bigfleet-proto", "bigfleet-view"] },
    Layer {
        name: "bigfleet-web",
        may_use: &["bigfleet-model", "bigfleet-proto", "bigfleet-net", "bigfleet-view", "bigfleet-tell"],
    },
    Layer {
        name: "bigfleet-shard-server",
        may_use: &[
            "bigfleet-model",
            "bigfleet-engine",
            "bigfleet-shard",
            "bigfleet-record",
            "bigfleet-view",
            "bigfleet-proto",
            "bigfleet-net",
            "bigfleet-border",
        ],
    },
    Layer {
        name: "bigfleet-coordinator-server",
        may_use: &[
            "bigfleet-model",
            "bigfleet-durable",
            "bigfleet-coordinator",
            "bigfleet-proto",
            "bigfleet-net",
        ],
    },
    Layer { name: "bigfleet-operator", may_use: &["bigfleet-model"] },
    Layer { name: "bigfleet-crds", may_use: &[] },
    Layer { name: "bigfleet-kube-common", may_use: &["bigfleet-model", "bigfleet-crds", "bigfleet-net"] },
    Layer {
        name: "bigfleet-pod-controller",
        may_use: &["bigfleet-model", "bigfleet-crds", "bigfleet-net", "bigfleet-kube-common"],
    },
    Layer { name: "bigfleet-kube-testbed", may_use: &["bigfleet-model", "bigfleet-net"] },
    Layer { name: "bigfleet-testkit", may_use: &["bigfleet-scenario"] },
    Layer {
        name: "bigfleet-operator-kube",
        may_use: &[
            "bigfleet-crds",
            "bigfleet-kube-common",
            "bigfleet-model",
            "bigfleet-net",
            "bigfleet-operator",
            "bigfleet-proto",
            "bigfleet-tell",
            "bigfleet-view",
        ],
    },
    Layer {
        name: "bigfleet",
        may_use: &[
            "bigfleet-durable",
            "bigfleet-crds",
            "bigfleet-operator",
            "bigfleet-operator-kube",
            "bigfleet-kube-common",
            "bigfleet-pod-controller",
            "bigfleet-shard",
            "bigfleet-record",
            "bigfleet-net",
            "bigfleet-view",
            "bigfleet-tell",
            "bigfleet-web",
            "bigfleet-shard-server",
            "bigfleet-sim",
            "bigfleet-proto",
            "bigfleet-provider-kit",
            "bigfleet-coordinator",
            "bigfleet-coordinator-server",
            "bigfleet-model",
            "bigfleet-engine",
            "bigfleet-bound",
            "bigfleet-scenario",
            "bigfleet-shapes",
            "bigfleet-provider-sim",
            "bigfleet-provider-metal",
            "bigfleet-conformance",
            "bigfleet-calculator",
        ],
    },
    Layer { name: "bigfleet-house", may_use: &[] },
];

/// Crates that have a place and are not written yet. The rules hold from the day a crate appears; it should leave this
/// list on that day, so that it cannot vanish unnoticed.
pub const PLANNED: &[&str] = &[];

/// Crates that decide: no clock, no randomness, no I/O, no async, no thread pool, with default features.
pub const PURE: &[&str] =
    &["bigfleet-model", "bigfleet-engine", "bigfleet-shard", "bigfleet-operator", "bigfleet-coordinator"];

/// Crates whose sources mention nothing impure, although they link generated messages, and with those the whole of gRPC.
pub const PURE_SOURCES: &[&str] = &["bigfleet-border"];

/// The package that people install.
pub const SHIPPED: &str = "bigfleet";

/// Packages that exist for tests alone and must not be linked into what people install.
pub const TEST_ONLY: &[&str] = &[
    "bigfleet-oracle",
    "bigfleet-house",
    "bigfleet-testkit",
    "bigfleet-kube-testbed",
    "proptest",
    "criterion",
];

/// Packages a pure crate must not link, by exact name.
const IMPURE: &[&str] = &[
    // runtimes and executors
    "tokio",
    "async-std",
    "smol",
    "async-executor",
    "async-io",
    "futures",
    "futures-util",
    "futures-executor",
    "mio",
    "polling",
    "glommio",
    "monoio",
    // network and RPC
    "hyper",
    "hyper-util",
    "reqwest",
    "ureq",
    "tonic",
    "prost",
    "axum",
    "tower",
    "h2",
    "socket2",
    "rustls",
    "quinn",
    "kube",
    "k8s-openapi",
    "etcd-client",
    // clocks
    "chrono",
    "time",
    "jiff",
    "quanta",
    "coarsetime",
    "minstant",
    "web-time",
    "humantime",
    // randomness, and hashers seeded with it
    "rand",
    "rand_core",
    "rand_chacha",
    "getrandom",
    "fastrand",
    "oorandom",
    "nanorand",
    "uuid",
    "ulid",
    "ahash",
    "const-random",
    // thread pools and shared mutable maps
    "rayon",
    "rayon-core",
    "threadpool",
    "crossbeam",
    "crossbeam-channel",
    "dashmap",
    "parking_lot",
    // files, logs, process-wide state
    "redb",
    "memmap2",
    "tempfile",
    "tracing-subscriber",
    "env_logger",
    "lazy_static",
    "ustr",
    "internment",
];

/// Families of packages a pure crate must not link, by prefix.
const IMPURE_FAMILIES: &[&str] = &["tokio-", "async-", "futures-", "rand_", "opentelemetry"];

/// Compares the crates that exist with [`LAYERS`], both ways. Those of `planned` may be absent.
pub fn unplaced(existing: &BTreeSet<String>, layers: &[Layer], planned: &[&str]) -> Vec<String> {
    let placed: BTreeSet<&str> = layers.iter().map(|layer| layer.name).collect();
    let extra = existing.iter().filter(|name| !placed.contains(name.as_str()));
    let extra = extra.map(|name| format!("{name} has no place in LAYERS (crates/house/src/layers.rs)"));
    let gone = placed.iter().filter(|name| !existing.contains(**name) && !planned.contains(name));
    let gone = gone.map(|name| format!("{name} is in LAYERS and not in the workspace"));
    extra.chain(gone).collect()
}

/// Dependencies on crates of ours that the layer does not allow.
pub fn upward(layer: &Layer, dependencies: &BTreeSet<String>) -> Vec<String> {
    let ours = dependencies.iter().filter(|name| *name == SHIPPED || name.starts_with("bigfleet-"));
    let wrong = ours.filter(|name| !layer.may_use.contains(&name.as_str()));
    wrong.map(|name| format!("{} must not depend on {name}", layer.name)).collect()
}

/// Packages linked by a pure crate that bring a clock, randomness, I/O or a runtime with them.
pub fn impure(package: &str, linked: &BTreeSet<String>) -> Vec<String> {
    let is_impure =
        |name: &str| IMPURE.contains(&name) || IMPURE_FAMILIES.iter().any(|f| name.starts_with(f));
    linked.iter().filter(|name| is_impure(name)).map(|name| format!("{package} links {name}")).collect()
}

/// Test-only packages linked by what people install.
pub fn shipped_tests(linked: &BTreeSet<String>) -> Vec<String> {
    let found = TEST_ONLY.iter().filter(|name| linked.contains(**name));
    found.map(|name| format!("{SHIPPED} links {name}, which is for tests")).collect()
}

/// Manifests that do not take the workspace's lints.
pub fn own_lints(name: &str, manifest: &str) -> Vec<String> {
    let mut section = "";
    for line in manifest.lines().map(|line| line.split('#').next().unwrap_or("").trim()) {
        if line.starts_with('[') {
            section = line;
        } else if line.replace(' ', "") == "lints.workspace=true" && section.is_empty()
            || line.replace(' ', "") == "workspace=true" && section == "[lints]"
        {
            return Vec::new();
        }
    }
    vec![format!("{name} does not say `[lints] workspace = true`")]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_crate_without_a_place_is_found() {
        let layers = ["a", "gone", "later"].map(|name| Layer { name, may_use: &[] });
        assert_eq!(
            unplaced(&set(&["a", "new"]), &layers, &["later"]),
            [
                "new has no place in LAYERS (crates/house/src/layers.rs)",
                "gone is in LAYERS and not in the workspace"
            ]
        );
    }

    #[test]
    fn a_dependency_upwards_is_found() {
        let engine = Layer { name: "bigfleet-engine", may_use: &["bigfleet-model"] };
        let named = set(&["bigfleet-model", "bigfleet-shard", "bigfleet", "smallvec"]);
        assert_eq!(
            upward(&engine, &named),
            [
                "bigfleet-engine must not depend on bigfleet",
                "bigfleet-engine must not depend on bigfleet-shard"
            ]
        );
    }

    #[test]
    fn an_impure_package_is_found() {
        let linked = set(&["hashbrown", "tokio", "tokio-util", "getrandom", "timeless"]);
        assert_eq!(impure("e", &linked), ["e links getrandom", "e links tokio", "e links tokio-util"]);
    }

    #[test]
    fn a_test_crate_in_the_binary_is_found() {
        let linked = set(&["bigfleet-engine", "bigfleet-oracle"]);
        assert_eq!(shipped_tests(&linked), ["bigfleet links bigfleet-oracle, which is for tests"]);
    }

    #[test]
    fn a_manifest_with_its_own_lints_is_found() {
        assert_eq!(own_lints("a", "[package]\nname = \"a\"\n[lints]\nworkspace = true\n"), [""; 0]);
        assert_eq!(own_lints("a", "lints.workspace = true\n[package]\nname = \"a\"\n"), [""; 0]);
        for bad in [
            "",
            "[lints.rust]\nunsafe_code = \"allow\"",
            "[lints]\n# workspace = true",
            "[x]\nworkspace=true",
        ] {
            assert_eq!(own_lints("a", bad), ["a does not say `[lints] workspace = true`"]);
        }
    }
}
