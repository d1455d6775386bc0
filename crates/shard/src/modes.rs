//! Modes: what may be executed without asking, by cluster and kind of action, and the proposals that wait for a yes.
//!
//! A pause is for minutes and holds still; a mode is how much the shard is trusted with. In *observe* nothing is executed; in
//! *approve* each action waits as a [`Proposal`] until somebody says yes; in *auto* what the rails let through is begun.
//! Both orders and proposals are facts: they are on disk before anything follows from them, so that neither a restart nor
//! a new life executes what nobody approved.
//!
//! An approval is for one action: this kind, on this machine, for this need, at about this price. It ends when the action
//! does, when a cycle no longer wants it, and when it is not used in time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_engine::{Action, ActionKind, Decision};
use bigfleet_model::machine::MachineState;
use bigfleet_model::need::NeedKey;

use crate::effect::Step;
use crate::flight::Flight;
use crate::memory::{Fact, PauseScope};
use crate::pauses::CommandError;
use crate::planted::Bug;
use crate::shard::Shard;
use crate::table::Slot;
use crate::tape::{Fate, Ordered};

/// How many orders about modes may be in force.
pub const MOST_MODES: usize = 10_000;

/// How many proposals may wait at once; what is beyond them is proposed when others are gone.
pub const MOST_PROPOSALS: usize = 10_000;

/// An approval is good up to the price that was shown and a tenth.
const DEARER: f64 = 1.1;

/// How much of what is decided is executed, from the freest to the strictest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// What the rails let through.
    #[default]
    Auto,
    /// What somebody approved, and the rails let through.
    Approve,
    /// Nothing.
    Observe,
}

impl Mode {
    /// All of them, from the freest to the strictest.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Approve, Self::Observe];

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Approve => "approve",
            Self::Observe => "observe",
        }
    }
}

/// Somebody's order about a mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeOrder {
    /// Which.
    pub mode: Mode,
    /// Why.
    pub reason: Box<str>,
    /// Who.
    pub author: Box<str>,
    /// Since when.
    pub since_unix_nanos: i64,
}

/// An action that waits for somebody to say yes, or that somebody said yes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// Its number, unlike that of any other that waits.
    pub id: u32,
    /// What to do.
    pub kind: ActionKind,
    /// The cluster that gets the machine, or loses it.
    pub cluster: Option<Arc<str>>,
    /// The need it is for.
    pub need: Option<NeedKey>,
    /// What the machine cost when it was proposed.
    pub usd_per_hour: f64,
    /// The cycle that proposed it.
    pub cycle: u64,
    /// Since when.
    pub since_unix_nanos: i64,
    /// When it is proposed anew, if it is still wanted then.
    pub until_unix_nanos: i64,
    /// Who said yes, and when.
    pub approved: Option<(Box<str>, i64)>,
    /// It was begun and is not at its end yet.
    pub begun: bool,
}

/// A proposal with what is shown of it.
#[derive(Clone, Debug)]
pub struct Standing {
    /// What is kept on disk.
    pub proposal: Proposal,
    /// The action as the cycle decided it; none until the first cycle of a life has seen it again.
    pub ordered: Option<Ordered>,
}

/// Orders by scope.
pub(crate) type Modes = BTreeMap<PauseScope, ModeOrder>;

/// Proposals by machine: no cycle wants two things of one machine.
pub(crate) type Proposals = BTreeMap<Box<str>, Standing>;

impl Proposal {
    fn is_of(&self, action: &Action) -> bool {
        self.kind == action.kind && self.cluster == action.cluster && self.is_for(action)
    }

    fn is_for(&self, action: &Action) -> bool {
        self.need == action.need.as_ref().map(|demand| demand.need.key())
    }

    /// Whether an action is the second half of what was begun: creating a machine for a need and binding it are one
    /// action in two halves.
    fn goes_on_with(&self, action: &Action) -> bool {
        let halves = (ActionKind::Provision, ActionKind::Bootstrap);
        self.begun && (self.kind, action.kind) == halves && self.is_for(action)
    }

    /// Whether a flight is what was approved: the action itself, or the second half of a Provision.
    fn covers(&self, flight: &Flight) -> bool {
        let key = flight.need.as_ref().map(|demand| demand.need.key());
        let is_second_half = (self.kind, flight.kind) == (ActionKind::Provision, ActionKind::Bootstrap);
        // A drain that a life before had announced no longer knows its need.
        (self.kind == flight.kind || is_second_half) && (key.is_none() || self.need == key)
    }
}

/// The clusters an action touches: the one that gets the machine or loses it, and the one it is for.
fn touches(action: &Action) -> [Option<&str>; 2] {
    let gets = action.need.as_ref().map(|demand| &*demand.need.cluster);
    [action.cluster.as_deref(), gets]
}

impl Shard {
    /// The mode of one kind of action in one cluster; of none for what belongs to no cluster. The narrowest order counts.
    pub fn mode_of(&self, kind: Option<ActionKind>, cluster: Option<&str>) -> Mode {
        self.mode_order(kind, cluster).map_or(self.config.rails.mode, |order| order.mode)
    }

