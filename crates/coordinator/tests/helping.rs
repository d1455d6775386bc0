//! Shards help each other: it ends, nothing is moved twice, and nobody is asked for what it cannot give.

use std::collections::BTreeMap;

use bigfleet_coordinator::{
    Fleet, Help, HelpRules, Offered, Order, Outcome, Report, Shortfall, Source, Standing, Writes,
    acknowledge, pending, register,
};
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::requirement::Requirement;
use bigfleet_model::resource::ResourceVec;
use proptest::prelude::*;

const NANOS_PER_SEC: i64 = 1_000_000_000;
const REPORT_SECS: i64 = 30;

/// A shard with machines of one core each: idle ones, quota, and those in use at some priority.
#[derive(Clone, Debug)]
struct Donor {
    idle: Vec<String>,
    slots: Vec<String>,
    in_use: Vec<(String, i32)>,
    /// Cores that are missing, and their priority.
    short: (usize, i32),
}

struct World {
    fleet: Fleet,
    standing: Standing,
    help: Help,
    shards: BTreeMap<String, Donor>,
    now: i64,
    moves: BTreeMap<String, u32>,
    asked: u32,
}

fn cores(count: usize) -> ResourceVec {
    ResourceVec::parse([("cpu", format!("{count}"))]).expect("cores")
}

impl World {
    fn new(shards: BTreeMap<String, Donor>) -> Self {
        let mut world = Self {
            fleet: Fleet::default(),
            standing: Standing::default(),
            help: Help::new(HelpRules::default(), 1),
            shards,
            now: 1_000 * NANOS_PER_SEC,
            moves: BTreeMap::new(),
            asked: 0,
        };
        world.fleet.apply(&world.fleet.begin(1));
        for shard in world.shards.keys() {
            let writes = register(&world.fleet, shard, "127.0.0.1:1", world.now).expect("a new shard");
            world.fleet.apply(&writes);
        }
        world
    }

    /// One round of reports, with donors that answer at once.
    fn round(&mut self, cycle: i64) -> bool {
        let mut is_quiet = true;
        let names: Vec<String> = self.shards.keys().cloned().collect();
        for name in &names {
            self.now += REPORT_SECS * NANOS_PER_SEC / i64::try_from(names.len()).expect("few");
            self.obey(name);
            let donor = &self.shards[name];
            let free = i32::try_from(donor.idle.len() + donor.slots.len()).expect("few");
            let (missing, priority) = donor.short;
            let shortfall = Shortfall {
                requirements: vec![Requirement::is_in("arch", ["amd64"])],
                deficit: cores(missing),
                priority,
                age_cycles: 50,
                interruption: PenaltyBucket::from_wire(1).expect("a bucket"),
            };
            let shortfalls = if missing > 0 { vec![shortfall] } else { Vec::new() };
            let report = Report { epoch: 1, cycle, free_machines: free, shortfalls, ..Report::default() };
            assert_eq!(self.standing.hear(name, report, self.now), Ok(true));
            self.help.tick(&self.fleet, &self.standing, self.now);
            is_quiet &= !self.answer();
        }
        is_quiet
    }

    /// Donors answer what they were asked. Whether anything moved.
    fn answer(&mut self) -> bool {
        let mut has_moved = false;
        let asks: Vec<_> = self.help.asks().cloned().collect();
        for ask in asks {
            self.asked += 1;
            let wanted =
                (1..100).find(|count| cores(*count).covers(&ask.deficit)).expect("some number covers");
            let donor = self.shards.get_mut(&*ask.donor).expect("a shard");
            // What a donor is short of itself, it does not give away for equal or lower priority.
            let spares = donor.short.0 == 0 || donor.short.1 < ask.priority;
            let given: Vec<String> = match ask.source {
                _ if !spares => Vec::new(),
                Source::Idle => donor.idle.iter().take(wanted).cloned().collect(),
                Source::Quota => donor.slots.iter().take(wanted).cloned().collect(),
                Source::InUse => {
                    let lower = donor.in_use.iter().filter(|(_, priority)| *priority < ask.priority);
                    lower.take(wanted).map(|(machine, _)| machine.clone()).collect()
                }
            };
            // Nor what it has promised before.
            let is_here = |machine: &String| self.fleet.transfer(machine).is_none();
            let given: Vec<String> = given.into_iter().filter(is_here).take(25).collect();
            let offer = |machine: &String| Offered { machine: machine.as_str().into(), domain: "".into() };
            let machines: Vec<Offered> = given.iter().map(offer).collect();
            let writes =
                self.help.answer(&self.fleet, &ask.donor, ask.id, &machines, self.now).expect("it was asked");
            self.commit(&writes);
            has_moved |= !machines.is_empty();
        }
        has_moved
    }

