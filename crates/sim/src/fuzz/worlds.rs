//! Random worlds. Small, because small worlds meet every corner sooner; varied, because corners are where bugs live.
//!
//! Pods divide machines evenly, in every dimension: then what is enough in sum is also enough for a scheduler, and a pod
//! that waits without a stated shortfall is a bug and not bad luck with packing.

use std::collections::BTreeMap;

use bigfleet_model::label::ZONE;
use bigfleet_provider_sim::Span;

use crate::random::Random;
use crate::scenario::{
    Call, Cluster, Curve, Dwell, Fault, Lie, Machines, Pods, Point, RACK, Requirement, Scenario, ShardSetup,
    Spread, StartState, Trust, What, Work,
};

const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];

/// The world of a seed: half an hour to two hours of trouble.
pub fn world_of(seed: u64) -> Scenario {
    let mut random = Random::new(seed).fork("world");
    let lasts = Span::from_secs(random.between(30, 120) * 60);
    world(seed, lasts, &mut random)
}

/// A longer one for soaking: most of a day of trouble, and slower ticking.
pub fn long_world_of(seed: u64) -> Scenario {
    let mut random = Random::new(seed).fork("long world");
    let mut scenario = world(seed, Span::from_secs(20 * 3600), &mut random);
    scenario.shard.tick = Span::from_secs(30);
    scenario.shard.list_every = Span::from_secs(20);
    for cluster in &mut scenario.clusters {
        cluster.roll_up = Span::from_secs(30);
    }
    scenario
}

fn world(seed: u64, lasts: Span, random: &mut Random) -> Scenario {
    let fleet: Vec<Machines> = (0..random.between(1, 4)).map(|index| pool(index, random)).collect();
    let clusters: Vec<Cluster> =
        (0..random.between(1, 4)).map(|index| cluster(index, lasts, random)).collect();
    let faults = (0..random.between(0, 6)).map(|_| fault(&fleet, &clusters, lasts, random)).collect();
    let secs = |random: &mut Random, low, high| Span::from_secs(random.between(low, high));
    Scenario {
        name: format!("seed-{seed}"),
        note: String::new(),
        seed,
        lasts,
        settle: true,
        shard: ShardSetup {
            max_actions: if random.happens(0.2) { random.between(1, 10) as usize } else { 0 },
            full_list_every: secs(random, 30, 600),
            max_moves: if random.happens(0.3) { random.between(1, 6) as usize } else { 0 },
            watchdog: *random.pick(&[Span::from_secs(0), Span::from_secs(0), Span::from_secs(300)]),
            reclaim_fraction: *random.pick(&[0.05, 0.05, 0.3, 1.0]),
            ..ShardSetup::default()
        },
        dwell: Dwell {
            create: secs(random, 1, 300),
            configure: secs(random, 1, 120),
            drain: secs(random, 1, 60),
            delete: secs(random, 1, 60),
            jitter: *random.pick(&[0.0, 0.5, 2.0]),
            repair: *random.pick(&[Span::from_secs(0), Span::from_secs(300), Span::from_secs(1800)]),
        },
        latency: Span::from_millis(random.between(1, 200)),
        listing: *random.pick(&[Span::from_secs(0), Span::from_secs(0), Span::from_secs(3)]),
        fleet,
        clusters,
        faults,
        expect: Vec::new(),
    }
}

fn amounts(cpu_milli: u64, memory_mib: u64) -> BTreeMap<String, String> {
    let pairs = [("cpu", format!("{cpu_milli}m")), ("memory", format!("{memory_mib}Mi"))];
    pairs.into_iter().map(|(name, amount)| (name.to_string(), amount)).collect()
}

fn pool(index: u64, random: &mut Random) -> Machines {
    let capacity = *random.pick(&["bare-metal", "reserved", "on-demand", "on-demand", "spot"]);
    let owned = matches!(capacity, "bare-metal" | "reserved");
    let size = 1 << random.between(2, 4);
    let zones = random.between(1, 3) as usize;
    Machines {
        name: format!("pool{index}"),
        count: random.between(2, 20) as usize,
        provider: if random.happens(0.8) { "cloud".into() } else { "other".into() },
        instance_type: format!("type{size}"),
        zones: ZONES[..zones].iter().map(|zone| (*zone).to_string()).collect(),
        rack_size: *random.pick(&[0, 2, 4, 4]),
        capacity: capacity.into(),
        state: if owned { StartState::Idle } else { StartState::Speculative },
        cluster: String::new(),
        price: random.between(1, 40) as f64 / 10.0,
        interruption: if capacity == "spot" { random.between(1, 20) as f64 / 100.0 } else { 0.0 },
        resources: amounts(size * 1000, size * 2048),
        labels: BTreeMap::from([("pool".to_string(), format!("pool{index}"))]),
    }
}

fn cluster(index: u64, lasts: Span, random: &mut Random) -> Cluster {
    let secs = |random: &mut Random, low, high| Span::from_secs(random.between(low, high));
    Cluster {
        name: format!("cluster{index}"),
        shard: 0,
        roll_up: secs(random, 5, 20),
        join: secs(random, 0, 30),
        evict: if random.happens(0.8) { secs(random, 0, 120) } else { secs(random, 400, 900) },
        unmet_only: false,
        work: (0..random.between(1, 3)).map(|index| work(index, lasts, random)).collect(),
    }
}

