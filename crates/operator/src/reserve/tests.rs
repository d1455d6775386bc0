//! The rule by hand on small clusters, and as a closed loop with a scheduler and a shard that counts sums.

use proptest::prelude::*;

use super::*;
use crate::ask::Asked;

fn amounts(cpu: u64, memory: u64) -> ResourceVec {
    ResourceVec::parse([("cpu", cpu.to_string()), ("memory", memory.to_string())]).unwrap()
}

fn asked(unit: &ResourceVec) -> Asked {
    let text = |name: &ResourceName, amount: u64| {
        if *name == ResourceName::CPU { format!("{amount}m") } else { amount.to_string() }
    };
    let resources = unit.iter().map(|(name, amount)| (name.to_string(), text(name, amount))).collect();
    Asked { resources, ..Asked::default() }
}

/// One pod that finds no hole.
fn without_hole(shape: ResourceVec) -> Stuck {
    Stuck { shape, pods: 1, wants: Wants::Hole }
}

/// A cluster of one need: pods, machines, a scheduler that takes the first hole, and a shard that keeps as few machines
/// as cover the sum, newest first to go.
struct World {
    demand: Demand,
    reserves: Reserves,
    row: RowId,
    size: ResourceVec,
    /// Each pod: what it asks for and where it is.
    pods: BTreeMap<u32, (ResourceVec, Option<usize>)>,
    machines: Vec<ResourceVec>,
    moves: usize,
}

impl World {
    fn new(size: ResourceVec, units: &[ResourceVec]) -> Self {
        let mut demand = Demand::new("shop");
        let mut row = None;
        for (number, unit) in units.iter().enumerate() {
            row = Some(demand.put(&number.to_string(), &asked(unit)).unwrap());
        }
        let pods = (0..).zip(units.iter().map(|unit| (unit.clone(), None))).collect();
        let (row, machines) = (row.unwrap(), Vec::new());
        Self { demand, reserves: Reserves::default(), row, size, pods, machines, moves: 0 }
    }

    fn free(&self, machine: usize) -> ResourceVec {
        let taken = self.pods.values().filter(|(_, place)| *place == Some(machine));
        taken.fold(self.machines[machine].clone(), |free, (unit, _)| free.saturating_sub(unit))
    }

    fn schedule(&mut self) {
        let waiting: Vec<u32> =
            self.pods.iter().filter(|(_, (_, place))| place.is_none()).map(|(pod, _)| *pod).collect();
        for pod in waiting {
            let unit = self.pods[&pod].0.clone();
            let place = (0..self.machines.len()).find(|machine| self.free(*machine).covers(&unit));
            self.pods.get_mut(&pod).unwrap().1 = place;
        }
    }

    fn aggregate(&mut self) -> ResourceVec {
        let (reserves, row) = (&self.reserves, self.row);
        let extra = reserves.extra(row, &self.demand);
        self.demand.rollup(|_| extra.clone())[0].aggregate.clone()
    }

    /// The shard and all that follows: machines until the sum is covered, none that is not needed for it.
    fn settle(&mut self) {
        let wanted = self.aggregate();
        let sum = |count: usize, size: &ResourceVec| size.scale(count as u64);
        while !sum(self.machines.len(), &self.size).covers(&wanted) {
            self.machines.push(self.size.clone());
            self.moves += 1;
        }
        while !self.machines.is_empty() && sum(self.machines.len() - 1, &self.size).covers(&wanted) {
            let gone = self.machines.len() - 1;
            self.machines.pop();
            self.moves += 1;
            for (_, place) in self.pods.values_mut() {
                if *place == Some(gone) {
                    *place = None;
                }
            }
        }
        self.schedule();
    }

    /// One look of the operator.
    fn look(&mut self) -> Revision {
        let mut stuck: Vec<Stuck> = Vec::new();
        for (unit, _) in self.pods.values().filter(|(_, place)| place.is_none()) {
            match stuck.iter_mut().find(|stuck| stuck.shape == *unit) {
                Some(stuck) => stuck.pods += 1,
                None => stuck.push(without_hole(unit.clone())),
            }
        }
        if stuck.is_empty() {
            self.reserves.all_placed(self.row);
            return Revision::default();
        }
        let machines: Vec<Joined> = (0..self.machines.len())
            .map(|machine| Joined {
                allocatable: self.machines[machine].clone(),
                free: self.free(machine),
                bare: self.machines[machine].clone(),
            })
            .collect();
        self.reserves.revise(self.row, &mut self.demand, &machines, &stuck)
    }

