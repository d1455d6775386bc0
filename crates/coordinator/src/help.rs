//! Who helps whom. A shard that is short for a while gets machines of others: first idle ones, then free quota, then, for
//! strictly higher priority only, machines in use.
//!
//! The coordinator knows counts and not machines, so it asks: one donor at a time, and a donor one thing at a time. The
//! donor picks, because only it can tell what it can spare. What it gives travels as a [transfer](crate::transfer); until
//! that has arrived and the getter has reported since, nobody else is asked for the same shortfall. So no shortfall is
//! helped twice, and where nobody can help, asking pauses for longer and longer.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::backoff::Backoff;
use bigfleet_model::requirement::{Operator, Requirement};
use bigfleet_model::resource::ResourceVec;

use crate::entry::Step;
use crate::error::Refusal;
use crate::fleet::{Fleet, Writes};
use crate::standing::{Heard, Shortfall, Standing};
use crate::transfers::{Offered, transfer};

const NANOS_PER_SEC: i64 = 1_000_000_000;

/// When help is looked for, and how patiently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelpRules {
    /// A shortfall this old cannot be met by its own shard.
    pub after_cycles: i32,
    /// Older reports say nothing about the present.
    pub fresh_secs: i64,
    /// A donor that has not answered by then gives nothing.
    pub patience_secs: i64,
    /// After all were asked in vain; doubles up to thirty-two times this.
    pub pause_secs: i64,
    /// A machine that was handed over stays for this long.
    pub rest_secs: i64,
}

impl Default for HelpRules {
    fn default() -> Self {
        Self { after_cycles: 10, fresh_secs: 90, patience_secs: 30, pause_secs: 60, rest_secs: 3600 }
    }
}

/// What a donor is asked for, in the order of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Machines that idle.
    Idle,
    /// Slots that it has not used.
    Quota,
    /// Machines in use for strictly lower priority.
    InUse,
}

impl Source {
    fn next(self) -> Option<Self> {
        match self {
            Self::Idle => Some(Self::Quota),
            Self::Quota => Some(Self::InUse),
            Self::InUse => None,
        }
    }
}

/// A question to one donor. It answers with the machines it gives, or with none.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Names it.
    pub id: u64,
    /// Who is asked.
    pub donor: Box<str>,
    /// Who is short.
    pub getter: Box<str>,
    /// For what.
    pub source: Source,
    /// What a machine must be.
    pub requirements: Vec<Requirement>,
    /// How much is missing.
    pub deficit: ResourceVec,
    /// How important it is.
    pub priority: i32,
    /// When it was asked.
    pub asked_unix_nanos: i64,
}

/// A shortfall, from one report to the next: whose it is, how important, and what a machine must be.
type Which = (Box<str>, i32, String);

/// How far the search for one shortfall's help is.
#[derive(Clone, Debug)]
struct Search {
    source: Source,
    /// Who was asked for this source.
    asked: BTreeSet<Box<str>>,
    phase: Phase,
    /// Rounds in vain, for the pause.
    in_vain: u32,
}

#[derive(Clone, Debug)]
enum Phase {
    /// The next donor can be asked.
    Looking,
    /// A donor is thinking.
    Asked,
    /// Machines are on their way; then the getter must report before anybody else is asked.
    Coming { machines: Vec<Box<str>> },
    /// They are there since then.
    Came { since_unix_nanos: i64 },
    /// Nobody could help.
    Pausing { until_unix_nanos: i64 },
}

/// The searches of a leader. Soft: a new leader begins anew, and what was given is in the store.
#[derive(Clone, Debug, Default)]
pub struct Help {
    rules: HelpRules,
    searches: BTreeMap<Which, Search>,
    asks: BTreeMap<u64, (Ask, Which)>,
    last_ask: u64,
}

impl Help {
    /// With these rules, and numbers for asks that no leader before has used: its term.
    pub fn new(rules: HelpRules, term: i64) -> Self {
        // A billion asks a term; an answer to the ask of another leader finds nothing.
        Self { rules, last_ask: term.cast_unsigned() << 30, ..Self::default() }
    }

