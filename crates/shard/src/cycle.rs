//! The cycle: what is known is decided on, and what is decided is begun.
//!
//! Reconciling is not a step of it: providers and operators are taken in as they speak, and a cycle looks at what is
//! known when it begins. It never touches a socket; everything it wants said or done is an effect.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_engine::{ActionExplanation, ActionKind, Decision, Fleet};
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::NeedKey;

use crate::effect::{Effect, Step};
use crate::memory::Fact;
use crate::planted::Bug;
use crate::rails;
use crate::shard::Shard;
use crate::take_back;
use crate::tally::Tally;
use crate::tape::{self, CycleRecord, Fate, Input, MachineFacts, Ordered, Reasons};

/// For how many needs a runner-up is looked for in one cycle, so that a fleet that is built up is not held up. Actions of
/// one need share it. What is left out follows from a replay.
const NEEDS_EXPLAINED: usize = 64;
/// How many of the actions there was no room for are listed in a record.
const LISTED_WITHOUT_ROOM: usize = 100;

/// The parts of a cycle, for whoever measures them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Gangs that cannot be assembled were parked.
    Park,
    /// A step of the engine.
    Engine(bigfleet_engine::Step),
    /// Rails were applied and actions begun.
    Execute,
    /// Shortfalls and stuck gangs were written down.
    Account,
    /// Clusters were told what there is to have.
    Hint,
    /// The cycle was recorded.
    Record,
}

impl Phase {
    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Park => "park",
            Self::Engine(step) => step.name(),
            Self::Execute => "execute",
            Self::Account => "account",
            Self::Hint => "hint",
            Self::Record => "record",
        }
    }
}

/// Why an action of the last decision was chosen, and what its runner-up was then.
#[derive(Clone, Debug)]
pub(crate) struct Explained {
    why: ActionExplanation,
    runner_up: Option<Box<MachineFacts>>,
}

/// The places of actions that are put on the record: of those there was no room for, only the first.
fn listed(fates: &[Fate]) -> Vec<usize> {
    let mut room = LISTED_WITHOUT_ROOM;
    let is_listed = |index: &usize| {
        if !matches!(fates[*index], Fate::OverBound | Fate::NoPlace) {
            return true;
        }
        let is_within = room > 0;
        room -= usize::from(is_within);
        is_within
    };
    (0..fates.len()).filter(is_listed).collect()
}

impl Shard {
    /// Runs one cycle.
    pub(crate) fn run_cycle(&mut self, now: i64, step: &mut Step, probe: &mut dyn FnMut(Phase)) {
        let mut reasons = std::mem::take(&mut self.news);
        reasons.tick = reasons == Reasons::default();
        self.cycle += 1;
        self.last_cycle = Some(now);
        self.count_reasons(reasons);

        // 1. Park gangs that cannot be assembled.
        let coming = self.coming();
        let parked = self.parking.before(&coming, &mut self.engine, self.cycle);
        self.journal.note_all(parked);
        probe(Phase::Park);

        // 2. Decide: normalise, assign, preempt, reclaim and release.
        let options = self.options();
        let decision = self.engine.cycle_probed(&options, now, &mut |step| probe(Phase::Engine(step)));
        let same = self.decision.as_ref().is_some_and(|last| Arc::ptr_eq(last, &decision));
        self.tally.quiet_cycles += u64::from(same);
        self.decision = Some(decision.clone());

        // 3. Keep what it was decided on. From here on machines change, for the next cycle to see: what is called off already does.
        let inputs = self.journal.take_inputs();
        let full = (self.config.record && self.journal.takes_whole()).then(|| self.whole_input());

        // 4. Apply the rails, explain while the engine still shows what it decided on, then begin.
        if !same {
            self.cancel_unwanted(now, step);
        }
        self.drop_stale_proposals(&decision, now, step);
        let replacing = self.replacing(&decision, now);
        let fates = self.rehearse_replacing(&decision, &replacing, now);
        let listed = listed(&fates);
        if !same {
            self.explained.clear();
        }
        self.explain(&decision, &listed);
        let machine = |index: &usize| {
            let slot = self.table.find(&decision.actions[*index].machine)?;
            Some(self.table.row(slot).machine.clone())
        };
        let machines: Vec<Option<Arc<Machine>>> = listed.iter().map(machine).collect();
        self.propose_those_who_ask(&decision, &fates, &listed, &machines, now, step);
        let (fates, mut approvers) = self.execute(&decision, fates, now, step);
        let bought = replacing.all.iter().copied().filter(|index| fates[*index] == Fate::Begun);
        self.note_replacements(&decision, bought, now, step);
        probe(Phase::Execute);

        // 5. Write down who is short, and since when.
        let facts_before = step.facts.len();
        if !same {
            self.ledger.take(&self.engine, self.cycle, now, step);
            let cleared = self.parking.look(&mut self.engine, self.cycle);
            self.journal.note_all(cleared);
        }
        probe(Phase::Account);

        // 6. Tell clusters what there is to have.
        self.hint(!same, now, step);
        probe(Phase::Hint);

        // 7. Record it, if it changed anything.
        let begun = fates.contains(&Fate::Begun);
        let look = self.config.record.then(|| self.look_around(&inputs, full.as_deref(), now));
        let is_news = look.as_ref().is_some_and(|look| look.is_news);
        if begun || !inputs.is_empty() || !same || is_news {
            let around = look.map(|look| {
                let mut around = look.around;
                self.look_at_ledger(&mut around, step, facts_before);
                self.journal.said.take(&around);
                around
            });
            step.facts.push(Fact::Cycle(self.cycle));
            let order = |(index, machine): (usize, _)| {
                let approved_by = approvers.remove(&index);
                Ordered { approved_by, ..self.ordered(&decision, index, fates[index], machine) }
            };
            let actions = listed.into_iter().zip(machines).map(order);
            let record = Arc::new(CycleRecord {
                cycle: self.cycle,
                epoch: self.config.epoch,
                edition: bigfleet_engine::EDITION,
                now_unix_nanos: now,
                reasons,
                inputs: if full.is_some() { Vec::new() } else { inputs },
                full: full.map(Arc::new),
                options,
                actions: actions.collect(),
                decided: decision.actions.len() as u32,
                digest: tape::digest(&decision.actions),
                usd_per_hour: self.money.spend().usd_per_hour(),
                short_needs: self.ledger.len() as u32,
                around,
            });
            self.journal.keep(&record);
            if self.config.record {
                step.effects.push(Effect::Record(record));
            }
        }
        probe(Phase::Record);
    }