    /// The order that decides it, if there is one.
    pub fn mode_order(&self, kind: Option<ActionKind>, cluster: Option<&str>) -> Option<&ModeOrder> {
        let find = |cluster: Option<&str>, kind| {
            self.modes.get(&PauseScope { cluster: cluster.map(Arc::from), kind })
        };
        let of_cluster = cluster.and_then(|_| find(cluster, kind).or_else(|| find(cluster, None)));
        of_cluster.or_else(|| find(None, kind)).or_else(|| find(None, None))
    }

    /// The stricter of the modes of those whom an action touches.
    fn mode_for(&self, kind: ActionKind, clusters: [Option<&str>; 2]) -> Mode {
        if self.modes.is_empty() {
            return self.config.rails.mode;
        }
        let mut modes = clusters.iter().flatten().map(|cluster| self.mode_of(Some(kind), Some(cluster)));
        let first = modes.next().unwrap_or_else(|| self.mode_of(Some(kind), None));
        modes.fold(first, Mode::max)
    }

    /// Orders in force.
    pub fn modes(&self) -> &BTreeMap<PauseScope, ModeOrder> {
        &self.modes
    }

    /// Proposals, and what was approved and is under way, by machine.
    pub fn proposals(&self) -> &BTreeMap<Box<str>, Standing> {
        &self.proposals
    }

    /// Sets the mode of a scope, or with none takes the order back.
    pub fn set_mode(
        &mut self,
        scope: &PauseScope,
        order: Option<ModeOrder>,
        step: &mut Step,
    ) -> Result<(), CommandError> {
        if let Some(order) = &order {
            if order.reason.trim().is_empty() {
                return Err(CommandError::NoReason);
            }
            if self.modes.len() >= MOST_MODES && !self.modes.contains_key(scope) {
                return Err(CommandError::TooManyModes);
            }
        }
        let is_new = order.clone();
        match order {
            Some(order) => drop(self.modes.insert(scope.clone(), order)),
            None if self.modes.remove(scope).is_none() => {
                return Err(CommandError::NoSuchMode(crate::pauses::name(scope)));
            }
            None => {}
        }
        if !self.config.has(Bug::ModeForgotten) {
            step.facts.push(Fact::Mode(scope.clone(), is_new));
        }
        self.news.command = true;
        self.modes_changed = true;
        Ok(())
    }

    /// Calls off what is under way and no longer allowed, as far as no provider has heard of it: clusters that let go of a
    /// machine are told at once that it stays.
    pub(crate) fn call_off(&mut self, now: i64, step: &mut Step) {
        if !std::mem::take(&mut self.modes_changed) {
            return;
        }
        let in_line = self.moves.line().map(|(_, _, slot)| *slot);
        let slots: BTreeSet<Slot> = self.moves.waiting().chain(in_line).collect();
        for slot in slots {
            if !self.may_go_on(slot) {
                self.roll_back(slot, "mode", now, step);
            }
        }
    }

    /// Says yes to proposals. All of them or none: those that do not wait any more are named.
    pub fn approve(
        &mut self,
        ids: &[u32],
        author: &str,
        now: i64,
        step: &mut Step,
    ) -> Result<Vec<Box<str>>, CommandError> {
        let waits = |standing: &&Standing| {
            standing.proposal.approved.is_none() && now < standing.proposal.until_unix_nanos
        };
        let machines: BTreeMap<u32, Box<str>> = self
            .proposals
            .iter()
            .filter(|(_, standing)| waits(standing))
            .map(|(machine, standing)| (standing.proposal.id, machine.clone()))
            .collect();
        if let Some(gone) = ids.iter().find(|id| !machines.contains_key(id)) {
            return Err(CommandError::NoSuchProposal(*gone));
        }
        let mut approved = Vec::new();
        for id in ids.iter().collect::<BTreeSet<_>>() {
            let machine = &machines[id];
            let Some(standing) = self.proposals.get_mut(machine) else { continue };
            standing.proposal.approved = Some((author.into(), now));
            step.facts.push(Fact::Proposal(machine.clone(), Some(standing.proposal.clone())));
            approved.push(machine.clone());
        }
        self.news.command = true;
        Ok(approved)
    }

    /// Why an action may not be executed, as far as its mode goes.
    pub(crate) fn not_allowed(&self, action: &Action, now: i64) -> Option<Fate> {
        match self.mode_for(action.kind, touches(action)) {
            Mode::Auto => None,
            Mode::Observe => Some(Fate::Observed),
            Mode::Approve => (!self.is_approved(action, now)).then_some(Fate::AwaitsApproval),
        }
    }

    fn is_approved(&self, action: &Action, now: i64) -> bool {
        let Some(Standing { proposal, .. }) = self.proposals.get(&action.machine) else { return false };
        if proposal.begun {
            return proposal.goes_on_with(action);
        }
        let is_yes = proposal.approved.is_some() || self.config.has(Bug::ProposalsApproved);
        is_yes && now < proposal.until_unix_nanos && proposal.is_of(action)
    }

