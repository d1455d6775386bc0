//! Random sequences of calls, completions, failures and restarts, each answer held against a model of the
//! wire that is written as plainly as the wire describes it, and shares no code with the kit.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::machine::MachineState::{self, *};
use bigfleet_provider_kit::{Recovery, Store};
use tonic::Code;

use crate::cloud::{Answer, Cloud, World, state};

const KINDS: [&str; 4] = ["Create", "Configure", "Drain", "Delete"];
/// From, during, to; in the order of [`KINDS`].
const MOVES: [[MachineState; 3]; 4] = [
    [Speculative, Creating, Idle],
    [Idle, Configuring, Configured],
    [Configured, Draining, Idle],
    [Idle, Deleting, Speculative],
];
const MACHINES: [&str; 3] = ["m-0", "m-1", "nobody"];
const SHARDS: [&str; 3] = ["", "a", "b"];

#[derive(Clone, Debug)]
struct Slot {
    state: MachineState,
    operations: [Option<String>; 4],
    cluster: String,
}

#[derive(Default)]
struct Model {
    slots: BTreeMap<&'static str, Slot>,
    marks: BTreeMap<(&'static str, &'static str), (i64, i64)>,
    used: BTreeSet<String>,
}

type Token = (&'static str, i64, i64);

impl Model {
    /// What the wire says must be answered: a code, or an operation (a known one, or a new one).
    fn expect(&mut self, kind: usize, machine: &'static str, token: Token) -> Result<Option<String>, Code> {
        if token != ("", 0, 0) {
            let key = (token.0, machine);
            if self.marks.get(&key).is_some_and(|mark| (token.1, token.2) <= *mark) {
                return Err(Code::FailedPrecondition);
            }
            self.marks.insert(key, (token.1, token.2));
        }
        let slot = self.slots.get(machine).ok_or(Code::NotFound)?;
        let [from, during, to] = MOVES[kind];
        match &slot.operations[kind] {
            Some(operation) if slot.state == during || slot.state == to => Ok(Some(operation.clone())),
            _ if slot.state == from => Ok(None),
            _ => Err(Code::Internal),
        }
    }
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        (bigfleet_model::splitmix::next(&mut self.0) >> 33) as usize % sides
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.roll(choices.len())]
    }
}

async fn call(world: &World, kind: usize, machine: &str, cluster: &str, token: Token) -> Answer {
    match kind {
        0 => world.create(machine, token).await,
        1 => world.configure(machine, cluster, token).await,
        2 => world.drain(machine, 1, token).await,
        _ => world.delete(machine, token).await,
    }
}

/// Lets every move end, some of them badly.
async fn complete(world: &World, model: &mut Model, dice: &mut Dice) {
    let mut ends = Vec::new();
    for (id, slot) in &mut model.slots {
        let Some(kind) = MOVES.iter().position(|[_, during, _]| *during == slot.state) else { continue };
        let fails = dice.roll(8) == 0;
        // The cloud decides when it is asked, which was before; so a failure is news from the provider.
        slot.state = if fails { Failed } else { MOVES[kind][2] };
        if !slot.state.is_bound() {
            slot.cluster.clear();
        }
        ends.push((*id, slot.state, fails));
    }
    for (id, _, _) in ends.iter().filter(|(_, _, fails)| *fails) {
        let broken = |machine: &mut bigfleet_provider_kit::Machine| {
            machine.state = Failed.to_wire();
            machine.last_error = "broken".into();
        };
        world.provider.handle().update(id, broken).await.unwrap();
    }
    world.cloud.release();
    for (id, state, _) in ends {
        world.reach(id, state).await;
    }
    world.cloud.hold();
}

