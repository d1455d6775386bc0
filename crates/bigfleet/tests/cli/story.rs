//! The story: a shop, a training cluster with a gang that waits for one rack, and batch work, at 14:08:31.

use std::collections::BTreeMap;

use bigfleet_proto::v1alpha1::node_selector_requirement::Operator;
use bigfleet_proto::v1alpha1::{
    CapacityNeed, CapacityType, MachineState, NodeSelectorRequirement, PenaltyBucket,
};
use bigfleet_view::v1::*;

mod answers;

pub(crate) use answers::*;

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
/// 2026-11-15T14:08:31Z.
pub(crate) const NOW: i64 = 1_794_751_711 * SECOND;

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn version() -> Version {
    Version {
        server_version: env!("CARGO_PKG_VERSION").into(),
        api_version: "v1".into(),
        shard_id: "s1".into(),
        epoch: 7,
        started_unix_nanos: NOW - 90 * MINUTE,
        now_unix_nanos: NOW,
        simulated: true,
        role: String::new(),
        recording: true,
        oldest_cycle: 12,
        oldest_unix_nanos: NOW - 80 * MINUTE,
    }
}

pub(crate) fn as_of() -> AsOf {
    AsOf {
        shard_id: "s1".into(),
        epoch: 7,
        cycle: 1842,
        cycle_unix_nanos: NOW - SECOND,
        now_unix_nanos: NOW,
        from_record: false,
        simulated: true,
        recorded_edition: None,
    }
}

pub(crate) fn gang() -> NeedRef {
    NeedRef {
        id: "77aa88bb".into(),
        long_id: "77aa88bb00112233".into(),
        cluster: "ml".into(),
        fingerprint: "f00d".into(),
        group: "train-7".into(),
    }
}

fn web() -> NeedRef {
    NeedRef {
        id: "a1b2c3d4".into(),
        long_id: "a1b2c3d4e5f60718".into(),
        cluster: "shop".into(),
        fingerprint: "beef".into(),
        group: String::new(),
    }
}

fn ranker() -> NeedRef {
    NeedRef { id: "0badcafe".into(), cluster: "serve".into(), ..web() }
}

fn gang_spec() -> CapacityNeed {
    CapacityNeed {
        requirements: vec![
            NodeSelectorRequirement {
                key: "topology.bigfleet/rack".into(),
                operator: Operator::Same.into(),
                values: Vec::new(),
            },
            NodeSelectorRequirement {
                key: "node.kubernetes.io/instance-type".into(),
                operator: Operator::In.into(),
                values: vec!["a3-high".into()],
            },
        ],
        aggregate_resources: map(&[("cpu", "1600"), ("nvidia.com/gpu", "128")]),
        priority: 500_000,
        min_unit: map(&[("cpu", "100"), ("nvidia.com/gpu", "8")]),
        interruption_penalty_bucket: PenaltyBucket::PenaltyBucket64.into(),
        group: "train-7".into(),
        ..CapacityNeed::default()
    }
}

fn web_spec() -> CapacityNeed {
    CapacityNeed {
        aggregate_resources: map(&[("cpu", "64"), ("memory", "128Gi")]),
        priority: 100_000,
        interruption_penalty_bucket: PenaltyBucket::HalfDollar.into(),
        ..CapacityNeed::default()
    }
}

fn gang_need() -> Need {
    Need {
        key: Some(gang()),
        spec: Some(gang_spec()),
        first_seen_unix_nanos: NOW - 20 * MINUTE,
        satisfied: false,
        reason: Reason::PriorityStarved.into(),
        deficit: map(&[("cpu", "400"), ("nvidia.com/gpu", "32")]),
        unresolved: map(&[("cpu", "400"), ("nvidia.com/gpu", "32")]),
        credited: 9,
        acquired: 3,
        short_since_unix_nanos: NOW - 6 * MINUTE - 21 * SECOND,
        short_since_cycle: 1791,
        domain_key: "topology.bigfleet/rack".into(),
        domain: "rack-2".into(),
        usd_per_hour: 28.8,
        ..Need::default()
    }
}

fn web_need() -> Need {
    Need {
        key: Some(web()),
        spec: Some(web_spec()),
        first_seen_unix_nanos: NOW - 80 * MINUTE,
        satisfied: true,
        credited: 8,
        acquired: 1,
        usd_per_hour: 1.9,
        ..Need::default()
    }
}

