//! The one place where a machine changes: everything kept about it follows from here.
//!
//! Counts, bills, the cluster's list, watchdogs, what is on disk, what the engine sees and what the cluster is told all
//! hang on the machine's state. They are brought in line together or not at all.

use std::sync::Arc;

use bigfleet_engine::{ActionKind, Observed};
use bigfleet_model::backoff::Backoff;
use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::{Machine, MachineState};

use crate::config::MINUTE;
use crate::effect::{Effect, Frame, Step, Urgency};
use crate::memory::{Fact, LettingGo, MachineMemo};
use crate::planted::Bug;
use crate::purchase::counts_for;
use crate::shard::Shard;
use crate::table::{Care, Row, Slot};
use crate::tally::Tally;
use crate::tape::Input;
use crate::timers::Timer;

/// Whose doing a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hand {
    /// An order of ours, or its end.
    Ours,
    /// Its provider said so.
    Theirs,
}

impl Shard {
    /// Makes `machine` our view of the machine in `slot` by our own hand: an order of ours, or its end. Its provider's
    /// last word is not forgotten, but it no longer says what the row says, so it must be compared again.
    pub(crate) fn overwrite(&mut self, slot: Slot, machine: Machine, now: i64, step: &mut Step) {
        let said = self.table.row(slot).told;
        self.table.heard(slot).digest = 0;
        self.change(slot, machine, said, Hand::Ours, now, step);
    }

    /// Makes `machine` our view of the machine in `slot` by its provider's word. `said` is the state it told.
    pub(crate) fn put(
        &mut self,
        slot: Slot,
        machine: Machine,
        said: MachineState,
        now: i64,
        step: &mut Step,
    ) {
        self.change(slot, machine, said, Hand::Theirs, now, step);
    }

    fn change(
        &mut self,
        slot: Slot,
        machine: Machine,
        said: MachineState,
        hand: Hand,
        now: i64,
        step: &mut Step,
    ) {
        let row = self.table.row_mut(slot);
        row.told = said;
        if *row.machine == machine {
            self.remember(slot, step);
            self.show(slot);
            return;
        }
        let was = row.machine.clone();
        let machine = Arc::new(machine);
        let moved = was.state != machine.state || was.cluster != machine.cluster;
        self.end_count(slot);
        let row = self.table.row_mut(slot);
        row.machine = machine.clone();
        if moved {
            row.since = now;
            row.care = match (&row.care, machine.state) {
                (Care::Fenced, _) => Care::Fenced,
                (Care::Failed { tries }, MachineState::Failed) => Care::Failed { tries: *tries },
                // What its provider takes back again and again is asked about less and less often.
                (_, MachineState::Failed) => Care::Failed { tries: row.words.disputes.into() },
                _ => Care::Fine,
            };
            if !was.state.is_transitional() && !machine.state.is_transitional()
                || machine.state == MachineState::Configured
            {
                row.refusals = 0;
            }
        }
        self.begin_count(slot);
        if hand == Hand::Theirs {
            self.lost_by_word(slot, &was, &machine, now, step);
        }
        if moved && !was.state.may_order(machine.state) && was.cluster == machine.cluster {
            self.tally.unsolicited += 1;
        }
        self.tell_clusters(&was, &machine, step);
        if moved {
            self.note_for_quotas();
            self.set_watch(slot, now);
        }
        self.remember(slot, step);
        self.show(slot);
    }

    /// Lets everybody know of a machine that is new to us and in its row already.
    pub(crate) fn met(&mut self, slot: Slot, machine: &Arc<Machine>, step: &mut Step) {
        if !machine.cluster.is_empty() {
            self.tell_cluster(&machine.cluster, machine.clone(), step);
        }
        self.remember(slot, step);
        self.show(slot);
    }

    /// Counts what a cluster lost by a provider's word: a bound machine that is no longer there for it, or is no longer
    /// what the need that counted on it asks for.
    fn lost_by_word(&mut self, slot: Slot, was: &Machine, machine: &Machine, now: i64, step: &mut Step) {
        let served = matches!(was.state, MachineState::Configured | MachineState::Configuring);
        let serves = machine.state.is_bound() && machine.cluster == was.cluster;
        let provider = self.table.row(slot).provider;
        if !served {
            return;
        }
        if serves {
            if self.is_worth_less(was, machine) {
                self.note_loss(was, provider, now, step);
            }
            return;
        }
        let how = match machine.state {
            MachineState::Failed => "failed",
            MachineState::Idle => "unbound",
            _ => "gone",
        };
        Tally::bump(&mut self.tally.lost, how);
        let text = format!(
            "machine {} of cluster {} is {} although nobody ordered it{}; the cluster's demand is met anew",
            machine.id,
            was.cluster,
            machine.state,
            if machine.last_error.is_empty() { String::new() } else { format!(" ({})", machine.last_error) },
        );
        Self::say(step, Urgency::Warning, "machine_lost", text);
        self.note_loss(was, provider, now, step);
    }