    /// Parks on a copy of the engine whom the next cycle would park, so that the copy decides what that cycle would.
    pub fn park_on(&self, copy: &mut Fleet) {
        let cycle = self.cycle + 1;
        self.parking.clone().before(&self.coming(), copy, cycle);
    }

    /// The gangs that are parked, and the cycle in which each may try again.
    pub fn next_tries(&self) -> BTreeMap<NeedKey, u64> {
        let parked = self.parking.parked();
        parked.filter_map(|key| Some((key.clone(), self.parking.get(key)?.next_try(self.cycle)?))).collect()
    }

    /// The needs for which machines are being made or bound right now; nobody asks unless a gang is about to be parked.
    fn coming(&self) -> BTreeSet<NeedKey> {
        if !self.parking.is_about_to_park(self.cycle) && !self.parking.is_about_to_park(self.cycle + 1) {
            return BTreeSet::new();
        }
        let machines = self.table.iter().map(|(_, row)| &row.machine);
        let on_the_way = machines.filter(|machine| {
            let state = matches!(machine.state, MachineState::Creating | MachineState::Configuring);
            state && !machine.assigned.fingerprint.is_empty()
        });
        let key = |machine: &Arc<Machine>| NeedKey {
            cluster: match &*machine.assigned.cluster {
                "" => Arc::from(&*machine.cluster),
                _ => machine.assigned.cluster.clone(),
            },
            fingerprint: machine.assigned.fingerprint.clone(),
            group: machine.assigned.group.clone(),
        };
        on_the_way.map(key).collect()
    }

    fn count_reasons(&mut self, reasons: Reasons) {
        self.tally.cycles += 1;
        let all = [
            (reasons.tick, "tick"),
            (reasons.demand, "demand"),
            (reasons.supply, "supply"),
            (reasons.command, "command"),
            (reasons.leftover, "leftover"),
        ];
        for (_, name) in all.into_iter().filter(|(is, _)| *is) {
            Tally::bump(&mut self.tally.cycle_reasons, name);
        }
    }

    /// Works out the rule of each action at these places, and the runner-up as far as the bound goes. What was worked out
    /// for the same decision before stays: it may be begun many cycles after it was decided.
    fn explain(&mut self, decision: &Decision, listed: &[usize]) {
        if self.explained.len() == listed.len() && listed.iter().all(|at| self.explained.contains_key(at)) {
            return;
        }
        let options = self.options();
        let mut explainer = self.engine.explainer(&options);
        let mut explained = std::mem::take(&mut self.explained);
        for index in listed {
            if explained.contains_key(index) {
                continue;
            }
            let action = &decision.actions[*index];
            let within = self.config.record && explainer.needs_looked_at() < NEEDS_EXPLAINED;
            let why = if within { explainer.explain(action) } else { explainer.brief(action) };
            let Some(why) = why else { continue };
            let next = why.runner_up.as_ref().and_then(|next| self.table.find(&next.machine));
            let runner_up = next.map(|slot| Box::new(MachineFacts::from(&*self.table.row(slot).machine)));
            explained.insert(*index, Explained { why, runner_up });
        }
        self.explained = explained;
    }

