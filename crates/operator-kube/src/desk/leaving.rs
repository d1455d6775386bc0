//! Machines the shard wants back: whether their pods have a place elsewhere is looked at before anybody is evicted.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::resource::ResourceVec;
use bigfleet_operator::demand::RowId;
use bigfleet_operator::drain::Carried;
use bigfleet_operator::fit::{Guest, Hole, place};

use super::Desk;
use crate::seen::Help;

/// How long the shard has to change its mind before evictions begin all the same.
const PATIENCE_NANOS: i64 = 10_000_000_000;

/// Machines to look at.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    unjudged: Vec<String>,
}

impl Leaving {
    pub(super) fn judge(&mut self, machines: &[String]) {
        self.unjudged.extend_from_slice(machines);
    }
}

/// What the machines of one need look like while others leave.
struct Stage {
    holes: Vec<Hole>,
    /// What all machines that stay have, pods included.
    sum: ResourceVec,
    /// Pods that must stay where they are.
    shapes: Vec<ResourceVec>,
}

impl Desk {
    /// Looks at machines that were asked back since the last time. When to look again.
    pub(super) fn judge_leaving(&mut self, now: i64) -> i64 {
        self.picture.held.retain(|_, until| *until > now);
        let machines = std::mem::take(&mut self.leaving.unjudged);
        if !machines.is_empty() && self.has_verdicts {
            self.judge(&machines, now);
        }
        self.picture.held.values().copied().min().unwrap_or(i64::MAX)
    }

    fn judge(&mut self, machines: &[String], now: i64) {
        let mut stages: BTreeMap<RowId, Stage> = BTreeMap::new();
        let mut raised = false;
        // The shard names machines in its keep order, and when demand rises it leaves the first of them here, whichever we mean.
        // So the pods of the last are placed first: the machines whose pods find no place are those that will be left.
        for machine in machines.iter().rev() {
            let guests = self.guests(machine);
            let rows: Vec<RowId> = guests.keys().copied().collect();
            for row in &rows {
                if !stages.contains_key(row) {
                    let stage = self.stage(*row, machines);
                    stages.insert(*row, stage);
                }
            }
            let mut stays = false;
            for (row, guests) in &guests {
                let stage = stages.get_mut(row).expect("just made");
                let alone: Vec<Guest> = guests.iter().map(|(guest, _)| guest.clone()).collect();
                if !place(&mut stage.holes, &alone) {
                    stays = true;
                    stage.shapes.extend(guests.iter().map(|(_, unit)| unit.clone()));
                }
            }
            if !stays {
                continue;
            }
            let Some(joined) = self.picture.joined(machine) else { continue };
            for row in &rows {
                let stage = stages.get_mut(row).expect("just made");
                stage.sum = stage.sum.add(&joined.allocatable);
                stage.holes.push(Hole { free: joined.free.clone(), owners: self.picture.owners_on(machine) });
            }
            tracing::info!(machine, "its pods have no other place; the shard is asked to leave it");
            self.picture.held.insert(machine.clone(), now.saturating_add(PATIENCE_NANOS));
        }
        for (row, stage) in &stages {
            raised |= !stage.shapes.is_empty()
                && self.reserves.keep(*row, &mut self.demand, &stage.sum, &stage.shapes);
        }
        if raised {
            self.metrics.revision("kept");
            self.rollups.soon(now);
            self.statuses.renew_soon(now);
        }
    }

    /// The machines of a need that stay, with what waits or is on its way out of others placed on them already.
    fn stage(&self, row: RowId, judged: &[String]) -> Stage {
        let mut stage = Stage { holes: Vec::new(), sum: ResourceVec::ZERO, shapes: Vec::new() };
        let leaving: BTreeSet<&str> = self.drains.machines().collect();
        for machine in self.verdict(row).into_iter().flat_map(|verdict| &verdict.machines) {
            if !leaving.contains(&**machine)
                && let Some(joined) = self.picture.joined(machine)
            {
                stage.sum = stage.sum.add(&joined.allocatable);
                stage.holes.push(Hole { free: joined.free, owners: self.picture.owners_on(machine) });
            }
        }
        let waiting = self.picture.waiting().filter_map(|uid| self.guest(uid));
        let others = leaving.iter().filter(|machine| !judged.iter().any(|one| one == *machine));
        let others = others.filter(|machine| !self.picture.held.contains_key(**machine));
        let on_their_way = others.flat_map(|machine| self.guests(machine).into_iter());
        let on_their_way =
            on_their_way.flat_map(|(row, guests)| guests.into_iter().map(move |(guest, _)| (row, guest)));
        let waiting = waiting.map(|(row, guest, _)| (row, guest));
        for (_, guest) in waiting.chain(on_their_way).filter(|(of, _)| *of == row) {
            // One that has no place is stuck already, and asks for itself.
            place(&mut stage.holes, &[guest]);
        }
        stage
    }

    /// The pods on a machine that would have to go elsewhere, by need, with what their requests ask for.
    fn guests(&self, machine: &str) -> BTreeMap<RowId, Vec<(Guest, ResourceVec)>> {
        let mut guests: BTreeMap<RowId, Vec<(Guest, ResourceVec)>> = BTreeMap::new();
        let node = self.picture.node_name(machine);
        for uid in node.into_iter().flat_map(|node| self.picture.uids_on(node)) {
            if let Some((row, guest, unit)) = self.guest(uid) {
                guests.entry(row).or_default().push((guest, unit));
            }
        }
        guests
    }

    fn guest(&self, uid: &str) -> Option<(RowId, Guest, ResourceVec)> {
        let pod = self.picture.pod(uid)?;
        if pod.is_terminating || pod.carried != Carried::ByItself {
            return None;
        }
        let name = self.request_of(uid)?;
        let (row, unit) = self.demand.find(name)?;
        let help = Help::read(&self.requests.get(name)?.others);
        let guest =
            Guest { request: pod.request.clone(), owner: pod.owner, keeps_apart: help == Help::Another };
        Some((row, guest, unit.clone()))
    }
}
