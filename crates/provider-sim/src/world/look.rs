//! One look at the fleet: what changes, decided from the records, the faults and the dice.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::machine::MachineState;
use bigfleet_provider_kit::{CapacityType, Machine};

use super::{Change, NOTICE_LABEL, World};
use crate::catalogue::find;
use crate::fault::{Fault, Kind};
use crate::inventory::FAULT_LABEL;
use crate::models::rounded;
use crate::shared::{Shared, host_of, state_of};

const SECS_PER_YEAR: f64 = 365.25 * 86_400.0;

type Changes = Vec<(Arc<Machine>, Change)>;

/// The spot prices that are in force, by pool.
#[derive(Debug, Default)]
pub(super) struct PriceBoard {
    step: Option<i64>,
    spikes: Vec<(u64, Fault)>,
    usd_per_hour: BTreeMap<String, f64>,
}

impl PriceBoard {
    /// Whether prices move, or have to be put back.
    pub(super) fn is_needed(&self, shared: &Shared) -> bool {
        shared.models.prices.on || !self.spikes.is_empty() || !shared.active(Kind::PriceSpike).is_empty()
    }

    /// Forgets the prices if they may have moved. Whether they have to be looked at.
    fn renew(&mut self, shared: &Shared, now: i64) -> bool {
        let step = shared.models.prices.on.then(|| shared.models.prices.step(now));
        let spikes = shared.active(Kind::PriceSpike);
        let renewed = step != self.step || spikes != self.spikes;
        if renewed {
            self.usd_per_hour.clear();
            (self.step, self.spikes) = (step, spikes);
        }
        renewed
    }

    fn price(&mut self, shared: &Shared, machine: &Machine) -> Option<f64> {
        let on_demand = find(&machine.instance_type)?.usd_per_hour;
        let pool = format!("{}/{}", machine.instance_type, machine.zone);
        if let Some(price) = self.usd_per_hour.get(&pool) {
            return Some(*price);
        }
        let model = &shared.models.prices;
        let share = self.step.map_or(model.mean, |step| model.share(shared.dice, &pool, step));
        let spikes =
            self.spikes.iter().filter(|(_, spike)| spike.covers(&machine.instance_type, &machine.zone));
        let spike: f64 = spikes.map(|(_, spike)| spike.number("factor")).product();
        let price = rounded((on_demand * share * spike).min(on_demand));
        shared.event("price", &pool, format!("{price} USD/h"));
        self.usd_per_hour.insert(pool, price);
        Some(price)
    }
}

impl World {
    /// Everything that changes now. At most one change per machine: the worst.
    pub(super) fn decide(
        &mut self,
        now: i64,
        machines: &[Arc<Machine>],
        due: &[(u64, Fault)],
        outages: &[(u64, Fault)],
    ) -> Changes {
        let mut changes: BTreeMap<&str, (Arc<Machine>, Change)> = BTreeMap::new();
        let storms = self.shared.active(Kind::SpotStorm);
        let prices_moved = self.prices.is_needed(&self.shared) && self.prices.renew(&self.shared, now);
        for machine in machines {
            let change = self
                .lost(machine, now, outages)
                .or_else(|| self.repaired(machine, now, outages))
                .or_else(|| self.noticed(machine, now, &storms))
                .or_else(|| if prices_moved { self.priced(machine) } else { None });
            if let Some(change) = change {
                changes.insert(&machine.id, (machine.clone(), change));
            }
        }
        for (id, fault) in due {
            for machine in self.chosen(*id, fault, machines) {
                let change = match fault.kind() {
                    Kind::SpotReclaim => self.notice(machine, now),
                    _ => Change::Lost { reason: "the host was lost (simulated)".into() },
                };
                changes.insert(&machine.id, (machine.clone(), change));
            }
        }
        let changes: Changes = changes.into_values().collect();
        for (machine, change) in &changes {
            if matches!(change, Change::Lost { .. } | Change::NoticeIsVoid | Change::Repaired) {
                self.notices.remove(&machine.id);
            }
        }
        changes
    }