fn work(index: u64, lasts: Span, random: &mut Random) -> Work {
    let size = 1 << random.between(0, 2);
    let gang = if random.happens(0.3) { random.between(1, 8) as usize } else { 0 };
    let most = if gang > 0 { 3 } else { 24 };
    let pods = if random.happens(0.5) {
        Pods::Always(random.between(1, most))
    } else {
        let step = (lasts.nanos() / 1_000_000_000 / 4).max(1).unsigned_abs();
        let points = (0..4).map(|number| Point {
            at: Span::from_secs(number * step + random.below(step)),
            pods: random.between(0, most),
        });
        Pods::Curve(Curve::Steps(points.collect()))
    };
    let mut requires = Vec::new();
    if random.happens(0.3) {
        let value = format!("pool{}", random.below(3));
        let operator = if random.happens(0.7) { "In" } else { "NotIn" };
        requires.push(Requirement { key: "pool".into(), operator: operator.into(), values: vec![value] });
    }
    if random.happens(0.2) {
        let values = vec![(*random.pick(&ZONES)).to_string()];
        requires.push(Requirement { key: ZONE.into(), operator: "In".into(), values });
    }
    let spread = (gang == 0 && random.happens(0.15)).then(|| Spread { key: ZONE.into(), skew: 1 });
    Work {
        name: format!("work{index}"),
        pods,
        unit: amounts(size * 1000, size * 2048),
        priority: *random.pick(&[100, 1000, 1000, 1_000_000]),
        interruption_usd: *random.pick(&[None, Some(0.0), Some(5.0), Some(1e9)]),
        reclamation_usd: *random.pick(&[None, Some(0.5), Some(64.0)]),
        requires,
        same: if gang > 0 { (*random.pick(&[RACK, ZONE])).to_string() } else { String::new() },
        gang,
        spread,
        bare: random.happens(0.1),
        churn_per_hour: *random.pick(&[0.0, 0.0, 0.2, 1.0]),
    }
}

fn fault(fleet: &[Machines], clusters: &[Cluster], lasts: Span, random: &mut Random) -> Fault {
    let secs = lasts.nanos().unsigned_abs() / 1_000_000_000;
    let at = Span::from_secs(random.between(1, secs * 3 / 4));
    let cluster = random.pick(clusters).name.clone();
    let pool = random.pick(fleet).name.clone();
    let call = *random.pick(&[Call::Create, Call::Configure, Call::Drain, Call::Delete]);
    let p = *random.pick(&[0.1, 0.5, 1.0]);
    let states = ["", "Idle", "Configured", "Creating", "Configuring", "Draining"];
    let what = match random.below(33) {
        0 => What::ProviderDown { provider: String::new() },
        1 => What::CallsFail { p },
        2 => What::AnswersLost { p },
        3 => What::AnswersLate { p: p / 2.0 },
        4 => What::AnswersTwice { p },
        5 => What::ListTruncated { keep: random.unit() },
        6 => What::ListStale,
        7 => What::ListReordered,
        8 | 9 => What::MovesFail { call, pool: pool.clone(), p },
        10 => What::MovesHang { call, pool: pool.clone(), p },
        11..=13 => What::MachinesDie {
            count: random.between(1, 6) as usize,
            pool: String::new(),
            zone: String::new(),
            cluster: String::new(),
            state: (*random.pick(&states)).into(),
        },
        14 => What::ZoneOutage { zone: (*random.pick(&ZONES)).into() },
        15 => What::Price { pool, usd: random.between(1, 40) as f64 / 10.0 },
        16 => What::OperatorGone { cluster },
        17 => {
            let every = Span::from_secs(random.between(1, 30));
            What::OperatorCrashLoops { cluster, every, empty: random.happens(0.7) }
        }
        18 => What::OperatorGarbage { cluster },
        19 => What::OperatorEmpty { cluster },
        20 => What::OperatorStuck { cluster },
        21 => What::OperatorRefuses { cluster },
        22 => What::ShardKilled {
            away: Span::from_secs(random.between(1, 300)),
            shard: 0,
            disk_lost: random.happens(0.2),
        },
        23 => What::ShardKilledOften { steps: random.between(1, 60) },
        24 => What::ShardTwice,
        26 => What::ListHalves,
        27 => What::ListDoubles { p: p / 2.0 },
        28 | 29 => What::ShownAs {
            lie: *random.pick(&[Lie::Failed, Lie::Elsewhere, Lie::Small]),
            share: *random.pick(&[0.3, 1.0]),
            cluster: if random.happens(0.5) { cluster } else { String::new() },
        },
        30 | 31 => What::MovesDenied { p },
        25 => What::ClockJumps { secs: random.between(1, 600).cast_signed() - 300 },
        _ => {
            let dry_run = random.happens(0.5);
            // By what was drawn already, so that no other world becomes another one.
            match at.nanos() / 1_000_000_000 % 3 {
                0 => What::Trusted { to: Trust::Observe, cluster, looks_every: Span::from_secs(0) },
                1 => What::Trusted {
                    to: Trust::Approve,
                    cluster: String::new(),
                    looks_every: Span::from_secs(20),
                },
                _ => What::Paused { dry_run, cluster: String::new() },
            }
        }
    };
    let once = matches!(
        what,
        What::MachinesDie { .. } | What::Price { .. } | What::ShardKilled { .. } | What::ClockJumps { .. }
    );
    let lasts = if once { Span::from_secs(0) } else { Span::from_secs(random.between(10, secs / 3)) };
    Fault { at, lasts, what }
}
