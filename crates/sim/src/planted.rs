//! Bugs on purpose, to test the tester.
//!
//! Most are in the shard's own logic ([`Bug`]). The others distort what crosses its border, its configuration or its disk, so
//! that the shard behaves as if it had the bug, while the invariants go by what was really said and done. None is reachable
//! but from tests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::label::Labels;
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_shard::{BadRecord, Bug, Config, Event, Memory, Report, Reports, Rollup, Told};

use crate::scenario::RACK;

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Planted {
    /// As many machines as pods.
    PodsAreMachines,
    /// A machine serves one need after the other as if it were whole each time.
    SupplyCountedTwice,
    /// The domain of a gang is chosen anew for what is acquired.
    DomainChosenTwice,
    /// Gangs smaller than a machine are rounded up to one.
    GangsRoundedUp,
    /// Failed machines look Configured.
    DeadCounted,
    /// Machines already draining for a need are forgotten.
    PreemptionsForgotten,
    /// Each cycle has the whole reclaim cap.
    CapPerCall,
    /// Roll-ups are believed at once.
    GuardOff,
    /// A listing says again what was true before.
    StaleAdopted,
    /// Providers obey whoever calls.
    FenceIgnored,
    /// Fixed machines are taken for rented ones.
    FixedDeleted,
    /// Waiting begins anew at each start.
    AgesForgotten,
    /// Several shards: the store takes transactions of leaders that were deposed.
    LeaderUnfenced,
    /// In the shard's own logic.
    Code(Bug),
}

impl Planted {
    /// Those at the border.
    const AT_BORDER: [Self; 12] = [
        Self::PodsAreMachines,
        Self::SupplyCountedTwice,
        Self::DomainChosenTwice,
        Self::GangsRoundedUp,
        Self::DeadCounted,
        Self::PreemptionsForgotten,
        Self::CapPerCall,
        Self::GuardOff,
        Self::StaleAdopted,
        Self::FenceIgnored,
        Self::FixedDeleted,
        Self::AgesForgotten,
    ];

    /// Those that only worlds with several shards and a coordinator can show.
    pub const OF_COUNCILS: [Self; 5] = [
        Self::LeaderUnfenced,
        Self::Code(Bug::LetGoAmid),
        Self::Code(Bug::TermIgnored),
        Self::Code(Bug::GivesWhileShort),
        Self::Code(Bug::QuotaForgotten),
    ];

    /// All that worlds with one shard can show.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::AT_BORDER.into_iter().chain(Bug::ALL.into_iter().map(Self::Code))
    }

    /// Its name.
    pub fn name(self) -> String {
        match self {
            Self::Code(bug) => format!("{bug:?}"),
            border => format!("{border:?}"),
        }
    }
}

/// What the shard is told at its start.
pub(crate) fn config(bug: Planted, config: &mut Config) {
    match bug {
        Planted::CapPerCall => config.rails.reclaim_window = 0,
        Planted::GuardOff => config.guard.demand_drop = 2.0,
        Planted::Code(bug) => config.planted = Some(bug),
        _ => {}
    }
}

/// What the shard remembers at its start.
pub(crate) fn memory(bug: Planted, memory: &mut Memory) {
    match bug {
        Planted::PreemptionsForgotten => memory.machines.clear(),
        Planted::AgesForgotten => memory.shortfalls.clear(),
        _ => {}
    }
}

/// Distorts what a shard is told.
#[derive(Clone, Debug)]
pub(crate) struct Distorter {
    pub(crate) bug: Planted,
    /// Bound machines as they last were.
    bound: Arc<Mutex<BTreeMap<Box<str>, Machine>>>,
}

impl Distorter {
    pub(crate) fn new(bug: Planted) -> Self {
        Self { bug, bound: Arc::default() }
    }

    /// What the shard is told.
    pub(crate) fn event(&self, event: Event) -> Event {
        match event {
            Event::Rollup { session, rollup: Ok(prepared) } => {
                let (cluster, taken_unix_nanos) = (prepared.cluster().clone(), prepared.taken_unix_nanos());
                let mut rollup = Rollup { cluster, taken_unix_nanos, needs: prepared.needs().to_vec() };
                for need in &mut rollup.needs {
                    match self.bug {
                        Planted::PodsAreMachines => need.aggregate = need.aggregate.scale(8),
                        Planted::GangsRoundedUp if need.profile.same().is_some() => {
                            need.aggregate = need.aggregate.scale(4);
                        }
                        _ => {}
                    }
                }
                Event::of_rollup(session, Ok(rollup))
            }
            Event::Listed { call, records, end } => {
                let records = Box::new(Distorted { records, by: self.clone() });
                Event::Listed { call, records, end }
            }
            Event::Answered { call, machine: Some(Ok(mut told)) } => {
                self.distort(&mut told.machine);
                Event::Answered { call, machine: Some(Ok(told)) }
            }
            other => other,
        }
    }

    fn distort(&self, machine: &mut Machine) {
        match self.bug {
            Planted::SupplyCountedTwice if machine.state.is_bound() => {
                machine.allocatable = machine.provides().scale(2);
            }
            Planted::DomainChosenTwice
                if matches!(machine.state, MachineState::Idle | MachineState::Speculative) =>
            {
                let elsewhere = |(key, value): (&str, &str)| {
                    let value = if key == RACK { "elsewhere" } else { value };
                    (Box::<str>::from(key), Box::<str>::from(value))
                };
                let labels: Vec<(Box<str>, Box<str>)> = machine.labels.iter().map(elsewhere).collect();
                machine.labels = Labels::new(labels).unwrap_or_default();
            }
            Planted::DeadCounted => {
                let mut bound = self.bound.lock().expect("no holder panics");
                if machine.state == MachineState::Configured {
                    bound.insert(machine.id.clone(), machine.clone());
                } else if machine.state == MachineState::Failed
                    && let Some(alive) = bound.get(&machine.id)
                {
                    *machine = alive.clone();
                }
            }
            Planted::FixedDeleted => machine.capacity_type = CapacityType::Spot,
            _ => {}
        }
    }
}

struct Distorted {
    records: Box<dyn Reports>,
    by: Distorter,
}

struct One<'a> {
    report: &'a dyn Report,
    by: &'a Distorter,
}

impl Reports for Distorted {
    fn each(&self, take: &mut dyn FnMut(&dyn Report)) {
        self.records.each(&mut |report| take(&One { report, by: &self.by }));
    }
}

impl Report for One<'_> {
    fn id(&self) -> &str {
        self.report.id()
    }

    fn content(&self) -> u64 {
        match self.by.bug {
            // Whatever it says, it looks as it did.
            Planted::StaleAdopted => 1,
            _ => self.report.content(),
        }
    }

    fn read(&self) -> Result<Told, BadRecord> {
        let mut told = self.report.read()?;
        self.by.distort(&mut told.machine);
        Ok(told)
    }
}