    /// Questions that donors have not answered.
    pub fn asks(&self) -> impl ExactSizeIterator<Item = &Ask> {
        self.asks.values().map(|(ask, _)| ask)
    }

    /// Goes on with every search. Call it after reports, and now and then.
    pub fn tick(&mut self, fleet: &Fleet, standing: &Standing, now: i64) {
        self.give_up_on_silence(now);
        let short = self.aged(fleet, standing, now);
        self.searches.retain(|which, _| short.contains_key(which));
        let asks = &mut self.asks;
        asks.retain(|_, (_, which)| short.contains_key(which));
        // The most important first: a donor that is thinking cannot be asked by anybody else.
        let mut order: Vec<&Which> = short.keys().collect();
        order.sort_by(|(a, a_priority, a_what), (b, b_priority, b_what)| {
            (b_priority, a, a_what).cmp(&(a_priority, b, b_what))
        });
        for which in order {
            self.go_on(which, short[which], fleet, standing, now);
        }
    }

    /// A donor answers with the machines it gives. What is to be stored, if anything.
    pub fn answer(
        &mut self,
        fleet: &Fleet,
        donor: &str,
        ask: u64,
        machines: &[Offered],
        now: i64,
    ) -> Result<Writes, Refusal> {
        let asked = self.asks.get(&ask).filter(|(asked, _)| *asked.donor == *donor);
        let Some((asked, which)) = asked else {
            let remedy = "it was answered before, or given up, or asked by an earlier leader";
            return Err(Refusal::Unknown { what: "ask", name: ask.to_string().into(), remedy });
        };
        let reason = format!("help for {} at priority {}", asked.getter, asked.priority);
        let writes = transfer(fleet, machines, (donor, &asked.getter), &reason, self.rules.rest_secs, now)?;
        let which = which.clone();
        self.asks.remove(&ask);
        if let Some(search) = self.searches.get_mut(&which) {
            search.phase = if machines.is_empty() {
                Phase::Looking
            } else {
                search.in_vain = 0;
                Phase::Coming { machines: machines.iter().map(|offered| offered.machine.clone()).collect() }
            };
        }
        Ok(writes)
    }

    fn give_up_on_silence(&mut self, now: i64) {
        let patience = self.rules.patience_secs * NANOS_PER_SEC;
        let late = |ask: &Ask| now.saturating_sub(ask.asked_unix_nanos) > patience;
        let silent: Vec<u64> = self.asks().filter(|ask| late(ask)).map(|ask| ask.id).collect();
        for id in silent {
            let (_, which) = self.asks.remove(&id).expect("listed just now");
            if let Some(search) = self.searches.get_mut(&which) {
                search.phase = Phase::Looking;
            }
        }
    }