    fn commit(&mut self, writes: &Writes) {
        self.fleet.apply(writes);
    }

    /// Carries out what is pending: gives machines away, and takes them.
    fn obey(&mut self, name: &str) {
        let orders: Vec<_> = pending(&self.fleet, name).cloned().collect();
        for order in orders {
            let Order::Transfer { machines, from, .. } = &order.order else { panic!("{order:?}") };
            for machine in machines {
                self.hand(name, machine, **from == *name);
            }
            let writes = acknowledge(&self.fleet, name, &order.id(), Outcome::Accepted, self.now);
            self.commit(&writes);
        }
    }

    fn hand(&mut self, name: &str, machine: &str, gives: bool) {
        let shard = self.shards.get_mut(name).expect("a shard");
        if gives {
            shard.idle.retain(|idle| **idle != *machine);
            shard.slots.retain(|slot| **slot != *machine);
            let used = shard.in_use.iter().position(|(used, _)| **used == *machine);
            if let Some(place) = used {
                let (_, priority) = shard.in_use.remove(place);
                // It was in use there: somebody is short of it now.
                if shard.short.0 == 0 || shard.short.1 <= priority {
                    shard.short = (shard.short.0 + 1, priority);
                }
            }
        } else {
            *self.moves.entry(machine.to_string()).or_default() += 1;
            if shard.short.0 > 0 {
                shard.short.0 -= 1;
                let priority = shard.short.1;
                shard.in_use.push((machine.to_string(), priority));
            } else {
                shard.idle.push(machine.to_string());
            }
        }
    }
}

fn donor(name: String) -> impl Strategy<Value = Donor> {
    let short = prop_oneof![3 => Just((0, 0)), 2 => (1_usize..12, 1..5_i32)];
    (0_usize..8, 0_usize..5, prop::collection::vec(1..5_i32, 0..6), short).prop_map(
        move |(idle, slots, used, short)| {
            let machines = |kind: &str, count: usize| {
                (0..count).map(|n| format!("{name}-{kind}-{n}")).collect::<Vec<_>>()
            };
            let in_use = machines("used", used.len()).into_iter().zip(used).collect();
            // Whoever idles and is short as well would have helped itself.
            let (idle, slots) = if short.0 > 0 { (0, 0) } else { (idle, slots) };
            Donor { idle: machines("idle", idle), slots: machines("slot", slots), in_use, short }
        },
    )
}

fn fleet_of(count: usize) -> impl Strategy<Value = BTreeMap<String, Donor>> {
    let shards =
        (0..count).map(|n| donor(format!("s{n:02}")).prop_map(move |donor| (format!("s{n:02}"), donor)));
    shards.collect::<Vec<_>>().prop_map(|shards| shards.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn help_comes_ends_and_moves_nothing_twice(shards in fleet_of(20)) {
        let mut world = World::new(shards);
        let free_before: usize = world.shards.values().map(|shard| shard.idle.len() + shard.slots.len()).sum();
        let short_before: usize = world.shards.values().map(|shard| shard.short.0).sum();
        // A round is 30 seconds. Twenty donors, three sources, one ask at a time: most of it is waiting for answers.
        let mut quiet = 0;
        for cycle in 0..400 {
            quiet = if world.round(cycle) { quiet + 1 } else { 0 };
        }
        prop_assert!(quiet >= 100, "it rests; {quiet} quiet rounds at the end");
        prop_assert!(world.moves.values().all(|times| *times == 1), "{:?}", world.moves);
        // What was moved once stays where it is, used or not.
        let unmoved = |machine: &&String| !world.moves.contains_key(*machine);
        let unmoved = |machines: &[String]| machines.iter().filter(unmoved).count();
        let free: usize = world.shards.values().map(|shard| unmoved(&shard.idle) + unmoved(&shard.slots)).sum();
        let short: usize = world.shards.values().map(|shard| shard.short.0).sum();
        prop_assert!(short == 0 || free == 0, "{short} short although {free} are free");
        prop_assert!(short <= short_before.saturating_sub(free_before.min(short_before)) + world.moves.len(), "no worse");
        // Where nobody can help, asking becomes rare: 16 minutes between two rounds of 60 questions.
        let asked = world.asked;
        for cycle in 400..500 {
            world.round(cycle);
        }
        prop_assert!(world.asked - asked <= 20 * 60 * 4, "{} questions in 50 minutes", world.asked - asked);
    }
}
