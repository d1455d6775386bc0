//! Random worlds of several shards with a coordinator: zones move, shards help, quotas change, and everybody may be killed.
//!
//! Left out is one fault: calls to a provider that take effect after their caller gave up. No shard can know when the last of
//! them has arrived, and providers fence the lives of one shard, not shards from one another.

use std::collections::BTreeMap;

use bigfleet_provider_sim::Span;

use crate::random::Random;
use crate::scenario::{
    Call, Cluster, Council, CouncilFault, CouncilOrder, Curve, Dwell, Fault, Machines, Ordered, Pods, Point,
    Requirement, Scenario, ShardSetup, StartState, What, Work, Wrong,
};

const ZONES: [&str; 4] = ["zone-a", "zone-b", "zone-c", "zone-d"];

/// The world of a seed: half an hour of trouble, and then all of it must end.
pub fn council_of(seed: u64) -> Scenario {
    let mut random = Random::new(seed).fork("council");
    let random = &mut random;
    let shards = random.between(2, 4) as usize;
    let lasts = Span::from_secs(1800);
    let secs = |random: &mut Random, low, high| Span::from_secs(random.between(low, high));
    let fleet = (0..random.between(1, 3)).map(|index| pool(index, random)).collect();
    let clusters = (0..shards).map(|shard| cluster(shard, random)).collect();
    let faults = (0..random.between(0, 4)).map(|_| fault(shards, random)).collect();
    Scenario {
        name: format!("council-{seed}"),
        note: String::new(),
        seed,
        lasts,
        settle: true,
        shard: ShardSetup {
            shards,
            full_list_every: secs(random, 60, 600),
            reclaim_fraction: 1.0,
            council: Some(council(shards, random)),
            ..ShardSetup::default()
        },
        dwell: Dwell {
            create: secs(random, 1, 200),
            configure: secs(random, 1, 90),
            drain: secs(random, 1, 60),
            delete: secs(random, 1, 60),
            jitter: *random.pick(&[0.0, 0.5]),
            repair: Span::from_secs(300),
        },
        latency: Span::from_millis(random.between(1, 500)),
        listing: Span::from_secs(0),
        fleet,
        clusters,
        faults,
        expect: Vec::new(),
    }
}

fn council(shards: usize, random: &mut Random) -> Council {
    let mut orders = Vec::new();
    for (place, zone) in ZONES.into_iter().enumerate() {
        let (zone, shard) = (zone.to_owned(), place % shards);
        orders.push((random.between(3, 60), Ordered::Assign { zone, shard }));
    }
    for _ in 0..random.between(2, 8) {
        let (zone, shard) = ((*random.pick(&ZONES)).to_owned(), random.below(shards as u64) as usize);
        let at = random.between(100, 1700);
        orders.push((at, Ordered::Unassign { zone: zone.clone() }));
        orders.push((at + random.between(0, 60), Ordered::Assign { zone, shard }));
    }
    if random.happens(0.5) {
        let (shard, machines) = (random.below(shards as u64) as usize, random.between(1, 6) as u32);
        let quota = |machines| Ordered::Quota { shard, provider: "cloud".into(), machines };
        orders.push((random.between(1, 1000), quota(Some(machines))));
    }
    orders.sort_by_key(|(at, _)| *at);
    let order = |(at, what)| CouncilOrder { at: Span::from_secs(at), what };
    let faults = (0..random.between(0, 5)).map(|_| {
        let replica = random.below(2) as usize;
        let what = match random.below(5) {
            0 | 1 => Wrong::Paused { replica },
            2 => Wrong::Killed { replica },
            3 => Wrong::StoreDown,
            _ => Wrong::Lost { p: *random.pick(&[0.2, 0.6]) },
        };
        let (at, lasts) = (random.between(5, 1600), *random.pick(&[5, 8, 20, 40, 90]));
        CouncilFault { at: Span::from_secs(at), lasts: Span::from_secs(lasts), what }
    });
    let faults = faults.collect();
    Council {
        replicas: 2,
        report_every: Span::from_secs(random.between(5, 30)),
        // Shorter than shards wait for an answer: one that was deposed meanwhile may still give it.
        lease: Span::from_secs(*random.pick(&[3, 3, 10])),
        helps: random.happens(0.8),
        orders: orders.into_iter().map(order).collect(),
        faults,
    }
}

fn amounts(cpu: u64) -> BTreeMap<String, String> {
    BTreeMap::from([("cpu".to_owned(), cpu.to_string()), ("memory".to_owned(), format!("{}Gi", cpu * 2))])
}