pub(crate) fn needs() -> Vec<Need> {
    let etl = Need {
        key: Some(NeedRef { id: "e7e7e7e7".into(), cluster: "batch".into(), ..web() }),
        spec: Some(CapacityNeed { priority: 100, ..web_spec() }),
        satisfied: false,
        reason: Reason::InFlight.into(),
        deficit: map(&[("cpu", "12")]),
        in_flight: 2,
        credited: 29,
        short_since_unix_nanos: NOW - 40 * SECOND,
        usd_per_hour: 0.26,
        ..Need::default()
    };
    vec![gang_need(), web_need(), etl]
}

fn spot_machine() -> Machine {
    Machine {
        id: "aws-0031".into(),
        state: MachineState::Configured.into(),
        provider: "aws".into(),
        host: "i-0abc".into(),
        cluster: "shop".into(),
        instance_type: "m5.2xlarge".into(),
        zone: "zone-b".into(),
        capacity_type: CapacityType::Spot.into(),
        usd_per_hour: 0.121,
        interruption_probability: 0.0021,
        provides: map(&[("cpu", "7500m"), ("memory", "30Gi")]),
        bound_for: Some(web()),
        claimed_by: Some(web()),
        bound_priority: 100_000,
        state_since_unix_nanos: NOW - 12 * MINUTE,
        interruption_penalty_usd: 0.5,
        ..Machine::default()
    }
}

fn idle() -> Machine {
    Machine {
        id: "gcp-0007".into(),
        state: MachineState::Idle.into(),
        provider: "gcp".into(),
        instance_type: "n2-standard-8".into(),
        zone: "zone-c".into(),
        capacity_type: CapacityType::OnDemand.into(),
        usd_per_hour: 0.38,
        provides: map(&[("cpu", "7500m")]),
        state_since_unix_nanos: NOW - 90 * SECOND,
        idle_since_unix_nanos: NOW - 90 * SECOND,
        ..Machine::default()
    }
}

fn machines(full: bool) -> Vec<Machine> {
    let draining = Machine {
        id: "metal-07".into(),
        state: MachineState::Draining.into(),
        provider: "metal".into(),
        cluster: "batch".into(),
        instance_type: "a3-high".into(),
        zone: "zone-a".into(),
        capacity_type: CapacityType::BareMetal.into(),
        draining_for: Some(gang()),
        state_since_unix_nanos: NOW - 30 * SECOND,
        under_way: Some(Move {
            kind: ActionKind::Preempt.into(),
            step: "waits_for_cluster".into(),
            since_unix_nanos: NOW - 30 * SECOND,
            tries: 2,
            until_unix_nanos: NOW + 90 * SECOND,
            ..Move::default()
        }),
        ..Machine::default()
    };
    let failed = Machine {
        id: "aws-0099".into(),
        state: MachineState::Failed.into(),
        provider: "aws".into(),
        instance_type: "m5.2xlarge".into(),
        zone: "zone-a".into(),
        capacity_type: CapacityType::Spot.into(),
        usd_per_hour: 0.118,
        state_since_unix_nanos: NOW - 3 * MINUTE,
        trouble: "quarantined".into(),
        last_error: "insufficient capacity in the pool of zone-a".into(),
        ..Machine::default()
    };
    let mut all = vec![spot_machine(), idle(), draining, failed];
    if full {
        for machine in &mut all {
            machine.labels = map(&[("topology.bigfleet/rack", "rack-2")]);
        }
    }
    all
}

/// The machines of the story, and a crowd behind them, page by page and never all at once.
pub(crate) fn machine_pages(crowd: u32, full: bool) -> impl Iterator<Item = MachinePage> + Send {
    let first = MachinePage { as_of: Some(as_of()), machines: machines(full), known: None, matching: None };
    let page = move |number: u32| {
        let ids = number * 2000..((number + 1) * 2000).min(crowd);
        let machine = |id: u32| Machine { id: format!("crowd-{id:07}"), ..spot_machine() };
        MachinePage {
            as_of: Some(as_of()),
            machines: ids.map(machine).collect(),
            known: None,
            matching: None,
        }
    };
    std::iter::once(first).chain((0..crowd.div_ceil(2000)).map(page))
}

