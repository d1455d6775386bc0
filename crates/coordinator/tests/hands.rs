//! Nothing is ever in two hands, whatever admins order, whatever shards give one another and however they answer.
//!
//! Shards are modelled as they are in the world: they act on what they were told to take until they have said that they let
//! go, their answers come late, twice, or not at all, and some refuse.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_coordinator::{
    Fleet, Offered, Order, Outcome, Writes, acknowledge, assign, pending, register, remove, retry, sweep,
    transfer, unassign,
};
use proptest::prelude::*;

const KEY: &str = "topology.kubernetes.io/zone";
const SHARDS: [&str; 4] = ["a", "b", "c", "d"];
const VALUES: [&str; 3] = ["z1", "z2", "z3"];
const MACHINES: [&str; 3] = ["m1", "m2", "m3"];

#[derive(Clone, Debug)]
enum Step {
    Assign(usize, usize),
    Unassign(usize),
    /// A shard gives a machine that it has to another.
    Give {
        machine: usize,
        to: usize,
    },
    /// A shard's provider lists: it sees where machines of others are.
    List(usize),
    /// A shard reports: it hears what is pending, and answers some of it now and some of it later.
    Report {
        shard: usize,
        answers: u8,
        refuses: u8,
    },
    /// A shard stops for good, an admin removes it, and it comes back empty under its name.
    Replace(usize),
    Tick,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..VALUES.len(), 0..SHARDS.len()).prop_map(|(value, shard)| Step::Assign(value, shard)),
        2 => (0..VALUES.len()).prop_map(Step::Unassign),
        4 => (0..MACHINES.len(), 0..SHARDS.len()).prop_map(|(machine, to)| Step::Give { machine, to }),
        1 => (0..SHARDS.len()).prop_map(Step::List),
        8 => (0..SHARDS.len(), any::<u8>(), any::<u8>())
            .prop_map(|(shard, answers, refuses)| Step::Report { shard, answers, refuses }),
        1 => (0..SHARDS.len()).prop_map(Step::Replace),
        3 => Just(Step::Tick),
    ]
}

fn domain_of(machine: &str) -> &'static str {
    let place = MACHINES.iter().position(|known| *known == machine).expect("one of ours");
    VALUES[place]
}

/// Whose a machine is by its name, and in which domain as far as its shard knows.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Named {
    Ours,
    Theirs(Option<String>),
}

/// A shard as it sees itself.
#[derive(Clone, Debug, Default)]
struct Mind {
    domains: BTreeSet<String>,
    /// What it was given or gave away, machine by machine: this is above what domains say.
    machines: BTreeMap<String, Named>,
    /// Answers on their way, and what was answered: the same order has the same answer for ever.
    answers: Vec<(String, Outcome)>,
    answered: BTreeMap<String, Outcome>,
}

impl Mind {
    /// Carries an order out, once.
    fn obey(&mut self, me: &str, id: &str, order: &Order, refuses: bool) {
        // What a shard does not hold, it cannot refuse to leave alone; and it never refuses to take.
        let refuses = refuses
            && match order {
                Order::Transfer { machines, from, to } => {
                    from != to
                        && **from == *me
                        && machines.iter().any(|machine| self.acts_on(machine, domain_of(machine)))
                }
                _ => true,
            };
        let outcome = if let Some(outcome) = self.answered.get(id) {
            *outcome
        } else if refuses {
            Outcome::Refused
        } else {
            match order {
                Order::AssignDomain { value, .. } => drop(self.domains.insert(value.to_string())),
                Order::UnassignDomain { value, .. } => {
                    self.domains.remove(&**value);
                    let is_in = |named: &Named| *named == Named::Theirs(Some(value.to_string()));
                    self.machines.retain(|_, named| !is_in(named));
                }
                Order::Transfer { machines, to, .. } => {
                    for machine in machines {
                        self.name(me, machine, to);
                    }
                }
            }
            Outcome::Accepted
        };
        self.answered.insert(id.into(), outcome);
        self.answers.push((id.into(), outcome));
    }

    fn name(&mut self, me: &str, machine: &str, to: &str) {
        let domain = domain_of(machine).to_owned();
        let is_known = self.acts_on(machine, &domain);
        if *to == *me {
            self.machines.insert(machine.into(), Named::Ours);
        } else if !is_known {
            self.machines.insert(machine.into(), Named::Theirs(None));
        } else if self.domains.contains(&domain) {
            self.machines.insert(machine.into(), Named::Theirs(Some(domain)));
        } else {
            self.machines.remove(machine);
        }
    }