fn pool(index: u64, random: &mut Random) -> Machines {
    let capacity = *random.pick(&["bare-metal", "on-demand", "on-demand"]);
    let is_owned = capacity == "bare-metal";
    let size = 1 << random.between(2, 3);
    Machines {
        name: format!("pool{index}"),
        count: random.between(4, 16) as usize,
        provider: "cloud".into(),
        instance_type: format!("type{size}"),
        zones: ZONES.iter().map(|zone| (*zone).to_owned()).collect(),
        rack_size: 0,
        capacity: capacity.into(),
        state: if is_owned { StartState::Idle } else { StartState::Speculative },
        cluster: String::new(),
        price: random.between(1, 40) as f64 / 10.0,
        interruption: 0.0,
        resources: amounts(size),
        labels: BTreeMap::from([("pool".to_owned(), format!("pool{index}"))]),
    }
}

fn cluster(shard: usize, random: &mut Random) -> Cluster {
    let works = random.between(1, 2);
    Cluster {
        name: format!("cluster{shard}"),
        shard,
        roll_up: Span::from_secs(random.between(5, 20)),
        join: Span::from_secs(10),
        evict: Span::from_secs(random.between(0, 60)),
        unmet_only: false,
        work: (0..works).map(|index| work(index, random)).collect(),
    }
}

fn work(index: u64, random: &mut Random) -> Work {
    let pods = if random.happens(0.5) {
        Pods::Always(random.between(1, 40))
    } else {
        let points = (0..3).map(|part| Point {
            at: Span::from_secs(part * 600 + random.below(500)),
            pods: random.between(0, 60),
        });
        Pods::Curve(Curve::Steps(points.collect()))
    };
    // Who wants what its shard does not have is short beside machines that idle.
    let requires = if random.happens(0.4) {
        let values = vec![format!("pool{}", random.below(3))];
        vec![Requirement { key: "pool".into(), operator: "In".into(), values }]
    } else {
        Vec::new()
    };
    Work {
        name: format!("work{index}"),
        pods,
        unit: amounts(1 << random.between(0, 2)),
        priority: *random.pick(&[100, 1000, 1000, 1_000_000]),
        interruption_usd: *random.pick(&[None, Some(5.0)]),
        reclamation_usd: None,
        requires,
        same: String::new(),
        gang: 0,
        spread: None,
        bare: false,
        churn_per_hour: 0.0,
    }
}

fn fault(shards: usize, random: &mut Random) -> Fault {
    let call = *random.pick(&[Call::Create, Call::Configure, Call::Drain]);
    let away = Span::from_secs(random.between(1, 120));
    let what = match random.below(7) {
        0 | 1 => What::ShardKilled { away, shard: random.below(shards as u64) as usize, disk_lost: false },
        2 => What::ShardKilledOften { steps: random.between(20, 200) },
        3 => What::ProviderDown { provider: String::new() },
        4 => What::CallsFail { p: 0.3 },
        5 => What::AnswersTwice { p: 0.5 },
        _ => What::MovesFail { call, pool: String::new(), p: 0.5 },
    };
    Fault {
        at: Span::from_secs(random.between(60, 1500)),
        lasts: Span::from_secs(random.between(5, 200)),
        what,
    }
}

/// A leader that stood still goes on when its successor is gone and the store has no majority to tell it so; an instruction that
/// it knows has been answered to the successor.
pub fn deposed() -> Scenario {
    let mut scenario = skewed(1, true);
    scenario.name = "deposed".into();
    scenario.lasts = Span::from_secs(300);
    scenario.faults.clear();
    let council = scenario.shard.council.as_mut().expect("it has one");
    (council.report_every, council.lease) = (Span::from_secs(5), Span::from_secs(3));
    let unassign = Ordered::Unassign { zone: "zone-05".into() };
    council.orders.push(CouncilOrder { at: Span::from_secs(99), what: unassign });
    let wrong =
        |at, lasts, what| CouncilFault { at: Span::from_secs(at), lasts: Span::from_secs(lasts), what };
    council.faults = vec![
        wrong(100, 20, Wrong::Paused { replica: 0 }),
        wrong(119, 60, Wrong::StoreDown),
        wrong(119, 60, Wrong::Killed { replica: 1 }),
    ];
    scenario
}

