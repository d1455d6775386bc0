//! Nonsense from every side: whatever comes in whatever order, nothing panics and the books agree.

use std::sync::Arc;

use bigfleet_model::machine::{HostRef, Machine, MachineState};
use bigfleet_shard::*;

use super::harness::*;

/// Numbers from a seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn cluster(&mut self) -> &'static str {
        ["shop", "ml", "batch"][self.below(3) as usize]
    }

    /// Any machine in any state, now and then one that makes no sense.
    fn machine(&mut self) -> Machine {
        let state = MachineState::ALL[self.below(8) as usize];
        let mut machine = machine(&format!("m-{}", self.below(20)), state);
        if state.is_bound() {
            machine.cluster = self.cluster().into();
            machine.assigned.cluster = (&*machine.cluster).into();
            machine.assigned.priority = self.below(3) as i32 * 1000;
        }
        if state == MachineState::Failed {
            machine.last_error = "no luck".into();
        }
        machine.price_usd_per_hour = self.below(5) as f64 / 4.0;
        match self.below(30) {
            0 => machine.price_usd_per_hour = f64::NAN,
            1 => machine.host = None,
            2 => machine.cluster = "stray".into(),
            3 => machine.host = Some(HostRef::default()),
            _ => {}
        }
        machine
    }

    fn error(&mut self) -> CallErrorKind {
        use CallErrorKind::{Fenced, NotFound, NotSupported, Refused, TimedOut, Unavailable};
        [NotFound, NotSupported, Fenced, Refused, Refused, Unavailable, Unavailable, TimedOut]
            [self.below(8) as usize]
    }
}

fn told(machine: Machine) -> Result<Told, BadRecord> {
    match machine.check() {
        Ok(()) => Ok(Told { machine, bad_stamps: 0 }),
        Err(error) => Err(BadRecord { id: machine.id, code: error.problem.code(), text: error.to_string() }),
    }
}

struct Chaos {
    shard: Shard,
    config: Config,
    memory: Memory,
    now: i64,
    draw: Draw,
    calls: Vec<Effect>,
    frames: Vec<(SessionId, Frame)>,
    paused: bool,
}

impl Chaos {
    fn new(seed: u64) -> Self {
        let mut config = Config::new("s", 1, ["one", "two"].map(ProviderConfig::named).to_vec());
        config.limits.flights = 3;
        config.guard.spacing = SECOND;
        let shard = Shard::new(config.clone(), Memory::default(), START);
        let (memory, draw) = (Memory::default(), Draw(seed));
        Self { shard, config, memory, now: START, draw, calls: vec![], frames: vec![], paused: false }
    }

    fn take(&mut self, step: Step) {
        step.facts.into_iter().for_each(|fact| self.memory.learn(fact));
        for effect in step.effects {
            match effect {
                Effect::List { .. } => self.calls.push(effect),
                Effect::Call { .. } => {
                    let is_move = matches!(&effect, Effect::Call { request, .. } if !matches!(request, Request::Get { .. }));
                    assert!(!(is_move && self.paused), "a move was begun while everything is paused");
                    self.calls.push(effect);
                }
                Effect::Send { session, frame } => self.frames.push((session, frame)),
                _ => {}
            }
        }
        self.calls.truncate(200);
    }

    fn event(&mut self, event: Event) {
        let mut step = Step::default();
        self.shard.handle(event, self.now, &mut step);
        self.take(step);
    }

    fn answer(&mut self) {
        if self.calls.is_empty() {
            return;
        }
        let index = self.draw.below(self.calls.len() as u64) as usize;
        // An answer may come twice.
        let effect =
            if self.draw.one_in(10) { self.calls[index].clone() } else { self.calls.swap_remove(index) };
        let (Effect::List { call, .. } | Effect::Call { call, .. }) = effect else { return };
        let call = if self.draw.one_in(40) { CallId(self.draw.below(1000)) } else { call };
        let event = match (&effect, self.draw.below(4)) {
            (_, 0) => {
                Event::Failed { call, error: CallError { kind: self.draw.error(), text: "chaos".into() } }
            }
            (Effect::List { .. }, _) => {
                let machines = (0..self.draw.below(40)).map(|_| self.draw.machine()).collect();
                let revision: Arc<[u8]> = if self.draw.one_in(2) { [7].into() } else { [].into() };
                let end = (!self.draw.one_in(4)).then_some(ListEnd { revision, is_pieced: false });
                Event::Listed { call, records: Box::new(Records::of(machines)), end }
            }
            (Effect::Call { request, .. }, _) => {
                let mut machine = self.draw.machine();
                if !self.draw.one_in(10) {
                    machine.id = request.machine().into();
                }
                let machine = (!self.draw.one_in(5)).then(|| told(machine));
                Event::Answered { call, machine }
            }
            _ => return,
        };
        self.event(event);
    }

