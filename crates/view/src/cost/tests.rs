//! The parts of a bill add up to it, whatever the fleet is.

use bigfleet_model::machine::HostRef;
use bigfleet_model::need::Need;
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;

use super::*;

/// A fleet from a seed: prices with long tails of figures, all states, needs that ask for a little less than they hold.
fn fleet(seed: u64) -> (Fleet, Vec<Known>) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut fleet = Fleet::default();
    let mut knowns = Vec::new();
    for number in 0..=draw(60) {
        let states = MachineState::ALL;
        let machine_state = states[draw(states.len() as u64) as usize];
        let mut machine = Machine::new(format!("m-{number:03}"), machine_state);
        machine.capacity_type = CapacityType::ALL[draw(5) as usize];
        machine.price_usd_per_hour = draw(1_000_000_007) as f64 / 7e8;
        machine.resources = ResourceVec::parse([("cpu", "8"), ("memory", "32Gi")]).unwrap();
        if !matches!(machine_state, MachineState::Speculative | MachineState::Creating) {
            machine.host = Some(HostRef { provider: "sim".into(), reference: "h".into() });
        }
        if machine_state.is_bound() {
            machine.cluster = ["shop", "ml"][draw(2) as usize].into();
        }
        if machine_state == MachineState::Failed {
            machine.last_error = "broken".into();
        }
        if fleet.observe(&machine).is_ok() {
            knowns.push(Known::recorded(Arc::new(machine)));
        }
    }
    for cluster in ["shop", "ml"] {
        let profile = Profile::new(vec![], vec![], draw(5) as i32, PenaltyBucket::ZERO, PenaltyBucket::ZERO);
        let unit = ResourceVec::parse([("cpu", "700m"), ("memory", "1Gi")]).unwrap();
        let need = Need::of_unit(cluster, Arc::new(profile), unit).times(draw(150) + 1);
        fleet.replace(cluster, vec![need], 1).unwrap();
    }
    fleet.cycle(&bigfleet_engine::Options::default(), 1);
    (fleet, knowns)
}

#[test]
fn the_parts_of_a_bill_add_up_to_it() {
    for seed in 0..300 {
        let (fleet, knowns) = fleet(seed);
        let bill = Bill::of(&fleet, &knowns);
        let paid = knowns.iter().filter(|known| is_paid_for(known.machine.state));
        let total: i128 = paid.clone().map(|known| nano_usd(known.machine.price_usd_per_hour)).sum();
        let message = bill.message();
        let parts: i64 = message.parts.iter().map(|part| part.nano_usd).sum();
        assert_eq!((bill.total(), parts), (total, message.total_nano_usd), "seed {seed}");
        let machines: f64 = message.parts.iter().map(|part| part.machines).sum();
        assert!((machines - paid.count() as f64).abs() < 1e-6, "seed {seed}: each machine once");
        assert!(message.parts.iter().all(|part| part.nano_usd >= 0), "seed {seed}");
    }
}

#[test]
fn what_is_bound_beyond_demand_has_its_own_cause() {
    let (mut fleet, mut knowns) = (Fleet::default(), Vec::new());
    for number in 0..4 {
        let mut machine = Machine::new(format!("m-{number}"), MachineState::Configured);
        machine.host = Some(HostRef { provider: "sim".into(), reference: "h".into() });
        machine.cluster = "shop".into();
        machine.capacity_type = CapacityType::OnDemand;
        machine.price_usd_per_hour = 1.0;
        machine.resources = ResourceVec::parse([("cpu", "8")]).unwrap();
        fleet.observe(&machine).unwrap();
        knowns.push(Known::recorded(Arc::new(machine)));
    }
    let profile = Arc::new(Profile::new(vec![], vec![], 7, PenaltyBucket::ZERO, PenaltyBucket::ZERO));
    // 20 of the 24 cpus that three machines have: the fourth is nobody's.
    let need = Need::of_unit("shop", profile, ResourceVec::parse([("cpu", "1")]).unwrap()).times(20);
    fleet.replace("shop", vec![need], 1).unwrap();
    fleet.cycle(&bigfleet_engine::Options::default(), 1);
    let bill = Bill::of(&fleet, &knowns);
    let of = |cause| bill.sum(|sort| sort.cause == cause);
    assert_eq!(
        (of(Cause::Used), of(Cause::AboveDemand), of(Cause::Unclaimed)),
        (2_499_999_999, 500_000_001, 1_000_000_000)
    );
}

#[test]
fn rounded_parts_add_up_to_the_rounded_whole() {
    for (parts, by) in [(vec![1, 1, 1], 3), (vec![10, 20, 31, 5], 7), (vec![], 5), (vec![4, 9], 2)] {
        let rounded = super::span::divide(&parts, by);
        assert_eq!(rounded.iter().sum::<i128>(), parts.iter().sum::<i128>() / by, "{parts:?}");
        assert!(rounded.iter().zip(&parts).all(|(r, p)| (r * by - p).abs() < by));
    }
}
