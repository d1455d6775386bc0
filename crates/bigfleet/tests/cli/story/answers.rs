//! The story's explanations and plans.

use bigfleet_view::v1::*;

use super::*;

pub(crate) fn short_need() -> NeedExplanation {
    let removed =
        |code: &str, detail: &str, machines| Removed { code: code.into(), detail: detail.into(), machines };
    NeedExplanation {
        as_of: Some(as_of()),
        need: Some(gang_need()),
        funnel: Some(Funnel {
            considered: 141,
            removed: vec![
                removed("dead", "", 1),
                removed("requirement", "node.kubernetes.io/instance-type In (a3-high)", 112),
                removed("other_domain", "", 12),
            ],
            its_own: 12,
            holders: vec![
                Holder {
                    need: Some(ranker()),
                    cluster: "serve".into(),
                    state: MachineState::Configured.into(),
                    priority: 900_000,
                    machines: 4,
                },
                Holder { state: MachineState::Idle.into(), machines: 1, ..Holder::default() },
            ],
            ..Funnel::default()
        }),
        remedies: vec![
            Remedy { change: Some(remedy::Change::Priority(900_001)), acquires: 0, preempts: 4 },
            Remedy {
                change: Some(remedy::Change::WithoutRequirement("topology.bigfleet/rack Same".into())),
                acquires: 4,
                preempts: 0,
            },
            Remedy {
                change: Some(remedy::Change::Less(Amounts {
                    amounts: map(&[("cpu", "1200"), ("nvidia.com/gpu", "96")]),
                })),
                acquires: 0,
                preempts: 0,
            },
        ],
        remedies_tried: true,
        credited: (0..9).map(|number| format!("metal-1{number}")).collect(),
        acquired: vec!["metal-20".into(), "metal-21".into(), "metal-22".into()],
        domains: vec![
            DomainCoverage {
                domain: "rack-2".into(),
                coverage_per_mille: 1000,
                machines: 16,
                reachable_machines: 12,
                reachable_per_mille: 750,
            },
            DomainCoverage {
                domain: "rack-1".into(),
                coverage_per_mille: 500,
                machines: 8,
                reachable_machines: 8,
                reachable_per_mille: 500,
            },
        ],
        free: Some(FreeSupply {
            idle: 1,
            speculative: 0,
            cheapest: "metal-30".into(),
            cheapest_usd_per_hour: 2.4,
            price_source: Some(PriceSource { provider: "metal".into(), heard_unix_nanos: NOW - 9 * SECOND }),
        }),
        decisions: vec![preempted()],
        ..NeedExplanation::default()
    }
}

pub(crate) fn covered_need() -> NeedExplanation {
    NeedExplanation {
        as_of: Some(as_of()),
        need: Some(web_need()),
        funnel: Some(Funnel { considered: 141, its_own: 9, ..Funnel::default() }),
        credited: vec!["aws-0031".into()],
        acquired: vec!["aws-0032".into()],
        decisions: vec![bought()],
        ..NeedExplanation::default()
    }
}

pub(crate) fn bought_machine() -> MachineExplanation {
    MachineExplanation {
        as_of: Some(as_of()),
        machine: Some(spot_machine()),
        claimed_by: Some(web_need()),
        bound_by: Some(bought()),
        decisions: vec![bought()],
        price_source: Some(PriceSource { provider: "aws".into(), heard_unix_nanos: NOW - 4 * SECOND }),
        effective_usd_per_hour: 0.122_05,
        ..MachineExplanation::default()
    }
}

pub(crate) fn idle_machine() -> MachineExplanation {
    MachineExplanation {
        as_of: Some(as_of()),
        machine: Some(idle()),
        release_due_unix_nanos: NOW + 3 * MINUTE + 30 * SECOND,
        hold_nanos: 5 * MINUTE,
        price_source: Some(PriceSource { provider: "gcp".into(), heard_unix_nanos: NOW - 3 * MINUTE }),
        effective_usd_per_hour: 0.38,
        ..MachineExplanation::default()
    }
}

fn score() -> VictimScore {
    VictimScore {
        preemptor_priority: 500_000,
        victim_priority: 100,
        gap: 499_900,
        gap_part: 499.9,
        drain_part: -0.12,
        interruption_part: -0.5,
        reclamation_part: 0.0,
        total: 499.28,
        interruption_penalty_usd: 0.5,
        reclamation_penalty_usd: 0.0,
        grace_secs: 120,
    }
}