    fn speak(&mut self) {
        let session = SessionId(self.draw.below(6));
        let event = match self.draw.below(8) {
            0 | 1 => Event::Opened { session, cluster: self.draw.cluster().into(), protocol: "x".into() },
            2 => Event::Closed { session },
            3 => Event::RollupAgain { session },
            4 => Event::Rollup { session, rollup: Err("garbage".into()) },
            _ => {
                let cluster = self.draw.cluster();
                let row = |draw: &mut Draw| {
                    let priority = [1, 1000, 1_000_000][draw.below(3) as usize];
                    if draw.one_in(4) {
                        gang(cluster, priority, draw.below(6), "g")
                    } else {
                        need(cluster, priority, draw.below(6))
                    }
                };
                let needs = (0..self.draw.below(4)).map(|_| row(&mut self.draw)).collect();
                let rollup = Rollup { cluster: cluster.into(), taken_unix_nanos: 0, needs };
                Event::of_rollup(session, Ok(rollup))
            }
        };
        self.event(event);
    }

    fn reply(&mut self) {
        if self.frames.is_empty() {
            return;
        }
        let index = self.draw.below(self.frames.len() as u64) as usize;
        let (session, frame) = self.frames.swap_remove(index);
        let session = if self.draw.one_in(10) { SessionId(self.draw.below(6)) } else { session };
        match frame {
            Frame::Bootstrap { request, .. } => {
                let good =
                    Blob { user_data: Arc::from(*b"x"), ttl_secs: self.draw.below(20).cast_signed() - 5 };
                let blob = if self.draw.one_in(3) { Err("no".into()) } else { Ok(good) };
                self.event(Event::Blob { session, request, blob });
            }
            Frame::Reclaim { instruction, .. } => {
                let nodes_started = self.draw.below(3) as i32 - 1;
                self.event(Event::ReclaimAcked { session, instruction, nodes_started });
            }
            _ => {}
        }
    }

    fn command(&mut self) {
        let everything = PauseScope::default();
        let mut step = Step::default();
        if self.paused {
            self.paused = false;
            self.shard.resume(&everything, self.now, &mut step).expect("it is paused");
        } else if self.draw.one_in(5) {
            let pause = Pause {
                scope: everything,
                dry_run: self.draw.one_in(2),
                reason: "drill".into(),
                author: "sre".into(),
                since_unix_nanos: self.now,
                until_unix_nanos: None,
            };
            self.shard.pause(pause, self.now, &mut step).expect("it is a good pause");
            self.paused = true;
        }
        self.take(step);
    }

    fn step(&mut self) {
        match self.draw.below(20) {
            0..=5 => self.answer(),
            6..=8 => self.speak(),
            9..=11 => self.reply(),
            12 => self.command(),
            13 if self.draw.one_in(8) => {
                self.config.epoch += 1;
                self.calls.clear();
                self.frames.clear();
                self.shard = Shard::new(self.config.clone(), self.memory.clone(), self.now);
            }
            _ => {
                let span =
                    [SECOND / 10, SECOND, 10 * SECOND, MINUTE, 20 * MINUTE][self.draw.below(5) as usize];
                self.now += span;
                let mut step = Step::default();
                self.shard.advance(self.now, &mut step);
                self.take(step);
            }
        }
    }
}

/// The seeds to run: `BIGFLEET_SEEDS=a..b`, or a few.
fn seeds() -> std::ops::Range<u64> {
    let text = std::env::var("BIGFLEET_SEEDS").unwrap_or_else(|_| "0..150".into());
    let (from, to) = text.split_once("..").expect("BIGFLEET_SEEDS=a..b");
    from.parse().expect("a number")..to.parse().expect("a number")
}

#[test]
fn nothing_panics_and_the_books_agree_whatever_comes() {
    let mut begun = 0;
    for seed in seeds() {
        let mut chaos = Chaos::new(seed);
        for number in 0..600 {
            chaos.step();
            if let Err(why) = chaos.shard.audit() {
                panic!(
                    "seed {seed}, step {number}: {why}\nrepeat: BIGFLEET_SEEDS={seed}..{} cargo test -p bigfleet-shard chaos",
                    seed + 1
                );
            }
        }
        let tally = chaos.shard.tally();
        begun += tally
            .actions
            .iter()
            .filter(|((_, fate), _)| *fate == Fate::Begun)
            .map(|(_, count)| count)
            .sum::<u64>();
    }
    assert!(begun > 1000, "chaos must still get things done: {begun}");
}