    /// Whether a flight may go on: the mode may have changed since it began. What the provider was called for is seen through.
    pub(crate) fn may_go_on(&self, slot: Slot) -> bool {
        let row = self.table.row(slot);
        let Some(flight) = row.flight.as_ref().filter(|flight| flight.tries == 0) else { return true };
        let gets = flight.need.as_ref().map(|demand| &*demand.need.cluster);
        match self.mode_for(flight.kind, [flight.cluster.as_deref(), gets]) {
            Mode::Auto => true,
            Mode::Observe => false,
            Mode::Approve => self
                .proposals
                .get(&row.machine.id)
                .is_some_and(|standing| standing.proposal.begun && standing.proposal.covers(flight)),
        }
    }

    /// Drops proposals that no longer are what this cycle would do, and approvals whose action is over.
    pub(crate) fn drop_stale_proposals(&mut self, decision: &Decision, now: i64, step: &mut Step) {
        if self.proposals.is_empty() {
            return;
        }
        let mut wanted: BTreeMap<&str, &Action> = BTreeMap::new();
        for action in &decision.actions {
            if self.proposals.contains_key(&action.machine) {
                wanted.insert(&action.machine, action);
            }
        }
        let is_over = |machine: &str, proposal: &Proposal| {
            let row = self.table.find(machine).map(|slot| self.table.row(slot));
            if proposal.begun {
                let goes_on = wanted.get(machine).is_some_and(|action| proposal.goes_on_with(action));
                return !goes_on
                    && row.is_none_or(|row| row.flight.is_none() && !is_moving(row.machine.state));
            }
            let price = row.map_or(f64::INFINITY, |row| row.machine.price_usd_per_hour);
            let is_dearer = proposal.kind == ActionKind::Provision && price > proposal.usd_per_hour * DEARER;
            let action = wanted.get(machine).filter(|action| proposal.is_of(action));
            let is_asked = |action: &&Action| self.mode_for(action.kind, touches(action)) == Mode::Approve;
            now >= proposal.until_unix_nanos || is_dearer || !action.is_some_and(is_asked)
        };
        let over = self.proposals.iter().filter(|(machine, standing)| is_over(machine, &standing.proposal));
        let over: Vec<Box<str>> = over.map(|(machine, _)| machine.clone()).collect();
        for machine in over {
            self.proposals.remove(&machine);
            step.facts.push(Fact::Proposal(machine, None));
        }
    }

    /// Proposes what only lacks a yes.
    pub(crate) fn propose(&mut self, awaiting: Vec<Ordered>, now: i64, step: &mut Step) {
        let mut ids: BTreeSet<u32> = BTreeSet::new();
        for ordered in awaiting {
            let action = &ordered.action;
            if let Some(standing) = self.proposals.get_mut(&action.machine) {
                standing.ordered.get_or_insert(ordered);
                continue;
            }
            if self.proposals.len() >= MOST_PROPOSALS {
                return;
            }
            if ids.is_empty() {
                ids.extend(self.proposals.values().map(|standing| standing.proposal.id));
            }
            let machine = action.machine.clone();
            let proposal = Proposal {
                id: new_id(&mut ids, action, now),
                kind: action.kind,
                cluster: action.cluster.clone(),
                need: action.need.as_ref().map(|demand| demand.need.key()),
                usd_per_hour: ordered.machine.as_ref().map_or(0.0, |m| m.price_usd_per_hour),
                cycle: self.cycle,
                since_unix_nanos: now,
                until_unix_nanos: now.saturating_add(self.config.rails.proposal_life),
                approved: None,
                begun: false,
            };
            step.facts.push(Fact::Proposal(machine.clone(), Some(proposal.clone())));
            self.proposals.insert(machine, Standing { proposal, ordered: Some(ordered) });
        }
    }

    /// Notes that what was approved is under way, and who approved it.
    pub(crate) fn note_begun(&mut self, action: &Action, step: &mut Step) -> Option<Box<str>> {
        let standing = self.proposals.get_mut(&action.machine)?;
        let proposal = &mut standing.proposal;
        if !proposal.goes_on_with(action) {
            if !proposal.is_of(action) {
                return None;
            }
            proposal.begun = true;
            step.facts.push(Fact::Proposal(action.machine.clone(), Some(proposal.clone())));
        }
        proposal.approved.as_ref().map(|(author, _)| author.clone())
    }
}

/// A number for a proposal. One that is proposed anew gets another, so that a yes to the old one is none to the new.
fn new_id(ids: &mut BTreeSet<u32>, action: &Action, now: i64) -> u32 {
    let mixed = crate::tape::digest(std::slice::from_ref(action)) ^ now.cast_unsigned();
    let mut id = ((mixed ^ mixed >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
    while !ids.insert(id) {
        id = id.wrapping_add(1);
    }
    id
}

fn is_moving(state: MachineState) -> bool {
    matches!(
        state,
        MachineState::Creating | MachineState::Configuring | MachineState::Draining | MachineState::Deleting
    )
}