    fn acts_on(&self, machine: &str, value: &str) -> bool {
        match self.machines.get(machine) {
            Some(named) => *named == Named::Ours,
            None => self.domains.contains(value),
        }
    }

    fn list(&mut self) {
        for (machine, named) in &mut self.machines {
            let domain = domain_of(machine);
            if *named == Named::Theirs(None) && self.domains.contains(domain) {
                *named = Named::Theirs(Some(domain.into()));
            }
        }
    }
}

struct World {
    fleet: Fleet,
    minds: BTreeMap<&'static str, Mind>,
    now: i64,
}

impl World {
    fn new() -> Self {
        let mut world = Self { fleet: Fleet::default(), minds: BTreeMap::new(), now: 1_000_000_000_000 };
        let begin = world.fleet.begin(1);
        world.commit(&begin);
        for shard in SHARDS {
            world.minds.insert(shard, Mind::default());
            let writes = register(&world.fleet, shard, "127.0.0.1:1", world.now).expect("a new shard");
            world.commit(&writes);
        }
        world
    }

    fn commit(&mut self, writes: &Writes) {
        assert!(writes.as_slice().len() <= 100, "one transaction");
        self.fleet.apply(writes);
        // What was stored is what is known: a leader that begins here would see the same fleet.
        let stored: Vec<(String, Vec<u8>)> =
            self.fleet.entries().map(|entry| (entry.key().to_string(), entry.encode())).collect();
        let loaded = Fleet::load(stored.iter().map(|(key, value)| (key.as_str(), value.as_slice())));
        assert_eq!(loaded.as_ref(), Ok(&self.fleet));
    }

    fn holder_of(&self, machine: &str, value: &str) -> Vec<&'static str> {
        let acts = self.minds.iter().filter(|(_, mind)| mind.acts_on(machine, value));
        acts.map(|(shard, _)| *shard).collect()
    }

    fn step(&mut self, step: &Step) {
        self.now += 7_000_000_000;
        let now = self.now;
        let ordered = match step {
            Step::Assign(value, shard) => assign(&self.fleet, KEY, VALUES[*value], SHARDS[*shard], now).ok(),
            Step::Unassign(value) => {
                Some(unassign(&self.fleet, KEY, VALUES[*value], now).expect("always fine"))
            }
            Step::Give { machine, to } => self.give(MACHINES[*machine], SHARDS[*to]),
            Step::List(shard) => {
                self.minds.get_mut(SHARDS[*shard]).expect("a shard").list();
                None
            }
            Step::Report { shard, answers, refuses } => {
                self.report(SHARDS[*shard], *answers, *refuses);
                None
            }
            Step::Replace(shard) => {
                self.replace(SHARDS[*shard]);
                None
            }
            Step::Tick => {
                let writes = retry(&self.fleet);
                self.commit(&writes);
                Some(sweep(&self.fleet, now))
            }
        };
        if let Some(writes) = ordered {
            self.commit(&writes);
        }
        self.check();
    }

    /// Whoever has a machine gives it to another.
    fn give(&self, machine: &'static str, to: &str) -> Option<Writes> {
        let value = domain_of(machine);
        let holder = *self.holder_of(machine, value).first()?;
        let domain = if self.minds[holder].domains.contains(value) { value } else { "" };
        let offered = Offered { machine: machine.into(), domain: domain.into() };
        transfer(&self.fleet, &[offered], (holder, to), "help", 0, self.now).ok()
    }

    fn report(&mut self, shard: &'static str, answers: u8, refuses: u8) {
        let mind = self.minds.get_mut(shard).expect("a shard");
        let orders: Vec<_> =
            pending(&self.fleet, shard).map(|order| (order.id(), order.order.clone())).collect();
        for (place, (id, order)) in orders.iter().enumerate() {
            mind.obey(shard, id, order, refuses >> (place % 8) & 1 == 1);
        }
        // Some answers go out now, the others with a later report; an answer may be said twice.
        let mut kept = Vec::new();
        for (place, (id, outcome)) in std::mem::take(&mut mind.answers).into_iter().enumerate() {
            if answers >> (place % 8) & 1 == 0 {
                kept.push((id, outcome));
                continue;
            }
            for _ in 0..2 {
                let writes = acknowledge(&self.fleet, shard, &id, outcome, self.now);
                self.commit(&writes);
            }
        }
        self.minds.get_mut(shard).expect("a shard").answers = kept;
    }

    fn replace(&mut self, shard: &'static str) {
        self.minds.insert(shard, Mind::default());
        let writes = remove(&self.fleet, shard).expect("it is registered");
        self.commit(&writes);
        assert!(register(&self.fleet, shard, "127.0.0.1:2", self.now).is_err(), "not before it is forgotten");
        for round in 0.. {
            assert!(round < 100, "sweeping ends");
            let writes = sweep(&self.fleet, self.now);
            if writes.is_empty() {
                break;
            }
            self.commit(&writes);
        }
        let writes = register(&self.fleet, shard, "127.0.0.1:2", self.now).expect("a new shard");
        self.commit(&writes);
        assert_eq!(self.fleet.domains_of(shard).count(), 0);
    }

    fn check(&self) {
        for (machine, value) in MACHINES.into_iter().zip(VALUES) {
            let holders = self.holder_of(machine, value);
            assert!(
                holders.len() <= 1,
                "{machine} in {value} is in the hands of {holders:?}\n{:#?}",
                self.fleet
            );
            // Whoever acts is whom the coordinator names.
            if let [holder] = holders[..] {
                assert_eq!(
                    self.fleet.owner(machine, Some((KEY, value))),
                    Some(holder),
                    "{machine} in {value}"
                );
            }
        }
    }

    /// Everybody obeys and answers: what was begun ends.
    fn settle(&mut self) {
        for _ in 0..20 {
            self.step(&Step::Tick);
            for shard in 0..SHARDS.len() {
                self.step(&Step::Report { shard, answers: 255, refuses: 0 });
            }
        }
        assert_eq!(self.fleet.instructions().len(), 0, "nothing is left to be said");
    }

    /// What somebody should have, somebody has.
    fn is_all_taken(&self) {
        for (machine, value) in MACHINES.into_iter().zip(VALUES) {
            let holder = self.holder_of(machine, value).first().copied();
            assert_eq!(self.fleet.owner(machine, Some((KEY, value))), holder, "{machine} in {value}");
        }
    }
}