    /// Rounds until nobody waits.
    fn converge(&mut self) -> u32 {
        for round in 0.. {
            self.settle();
            if !self.look().raised {
                return round;
            }
            assert!(round < 30, "it does not converge");
        }
        unreachable!()
    }

    fn waiting(&self) -> usize {
        self.pods.values().filter(|(_, place)| place.is_none()).count()
    }

    fn end(&mut self, pod: u32) {
        self.pods.remove(&pod);
        self.demand.remove(&pod.to_string());
        self.reserves.sweep(&self.demand);
    }
}

#[test]
fn ten_pods_over_half_a_machine_get_ten_machines_and_seven_keep_seven() {
    let mut world = World::new(amounts(8, 64), &vec![amounts(5, 1); 10]);
    world.settle();
    assert_eq!((world.machines.len(), world.waiting()), (7, 3), "by the sum seven machines are enough");
    assert!(world.converge() <= 4);
    assert_eq!((world.machines.len(), world.waiting()), (10, 0));
    let moves = world.moves;
    for _ in 0..5 {
        world.settle();
        world.look();
    }
    assert_eq!(world.moves, moves, "and then silence");
    for pod in 0..3 {
        world.end(pod);
    }
    world.converge();
    assert_eq!((world.machines.len(), world.waiting()), (7, 0), "what they had reserved goes with them");
    for pod in 3..9 {
        world.end(pod);
    }
    world.converge();
    assert_eq!(world.machines.len(), 1);
}

#[test]
fn a_pod_that_something_else_keeps_away_raises_nothing() {
    let mut world = World::new(amounts(8, 64), &[amounts(5, 1)]);
    let machine = Joined { allocatable: amounts(8, 64), free: amounts(8, 64), bare: amounts(8, 64) };
    let stuck = [without_hole(amounts(5, 1))];
    let revision = world.reserves.revise(world.row, &mut world.demand, &[machine], &stuck);
    assert_eq!(revision, Revision { raised: false, refused: vec![(amounts(5, 1), Refusal::HasRoom)] });
    let full = Joined { allocatable: amounts(8, 64), free: amounts(4, 64), bare: amounts(4, 64) };
    let revision = world.reserves.revise(world.row, &mut world.demand, &[full], &stuck);
    assert_eq!(
        revision.refused,
        [(amounts(5, 1), Refusal::NothingHoldsIt)],
        "daemons take what it would need"
    );
    assert_eq!(world.reserves.extra(world.row, &world.demand), None);
}

#[test]
fn only_the_dimension_without_a_hole_is_raised() {
    let mut world = World::new(amounts(8, 64), &[amounts(5, 1), amounts(5, 1)]);
    let machine = Joined { allocatable: amounts(8, 64), free: amounts(3, 63), bare: amounts(8, 64) };
    let stuck = [without_hole(amounts(5, 1))];
    let machines = [machine.clone(), machine];
    assert!(world.reserves.revise(world.row, &mut world.demand, &machines, &stuck).raised);
    let extra = ResourceVec::parse([("cpu", "11")]).unwrap();
    assert_eq!(world.reserves.extra(world.row, &world.demand), Some(extra), "16 joined - 10 asked + 5");
    assert!(!world.reserves.revise(world.row, &mut world.demand, &machines, &stuck).raised, "not twice");
}

#[test]
fn holes_that_lie_apart_raise_the_scarcest_dimension() {
    let mut world = World::new(amounts(8, 64), &[amounts(4, 4), amounts(4, 4)]);
    let cpu = Joined { allocatable: amounts(8, 64), free: amounts(8, 2), bare: amounts(8, 64) };
    let memory = Joined { allocatable: amounts(8, 64), free: amounts(2, 64), bare: amounts(8, 64) };
    let stuck = [without_hole(amounts(4, 4))];
    assert!(world.reserves.revise(world.row, &mut world.demand, &[cpu, memory], &stuck).raised);
    let extra = ResourceVec::parse([("cpu", "12")]).unwrap();
    assert_eq!(
        world.reserves.extra(world.row, &world.demand),
        Some(extra),
        "8 of 16 cpus are spare, 120 of 128 bytes"
    );
}