    /// An action of this decision as it goes on the record.
    fn ordered(
        &self,
        decision: &Decision,
        index: usize,
        fate: Fate,
        machine: Option<Arc<Machine>>,
    ) -> Ordered {
        let explained = self.explained.get(&index);
        Ordered {
            action: decision.actions[index].clone(),
            fate,
            why: explained.map(|explained| explained.why.clone()),
            machine,
            runner_up: explained.and_then(|explained| explained.runner_up.clone()),
            approved_by: None,
        }
    }

    /// Proposes the actions that only lack a yes.
    fn propose_those_who_ask(
        &mut self,
        decision: &Decision,
        fates: &[Fate],
        listed: &[usize],
        machines: &[Option<Arc<Machine>>],
        now: i64,
        step: &mut Step,
    ) {
        let asks = listed.iter().zip(machines).filter(|(index, _)| fates[**index] == Fate::AwaitsApproval);
        let asks = asks
            .map(|(index, machine)| self.ordered(decision, *index, Fate::AwaitsApproval, machine.clone()));
        let asks: Vec<Ordered> = asks.collect();
        if !asks.is_empty() {
            self.propose(asks, now, step);
        }
    }

    /// Begins what the rails let through: preemptions first, reclaims last. Also who approved what was begun, by its place.
    fn execute(
        &mut self,
        decision: &Decision,
        mut fates: Vec<Fate>,
        now: i64,
        step: &mut Step,
    ) -> (Vec<Fate>, BTreeMap<usize, Box<str>>) {
        let mut approvers = BTreeMap::new();
        let mut reclaimed: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        let acquires = decision.actions.iter().any(take_back::acquires);
        let mut leaving = if acquires { self.leaving() } else { take_back::Leaving::new() };
        for index in rails::in_order(decision) {
            let action = &decision.actions[index];
            if fates[index] == Fate::Begun {
                fates[index] = if self.take_back(action, &mut leaving, now, step) {
                    Fate::TakenBack
                } else {
                    self.begin(action, now, step)
                };
            }
            if fates[index] == Fate::Begun
                && let Some(author) = self.note_begun(action, step)
            {
                approvers.insert(index, author);
            }
            if let (Fate::Begun, ActionKind::Reclaim, Some(cluster)) =
                (fates[index], action.kind, &action.cluster)
            {
                *reclaimed.entry(cluster.clone()).or_default() += 1;
            }
            Tally::bump(&mut self.tally.actions, (action.kind, fates[index]));
        }
        for (name, count) in reclaimed {
            self.note_reclaims(name, count, now, step);
        }
        // What the bounds left over is wanted as much as what they let through.
        self.news.leftover |= fates.iter().any(|fate| matches!(fate, Fate::OverBound | Fate::NoPlace));
        (fates, approvers)
    }

    fn note_reclaims(&mut self, name: Arc<str>, count: u32, now: i64, step: &mut Step) {
        let since = now - self.config.rails.reclaim_window;
        let cluster = self.clusters.entry(name.clone()).or_default();
        cluster.reclaims.retain(|(at, _)| *at > since);
        cluster.reclaims.push((now, count));
        if self.config.has(Bug::ReclaimsForgotten) {
            return;
        }
        step.facts.push(Fact::Reclaims(name, Some(cluster.reclaims.clone())));
    }

    /// Everything the engine knows, as inputs.
    fn whole_input(&self) -> Vec<Input> {
        let machines = self.table.iter().filter(|(_, row)| row.shown);
        let machines = machines.map(|(_, row)| Input::Observe(row.machine.clone()));
        let demand = self.clusters.iter().filter(|(_, cluster)| !cluster.demand.is_empty());
        let demand = demand.map(|(name, cluster)| Input::Replace {
            cluster: name.clone(),
            needs: cluster.demand.clone(),
            at_unix_nanos: cluster.changed_unix_nanos,
        });
        let parked = self.parking.parked().map(|key| Input::Park { key: key.clone(), parked: true });
        machines.chain(demand).chain(parked).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_those_without_room_as_many_are_listed_as_is_said() {
        let most = LISTED_WITHOUT_ROOM;
        assert_eq!(listed(&vec![Fate::NoPlace; most + 1]), (0..most).collect::<Vec<_>>());
        let mixed = [vec![Fate::OverBound; most + 5], vec![Fate::Begun; 2]].concat();
        let places: Vec<usize> = (0..most).chain(most + 5..most + 7).collect();
        assert_eq!(listed(&mixed), places, "all that had room");
    }
}
