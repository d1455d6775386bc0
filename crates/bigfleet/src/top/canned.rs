//! A small fleet in words the shard would use, for tests: three clusters, one of them with a gang that no rack can hold.

use std::collections::BTreeMap;

use bigfleet_proto::v1alpha1::node_selector_requirement::Operator;
use bigfleet_proto::v1alpha1::{CapacityNeed, CapacityType, MachineState, NodeSelectorRequirement};
use bigfleet_view::v1::remedy::Change;
use bigfleet_view::v1::*;

/// 2026-11-15 14:08:31 UTC.
pub(crate) const NOW: i64 = 1_794_751_711 * SECOND;
const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;

pub(crate) fn as_of() -> AsOf {
    AsOf {
        shard_id: "shard-0".into(),
        epoch: 3,
        cycle: 1842,
        cycle_unix_nanos: NOW - SECOND,
        now_unix_nanos: NOW,
        from_record: false,
        simulated: true,
        recorded_edition: None,
    }
}

fn amounts(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    of.iter().map(|(name, amount)| ((*name).to_owned(), (*amount).to_owned())).collect()
}

fn need_ref(id: &str, cluster: &str, group: &str) -> NeedRef {
    NeedRef {
        id: id.into(),
        long_id: format!("{id}00000000"),
        cluster: cluster.into(),
        fingerprint: "f1".into(),
        group: group.into(),
    }
}

fn train() -> NeedRef {
    need_ref("77aa88bb", "ml", "train-7")
}

fn supply(capacity_type: CapacityType, state: MachineState, machines: u32, usd_per_hour: f64) -> SupplyCell {
    SupplyCell { capacity_type: capacity_type.into(), state: state.into(), machines, usd_per_hour }
}

fn lane(cluster: &str, machines: u32, usd_per_hour: f64, needs: u32, unmet: u32) -> Lane {
    Lane {
        cluster: cluster.into(),
        machines,
        usd_per_hour,
        needs,
        unmet,
        short: unmet,
        connected: true,
        paused: false,
        held: false,
        reported: true,
        mode: Mode::Auto.into(),
        mode_mixed: false,
        r#use: vec![ResourceUse {
            resource: "cpu".into(),
            asked: f64::from(machines) * 6.0,
            provided: f64::from(machines) * 8.0,
            idle: 0.0,
        }],
    }
}

pub(crate) fn summary() -> Summary {
    use CapacityType::{BareMetal, OnDemand, Reserved, Spot};
    use MachineState::{Configured, Creating, Failed, Idle, Speculative};
    Summary {
        as_of: Some(as_of()),
        supply: vec![
            supply(BareMetal, Configured, 26, 0.0),
            supply(BareMetal, Idle, 1, 0.0),
            supply(BareMetal, Failed, 1, 0.0),
            supply(Reserved, Configured, 20, 1.2),
            supply(OnDemand, Configured, 11, 2.4),
            supply(OnDemand, Creating, 2, 0.0),
            supply(OnDemand, Speculative, 35, 0.0),
            supply(Spot, Configured, 24, 0.96),
        ],
        lanes: vec![
            Lane { paused: true, held: true, connected: false, ..lane("batch", 29, 0.26, 4, 1) },
            lane("ml", 16, 2.4, 2, 1),
            lane("shop", 38, 1.9, 12, 0),
        ],
        usd_per_hour: 4.56,
        idle_usd_per_hour: 0.0,
        needs: 18,
        unmet: 2,
        short: 2,
        worst: vec![
            Shortfall {
                need: Some(train()),
                priority: 500_000,
                since_unix_nanos: NOW - 6 * MINUTE,
                since_cycle: 1806,
                reason: Reason::TopologyUnsatisfiable.into(),
                deficit: amounts(&[("nvidia.com/gpu", "128")]),
                unresolved: amounts(&[("nvidia.com/gpu", "32")]),
                spec: None,
            },
            Shortfall {
                need: Some(need_ref("a1b2c3d4", "batch", "")),
                priority: 1_000,
                since_unix_nanos: NOW - 90 * SECOND,
                since_cycle: 1833,
                reason: Reason::PriorityStarved.into(),
                deficit: amounts(&[("cpu", "12"), ("memory", "48Gi")]),
                unresolved: BTreeMap::new(),
                spec: None,
            },
        ],
        recent: decisions(),
        pauses: 1,
        mode: Mode::Auto.into(),
        proposals: 0,
        dry_run: false,
        withheld: Vec::new(),
        moves: 2,
        providers: vec![ProviderBrief {
            name: "aws".into(),
            machines: 72,
            heard_unix_nanos: NOW - SECOND,
            stale: false,
        }],
        r#use: Vec::new(),
        cycle_times: None,
    }
}

