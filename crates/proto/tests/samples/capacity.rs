//! Samples of the messages in `capacity.proto`.

use super::{s, texts, twice};
use crate::Golden;
use bigfleet_proto::v1alpha1::*;

pub(crate) fn check(golden: &mut Golden) {
    golden.check("ClusterCapacityNeeds", &rollup());
    golden.check("CapacityNeed", &need());
    golden.check("NodeSelectorRequirement", &requirement());
    golden.check("TopologySpread", &spread());
}

pub(crate) fn rollup() -> ClusterCapacityNeeds {
    ClusterCapacityNeeds { cluster_id: s("cluster_id"), timestamp_unix_nanos: -2, needs: vec![need()] }
}

pub(crate) fn need() -> CapacityNeed {
    CapacityNeed {
        requirements: vec![requirement()],
        aggregate_resources: texts(),
        priority: 1003,
        spread: vec![spread()],
        interruption_penalty_bucket: PenaltyBucket::Pinned.into(),
        reclamation_penalty_bucket: PenaltyBucket::Pinned.into(),
        min_unit: texts(),
        group: s("group"),
    }
}

pub(crate) fn requirement() -> NodeSelectorRequirement {
    NodeSelectorRequirement {
        key: s("key"),
        operator: node_selector_requirement::Operator::Same.into(),
        values: twice("values"),
    }
}

fn spread() -> TopologySpread {
    TopologySpread {
        topology_key: s("topology_key"),
        max_skew: 1002,
        when_unsatisfiable: topology_spread::WhenUnsatisfiable::ScheduleAnyway.into(),
    }
}