pub(crate) fn preempt_decision() -> DecisionExplanation {
    DecisionExplanation {
        as_of: Some(as_of()),
        decision: Some(preempted()),
        replayed: true,
        need: Some(gang_need()),
        machine: machines(false).into_iter().find(|machine| machine.id == "metal-07"),
        score: Some(score()),
        reasons: Some(Reasons { demand: true, tick: true, ..Reasons::default() }),
        ..DecisionExplanation::default()
    }
}

pub(crate) fn preemption() -> Preemption {
    Preemption {
        decision: Some(preempted()),
        victim_need: Some(NeedRef { id: "e7e7e7e7".into(), cluster: "batch".into(), ..web() }),
        score: Some(score()),
        until_unix_nanos: NOW + 90 * SECOND,
        state: MachineState::Draining.into(),
    }
}

pub(crate) fn cluster() -> ClusterExplanation {
    let mut ml = clusters().remove(1);
    ml.machines = vec![SupplyCell {
        capacity_type: CapacityType::BareMetal.into(),
        state: MachineState::Configured.into(),
        machines: 12,
        usd_per_hour: 28.8,
    }];
    ml.pauses = rails().pauses;
    ClusterExplanation {
        as_of: Some(as_of()),
        cluster: Some(ml),
        short: vec![gang_need()],
        decisions: vec![preempted()],
        withheld: vec![reclaimed(Fate::Paused)],
        costs: vec![CostCell {
            cluster: "ml".into(),
            capacity_type: CapacityType::BareMetal.into(),
            machines: 12,
            usd_per_hour: 28.8,
        }],
    }
}

/// A different rule for each machine, so that all sentences can be heard. The machine's name is the code.
pub(crate) fn why_not(code: &str) -> WhyNotAnswer {
    WhyNotAnswer {
        as_of: Some(as_of()),
        need: Some(gang()),
        machine: Some(spot_machine()),
        code: code.into(),
        requirement: "topology.bigfleet/rack In (rack-2)".into(),
        value: (code == "requirement").then(|| "rack-9".into()),
        resource: "nvidia.com/gpu".into(),
        needed: "8".into(),
        provides: "0".into(),
        chosen_domain: "rack-2".into(),
        machine_domain: "rack-9".into(),
        other: Some(ranker()),
        priority: 900_000,
        need_priority: 500_000,
    }
}

pub(crate) fn plan() -> PlanAnswer {
    let count =
        |kind: ActionKind, fate: Fate, actions| FateCount { kind: kind.into(), fate: fate.into(), actions };
    PlanAnswer {
        as_of: Some(as_of()),
        actions: vec![bought(), preempted(), reclaimed(Fate::Paused)],
        totals: vec![
            count(ActionKind::Provision, Fate::Begun, 5),
            count(ActionKind::Preempt, Fate::Begun, 1),
            count(ActionKind::Reclaim, Fate::Paused, 4),
        ],
        usd_per_hour_before: 4.56,
        usd_per_hour_after: 5.165,
        unmet_before: 2,
        unmet_after: 1,
    }
}

pub(crate) fn empty_plan() -> PlanAnswer {
    PlanAnswer {
        as_of: Some(as_of()),
        usd_per_hour_before: 4.56,
        usd_per_hour_after: 4.56,
        ..PlanAnswer::default()
    }
}

pub(crate) fn costs(request: &GetCostsRequest) -> Costs {
    let part =
        |cause: &str, cluster: &str, capacity_type: CapacityType, cents: i64, machines: f64| CostPart {
            cluster: cluster.into(),
            priority: (cause == "used" || cause == "above_demand").then_some(100_000),
            capacity_type: capacity_type.into(),
            provider: "aws".into(),
            cause: cause.into(),
            nano_usd: cents * 10_000_000,
            machines,
        };
    let parts = vec![
        part("used", "shop", CapacityType::Spot, 121, 8.0),
        part("used", "ml", CapacityType::BareMetal, 200, 2.0),
        part("above_demand", "shop", CapacityType::Spot, 24, 1.0),
        part("idle_hold", "", CapacityType::OnDemand, 38, 1.0),
        part("idle_fixed", "", CapacityType::BareMetal, 73, 1.0),
    ];
    let span = request.from_unix_nanos != 0;
    Costs {
        as_of: Some(AsOf { from_record: span, ..as_of() }),
        usd_per_hour: 4.56,
        idle_usd_per_hour: 1.11,
        total_nano_usd: parts.iter().map(|part| part.nano_usd).sum(),
        parts,
        span: span.then_some(CostSpan {
            from_unix_nanos: request.from_unix_nanos,
            to_unix_nanos: NOW,
            cycles: 80,
            looked_at: 80,
        }),
        points: if span {
            let point = |at: i64, usd: f64| CostPoint {
                unix_nanos: NOW - (4 - at) * 15 * MINUTE,
                usd_per_hour: usd,
                idle_usd_per_hour: 1.0,
                waste_usd_per_hour: 0.5,
                short_needs: 1,
                actions: 3,
            };
            vec![point(0, 4.0), point(1, 4.2), point(2, 6.1), point(3, 4.56)]
        } else {
            Vec::new()
        },
        judgement: request.judge.then(|| CostJudgement {
            paid_usd_per_hour: 1.31,
            bound_usd_per_hour: 1.19,
            method: "exact".into(),
            unconstrained_usd_per_hour: 1.02,
            uncovered_needs: 2,
            protected_usd_per_hour: 1.45,
            unprotected_usd_per_hour: 1.2,
            protected_interruptions_per_hour: 0.01,
            unprotected_interruptions_per_hour: 0.09,
        }),
        ..Costs::default()
    }
}