/// Ends the provider and opens another on what it left.
async fn restart(world: World, model: &mut Model, dice: &mut Dice, store: &Store) -> World {
    let cloud = world.cloud.clone();
    world.provider.handle().stop(std::time::Duration::ZERO).await;
    drop(world);
    for (id, slot) in &mut model.slots {
        let Some(kind) = MOVES.iter().position(|[_, during, _]| *during == slot.state) else { continue };
        let (recovery, state) = match dice.roll(3) {
            0 => (Recovery::Failed("cut short".into()), Failed),
            1 => (Recovery::Ended("host".into()), MOVES[kind][2]),
            _ => (Recovery::Undone, MOVES[kind][0]),
        };
        cloud.mood().recoveries.insert((*id).into(), recovery);
        slot.state = state;
        if !slot.state.is_bound() {
            slot.cluster.clear();
        }
    }
    World::with(cloud, store.clone()).await
}

async fn play(seed: u64, answers: &mut BTreeMap<String, usize>) {
    let mut dice = Dice(seed);
    let store = Store::memory();
    let mut world = World::with(Cloud::of(2), store.clone()).await;
    world.cloud.hold();
    let mut model = Model::default();
    for id in &MACHINES[..2] {
        let slot = Slot { state: Speculative, operations: Default::default(), cluster: String::new() };
        model.slots.insert(id, slot);
    }
    for step in 0..60 {
        match dice.roll(12) {
            0 => world = restart(world, &mut model, &mut dice, &store).await,
            1..4 => complete(&world, &mut model, &mut dice).await,
            _ => {
                let (kind, machine) = (dice.roll(4), dice.of(&MACHINES));
                let token = (dice.of(&SHARDS), dice.of(&[-1, 0, 1, 2]), dice.of(&[-1, 0, 1, 2, 3, 4]));
                let cluster = format!("c-{step}");
                let expected = model.expect(kind, machine, token);
                let answer = call(&world, kind, machine, &cluster, token).await;
                let what = format!("seed {seed} step {step}: {} {machine} {token:?}", KINDS[kind]);
                *answers.entry(format!("{} {:?}", KINDS[kind], answer.as_ref().map(drop))).or_default() += 1;
                match expected {
                    Err(code) => assert_eq!(answer, Err(code), "{what}"),
                    Ok(Some(operation)) => {
                        assert_eq!(answer.as_ref().expect(&what).operation_id, operation, "{what}");
                        assert_eq!(state(&answer), model.slots[machine].state, "{what}");
                    }
                    Ok(None) => {
                        let slot = model.slots.get_mut(machine).expect("it exists");
                        slot.state = MOVES[kind][1];
                        if kind == 1 {
                            slot.cluster = cluster;
                        }
                        assert_eq!(state(&answer), slot.state, "{what}");
                        let operation = answer.expect(&what).operation_id;
                        assert!(model.used.insert(operation.clone()), "{what}: {operation} was used before");
                        slot.operations[kind] = Some(operation);
                    }
                }
            }
        }
        for (id, slot) in &model.slots {
            let machine = world.get(id).await.unwrap();
            let seen = (machine.state, machine.cluster.as_str(), machine.host.is_some());
            let has_host = match slot.state {
                Speculative | Creating => false,
                Failed => machine.host.is_some(),
                _ => true,
            };
            assert_eq!(
                seen,
                (slot.state.to_wire(), slot.cluster.as_str(), has_host),
                "seed {seed} step {step}: {id}"
            );
        }
    }
    world.cloud.release();
}

#[tokio::test]
async fn every_answer_is_the_one_the_wire_asks_for() {
    let mut answers = BTreeMap::new();
    for seed in 0..200 {
        play(seed, &mut answers).await;
    }
    // Each kind of call must have met each kind of answer, or the sequences were too tame.
    for kind in KINDS {
        for outcome in ["Ok(())", "Err(FailedPrecondition)", "Err(NotFound)", "Err(Internal)"] {
            let count = answers.get(&format!("{kind} {outcome}")).copied().unwrap_or_default();
            assert!(count > 20, "{kind} was answered {outcome} only {count} times");
        }
    }
}