/// Two shards with a zone of owned machines each, and nothing to rent. All of both is in use; then the first wants twice as much
/// for something more important than anything else.
pub fn outranked(seed: u64) -> Scenario {
    let mut scenario = skewed(seed, true);
    scenario.name = format!("outranked-{seed}");
    scenario.settle = true;
    scenario.shard.shards = 2;
    scenario.faults.clear();
    scenario.fleet.truncate(1);
    scenario.fleet[0].count = 12;
    scenario.fleet[0].zones.truncate(2);
    scenario.clusters.truncate(2);
    for (place, cluster) in scenario.clusters.iter_mut().enumerate() {
        cluster.work[0].pods = Pods::Always(24);
        if place == 0 {
            let all = cluster.work[0].clone();
            let point = |secs, pods| Point { at: Span::from_secs(secs), pods };
            let pods = Pods::Curve(Curve::Steps(vec![point(0, 0), point(600, 36)]));
            cluster.work = vec![Work { name: "urgent".into(), priority: 1_000_000, pods, ..all }];
        }
    }
    let council = scenario.shard.council.as_mut().expect("it has one");
    council.orders.truncate(2);
    council.faults.clear();
    scenario
}

/// Twenty shards with a zone each; four of them want half as much again as they have, the others a fifth of it. With
/// `is_divided` false the same fleet and load with one shard for all.
pub fn skewed(seed: u64, is_divided: bool) -> Scenario {
    const SHARDS: usize = 20;
    let zones: Vec<String> = (0..SHARDS).map(|zone| format!("zone-{zone:02}")).collect();
    let pool = |name: &str, each: usize, capacity: &str, state, price| Machines {
        name: name.into(),
        count: each * SHARDS,
        provider: "cloud".into(),
        instance_type: "type8".into(),
        zones: zones.clone(),
        rack_size: 0,
        capacity: capacity.into(),
        state,
        cluster: String::new(),
        price,
        interruption: 0.0,
        resources: amounts(8),
        labels: BTreeMap::new(),
    };
    let fleet = vec![
        pool("owned", 6, "bare-metal", StartState::Idle, 1.0),
        pool("rented", 4, "on-demand", StartState::Speculative, 2.0),
    ];
    let clusters = (0..SHARDS).map(|shard| Cluster {
        name: format!("cluster{shard:02}"),
        shard: if is_divided { shard } else { 0 },
        roll_up: Span::from_secs(10),
        join: Span::from_secs(10),
        evict: Span::from_secs(10),
        unmet_only: false,
        work: vec![Work {
            name: "work".into(),
            pods: Pods::Always(if shard.is_multiple_of(5) { 60 } else { 8 }),
            unit: amounts(2),
            priority: 1000,
            interruption_usd: None,
            reclamation_usd: None,
            requires: Vec::new(),
            same: String::new(),
            gang: 0,
            spread: None,
            bare: false,
            churn_per_hour: 0.0,
        }],
    });
    let order = |(place, zone): (usize, &String)| CouncilOrder {
        at: Span::from_secs(5 + place as u64),
        what: Ordered::Assign { zone: zone.clone(), shard: place },
    };
    let wrong =
        |at, lasts, what| CouncilFault { at: Span::from_secs(at), lasts: Span::from_secs(lasts), what };
    let council = Council {
        replicas: 2,
        report_every: Span::from_secs(30),
        lease: Span::from_secs(10),
        helps: true,
        orders: zones.iter().enumerate().map(order).collect(),
        faults: vec![
            wrong(120, 400, Wrong::Lost { p: 0.3 }),
            wrong(200, 60, Wrong::Paused { replica: 0 }),
            wrong(400, 30, Wrong::StoreDown),
            wrong(500, 90, Wrong::Killed { replica: 1 }),
        ],
    };
    let killed = |at, shard| Fault {
        at: Span::from_secs(at),
        lasts: Span::from_secs(0),
        what: What::ShardKilled { away: Span::from_secs(40), shard, disk_lost: false },
    };
    Scenario {
        name: format!("skewed-{seed}"),
        note: String::new(),
        seed,
        lasts: Span::from_secs(3 * 3600),
        settle: false,
        shard: ShardSetup {
            shards: if is_divided { SHARDS } else { 1 },
            council: is_divided.then_some(council),
            ..ShardSetup::default()
        },
        dwell: Dwell::default(),
        latency: Span::from_millis(20),
        listing: Span::from_secs(0),
        fleet,
        clusters: clusters.collect(),
        faults: if is_divided { vec![killed(300, 0), killed(450, 7)] } else { Vec::new() },
        expect: Vec::new(),
    }
}