pub(crate) fn watch_event() -> WatchEvent {
    WatchEvent { summary: Some(summary()), decisions: Vec::new(), skipped: 0 }
}

fn decision(seconds_ago: i64, kind: ActionKind, machine: &str, cluster: &str) -> Decision {
    Decision {
        cycle: 1842 - seconds_ago as u64 / 10,
        epoch: 3,
        unix_nanos: NOW - seconds_ago * SECOND,
        kind: kind.into(),
        machine: machine.into(),
        cluster: cluster.into(),
        fate: Fate::Begun.into(),
        instance_type: "m5.2xlarge".into(),
        zone: "zone-b".into(),
        capacity_type: CapacityType::Spot.into(),
        usd_per_hour: 0.121,
        ..Decision::default()
    }
}

/// Newest first.
pub(crate) fn decisions() -> Vec<Decision> {
    let bought = Decision {
        need: Some(need_ref("c0ffee01", "shop", "")),
        priority: 100_000,
        why: Some(Why {
            brief: false,
            rule: Rule::Bargain.into(),
            figure: 0.122,
            share: Some(0.8),
            resources: 2,
            runner_up: Some(RunnerUp {
                machine: "aws-od-7".into(),
                state: MachineState::Speculative.into(),
                figure: 0.38,
                instance_type: "m5.2xlarge".into(),
                zone: "zone-a".into(),
                capacity_type: CapacityType::OnDemand.into(),
                usd_per_hour: 0.38,
                share: Some(1.0),
                given_back: false,
            }),
        }),
        ..decision(12, ActionKind::Provision, "aws-0031", "shop")
    };
    vec![
        Decision { fate: Fate::Capped.into(), ..decision(1, ActionKind::Reclaim, "metal-07", "batch") },
        bought,
        preemption(),
        decision(75, ActionKind::Delete, "aws-0012", ""),
    ]
}

fn preemption() -> Decision {
    Decision {
        need: Some(train()),
        priority: 500_000,
        grace_secs: 120,
        why: Some(Why { rule: Rule::BestVictim.into(), figure: 499.25, ..Why::default() }),
        ..decision(40, ActionKind::Preempt, "aws-0044", "batch")
    }
}

fn need(key: NeedRef, priority: i32) -> Need {
    Need {
        spec: Some(CapacityNeed {
            aggregate_resources: amounts(&[("cpu", "320"), ("memory", "1280Gi")]),
            min_unit: amounts(&[("cpu", "4")]),
            priority,
            ..CapacityNeed::default()
        }),
        key: Some(key),
        first_seen_unix_nanos: NOW - 90 * MINUTE,
        satisfied: true,
        credited: 9,
        usd_per_hour: 1.08,
        ..Need::default()
    }
}

pub(crate) fn needs() -> Vec<Need> {
    vec![gang(), need(need_ref("c0ffee01", "shop", ""), 100_000), starved()]
}

fn starved() -> Need {
    Need {
        satisfied: false,
        reason: Reason::PriorityStarved.into(),
        deficit: amounts(&[("cpu", "12"), ("memory", "48Gi")]),
        short_since_unix_nanos: NOW - 90 * SECOND,
        short_since_cycle: 1833,
        credited: 3,
        in_flight: 1,
        usd_per_hour: 0.12,
        ..need(need_ref("a1b2c3d4", "batch", ""), 1_000)
    }
}

