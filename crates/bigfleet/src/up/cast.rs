//! Who lives in the simulated world: three clusters and their work.
//!
//! The work is chosen so that everything the shard can do is seen within simulated hours: cheap machines first, machines
//! bought and given back, a gang that needs one rack, critical work that takes machines from batch work.

use std::collections::BTreeMap;

use bigfleet_provider_sim::{RACK_LABEL, Span};
use bigfleet_sim::{Cluster, Pods, Requirement, Work};

use super::life::Curve;

/// A cluster and how much each kind of its work wants.
pub(crate) struct Part {
    pub(crate) cluster: Cluster,
    /// One for each kind of work, in order.
    pub(crate) curves: Vec<Curve>,
}

/// How many slots the simulated cloud offers: three racks, one in each zone.
pub(crate) const SLOTS: usize = 120;

/// The clusters, in the order in which they are shown.
pub(crate) fn clusters() -> Vec<Part> {
    let amd64 = || one_of("kubernetes.io/arch", &["amd64"]);
    let shop = vec![
        (
            Work { requires: vec![amd64()], interruption_usd: Some(0.5), ..work("web", 100_000, "2", "4Gi") },
            Curve::Deployed { low: 20, high: 60 },
        ),
        (
            Work { interruption_usd: Some(4.0), ..work("api", 200_000, "1", "2Gi") },
            Curve::Day { low: 12, high: 24 },
        ),
        (
            // Payments run on whole hosts. There are few, so a burst takes them from batch work.
            Work {
                requires: vec![one_of("node.kubernetes.io/instance-type", &["metal-64", "metal-128"])],
                interruption_usd: Some(32.0),
                ..work("checkout", 900_000, "4", "8Gi")
            },
            Curve::Bursts { usual: 4, peak: 60 },
        ),
    ];
    let ml = vec![
        (
            Work {
                gang: 12,
                same: RACK_LABEL.into(),
                interruption_usd: Some(128.0),
                reclamation_usd: Some(128.0),
                ..with_gpu(work("train", 500_000, "6", "24Gi"))
            },
            Curve::Runs { gangs: 1 },
        ),
        (
            Work { interruption_usd: Some(8.0), ..with_gpu(work("serve", 300_000, "4", "16Gi")) },
            Curve::Day { low: 1, high: 4 },
        ),
        (work("notebook", 20_000, "2", "8Gi"), Curve::Day { low: 2, high: 10 }),
    ];
    let batch = vec![
        (
            Work { interruption_usd: Some(0.0), ..work("etl", 1_000, "4", "8Gi") },
            Curve::Jobs { usual: 40, most: 60 },
        ),
        (Work { interruption_usd: Some(0.0), ..work("filler", 0, "2", "4Gi") }, Curve::Always(100)),
    ];
    [("shop", shop), ("ml", ml), ("batch", batch)].map(|(name, work)| part(name, work)).into()
}

fn part(name: &str, work: Vec<(Work, Curve)>) -> Part {
    let (work, curves) = work.into_iter().unzip();
    let ten = Span::from_secs(10);
    let cluster =
        Cluster { name: name.into(), shard: 0, roll_up: ten, join: ten, evict: ten, unmet_only: false, work };
    Part { cluster, curves }
}

fn work(name: &str, priority: i32, cpu: &str, memory: &str) -> Work {
    let unit = BTreeMap::from([("cpu".into(), cpu.into()), ("memory".into(), memory.into())]);
    Work {
        name: name.into(),
        pods: Pods::Always(0),
        unit,
        priority,
        interruption_usd: None,
        reclamation_usd: None,
        requires: Vec::new(),
        same: String::new(),
        gang: 0,
        spread: None,
        bare: false,
        churn_per_hour: 0.0,
    }
}

fn with_gpu(mut work: Work) -> Work {
    work.unit.insert("nvidia.com/gpu".into(), "1".into());
    work
}

fn one_of(key: &str, values: &[&str]) -> Requirement {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    Requirement { key: key.into(), operator: "In".into(), values }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_work_can_be_read_and_has_a_curve() {
        for Part { cluster, curves } in clusters() {
            assert_eq!(cluster.work.len(), curves.len());
            for work in &cluster.work {
                assert!(work.unit().is_ok(), "{}", work.name);
                assert_eq!(work.gang > 0, !work.same.is_empty(), "{}", work.name);
            }
        }
    }
}
