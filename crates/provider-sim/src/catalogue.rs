//! What the simulated cloud sells: a table of instance types of our own, sized and priced like real ones.
//!
//! The names are made up on purpose: nobody should take a simulated price for a quotation.
//! `docs/simulated-cloud.md` shows the same table; a test keeps the two together.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The day the sizes and prices were last looked at.
pub const AS_OF: &str = "2026-11-15";

/// One instance type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstanceType {
    /// Its name.
    pub name: &'static str,
    /// The architecture of its processors.
    pub arch: &'static str,
    /// Processors.
    pub cpus: u64,
    /// Memory in GiB.
    pub memory_gib: u64,
    /// Accelerators.
    pub gpus: u64,
    /// What it costs on demand.
    pub usd_per_hour: f64,
    /// The chance that a spot machine of this type is taken back within an hour, in quiet times.
    pub spot_loss_per_hour: f64,
    /// Whole hosts: slow to make, owned or reserved, never spot.
    pub metal: bool,
    /// How common it is, relative to the others.
    pub weight: u64,
}

const fn sized(
    name: &'static str,
    arch: &'static str,
    (cpus, memory_gib, gpus): (u64, u64, u64),
    usd_per_hour: f64,
    spot_loss_per_hour: f64,
    weight: u64,
) -> InstanceType {
    InstanceType {
        name,
        arch,
        cpus,
        memory_gib,
        gpus,
        usd_per_hour,
        spot_loss_per_hour,
        metal: false,
        weight,
    }
}

const fn metal(name: &'static str, (cpus, memory_gib): (u64, u64), usd_per_hour: f64) -> InstanceType {
    let whole = sized(name, "amd64", (cpus, memory_gib, 0), usd_per_hour, 0.01, 4);
    InstanceType { metal: true, ..whole }
}

/// The table.
pub const CATALOGUE: [InstanceType; 24] = [
    sized("std-2", "amd64", (2, 8, 0), 0.096, 0.02, 6),
    sized("std-4", "amd64", (4, 16, 0), 0.192, 0.02, 10),
    sized("std-8", "amd64", (8, 32, 0), 0.384, 0.03, 14),
    sized("std-16", "amd64", (16, 64, 0), 0.768, 0.03, 12),
    sized("std-32", "amd64", (32, 128, 0), 1.536, 0.05, 6),
    sized("arm-4", "arm64", (4, 16, 0), 0.154, 0.01, 5),
    sized("arm-8", "arm64", (8, 32, 0), 0.308, 0.01, 6),
    sized("arm-16", "arm64", (16, 64, 0), 0.616, 0.02, 5),
    sized("arm-64", "arm64", (64, 256, 0), 2.464, 0.04, 2),
    sized("cpu-4", "amd64", (4, 8, 0), 0.170, 0.03, 5),
    sized("cpu-8", "amd64", (8, 16, 0), 0.340, 0.03, 6),
    sized("cpu-16", "amd64", (16, 32, 0), 0.680, 0.04, 5),
    sized("cpu-64", "amd64", (64, 128, 0), 2.720, 0.06, 2),
    sized("mem-4", "amd64", (4, 32, 0), 0.252, 0.02, 4),
    sized("mem-8", "amd64", (8, 64, 0), 0.504, 0.02, 5),
    sized("mem-16", "amd64", (16, 128, 0), 1.008, 0.03, 4),
    sized("mem-64", "amd64", (64, 512, 0), 4.032, 0.05, 2),
    sized("infer-8", "amd64", (8, 32, 1), 0.752, 0.06, 4),
    sized("infer-16", "amd64", (16, 64, 1), 1.204, 0.06, 3),
    sized("infer-48", "amd64", (48, 192, 4), 4.576, 0.08, 2),
    sized("train-96", "amd64", (96, 1152, 8), 32.77, 0.15, 2),
    sized("train-192", "amd64", (192, 2048, 8), 55.04, 0.20, 1),
    metal("metal-64", (64, 256), 2.80),
    metal("metal-128", (128, 1024), 6.90),
];

/// The type with this name.
pub fn find(name: &str) -> Option<&'static InstanceType> {
    CATALOGUE.iter().find(|kind| kind.name == name)
}

impl InstanceType {
    /// Its size as Kubernetes quantities.
    pub fn resources(&self) -> BTreeMap<String, String> {
        self.quantities(self.cpus.to_string(), format!("{}Gi", self.memory_gib))
    }

    /// What workloads may use: all but 80 thousandths of a processor, and all but 256 MiB and 5 % of memory.
    pub fn allocatable(&self) -> BTreeMap<String, String> {
        let memory_mib = self.memory_gib * 1024 * 95 / 100 - 256;
        self.quantities(format!("{}m", self.cpus * 1000 - 80), format!("{memory_mib}Mi"))
    }

    fn quantities(&self, cpu: String, memory: String) -> BTreeMap<String, String> {
        let mut quantities = BTreeMap::from([
            ("cpu".to_string(), cpu),
            ("memory".to_string(), memory),
            ("pods".to_string(), if self.cpus < 8 { "58" } else { "110" }.to_string()),
        ]);
        if self.gpus > 0 {
            quantities.insert("nvidia.com/gpu".into(), self.gpus.to_string());
        }
        quantities
    }
}

/// The table as Markdown, for the page that documents it.
pub fn markdown() -> String {
    let mut text = String::from(
        "| type | arch | cpus | memory | gpus | on demand, USD/h | spot loss per hour |\n|---|---|---|---|---|---|---|\n",
    );
    for kind in &CATALOGUE {
        let loss = if kind.metal {
            "never spot".into()
        } else {
            format!("{:.0} %", kind.spot_loss_per_hour * 100.0)
        };
        let InstanceType { name, arch, cpus, memory_gib, gpus, usd_per_hour, .. } = kind;
        writeln!(
            text,
            "| `{name}` | {arch} | {cpus} | {memory_gib} GiB | {gpus} | {usd_per_hour:.3} | {loss} |"
        )
        .expect("a string takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_table_makes_sense() {
        let names: BTreeSet<_> = CATALOGUE.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), CATALOGUE.len(), "every name once");
        for kind in &CATALOGUE {
            let per_cpu = kind.usd_per_hour / kind.cpus as f64;
            assert!((0.03..0.4).contains(&per_cpu), "{}: {per_cpu} dollars a processor", kind.name);
            assert!((0.005..0.5).contains(&kind.spot_loss_per_hour), "{}", kind.name);
            assert!(kind.weight > 0 && kind.memory_gib >= 2 * kind.cpus, "{}", kind.name);
            assert_eq!(find(kind.name), Some(kind));
        }
        assert_eq!(find("std-3"), None);
    }

    #[test]
    fn workloads_get_less_than_the_machine_has() {
        let small = find("std-2").expect("it is in the table");
        assert_eq!(small.resources()["memory"], "8Gi");
        assert_eq!(
            (small.allocatable()["cpu"].as_str(), small.allocatable()["memory"].as_str()),
            ("1920m", "7526Mi")
        );
        assert_eq!(find("train-96").expect("it is in the table").resources()["nvidia.com/gpu"], "8");
    }
}