fn gang() -> Need {
    Need {
        spec: Some(CapacityNeed {
            requirements: vec![
                requirement("gpu.product", Operator::In, &["h100"]),
                requirement("rack", Operator::Same, &[]),
            ],
            aggregate_resources: amounts(&[("nvidia.com/gpu", "128")]),
            min_unit: amounts(&[("nvidia.com/gpu", "8")]),
            priority: 500_000,
            group: "train-7".into(),
            ..CapacityNeed::default()
        }),
        satisfied: false,
        reason: Reason::TopologyUnsatisfiable.into(),
        deficit: amounts(&[("nvidia.com/gpu", "128")]),
        unresolved: amounts(&[("nvidia.com/gpu", "32")]),
        short_since_unix_nanos: NOW - 6 * MINUTE,
        short_since_cycle: 1806,
        credited: 0,
        usd_per_hour: 0.0,
        domain_key: "rack".into(),
        domain: "rack-2".into(),
        ..need(train(), 500_000)
    }
}

fn requirement(key: &str, operator: Operator, values: &[&str]) -> NodeSelectorRequirement {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    NodeSelectorRequirement { key: key.into(), operator: operator.into(), values }
}

fn machine(id: &str, state: MachineState, cluster: &str, usd_per_hour: f64) -> Machine {
    Machine {
        id: id.into(),
        state: state.into(),
        provider: "aws".into(),
        cluster: cluster.into(),
        instance_type: "m5.2xlarge".into(),
        zone: "zone-b".into(),
        capacity_type: CapacityType::Spot.into(),
        usd_per_hour,
        state_since_unix_nanos: NOW - 40 * MINUTE,
        ..Machine::default()
    }
}

pub(crate) fn machines() -> Vec<Machine> {
    let bound = Machine { bound_for: Some(need_ref("c0ffee01", "shop", "")), ..story_machine() };
    let draining = Machine {
        draining_for: Some(train()),
        under_way: Some(Move {
            kind: ActionKind::Preempt.into(),
            step: "waits_for_cluster".into(),
            since_unix_nanos: NOW - 40 * SECOND,
            ..Move::default()
        }),
        state_since_unix_nanos: NOW - 40 * SECOND,
        ..machine("aws-0044", MachineState::Draining, "batch", 0.118)
    };
    let failed = Machine {
        trouble: "quarantined".into(),
        last_error: "no boot".into(),
        capacity_type: CapacityType::BareMetal.into(),
        instance_type: "metal-64".into(),
        zone: "zone-a".into(),
        ..machine("metal-09", MachineState::Failed, "", 0.0)
    };
    vec![bound, draining, machine("aws-0050", MachineState::Speculative, "", 0.125), failed]
}

fn story_machine() -> Machine {
    Machine {
        interruption_probability: 0.0021,
        labels: amounts(&[("rack", "rack-9"), ("arch", "amd64")]),
        provides: amounts(&[("cpu", "7500m"), ("memory", "30Gi")]),
        bound_priority: 100_000,
        ..machine("aws-0031", MachineState::Configured, "shop", 0.121)
    }
}

pub(crate) fn cluster_explanation() -> ClusterExplanation {
    let lane = Lane { paused: true, ..lane("ml", 16, 2.4, 2, 1) };
    let cost = CostCell {
        cluster: "ml".into(),
        capacity_type: CapacityType::OnDemand.into(),
        machines: 16,
        usd_per_hour: 2.4,
    };
    ClusterExplanation {
        as_of: Some(as_of()),
        cluster: Some(Cluster {
            lane: Some(lane),
            session: Some(Session {
                number: 7,
                cluster: "ml".into(),
                protocol: "v1alpha1".into(),
                opened_unix_nanos: NOW - 90 * MINUTE,
                reported_unix_nanos: NOW - 4 * SECOND,
            }),
            reclaim_cap: Some(ReclaimCap {
                cluster: "ml".into(),
                configured: 16,
                cap: 2,
                used: 1,
                frees_unix_nanos: NOW,
            }),
            pauses: vec![PauseView {
                number: 1,
                cluster: "ml".into(),
                kind: ActionKind::Reclaim.into(),
                reason: "checkpoint running".into(),
                author: "ops".into(),
                since_unix_nanos: NOW - MINUTE,
                until_unix_nanos: NOW + 29 * MINUTE,
                ..PauseView::default()
            }],
            reported_unix_nanos: NOW - 4 * SECOND,
            changed_unix_nanos: NOW - 9 * MINUTE,
            ..Cluster::default()
        }),
        short: vec![gang()],
        decisions: vec![preemption()],
        withheld: Vec::new(),
        costs: vec![cost],
    }
}

