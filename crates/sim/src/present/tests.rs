//! A fleet as it stands goes on as it would.

use bigfleet_model::machine::HostRef;
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::resource::ResourceVec;
use bigfleet_model::stamp::Assignment;

use super::*;

/// Some time of day on a real clock.
const NOW: i64 = 1_800_000_000_000_000_000;

fn size(cpu: &str) -> ResourceVec {
    ResourceVec::parse([("cpu", cpu)]).unwrap()
}

/// Eight pods of half a core for every machine of four.
fn need(cluster: &str, machines: u64) -> Need {
    let profile = Profile::new(vec![], vec![], 1000, PenaltyBucket::ZERO, PenaltyBucket::ZERO);
    let need = Need::of_unit(cluster, Arc::new(profile), size("500m")).times(8 * machines);
    Need { first_seen_unix_nanos: NOW - 3_600_000_000_000, ..need }
}

fn machine(id: &str, state: MachineState, capacity_type: CapacityType) -> Machine {
    let mut machine = Machine::new(id, state);
    (machine.instance_type, machine.zone) = ("std-4".into(), "zone-a".into());
    (machine.resources, machine.capacity_type) = (size("4"), capacity_type);
    machine.price_usd_per_hour = 0.5;
    if state != MachineState::Speculative {
        machine.host = Some(HostRef { provider: "cloud".into(), reference: format!("host-{id}").into() });
    }
    machine
}

fn bound(id: &str, need: &Need, capacity_type: CapacityType) -> Machine {
    let mut machine = machine(id, MachineState::Configured, capacity_type);
    machine.cluster = (*need.cluster).into();
    machine.assigned = Assignment {
        cluster: need.cluster.clone(),
        priority: 1000,
        fingerprint: need.profile.fingerprint().into(),
        ..Assignment::default()
    };
    machine
}

fn present(machines: Vec<Machine>, needs: Vec<Need>) -> Arc<Present> {
    let config = Config::new("eu-1", 7, vec![ProviderConfig::named("cloud")]);
    let stand = |machine: Machine| Standing {
        provider: "cloud".into(),
        machine: machine.into(),
        dwell: Dwell { create: Span::from_secs(600), jitter: 0.0, ..Dwell::default() },
    };
    let machines = machines.into_iter().map(stand).collect();
    Arc::new(Present::new(&config, machines, needs, ["shop".into()], NOW).unwrap())
}

fn quota(number: usize, capacity_type: CapacityType) -> Machine {
    machine(&format!("quota-{number}"), MachineState::Speculative, capacity_type)
}

#[test]
fn what_is_well_stays_as_it_is() {
    let need = need("shop", 2);
    let mut machines = vec![
        bound("a", &need, CapacityType::OnDemand),
        bound("b", &need, CapacityType::OnDemand),
        quota(1, CapacityType::OnDemand),
    ];
    let mut broken = machine("broken", MachineState::Failed, CapacityType::OnDemand);
    (broken.last_error, broken.price_usd_per_hour) = ("disk".into(), 0.25);
    machines.push(broken);
    let ahead = present(machines, vec![need]).run(6, 1).unwrap();
    assert_eq!((ahead.provisions, ahead.preemptions, ahead.interruptions), (0, 0, 0), "{ahead:?}");
    assert_eq!(ahead.unmet_need_hours, 0.0);
    // Two at half a dollar and what is broken, which stays so: six hours of it.
    assert!((ahead.usd - 6.0 * 1.25).abs() < 1e-6, "{ahead:?}");
}

#[test]
fn what_is_missing_is_bought_and_takes_as_long_as_it_was_seen_to() {
    let need = need("shop", 3);
    let machines = vec![
        bound("a", &need, CapacityType::OnDemand),
        bound("b", &need, CapacityType::OnDemand),
        quota(1, CapacityType::OnDemand),
        quota(2, CapacityType::OnDemand),
    ];
    let ahead = present(machines, vec![need]).run(2, 1).unwrap();
    assert_eq!(ahead.provisions, 1, "{ahead:?}");
    // Paid for from when it is there: ten minutes after it was ordered, seconds after the beginning.
    let bought = ahead.usd - 2.0;
    assert!((0.5 * (110.0 - 2.0) / 60.0..=0.5 * 2.0).contains(&bought), "{ahead:?}");
}

#[test]
fn what_nobody_can_cover_is_unmet_all_the_time() {
    let ahead = present(vec![quota(1, CapacityType::OnDemand)], vec![need("shop", 2)]).run(3, 1).unwrap();
    assert!((2.9..=3.0).contains(&ahead.unmet_need_hours), "{ahead:?}");
}

#[test]
fn spot_is_lost_as_likely_as_is_said_and_the_same_seed_loses_the_same() {
    let need = need("shop", 10);
    let spot = |mut machine: Machine| {
        machine.interruption_probability = 0.1;
        machine
    };
    let machines = |more: usize| {
        let held = (0..10).map(|n| spot(bound(&format!("held-{n}"), &need, CapacityType::Spot)));
        held.chain((0..10 + more).map(|n| spot(quota(n, CapacityType::Spot)))).collect::<Vec<_>>()
    };
    let world = present(machines(0), vec![need.clone()]);
    let runs: Vec<Ahead> = (0..5).map(|seed| world.run(24, seed).unwrap()).collect();
    let lost = runs.iter().map(|run| run.interruptions).sum::<u64>() as f64 / 5.0;
    // Ten machines for a day at one in ten an hour.
    assert!((17.0..=30.0).contains(&lost), "{runs:?}");
    assert_eq!(world.run(24, 3).unwrap(), runs[3], "the same seed");
    assert_ne!(runs[3], runs[4], "another seed");
    // Chances of one seed are not those of the next one a minute later.
    let taken = |seed| (0..3000).map(|minute| is_taken(seed, minute, "m", 0.5)).collect::<Vec<_>>();
    let alike = |a: &[bool], b: &[bool]| a.iter().zip(b).filter(|(a, b)| a == b).count();
    for later in 0..3 {
        let alike = alike(&taken(42)[later..], &taken(43));
        assert!((1300..1700).contains(&alike), "{alike} of {}", 3000 - later);
    }
}

#[test]
fn what_is_under_way_must_have_landed() {
    let config = Config::new("eu-1", 7, Vec::new());
    let moving = machine("m", MachineState::Creating, CapacityType::OnDemand);
    let standing = Standing { provider: "cloud".into(), machine: moving.into(), dwell: Dwell::default() };
    let refused = Present::new(&config, vec![standing], Vec::new(), [], NOW).unwrap_err();
    assert_eq!(refused, PresentError::Moving("m".into()));
}
