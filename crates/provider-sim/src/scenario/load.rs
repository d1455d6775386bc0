//! The load curve: how much each cluster wants at each moment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::span::Span;

/// How the load goes from one point to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Curve {
    /// In a straight line.
    #[default]
    Lines,
    /// At once, when the next point is reached.
    Steps,
}

/// So many units at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// How long after the beginning.
    pub at: Span,
    /// How many units are wanted.
    pub units: f64,
}

/// What one cluster wants over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Load {
    /// Which cluster.
    pub cluster: String,
    /// Tells several loads of one cluster apart.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The resources of one unit, as Kubernetes quantities.
    pub unit: BTreeMap<String, String>,
    /// Its priority.
    pub priority: i32,
    /// How the load goes from one point to the next.
    pub curve: Curve,
    /// The curve. Before the first point nothing is wanted; after the last it stays.
    pub points: Vec<Point>,
}

impl Load {
    /// How many units are wanted at this moment.
    pub fn units_at(&self, at: Span) -> f64 {
        let next = self.points.iter().position(|point| point.at > at).unwrap_or(self.points.len());
        let Some(last) = next.checked_sub(1).map(|last| self.points[last]) else { return 0.0 };
        match (self.curve, self.points.get(next)) {
            (Curve::Lines, Some(next)) => {
                let way = (at.secs() - last.at.secs()) / (next.at.secs() - last.at.secs());
                last.units + (next.units - last.units) * way
            }
            _ => last.units,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_steps() {
        let point = |secs, units| Point { at: Span::from_secs(secs), units };
        let mut load = Load {
            cluster: "c".into(),
            name: String::new(),
            unit: BTreeMap::new(),
            priority: 0,
            curve: Curve::Lines,
            points: vec![point(10, 100.0), point(20, 200.0), point(30, 0.0)],
        };
        let units = |load: &Load| [0, 10, 15, 20, 25, 40].map(|secs| load.units_at(Span::from_secs(secs)));
        assert_eq!(units(&load), [0.0, 100.0, 150.0, 200.0, 100.0, 0.0]);
        load.curve = Curve::Steps;
        assert_eq!(units(&load), [0.0, 100.0, 100.0, 200.0, 200.0, 0.0]);
    }
}
