//! A coordinator among the shards: replicas that take turns, what they store, and all that is said between them and shards.
//!
//! What is decided is decided by the shipped `bigfleet-coordinator`, and carried out by the shipped shard. Played are the
//! network, which loses things, replicas that stop and go on, and a store with etcd's promises ([`etcd`]). A replica does as
//! the server's does: it decides on its fleet, commits under its leadership, and answers only then.

mod check;
mod etcd;
mod talk;

use bigfleet_coordinator::{
    Fleet, Help, HelpRules, Quota, Refusal, Standing, Writes, assign, register, retry, set_quota, sweep,
    unassign,
};
use bigfleet_model::label::ZONE;

use super::happening::Happening;
use super::{START_UNIX_NANOS, World};
use crate::random::Random;
use crate::scenario::{self, Ordered, Wrong};

use etcd::Etcd;
use talk::Link;
pub(super) use talk::Talk;

const SECOND: i64 = 1_000_000_000;
/// How often a leader looks after what nobody calls for.
const TICK: i64 = SECOND;
/// How often it orders again what was refused, in ticks.
const RETRY_TICKS: u64 = 30;
/// How soon people try again.
const PEOPLE: i64 = 7 * SECOND;

/// The coordinator of a world.
pub(super) struct Council {
    setup: scenario::Council,
    etcd: Etcd,
    replicas: Vec<Replica>,
    /// By host.
    links: Vec<Link>,
    random: Random,
    /// Which of the faults are in force.
    wrong: Vec<bool>,
    /// What was ordered and not taken in yet, by place.
    unheard: usize,
    /// How often each machine was given.
    moved: std::collections::BTreeMap<Box<str>, u32>,
    /// How many of them were in use for something less important.
    preempted: u32,
}

/// One replica.
#[derive(Debug, Default)]
struct Replica {
    fleet: Fleet,
    standing: Standing,
    help: Help,
    /// The revision of its leader's key, while it believes that it leads.
    made: Option<i64>,
    /// It was killed, or stands still, until then.
    away_until: i64,
    ticks: u64,
    /// Asks that are out.
    asked: std::collections::BTreeSet<u64>,
}

impl Council {
    pub(super) fn new(setup: &scenario::Council, shards: usize, random: Random, is_unfenced: bool) -> Self {
        let etcd = Etcd::new(is_unfenced);
        Self {
            setup: setup.clone(),
            etcd,
            replicas: (0..setup.replicas).map(|_| Replica::default()).collect(),
            links: (0..shards).map(|_| Link::default()).collect(),
            random,
            wrong: vec![false; setup.faults.len()],
            unheard: setup.orders.len(),
            moved: std::collections::BTreeMap::new(),
            preempted: 0,
        }
    }

    /// A shard is gone, with all that it had not said.
    pub(super) fn cut(&mut self, host: usize) {
        if let Some(link) = self.links.get_mut(host) {
            link.cut();
        }
    }

    fn is_lost(&mut self) -> bool {
        let mut most = 0.0_f64;
        for (fault, on) in self.setup.faults.iter().zip(&self.wrong) {
            if let (Wrong::Lost { p }, true) = (&fault.what, on) {
                most = most.max(*p);
            }
        }
        self.random.happens(most)
    }

    /// A leader decides; what it wants stored is stored before anybody hears of it, or it leads no more.
    fn decide<T>(
        &mut self,
        replica: usize,
        decide: impl FnOnce(&mut Replica) -> Result<(Writes, T), Refusal>,
    ) -> Option<Result<T, Refusal>> {
        let of = &mut self.replicas[replica];
        let made = of.made?;
        let (writes, answer) = match decide(of) {
            Ok(decided) => decided,
            Err(refusal) => return Some(Err(refusal)),
        };
        self.commit(replica, made, &writes).then_some(Ok(answer))
    }

    fn commit(&mut self, replica: usize, made: i64, writes: &Writes) -> bool {
        if writes.is_empty() {
            return true;
        }
        let is_stored = self.etcd.commit(made, writes);
        if is_stored {
            self.replicas[replica].fleet.apply(writes);
        } else {
            self.replicas[replica].made = None;
        }
        is_stored
    }

    fn tick(&mut self, replica: usize, now: i64) {
        let lease = self.setup.lease.nanos();
        if self.replicas[replica].away_until > now {
            return;
        }
        self.etcd.pass_to(now);
        match self.replicas[replica].made {
            None => {
                let Some(made) = self.etcd.campaign(replica, now, lease) else { return };
                let fleet = self.etcd.load();
                let begin = fleet.begin(made);
                self.replicas[replica] = Replica { fleet, made: Some(made), ..Replica::default() };
                if self.commit(replica, made, &begin) {
                    let term = self.replicas[replica].fleet.term();
                    self.replicas[replica].help = Help::new(HelpRules::default(), term);
                }
            }
            Some(made) => {
                if self.etcd.keep_alive(made, now, lease) == Some(false) && !self.etcd.is_unfenced {
                    self.replicas[replica].made = None;
                    return;
                }
                self.look_after(replica, made, now);
            }
        }
    }

    fn look_after(&mut self, replica: usize, made: i64, now: i64) {
        let of = &mut self.replicas[replica];
        of.ticks += 1;
        let mut writes = sweep(&of.fleet, now);
        if writes.is_empty() && of.ticks.is_multiple_of(RETRY_TICKS) {
            writes = retry(&of.fleet);
        }
        if self.commit(replica, made, &writes) && self.setup.helps {
            let of = &mut self.replicas[replica];
            of.help.tick(&of.fleet, &of.standing, now);
        }
    }