pub(crate) fn lints() -> LintAnswer {
    let finding = |code: &str, severity: Severity, subject: &str, found: &str, times| Finding {
        code: code.into(),
        severity: severity.into(),
        about: "offer".into(),
        subject: subject.into(),
        found: found.into(),
        fix: "have the provider report it an hour".into(),
        times,
    };
    LintAnswer {
        as_of: Some(as_of()),
        findings: vec![
            finding("BF104", Severity::Error, "aws/m5 spot zone-b", "probability 0.3 an hour", 12),
            finding("BF204", Severity::Warning, "ml/77aa88bb", "only in zone-a", 1),
        ],
        needs: 4,
        machines: 120,
        providers: 2,
    }
}

pub(crate) fn provider_truth() -> ProviderTruth {
    let took =
        |p50_secs: f64| Took { samples: 40, p10_secs: p50_secs / 2.0, p50_secs, p90_secs: p50_secs * 2.0 };
    ProviderTruth {
        as_of: Some(as_of()),
        from_unix_nanos: NOW - 24 * 60 * MINUTE,
        to_unix_nanos: NOW,
        rows: vec![TruthRow {
            provider: "aws".into(),
            instance_type: "m5.2xlarge".into(),
            capacity_type: CapacityType::Spot.into(),
            machines: 24,
            min_usd_per_hour: 0.11,
            max_usd_per_hour: 0.13,
            min_probability: 0.0021,
            max_probability: 0.006,
            source: Some(PriceSource { provider: "aws".into(), heard_unix_nanos: NOW - 3 * MINUTE }),
            bound_machine_hours: 192.0,
            promised_interruptions: 0.6,
            observed_interruptions: 4,
            create: Some(took(45.0)),
            configure: Some(took(20.0)),
            drain: None,
        }],
    }
}

pub(crate) fn summary() -> Summary {
    Summary { as_of: Some(as_of()), needs: 4, unmet: 1, short: 2, worst: shortfalls(), ..Summary::default() }
}

/// The order of somebody who says so.
pub(crate) fn mode(request: &SetModeRequest) -> ModeView {
    ModeView {
        cluster: request.cluster.clone(),
        kind: request.kind,
        mode: request.mode,
        reason: request.reason.clone(),
        author: request.author.clone(),
        since_unix_nanos: NOW,
    }
}

pub(crate) fn modes() -> Modes {
    let order = ModeView {
        cluster: "shop".into(),
        kind: ActionKind::Reclaim.into(),
        mode: Mode::Approve.into(),
        reason: "first week".into(),
        author: "sam".into(),
        since_unix_nanos: NOW - 60 * SECOND,
    };
    let cluster =
        |name: &str, mode: Mode, mixed| ClusterMode { cluster: name.into(), mode: mode.into(), mixed };
    Modes {
        as_of: Some(as_of()),
        mode: Mode::Auto.into(),
        mixed: false,
        orders: vec![order],
        clusters: vec![cluster("ml", Mode::Auto, false), cluster("shop", Mode::Approve, true)],
        waiting: 1,
        proposal_life_nanos: 3600 * SECOND,
    }
}

pub(crate) fn proposals() -> Vec<Proposal> {
    let decision = decisions().pop();
    vec![Proposal {
        id: "0a1b2c3d".into(),
        usd_per_hour: decision.as_ref().map_or(0.0, |decision| decision.usd_per_hour),
        decision,
        since_unix_nanos: NOW - 60 * SECOND,
        until_unix_nanos: NOW + 540 * SECOND,
        approved_by: String::new(),
        approved_unix_nanos: 0,
        begun: false,
    }]
}