#[test]
fn a_domain_that_comes_back_before_an_answer_about_its_machine_does() {
    let mut world = World::new();
    let report = |answers| Step::Report { shard: 0, answers, refuses: 0 };
    let steps = [
        Step::Assign(2, 0),
        report(1),
        Step::Give { machine: 2, to: 1 },
        Step::Unassign(2),
        // That it lets go of the domain is heard, that it gives the machine not yet.
        report(0b10),
        Step::Assign(2, 0),
    ];
    for step in &steps {
        world.step(step);
    }
    world.settle();
    world.is_all_taken();
}

#[test]
fn a_late_answer_is_about_the_order_that_it_answers() {
    let mut world = World::new();
    let report = |answers, refuses| Step::Report { shard: 1, answers, refuses };
    let give = || Step::Give { machine: 0, to: 3 };
    let steps = [
        Step::Assign(0, 1),
        report(1, 0),
        give(),
        Step::Replace(3),
        // It refuses, and that it keeps the machine is heard before that it refused.
        report(0b10, 1),
        give(),
    ];
    for step in &steps {
        world.step(step);
    }
    world.settle();
    world.is_all_taken();
}

#[test]
fn a_domain_does_not_come_to_a_shard_that_is_giving_one_of_its_machines() {
    let mut world = World::new();
    let report = |answers, refuses| Step::Report { shard: 1, answers, refuses };
    let give = || Step::Give { machine: 0, to: 2 };
    let steps = [
        Step::Assign(0, 1),
        report(1, 0),
        give(),
        Step::Unassign(0),
        // The machine is its own by name now, whoever has the domain.
        Step::Replace(2),
        report(0b100, 0),
        report(0b1000, 0),
        give(),
        Step::Assign(0, 1),
    ];
    for step in &steps {
        world.step(step);
    }
    world.settle();
    world.is_all_taken();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn nothing_is_ever_in_two_hands(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
        world.settle();
        world.is_all_taken();
    }
}