    /// Somebody orders something of whoever leads. Whether it was heard.
    fn order(&mut self, what: &Ordered, now: i64) -> bool {
        let Some(lead) = self.etcd.lead().filter(|lead| self.replicas[lead.replica].away_until <= now) else {
            return false;
        };
        let shard = |index: usize| format!("shard-{index}");
        let decided = self.decide(lead.replica, |of| {
            let writes = match what {
                Ordered::Assign { zone, shard: to } => assign(&of.fleet, ZONE, zone, &shard(*to), now)?,
                Ordered::Unassign { zone } => unassign(&of.fleet, ZONE, zone, now)?,
                Ordered::Quota { shard: of_shard, provider, machines } => {
                    let any = Box::<str>::default;
                    let kind = Quota {
                        shard: shard(*of_shard).into(),
                        provider: provider.as_str().into(),
                        instance_type: any(),
                        zone: any(),
                        capacity_type: any(),
                        machines: 0,
                    };
                    set_quota(&of.fleet, &kind, *machines)?
                }
            };
            Ok((writes, ()))
        });
        // Nobody knows the shard before its first report; what belongs to somebody is left there.
        !matches!(decided, None | Some(Err(Refusal::Unknown { .. })))
    }
}

impl World {
    /// How often each machine was given by one shard to another.
    pub fn moves_between_shards(&self) -> &std::collections::BTreeMap<Box<str>, u32> {
        static NONE: std::collections::BTreeMap<Box<str>, u32> = std::collections::BTreeMap::new();
        self.council.as_ref().map_or(&NONE, |council| &council.moved)
    }

    /// How many machines were given that were in use for something less important.
    pub fn preempted_between_shards(&self) -> u32 {
        self.council.as_ref().map_or(0, |council| council.preempted)
    }

    /// Sets the coordinator going.
    pub(super) fn begin_council(&mut self) {
        let Some(council) = &self.council else { return };
        let (replicas, hosts) = (council.replicas.len(), council.links.len());
        let orders: Vec<i64> = council.setup.orders.iter().map(|order| order.at.nanos()).collect();
        let faults: Vec<(i64, i64)> =
            council.setup.faults.iter().map(|fault| (fault.at.nanos(), fault.lasts.nanos())).collect();
        for replica in 0..replicas {
            let at = self.now + SECOND / 10 * i64::try_from(1 + replica).unwrap_or(1);
            self.queue.put(at, Happening::Council(Talk::Tick { replica }));
        }
        for host in 0..hosts {
            self.report_soon(host, SECOND * i64::try_from(1 + host).unwrap_or(1));
        }
        for (place, at) in orders.into_iter().enumerate() {
            self.queue.put(START_UNIX_NANOS + at, Happening::Council(Talk::People(place)));
        }
        for (place, (at, lasts)) in faults.into_iter().enumerate() {
            let wrong = |on| Happening::Council(Talk::Wrong { place, on });
            self.queue.put(START_UNIX_NANOS + at, wrong(true));
            self.queue.put(START_UNIX_NANOS + at + lasts, wrong(false));
        }
    }

    /// Something is said between replicas, shards and people.
    pub(super) fn council(&mut self, talk: Talk) {
        let now = self.now;
        let Some(council) = &mut self.council else { return };
        match talk {
            Talk::Tick { replica } => {
                council.tick(replica, now);
                self.queue.put(now + TICK, Happening::Council(Talk::Tick { replica }));
                self.check_store(replica);
                self.ask_donors(replica);
            }
            Talk::People(place) => {
                let what = council.setup.orders[place].what.clone();
                if council.order(&what, now) {
                    council.unheard -= 1;
                    self.trace.note(now, format_args!("people order {what:?}"));
                } else {
                    self.queue.put(now + PEOPLE, Happening::Council(Talk::People(place)));
                }
            }
            Talk::Wrong { place, on } => self.goes_wrong(place, on),
            Talk::Report { host, life } => self.report_to_council(host, life),
            Talk::Arrives { host, life, number, replica, report, answers } => {
                self.council_hears((host, life, number), replica, *report, &answers);
            }
            Talk::Back { host, life, number, said } => self.council_answers((host, life, number), *said),
            Talk::Late { host, life, number } => self.council_is_late((host, life, number)),
            Talk::Asked { host, replica, ask } => self.donor_hears(host, replica, &ask),
            Talk::Given { host, replica, ask, in_use, machines } => {
                self.council_is_given((host, replica), ask, in_use, &machines);
            }
        }
    }

    fn goes_wrong(&mut self, place: usize, on: bool) {
        let now = self.now;
        let Some(council) = &mut self.council else { return };
        let fault = council.setup.faults[place].clone();
        council.wrong[place] = on;
        match fault.what {
            Wrong::Paused { replica } if on => {
                let of = &mut council.replicas[replica % council.setup.replicas];
                of.away_until = of.away_until.max(now + fault.lasts.nanos());
            }
            Wrong::Killed { replica } if on => {
                let away_until = now + fault.lasts.nanos();
                council.replicas[replica % council.setup.replicas] =
                    Replica { away_until, ..Replica::default() };
            }
            Wrong::StoreDown => council.etcd.is_down = on,
            Wrong::Paused { .. } | Wrong::Killed { .. } | Wrong::Lost { .. } => {}
        }
        self.mark(format!("coordinator: {:?} {}", fault.what, if on { "begins" } else { "ends" }));
    }

    /// Shards are known from their first report on, each by the name it has in its configuration.
    fn registered(of: &Replica, shard: &str, now: i64) -> Result<Writes, Refusal> {
        register(&of.fleet, shard, "127.0.0.1:1", now)
    }
}