pub(crate) fn clusters() -> Vec<Cluster> {
    let cluster = |name: &str, number: u64, lane: Lane| Cluster {
        lane: Some(Lane {
            cluster: name.into(),
            connected: true,
            reported: true,
            mode: Mode::Auto.into(),
            ..lane
        }),
        session: Some(Session {
            number,
            cluster: name.into(),
            protocol: "v1alpha1".into(),
            opened_unix_nanos: NOW - 85 * MINUTE,
            reported_unix_nanos: NOW - 4 * SECOND,
        }),
        reported_unix_nanos: NOW - 4 * SECOND,
        changed_unix_nanos: NOW - 2 * MINUTE,
        ..Cluster::default()
    };
    let lane = |machines, usd_per_hour, needs, unmet, short| Lane {
        machines,
        usd_per_hour,
        needs,
        unmet,
        short,
        ..Lane::default()
    };
    let mut batch = cluster("batch", 3, lane(29, 0.26, 1, 0, 1));
    batch.lane.as_mut().unwrap().paused = true;
    let mut old = cluster("old", 0, lane(2, 0.7, 0, 0, 0));
    old.session = None;
    old.lane.as_mut().unwrap().connected = false;
    old.held = Some(HeldRollup { cluster: "old".into(), seen: 1, of: 3, ..HeldRollup::default() });
    vec![batch, cluster("ml", 2, lane(12, 28.8, 1, 1, 1)), old, cluster("shop", 1, lane(9, 1.9, 1, 0, 0))]
}