#[test]
fn it_gives_up_after_enough_rounds_and_begins_again_when_all_are_placed() {
    let mut world = World::new(amounts(8, 64), &vec![amounts(5, 1); 2]);
    let stuck = [without_hole(amounts(5, 1))];
    let machine = Joined { allocatable: amounts(8, 64), free: amounts(3, 63), bare: amounts(8, 64) };
    for round in 1..=MOST_ROUNDS {
        let machines = vec![machine.clone(); round as usize];
        assert!(
            world.reserves.revise(world.row, &mut world.demand, &machines, &stuck).raised,
            "round {round}"
        );
    }
    let machines = vec![machine; MOST_ROUNDS as usize + 1];
    let revision = world.reserves.revise(world.row, &mut world.demand, &machines, &stuck);
    assert_eq!(revision, Revision { raised: false, refused: vec![(amounts(5, 1), Refusal::GaveUp)] });
    world.reserves.all_placed(world.row);
    assert!(world.reserves.revise(world.row, &mut world.demand, &machines, &stuck).raised);
}

#[test]
fn pods_that_keep_away_from_each_other_get_a_machine_each() {
    let mut world = World::new(amounts(8, 8), &vec![amounts(1, 1); 5]);
    let machine = |free| Joined { allocatable: amounts(8, 8), free, bare: amounts(8, 8) };
    let machines = [machine(amounts(7, 7))];
    let apart = Stuck { shape: amounts(1, 1), pods: 4, wants: Wants::Machine };
    let hole = Stuck { wants: Wants::Hole, ..apart.clone() };
    let revision = world.reserves.revise(world.row, &mut world.demand, &machines, &[hole]);
    assert!(!revision.raised, "there is a hole for it by its amounts");
    assert!(world.reserves.revise(world.row, &mut world.demand, &machines, &[apart]).raised);
    let all = world.aggregate();
    assert_eq!(all.get(&ResourceName::CPU), 5 * 8000, "one machine is there, four must come");
}

#[test]
fn a_machine_whose_pods_have_no_other_place_counts_again() {
    let mut world = World::new(amounts(8, 8), &vec![amounts(5, 1); 3]);
    let three = amounts(24, 24);
    assert!(world.reserves.keep(world.row, &mut world.demand, &three, &[amounts(5, 1)]));
    assert_eq!(world.aggregate().get(&ResourceName::CPU), 24_000, "all three machines, and no fourth");
    assert!(!world.reserves.keep(world.row, &mut world.demand, &three, &[amounts(5, 1)]), "not twice");
}

proptest! {
    /// Whatever the sizes: every pod gets its place in a few rounds, then nothing moves; half of the pods go, and again.
    #[test]
    fn it_converges_is_silent_and_shrinks(
        size in (4..64_u64, 4..64_u64),
        pods in proptest::collection::vec((1..100_u64, 1..100_u64), 1..60),
        leaves in proptest::collection::vec(any::<bool>(), 60),
    ) {
        let size = amounts(size.0 * 4, size.1 * 4);
        let unit = |(cpu, memory): &(u64, u64)| ResourceVec::new([
            (ResourceName::CPU, (size.get(&ResourceName::CPU) * cpu / 100).max(1)),
            (ResourceName::MEMORY, (size.get(&ResourceName::MEMORY) * memory / 100).max(1)),
        ]).unwrap();
        let units: Vec<ResourceVec> = pods.iter().map(unit).collect();
        let mut world = World::new(size.clone(), &units);
        let rounds = world.converge();
        prop_assert_eq!(world.waiting(), 0);
        prop_assert!(rounds <= MOST_ROUNDS, "{} rounds", rounds);
        prop_assert!(world.machines.len() <= units.len(), "never more machines than pods");
        let (moves, machines) = (world.moves, world.machines.len());
        for _ in 0..3 {
            world.settle();
            prop_assert!(!world.look().raised);
        }
        prop_assert_eq!(world.moves, moves, "silence while its pods live");
        for (pod, leaves) in (0..units.len() as u32).zip(leaves) {
            if leaves && world.pods.len() > 1 {
                world.end(pod);
            }
        }
        world.converge();
        prop_assert_eq!(world.waiting(), 0);
        prop_assert!(world.machines.len() <= machines, "fewer pods never need more machines");
        let moves = world.moves;
        world.settle();
        prop_assert!(!world.look().raised);
        prop_assert_eq!(world.moves, moves);
    }
}