    /// Whether the need that counts on a machine loses by what it has become.
    fn is_worth_less(&self, was: &Machine, machine: &Machine) -> bool {
        let facts =
            |m: &Machine| (m.labels.clone(), m.instance_type.clone(), m.zone.clone(), m.capacity_type);
        if was.provides() == machine.provides() && facts(was) == facts(machine) {
            return false;
        }
        self.engine.demand_claiming(&was.id).is_some_and(|demand| {
            let shrank = |(name, amount): (&_, u64)| {
                machine.provides().get(name) < amount.min(was.provides().get(name))
            };
            !counts_for(machine, &demand.need) || demand.need.aggregate.iter().any(shrank)
        })
    }

    /// Adds a row to all counts.
    pub(crate) fn begin_count(&mut self, slot: Slot) {
        let row = self.table.row(slot);
        let cluster = self.cluster_name(&row.machine);
        self.money.count(&row.machine, cluster.as_ref(), 1);
        if let Some(name) = cluster {
            let cluster = self.clusters.entry(name).or_default();
            cluster.bound.insert(slot);
            cluster.configured += usize::from(row.machine.state == MachineState::Configured);
        }
    }

    /// Takes a row out of all counts.
    pub(crate) fn end_count(&mut self, slot: Slot) {
        let row = self.table.row(slot);
        let name = self.cluster_name(&row.machine);
        if !(self.config.has(Bug::BillLeaks) && row.machine.state == MachineState::Draining) {
            self.money.count(&row.machine, name.as_ref(), -1);
        }
        if let Some(cluster) = name.and_then(|name| self.clusters.get_mut(&name)) {
            cluster.bound.remove(&slot);
            cluster.configured -= usize::from(row.machine.state == MachineState::Configured);
        }
    }

    /// The cluster a machine is bound to, by the name everybody shares.
    fn cluster_name(&self, machine: &Machine) -> Option<Arc<str>> {
        if machine.cluster.is_empty() || !machine.state.is_bound() {
            return None;
        }
        let known = self.clusters.get_key_value(&*machine.cluster).map(|(name, _)| name.clone());
        Some(known.unwrap_or_else(|| Arc::from(&*machine.cluster)))
    }

    /// Sets the watchdog of a machine that entered its state, and the first question about one that failed.
    pub(crate) fn set_watch(&mut self, slot: Slot, now: i64) {
        self.may_move(slot);
        let row = self.table.row(slot);
        if let Some(limit) = self.config.patience.watch(row.machine.state) {
            self.timers.set(row.since + limit, Timer::Watch(slot, row.since));
        }
        if let Care::Failed { tries } = row.care {
            let wait = self.config.patience.failed_wait(tries);
            self.timers.set(now + wait, Timer::Ask(slot, row.since));
        }
    }

    /// Writes down what must survive, if it changed.
    pub(crate) fn remember(&mut self, slot: Slot, step: &mut Step) {
        let row = self.table.row_mut(slot);
        let mut memo = memo_of(row);
        if self.config.has(Bug::OnOrderForgotten) {
            memo = memo.map(|memo| MachineMemo { creating_for: None, ..memo });
        }
        if self.config.has(Bug::DrainForgotten) {
            memo = memo.map(|memo| MachineMemo { letting_go: None, draining_for: None, ..memo });
        }
        if memo.as_ref() != row.memo.as_deref() {
            step.facts.push(Fact::Machine(row.machine.id.clone(), memo.clone()));
            row.memo = memo.map(Box::new);
        }
    }

