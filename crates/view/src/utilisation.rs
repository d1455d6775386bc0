//! Utilisation: what is asked for against what is provided, by resource, of the fleet and of each cluster.

use std::collections::BTreeMap;

use bigfleet_engine::Fleet;
use bigfleet_model::resource::ResourceVec;

use crate::v1;

/// Resources told of the fleet, and of each cluster. Names come from clusters and providers; nobody wants to read more.
const MOST: usize = 16;
/// The one resource that is counted in thousandths.
const CPU: &str = "cpu";

/// As of one cycle.
#[derive(Debug, Default)]
pub(crate) struct Utilisation {
    pub(crate) fleet: Vec<v1::ResourceUse>,
    clusters: BTreeMap<String, Vec<v1::ResourceUse>>,
}

impl Utilisation {
    /// Adds up all needs and all machines.
    pub(crate) fn of(fleet: &Fleet) -> Self {
        let provided = fleet.provided();
        let mut asked: BTreeMap<String, ResourceVec> = BTreeMap::new();
        for cluster in fleet.clusters() {
            let rows = fleet.rows_of(cluster).iter();
            let sum = rows.fold(ResourceVec::default(), |sum, demand| sum.add(&demand.need.aggregate));
            asked.insert(cluster.to_owned(), sum);
        }
        let total = |all: &BTreeMap<String, ResourceVec>| {
            all.values().fold(ResourceVec::default(), |sum, one| sum.add(one))
        };
        let nothing = ResourceVec::default();
        let names: std::collections::BTreeSet<&String> = asked.keys().chain(provided.bound.keys()).collect();
        let of = |name: &String| {
            let (asked, has) = (asked.get(name).unwrap_or(&nothing), provided.bound.get(name));
            (name.clone(), lines(asked, has.unwrap_or(&nothing)))
        };
        let clusters = names.into_iter().map(of).collect();
        Self { fleet: lines_with(&total(&asked), &total(&provided.bound), &provided.idle), clusters }
    }

    /// Adds a cluster's to its lane.
    pub(crate) fn mark(&self, lane: &mut v1::Lane) {
        lane.r#use = self.clusters.get(&lane.cluster).cloned().unwrap_or_default();
    }
}

/// What is asked for and provided, one by one.
pub(crate) fn lines(asked: &ResourceVec, provided: &ResourceVec) -> Vec<v1::ResourceUse> {
    lines_with(asked, provided, &ResourceVec::default())
}

fn lines_with(asked: &ResourceVec, provided: &ResourceVec, idle: &ResourceVec) -> Vec<v1::ResourceUse> {
    let mut lines: BTreeMap<&str, v1::ResourceUse> = BTreeMap::new();
    for (vector, place) in [(asked, 0), (provided, 1), (idle, 2)] {
        for (name, amount) in vector.iter() {
            let line = lines.entry(name.as_str()).or_default();
            let amount = if name.as_str() == CPU { amount as f64 / 1000.0 } else { amount as f64 };
            *[&mut line.asked, &mut line.provided, &mut line.idle][place] = amount;
        }
    }
    let named = |(name, line): (&str, v1::ResourceUse)| v1::ResourceUse { resource: name.into(), ..line };
    lines.into_iter().take(MOST).map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_compared_one_by_one_in_base_units() {
        let vector = |amounts: &[(&str, &str)]| ResourceVec::parse(amounts.iter().copied()).expect("amounts");
        let told = lines_with(
            &vector(&[("cpu", "1500m"), ("memory", "1Ki")]),
            &vector(&[("cpu", "2"), ("nvidia.com/gpu", "8")]),
            &vector(&[("memory", "4Ki")]),
        );
        let line = |resource: &str, asked, provided, idle| v1::ResourceUse {
            resource: resource.into(),
            asked,
            provided,
            idle,
        };
        let expected = [
            line("cpu", 1.5, 2.0, 0.0),
            line("memory", 1024.0, 0.0, 4096.0),
            line("nvidia.com/gpu", 0.0, 8.0, 0.0),
        ];
        assert_eq!(told, expected);
    }
}
