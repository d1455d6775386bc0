//! What must hold between shards, whatever a coordinator says and whoever dies.

use std::collections::BTreeMap;

use bigfleet_coordinator::{Step as Stage, Tenure};
use bigfleet_model::label::ZONE;
use bigfleet_model::machine::MachineState;
use bigfleet_shard::{Answer, Instruction, Order, Outcome, Request};

use super::World;

/// Numbers of invariants.
pub(super) const ONE_OWNER: usize = 32;
pub(super) const ONE_ORDERS: usize = 33;
pub(super) const ONCE: usize = 34;
pub(super) const HELP_HARMS_NOBODY: usize = 35;
pub(super) const QUOTAS_HOLD: usize = 36;
pub(super) const ORDERS_END: usize = 37;
pub(super) const STORE_AGREES: usize = 38;
pub(super) const DEPOSED_UNHEARD: usize = 39;
pub(super) const ENDS_FIRST: usize = 40;

/// When nothing of an earlier life is under way any more.
const OLD: i64 = 15 * 60 * 1_000_000_000;
/// How long an order may be on its way, tried again and again.
const ON_ITS_WAY: i64 = 5 * 60 * 1_000_000_000;
/// How often what a leader knows is compared with the store, in ticks.
const CHECK_TICKS: u64 = 20;

impl World {
    /// Which hosts may act on a machine, or still end something with it.
    fn hands(&self, machine: &str, zone: &str) -> Vec<usize> {
        let has = |host: usize| {
            let shard = self.hosts[host].shard.as_ref();
            shard
                .is_some_and(|shard| shard.owned().acts_on(machine, (ZONE, zone)) || shard.is_ending(machine))
        };
        (0..self.hosts.len()).filter(|host| !self.hosts[*host].superseded && has(*host)).collect()
    }

    /// Whether a machine is none of a host's.
    pub(in crate::world) fn is_elsewhere(&self, machine: &str, host: usize) -> bool {
        let real = self.truth.machines.get(machine);
        self.council.is_some() && real.is_some_and(|real| !self.hands(machine, &real.zone).contains(&host))
    }

    /// Nothing is in two hands.
    pub(super) fn check_hands(&mut self) {
        let two = self.truth.machines.iter().find_map(|(id, real)| {
            let hands = self.hands(id, &real.zone);
            (hands.len() > 1)
                .then(|| format!("machine {id} in {} is in the hands of hosts {hands:?}", real.zone))
        });
        if let Some(text) = two {
            self.watch.fail(self.now, ONE_OWNER, text);
        }
    }

    /// A machine moves by the word of a host: nobody else may have it.
    pub(in crate::world) fn check_ordered(&mut self, host: usize, request: &Request) {
        if self.council.is_none() || matches!(request, Request::Get { .. }) {
            return;
        }
        let Some(real) = self.truth.machines.get(request.machine()) else { return };
        let hands = self.hands(request.machine(), &real.zone);
        if hands.iter().any(|other| *other != host) {
            let text = format!("{} by host {host}, and {hands:?} have it: {request:?}", request.name());
            self.watch.fail(self.now, ONE_ORDERS, text);
        }
        if matches!(request, Request::Create { .. }) {
            self.check_quota(host);
        }
    }

    /// A shard that orders a machine holds no more than it was told it may. What it ordered before it was told so, or before it
    /// was given more, may still be on its way.
    fn check_quota(&mut self, host: usize) {
        let changed = self.council.as_ref().map_or(0, |council| council.links[host].changed);
        if self.now - changed < ON_ITS_WAY {
            return;
        }
        for quota in self.hosts[host].memory.quotas.iter() {
            let names = self.scenario.providers();
            let holds = |(id, real): &(&String, &super::super::truth::Real)| {
                names[real.provider] == *quota.provider
                    && real.state != MachineState::Speculative
                    && self.hands(id, &real.zone).contains(&host)
            };
            let held = self.truth.machines.iter().filter(holds).count();
            if held > quota.machines as usize {
                let text = format!("host {host} holds {held} machines and may hold {}", quota.machines);
                self.watch.fail(self.now, QUOTAS_HOLD, text);
                return;
            }
        }
    }