    /// The machines a fault that happens once falls upon.
    fn chosen<'a>(&self, id: u64, fault: &Fault, machines: &'a [Arc<Machine>]) -> Vec<&'a Arc<Machine>> {
        let suits = |machine: &&Arc<Machine>| {
            let wanted = fault.kind() != Kind::SpotReclaim
                || (is_spot(machine) && !self.notices.contains_key(&machine.id));
            wanted && is_alive(machine) && fault.concerns(machine)
        };
        let mut chosen: Vec<_> = machines.iter().filter(suits).collect();
        self.shared.dice.shuffle(&mut chosen, "chosen", id);
        chosen.truncate(fault.number("count") as usize);
        chosen
    }

    /// Zone outages, reclaims whose time has come, and hosts that die.
    fn lost(&self, machine: &Machine, now: i64, outages: &[(u64, Fault)]) -> Option<Change> {
        if !is_alive(machine) {
            return None;
        }
        let lost = |reason: &str| Some(Change::Lost { reason: format!("{reason} (simulated)") });
        if outages.iter().any(|(_, outage)| outage.concerns(machine)) {
            return lost(&format!("zone {} is out", machine.zone));
        }
        if let Some((host, at)) = self.notices.get(&machine.id)
            && host_of(machine) == Some(host)
            && *at <= now
        {
            return lost("spot capacity was taken back after its notice");
        }
        let model = &self.shared.models.host_loss;
        let rate_per_sec = model.per_machine_year / SECS_PER_YEAR;
        (model.on && self.strikes(machine, "host-loss", rate_per_sec, now)).then_some(())?;
        lost("the host was lost")
    }

    /// Whether something of this rate has struck a machine since the last tick.
    fn strikes(&self, machine: &Machine, purpose: &str, rate_per_sec: f64, now: i64) -> bool {
        let tick_nanos = self.shared.models.tick.nanos();
        let tick = now.div_euclid(tick_nanos);
        let passed_secs = (tick - self.tick).max(0) as f64 * tick_nanos as f64 / 1e9;
        let chance = 1.0 - (-rate_per_sec * passed_secs).exp();
        self.shared.dice.happens(chance, purpose, host_of(machine).unwrap_or_default(), tick.cast_unsigned())
    }

    fn noticed(&mut self, machine: &Machine, now: i64, storms: &[(u64, Fault)]) -> Option<Change> {
        if let Some((host, _)) = self.notices.get(&machine.id) {
            return (host_of(machine) != Some(host)).then_some(Change::NoticeIsVoid);
        }
        if machine.labels.contains_key(NOTICE_LABEL) {
            return Some(Change::NoticeIsVoid);
        }
        let spot = &self.shared.models.spot;
        if !is_spot(machine) || !is_alive(machine) || !spot.on {
            return None;
        }
        let usual = find(&machine.instance_type)?.spot_loss_per_hour;
        let storms = storms.iter().filter(|(_, storm)| storm.concerns(machine));
        let stormy: f64 = storms.map(|(_, storm)| storm.number("factor")).product();
        let rate_per_sec = -(1.0 - usual).ln() / 3600.0 * spot.factor * stormy;
        self.strikes(machine, "spot", rate_per_sec, now).then(|| self.notice(machine, now))
    }

    fn notice(&mut self, machine: &Machine, now: i64) -> Change {
        let at_unix_nanos = now.saturating_add(self.shared.models.spot.notice.nanos());
        let host = host_of(machine).unwrap_or_default().to_string();
        self.notices.insert(machine.id.clone(), (host, at_unix_nanos));
        Change::Notice { at_unix_nanos }
    }

    fn repaired(&mut self, machine: &Machine, now: i64, outages: &[(u64, Fault)]) -> Option<Change> {
        if state_of(machine) != MachineState::Failed {
            self.failed_since.remove(&machine.id);
            return None;
        }
        let since = *self.failed_since.entry(machine.id.clone()).or_insert(now);
        let model = &self.shared.models.repair;
        let is_out = outages.iter().any(|(_, outage)| outage.concerns(machine));
        let made_to_fail = machine.labels.contains_key(FAULT_LABEL);
        let over = now.saturating_sub(since) >= model.after.nanos();
        (model.on && over && !is_out && !made_to_fail).then_some(Change::Repaired)
    }

    fn priced(&mut self, machine: &Machine) -> Option<Change> {
        if !is_spot(machine) {
            return None;
        }
        let usd_per_hour = self.prices.price(&self.shared, machine)?;
        (usd_per_hour != machine.price_per_hour).then_some(Change::Price { usd_per_hour })
    }
}

fn is_spot(machine: &Machine) -> bool {
    machine.capacity_type == CapacityType::Spot.to_wire()
}

/// Whether there is hardware that could be lost.
fn is_alive(machine: &Machine) -> bool {
    host_of(machine).is_some() && state_of(machine) != MachineState::Failed
}