    /// Shortfalls that their shards cannot meet and others might.
    fn aged<'a>(&self, fleet: &Fleet, standing: &'a Standing, now: i64) -> BTreeMap<Which, &'a Shortfall> {
        let key = fleet.domains().next().map(|domain| domain.key.clone());
        // Machines of other domains are of no use to a gang that must stay together or to a demand for one domain.
        let is_bound = |requirement: &Requirement| {
            requirement.operator() == Operator::Same || Some(requirement.key()) == key.as_deref()
        };
        let mut short = BTreeMap::new();
        for (shard, heard) in
            standing.all().filter(|(shard, heard)| self.is_present(fleet, shard, heard, now))
        {
            for shortfall in &heard.report.shortfalls {
                let is_aged = shortfall.age_cycles >= self.rules.after_cycles;
                if is_aged && !shortfall.requirements.iter().any(is_bound) {
                    let what = format!("{:?} {:?}", shortfall.requirements, shortfall.interruption);
                    short.insert((shard.into(), shortfall.priority, what), shortfall);
                }
            }
        }
        short
    }

    fn is_present(&self, fleet: &Fleet, shard: &str, heard: &Heard, now: i64) -> bool {
        let age = now.saturating_sub(heard.received_unix_nanos);
        age <= self.rules.fresh_secs * NANOS_PER_SEC
            && fleet.shard(shard).is_some_and(|shard| !shard.is_leaving)
    }

    fn go_on(&mut self, which: &Which, short: &Shortfall, fleet: &Fleet, standing: &Standing, now: i64) {
        let begun =
            || Search { source: Source::Idle, asked: BTreeSet::new(), phase: Phase::Looking, in_vain: 0 };
        let search = self.searches.entry(which.clone()).or_insert_with(begun);
        match &search.phase {
            Phase::Looking => {}
            Phase::Asked => return,
            Phase::Pausing { until_unix_nanos } if now < *until_unix_nanos => return,
            Phase::Pausing { .. } => (search.source, search.asked) = (Source::Idle, BTreeSet::new()),
            Phase::Coming { machines } => {
                let is_moving = |machine: &str| {
                    fleet.transfer(machine).is_some_and(|transfer| transfer.step != Step::Arrived)
                };
                if !machines.iter().any(|machine| is_moving(machine)) {
                    search.phase = Phase::Came { since_unix_nanos: now };
                }
                return;
            }
            Phase::Came { since_unix_nanos } => {
                // What the getter said before it had them says nothing about what it still lacks.
                let heard = standing.of(&which.0).map_or(0, |heard| heard.received_unix_nanos);
                if heard <= *since_unix_nanos {
                    return;
                }
                (search.source, search.asked) = (Source::Idle, BTreeSet::new());
            }
        }
        search.phase = Phase::Looking;
        loop {
            match self.next_donor(which, fleet, standing, now) {
                Donor::None => {}
                Donor::Busy => return,
                Donor::Free(donor) => return self.ask(which, short, donor, now),
            }
            let search = self.searches.get_mut(which).expect("it was put there above");
            if let Some(next) = search.source.next() {
                (search.source, search.asked) = (next, BTreeSet::new());
            } else {
                search.in_vain += 1;
                let (first, limit) = (self.rules.pause_secs, self.rules.pause_secs * 32);
                let pause = Backoff { first, limit }.after(search.in_vain);
                search.phase = Phase::Pausing { until_unix_nanos: now + pause * NANOS_PER_SEC };
                return;
            }
        }
    }

    /// Who has the most to spare of those that were not asked for this source yet.
    fn next_donor(&self, which: &Which, fleet: &Fleet, standing: &Standing, now: i64) -> Donor {
        let search = &self.searches[which];
        // Whoever may hold only so many could not use more slots than it may.
        if search.source == Source::Quota && fleet.quotas_of(&which.0).next().is_some() {
            return Donor::None;
        }
        let free = |heard: &Heard| heard.report.free_machines;
        let others = standing.all().filter(|(shard, heard)| {
            **shard != *which.0 && !search.asked.contains(*shard) && self.is_present(fleet, shard, heard, now)
        });
        let able = others.filter(|(_, heard)| search.source == Source::InUse || free(heard) > 0);
        let mut able: Vec<(&str, &Heard)> = able.collect();
        able.sort_by_key(|(shard, heard)| (-free(heard), *shard));
        if able.is_empty() {
            return Donor::None;
        }
        let is_thinking = |shard: &str| self.asks().any(|ask| *ask.donor == *shard);
        able.iter()
            .find(|(shard, _)| !is_thinking(shard))
            .map_or(Donor::Busy, |(shard, _)| Donor::Free((*shard).into()))
    }

    fn ask(&mut self, which: &Which, short: &Shortfall, donor: Box<str>, now: i64) {
        self.last_ask += 1;
        let search = self.searches.get_mut(which).expect("a search asks");
        let is_new = search.asked.insert(donor.clone());
        assert!(is_new, "nobody is asked twice for one source");
        search.phase = Phase::Asked;
        let ask = Ask {
            id: self.last_ask,
            donor,
            getter: which.0.clone(),
            source: search.source,
            requirements: short.requirements.clone(),
            deficit: short.deficit.clone(),
            priority: short.priority,
            asked_unix_nanos: now,
        };
        self.asks.insert(ask.id, (ask, which.clone()));
    }
}

enum Donor {
    /// Everybody was asked.
    None,
    /// Somebody is left who thinks about another ask.
    Busy,
    /// The next to ask.
    Free(Box<str>),
}