    /// Nobody but the leader changes what is stored.
    pub(super) fn check_store(&mut self, replica: usize) {
        let Some(council) = &self.council else { return };
        let of = &council.replicas[replica];
        let leads = council.etcd.lead().is_some_and(|lead| Some(lead.made) == of.made);
        if leads && of.ticks.is_multiple_of(CHECK_TICKS) && of.fleet != council.etcd.load() {
            self.watch.fail(self.now, STORE_AGREES, format!("replica {replica} leads, and others write"));
        }
    }

    /// An instruction takes effect at most once, over all lives.
    pub(super) fn check_once(&mut self, host: usize, told: &Instruction, answers: &[Answer], changes: bool) {
        // On disk is what earlier lives have heard as well.
        let highest = self.hosts[host].memory.term;
        let is_done = answers.iter().any(|answer| answer.outcome != Outcome::Stale);
        if told.term < highest && is_done {
            let text = format!("host {host} has heard term {highest} and answers {told:?} with {answers:?}");
            self.watch.fail(self.now, DEPOSED_UNHEARD, text);
        }
        let Some(council) = &mut self.council else { return };
        let done = &mut council.links[host].done;
        let again = changes && done.contains(&told.id);
        let is_answered = answers.iter().any(|answer| answer.outcome == Outcome::Accepted);
        let lets_go = match &told.order {
            Some(Order::LetGo((_, zone))) if is_answered => Some(zone.clone()),
            _ => None,
        };
        if !answers.is_empty() {
            done.insert(told.id.clone());
        }
        // What an earlier life began, and a provider is about to end, nobody here knows of.
        let is_old = self.now - self.hosts[host].started > OLD;
        // One that was given to another shard by its name is that one's to move.
        let under_way = self.truth.machines.iter().find(|(machine, real)| {
            let is_in = lets_go.as_deref() == Some(&*real.zone);
            is_in && real.state.is_transitional() && self.hands(machine, &real.zone).is_empty()
        });
        if let Some((machine, real)) = under_way.filter(|_| is_old) {
            let text = format!("host {host} has let go of {}, and {machine} is {}", real.zone, real.state);
            self.watch.fail(self.now, ENDS_FIRST, text);
        }
        if again {
            self.watch.fail(self.now, ONCE, format!("host {host} carries {told:?} out a second time"));
        }
    }

    /// Faults are long over: everything that was ordered is carried out, and nothing is on its way.
    pub(in crate::world) fn check_council(&mut self) {
        let Some(council) = &self.council else { return };
        let fleet = council.etcd.load();
        let mut left = Vec::new();
        if council.unheard > 0 {
            left.push(format!("{} orders of people were not heard", council.unheard));
        }
        left.extend(fleet.instructions().map(|instruction| format!("{instruction:?}")));
        let moving = fleet.transfers().filter(|transfer| transfer.step != Stage::Arrived);
        left.extend(moving.map(|transfer| format!("{transfer:?}")));
        let unsure = fleet.domains().filter(|domain| !matches!(domain.tenure, Tenure::Held { .. }));
        left.extend(unsure.map(|domain| format!("{domain:?}")));
        for (id, real) in &self.truth.machines {
            let owner = fleet.owner(id, Some((ZONE, &real.zone)));
            let hands: BTreeMap<usize, String> = self
                .hands(id, &real.zone)
                .into_iter()
                .map(|host| (host, format!("shard-{}", self.hosts[host].index)))
                .collect();
            if !hands.values().map(String::as_str).eq(owner) {
                left.push(format!("machine {id} is {owner:?}'s and in the hands of {hands:?}"));
            }
        }
        if let Some(first) = left.first() {
            let text = format!("{} things are left, first {first}", left.len());
            self.watch.fail(self.now, ORDERS_END, text);
        }
    }
}