    /// Lets the engine see a machine, or not.
    pub(crate) fn show(&mut self, slot: Slot) {
        let is_promised = self.owned.promised.contains_key(&slot);
        let row = self.table.row_mut(slot);
        let is_free_for_others = is_promised && row.machine.state == MachineState::Idle;
        let is_shown = (row.care.is_shown(row.machine.state)
            || self.config.has(Bug::OverdueCounted) && row.care == Care::Overdue)
            && !row.is_beyond_quota
            && !is_free_for_others;
        if is_shown {
            match self.engine.observe(&row.machine) {
                Ok(Observed::Unchanged) => row.shown = true,
                Ok(Observed::New | Observed::Changed) => {
                    row.shown = true;
                    self.news.supply = true;
                    self.journal.note(Input::Observe(row.machine.clone()));
                }
                Err(error) => {
                    // Our own view breaks no invariant; a provider's word is checked before it is adopted. Should it
                    // happen all the same, the engine must not go on with what the machine was before.
                    debug_assert!(false, "{error}");
                    self.hide(slot);
                }
            }
        } else {
            self.hide(slot);
        }
    }

    /// Takes a machine out of the engine's sight, if it was there.
    fn hide(&mut self, slot: Slot) {
        let row = self.table.row_mut(slot);
        if std::mem::take(&mut row.shown) {
            self.engine.remove(&row.machine.id);
            self.news.supply = true;
            if self.config.has(Bug::RemovalUnrecorded) {
                return;
            }
            self.journal.note(Input::Remove(row.machine.id.clone()));
            self.news.supply = true;
        }
    }

    /// Tells the cluster that has or had a machine what it is now.
    fn tell_clusters(&self, was: &Machine, machine: &Arc<Machine>, step: &mut Step) {
        if self.config.has(Bug::FailureUntold) && machine.state == MachineState::Failed {
            return;
        }
        if !machine.cluster.is_empty() {
            self.tell_cluster(&machine.cluster, machine.clone(), step);
        }
        if was.cluster != machine.cluster && !was.cluster.is_empty() {
            let told = if machine.cluster.is_empty() {
                machine.clone()
            } else {
                // It serves somebody else. To the cluster that had it, "Configured" would mean that it stays; there is no state
                // for "gone" on the wire.
                let mut gone = Machine::clone(machine);
                (gone.state, gone.cluster) = (MachineState::Failed, "".into());
                gone.last_error = format!("machine {} is bound to another cluster", gone.id).into();
                gone.into()
            };
            self.tell_cluster(&was.cluster, told, step);
        }
    }

    pub(crate) fn tell_cluster(&self, cluster: &str, machine: Arc<Machine>, step: &mut Step) {
        if let Some(session) = self.clusters.get(cluster).and_then(|cluster| cluster.session) {
            step.effects.push(Effect::Send { session, frame: Frame::Node(machine) });
        }
    }
}

/// What must survive a crash about a machine.
fn memo_of(row: &Row) -> Option<MachineMemo> {
    let machine = &row.machine;
    let state = machine.state;
    let rented = matches!(machine.capacity_type, CapacityType::OnDemand | CapacityType::Spot);
    let letting_go = row.flight.as_ref().filter(|flight| {
        matches!(flight.kind, ActionKind::Preempt | ActionKind::Reclaim) && state == MachineState::Draining
    });
    let memo = MachineMemo {
        idle_since: machine.idle_since_unix_nanos.filter(|_| state == MachineState::Idle && rented),
        creating_for: (state == MachineState::Creating && !machine.assigned.cluster.is_empty())
            .then(|| machine.assigned.clone()),
        draining_for: machine.draining_for.clone().filter(|_| state == MachineState::Draining),
        letting_go: letting_go.map(|flight| LettingGo {
            kind: flight.kind,
            instruction: flight.instruction.0,
            until_unix_nanos: flight.grace_until_unix_nanos,
            preemptor_priority: flight.preemptor_priority,
        }),
        failed_tries: match row.care {
            Care::Failed { tries } => tries,
            Care::Quarantined => u32::MAX,
            _ => 0,
        },
        since: state.is_transitional().then_some(row.since),
    };
    (!memo.is_empty()).then_some(memo)
}

impl crate::config::Patience {
    /// How long a machine may stay in a state.
    fn watch(&self, state: MachineState) -> Option<i64> {
        match state {
            MachineState::Creating => Some(self.creating),
            MachineState::Configuring => Some(self.configuring),
            // The longest grace comes first.
            MachineState::Draining => Some(self.draining + 10 * MINUTE),
            MachineState::Deleting => Some(self.deleting),
            _ => None,
        }
    }

    /// How long to wait before a failed machine is asked about again.
    pub(crate) fn failed_wait(&self, tries: u32) -> i64 {
        Backoff { first: self.retry_most, limit: 30 * MINUTE }.after(tries.saturating_add(1))
    }
}