fn bought() -> Decision {
    Decision {
        cycle: 1790,
        epoch: 7,
        unix_nanos: NOW - 12 * MINUTE,
        kind: ActionKind::Provision.into(),
        machine: "aws-0031".into(),
        cluster: "shop".into(),
        need: Some(web()),
        priority: 100_000,
        fate: Fate::Begun.into(),
        why: Some(Why {
            brief: false,
            rule: Rule::Bargain.into(),
            figure: 0.122,
            share: Some(0.8),
            resources: 2,
            runner_up: Some(RunnerUp {
                machine: "aws-0044".into(),
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
        instance_type: "m5.2xlarge".into(),
        zone: "zone-b".into(),
        capacity_type: CapacityType::Spot.into(),
        usd_per_hour: 0.121,
        ..Decision::default()
    }
}

fn preempted() -> Decision {
    Decision {
        cycle: 1841,
        epoch: 7,
        unix_nanos: NOW - 30 * SECOND,
        kind: ActionKind::Preempt.into(),
        machine: "metal-07".into(),
        cluster: "batch".into(),
        need: Some(gang()),
        priority: 500_000,
        grace_secs: 120,
        fate: Fate::Begun.into(),
        why: Some(Why { rule: Rule::BestVictim.into(), figure: 499.9, ..Why::default() }),
        instance_type: "a3-high".into(),
        zone: "zone-a".into(),
        capacity_type: CapacityType::BareMetal.into(),
        ..Decision::default()
    }
}

fn reclaimed(fate: Fate) -> Decision {
    Decision {
        cycle: 1842,
        unix_nanos: NOW - SECOND,
        kind: ActionKind::Reclaim.into(),
        machine: "aws-0012".into(),
        cluster: "batch".into(),
        fate: fate.into(),
        why: Some(Why { rule: Rule::Unclaimed.into(), figure: 0.119, ..Why::default() }),
        instance_type: "m5.2xlarge".into(),
        zone: "zone-b".into(),
        capacity_type: CapacityType::Spot.into(),
        usd_per_hour: 0.119,
        ..Decision::default()
    }
}

pub(crate) fn decisions() -> Vec<Decision> {
    vec![reclaimed(Fate::Capped), preempted(), bought()]
}

pub(crate) fn offers() -> Vec<Offer> {
    let offer =
        |provider: &str, instance_type: &str, zone: &str, capacity: CapacityType, idle, speculative| Offer {
            provider: provider.into(),
            instance_type: instance_type.into(),
            zone: zone.into(),
            capacity_type: capacity.into(),
            idle,
            speculative,
            provides: map(&[("cpu", "7500m"), ("memory", "30Gi")]),
            price_source: Some(PriceSource { provider: provider.into(), heard_unix_nanos: NOW - 5 * SECOND }),
            ..Offer::default()
        };
    vec![
        Offer {
            min_usd_per_hour: 0.118,
            max_usd_per_hour: 0.124,
            min_interruption_probability: 0.0021,
            max_interruption_probability: 0.06,
            ..offer("aws", "m5.2xlarge", "zone-b", CapacityType::Spot, 0, 24)
        },
        Offer {
            min_usd_per_hour: 0.1,
            max_usd_per_hour: 0.1,
            ..offer("gcp", "n2-standard-8", "zone-c", CapacityType::Spot, 1, 40)
        },
        Offer {
            min_usd_per_hour: 0.38,
            max_usd_per_hour: 0.38,
            ..offer("aws", "m5.2xlarge", "zone-a", CapacityType::OnDemand, 0, 48)
        },
    ]
}

pub(crate) fn providers() -> Vec<Provider> {
    let provider = |name: &str, machines, heard: i64, stale| Provider {
        brief: Some(ProviderBrief { name: name.into(), machines, heard_unix_nanos: NOW - heard, stale }),
        incremental: true,
        list_every_nanos: 10 * SECOND,
        stale_after_nanos: 2 * MINUTE,
        last_full_list_unix_nanos: NOW - 9 * MINUTE,
        ..Provider::default()
    };
    vec![
        Provider { supports_delete: true, ..provider("aws", 72, 4 * SECOND, false) },
        Provider {
            list_error: "connection refused".into(),
            failures: 14,
            ..provider("gcp", 41, 3 * MINUTE, true)
        },
        provider("metal", 28, 9 * SECOND, false),
    ]
}

pub(crate) fn shortfalls() -> Vec<Shortfall> {
    let short = |need: &Need| Shortfall {
        need: need.key.clone(),
        priority: need.spec.as_ref().unwrap().priority,
        since_unix_nanos: need.short_since_unix_nanos,
        since_cycle: need.short_since_cycle,
        reason: need.reason,
        deficit: need.deficit.clone(),
        unresolved: need.unresolved.clone(),
        spec: None,
    };
    needs().iter().filter(|need| !need.satisfied).map(short).collect()
}

pub(crate) fn pause(request: &PauseRequest) -> PauseView {
    PauseView {
        number: 3,
        cluster: request.cluster.clone(),
        kind: request.kind,
        dry_run: request.dry_run,
        reason: request.reason.clone(),
        author: request.author.clone(),
        since_unix_nanos: NOW,
        until_unix_nanos: if request.for_nanos == 0 { 0 } else { NOW + request.for_nanos },
    }
}

pub(crate) fn rails() -> Rails {
    let request = PauseRequest {
        cluster: "batch".into(),
        kind: ActionKind::Reclaim.into(),
        reason: "month end".into(),
        author: "sam".into(),
        for_nanos: 30 * MINUTE,
        ..PauseRequest::default()
    };
    Rails {
        as_of: Some(as_of()),
        reclaim_fraction: 0.05,
        reclaim_window_nanos: 10 * MINUTE,
        max_actions_per_cycle: 500,
        max_moves: 256,
        moves: 3,
        caps: vec![ReclaimCap {
            cluster: "batch".into(),
            configured: 29,
            cap: 1,
            used: 1,
            frees_unix_nanos: NOW + 4 * MINUTE,
        }],
        pauses: vec![pause(&request)],
        held_rollups: vec![HeldRollup {
            cluster: "old".into(),
            first_unix_nanos: NOW - 20 * SECOND,
            last_unix_nanos: NOW - 20 * SECOND,
            seen: 1,
            of: 3,
        }],
        providers: providers()
            .into_iter()
            .filter(|provider| provider.brief.as_ref().unwrap().stale)
            .collect(),
        silent_clusters: vec!["new".into()],
        withheld: vec![FateCount { kind: ActionKind::Reclaim.into(), fate: Fate::Capped.into(), actions: 4 }],
        demand_drop: 0.5,
        supply_drop: 0.3,
        confirmations: 3,
        instructions: vec![WaitingInstruction {
            instruction_id: "7-12".into(),
            coordinator_term: 7,
            wants: "let go of domain zone=b".into(),
            reason: "what is under way there ends first".into(),
            ends: true,
        }],
        ..Rails::default()
    }
}