pub(crate) fn need_explanation() -> NeedExplanation {
    let removed =
        |code: &str, detail: &str, machines| Removed { code: code.into(), detail: detail.into(), machines };
    let holder = Holder {
        need: Some(need_ref("5e5e5e5e", "serve", "")),
        cluster: "serve".into(),
        state: MachineState::Configured.into(),
        priority: 900_000,
        machines: 4,
    };
    let domain = |domain: &str, coverage, machines, reachable| DomainCoverage {
        domain: domain.into(),
        coverage_per_mille: coverage,
        machines,
        reachable_machines: reachable,
        reachable_per_mille: reachable * 1000 / 16,
    };
    NeedExplanation {
        as_of: Some(as_of()),
        need: Some(gang()),
        funnel: Some(Funnel {
            considered: 120,
            removed: vec![removed("requirement", "gpu.product in h100", 94), removed("dead", "", 1)],
            its_own: 0,
            unlisted_holders: 0,
            unlisted_machines: 0,
            holders: vec![
                holder,
                Holder { machines: 3, state: MachineState::Idle.into(), ..Holder::default() },
            ],
        }),
        remedies: vec![
            Remedy {
                change: Some(Change::Less(Amounts { amounts: amounts(&[("nvidia.com/gpu", "96")]) })),
                acquires: 12,
                preempts: 0,
            },
            Remedy { change: Some(Change::Priority(900_001)), acquires: 12, preempts: 4 },
        ],
        remedies_tried: true,
        domains: vec![domain("rack-2", 1000, 16, 12), domain("rack-1", 500, 8, 8)],
        free: Some(FreeSupply {
            idle: 3,
            speculative: 0,
            cheapest: "metal-gpu-2".into(),
            cheapest_usd_per_hour: 0.0,
            price_source: None,
        }),
        decisions: vec![preemption()],
        ..NeedExplanation::default()
    }
}

pub(crate) fn machine_explanation() -> MachineExplanation {
    let history = decisions();
    MachineExplanation {
        as_of: Some(as_of()),
        machine: Some(Machine { bound_for: Some(need_ref("c0ffee01", "shop", "")), ..story_machine() }),
        claimed_by: Some(need(need_ref("c0ffee01", "shop", ""), 100_000)),
        bound_by: Some(history[1].clone()),
        decisions: vec![history[1].clone()],
        price_source: Some(PriceSource { provider: "aws".into(), heard_unix_nanos: NOW - 3 * MINUTE }),
        effective_usd_per_hour: 0.122_05,
        ..MachineExplanation::default()
    }
}

pub(crate) fn decision_explanation() -> DecisionExplanation {
    DecisionExplanation {
        as_of: Some(as_of()),
        decision: Some(preemption()),
        replayed: true,
        score: Some(VictimScore {
            preemptor_priority: 500_000,
            victim_priority: 1_000,
            gap: 499_000,
            gap_part: 499.0,
            drain_part: 0.05,
            interruption_part: 0.1,
            reclamation_part: 0.1,
            total: 499.25,
            interruption_penalty_usd: 0.5,
            reclamation_penalty_usd: 0.0,
            grace_secs: 120,
        }),
        reasons: Some(Reasons { demand: true, tick: true, ..Reasons::default() }),
        ..DecisionExplanation::default()
    }
}
