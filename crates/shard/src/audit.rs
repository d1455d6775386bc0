//! The shard's books against one another. For tests and the simulator: no part of the work calls it.

use std::collections::BTreeSet;

use bigfleet_model::machine::MachineState;

use crate::event::ProviderId;
use crate::flight::Stage;
use crate::money::Money;
use crate::moves::Open;
use crate::shard::Shard;
use crate::table::Slot;
use crate::timers::Timer;

impl Shard {
    /// Checks that everything kept agrees with everything else, and that every queue is within its bound. Costs as much as
    /// reading all machines.
    pub fn audit(&self) -> Result<(), String> {
        let shown = self.table.iter().filter(|(_, row)| row.shown).count();
        expect("machines the engine has", self.engine.machine_count(), shown)?;
        self.audit_flights()?;
        self.audit_clusters()?;
        let mut money = Money::default();
        for (_, row) in self.table.iter() {
            row.machine.check().map_err(|error| format!("our view of a machine: {error}"))?;
            let bound = row.machine.state.is_bound() && !row.machine.cluster.is_empty();
            let name = bound.then(|| self.clusters.get_key_value(&*row.machine.cluster)).flatten();
            if bound && name.is_none() {
                return Err(format!("machine {} is bound to a cluster nobody knows", row.machine.id));
            }
            money.count(&row.machine, name.map(|(name, _)| name), 1);
        }
        expect("bills", format!("{:?}", self.money), format!("{money:?}"))?;
        for (index, provider) in self.providers.iter().enumerate() {
            let machines = self.table.iter().filter(|(_, row)| usize::from(row.provider.0) == index).count();
            expect(&format!("machines of provider {}", provider.name), provider.machines, machines)?;
            let (id, next) = (ProviderId(index as u16), provider.next_list);
            if provider.listing.is_none() && !self.timers.has(next, Timer::List(id, next)) {
                return Err(format!("provider {} would never be listed again", provider.name));
            }
        }
        Ok(())
    }

    fn audit_flights(&self) -> Result<(), String> {
        let flights: Vec<(Slot, Stage)> =
            self.table.iter().filter_map(|(slot, row)| Some((slot, row.flight.as_ref()?.stage))).collect();
        let count = |is: fn(Stage) -> bool| flights.iter().filter(|(_, stage)| is(*stage)).count();
        expect(
            "flights with a call",
            self.moves.calling(),
            count(|stage| matches!(stage, Stage::Calling(_))),
        )?;
        expect("flights in line", self.moves.line().count(), count(|stage| stage == Stage::Queued))?;
        expect(
            "flights in the air",
            self.moves.airborne(),
            count(|stage| !matches!(stage, Stage::LettingGo(_))),
        )?;
        let most = self.config.limits.flights;
        if self.moves.calling() > most {
            return Err(format!("{} calls where {most} are allowed", self.moves.calling()));
        }
        for (slot, stage) in &flights {
            let (Stage::Calling(call) | Stage::Asking(call)) = stage else { continue };
            let open = self.moves.about(*call);
            let mine = open.is_some_and(|open| match open {
                Open::Move(of, _) | Open::Ask(of) => of == *slot,
                Open::List(_) => false,
            });
            if !mine {
                return Err(format!("a flight waits for call {call:?}, which is {open:?}"));
            }
        }
        let queued: BTreeSet<Slot> = self.moves.line().map(|(_, _, slot)| *slot).collect();
        expect("machines in line", queued.len(), self.moves.line().count())
    }

    fn audit_clusters(&self) -> Result<(), String> {
        let sessions = self.clusters.values().filter(|cluster| cluster.session.is_some()).count();
        expect("sessions", self.sessions.len(), sessions)?;
        for (name, cluster) in &self.clusters {
            let bound = |(slot, row): (Slot, &crate::table::Row)| {
                (row.machine.state.is_bound() && *row.machine.cluster == **name).then_some(slot)
            };
            let bound: BTreeSet<Slot> = self.table.iter().filter_map(bound).collect();
            expect(&format!("machines of cluster {name}"), &cluster.bound, &bound)?;
            let configured = bound
                .iter()
                .filter(|slot| self.table.row(**slot).machine.state == MachineState::Configured)
                .count();
            expect(&format!("Configured machines of cluster {name}"), cluster.configured, configured)?;
        }
        Ok(())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "callers hand in what they have just counted")]
fn expect<T: PartialEq + std::fmt::Debug>(what: &str, kept: T, counted: T) -> Result<(), String> {
    if kept == counted { Ok(()) } else { Err(format!("{what}: {kept:?} on the books, {counted:?} counted")) }
}
