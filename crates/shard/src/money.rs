//! What the machines cost, kept up to date as they change.
//!
//! Amounts are whole billionths of a dollar, so that adding and taking away for months leaves no dust.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::{Machine, MachineState};

/// How many machines, and what they cost an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bill {
    /// How many.
    pub machines: u64,
    nano_usd_per_hour: i128,
}

impl Bill {
    /// What they cost an hour.
    pub fn usd_per_hour(&self) -> f64 {
        self.nano_usd_per_hour as f64 / 1e9
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            machines: self.machines + other.machines,
            nano_usd_per_hour: self.nano_usd_per_hour + other.nano_usd_per_hour,
        }
    }
}

/// Bills by state and capacity type, and the same for each cluster.
#[derive(Clone, Debug, Default)]
pub struct Money {
    by_state: BTreeMap<(MachineState, CapacityType), Bill>,
    by_cluster: BTreeMap<(Arc<str>, CapacityType, MachineState), Bill>,
}

impl Money {
    /// Adds a machine (`sign` 1) or takes it away (-1).
    pub(crate) fn count(&mut self, machine: &Machine, cluster: Option<&Arc<str>>, sign: i64) {
        let nanos = (machine.price_usd_per_hour * 1e9).round() as i128 * i128::from(sign);
        let change = |bill: &mut Bill| {
            bill.machines = bill.machines.saturating_add_signed(sign);
            bill.nano_usd_per_hour += nanos;
            bill.machines == 0
        };
        let place = (machine.state, machine.capacity_type);
        if change(self.by_state.entry(place).or_default()) {
            self.by_state.remove(&place);
        }
        if let Some(cluster) = cluster {
            let place = (cluster.clone(), machine.capacity_type, machine.state);
            if change(self.by_cluster.entry(place.clone()).or_default()) {
                self.by_cluster.remove(&place);
            }
        }
    }

    /// Bills by state and capacity type; only those with machines.
    pub fn by_state(&self) -> impl Iterator<Item = (MachineState, CapacityType, Bill)> {
        self.by_state.iter().map(|((state, capacity), bill)| (*state, *capacity, *bill))
    }

    /// Bills by cluster and capacity type; only those with machines.
    pub fn by_cluster(&self) -> impl Iterator<Item = (&Arc<str>, CapacityType, Bill)> {
        let mut bills: BTreeMap<(&Arc<str>, CapacityType), Bill> = BTreeMap::new();
        for ((cluster, capacity, _), bill) in &self.by_cluster {
            let sum = bills.entry((cluster, *capacity)).or_default();
            *sum = sum.plus(*bill);
        }
        bills.into_iter().map(|((cluster, capacity), bill)| (cluster, capacity, bill))
    }

    /// The bills of one cluster by capacity type and state; only those with machines.
    pub fn holding_of(&self, cluster: &Arc<str>) -> impl Iterator<Item = (CapacityType, MachineState, Bill)> {
        let first = (cluster.clone(), CapacityType::Unspecified, MachineState::Speculative);
        let mine = self.by_cluster.range(first..).take_while(move |((name, ..), _)| name == cluster);
        mine.map(|((_, capacity, state), bill)| (*capacity, *state, *bill))
    }

    /// The bill of one cluster.
    pub fn of_cluster(&self, cluster: &Arc<str>) -> Bill {
        self.holding_of(cluster).fold(Bill::default(), |sum, (_, _, bill)| sum.plus(bill))
    }

    fn sum(&self, counts: impl Fn(MachineState) -> bool) -> Bill {
        let bills = self.by_state.iter().filter(|((state, _), _)| counts(*state));
        bills.fold(Bill::default(), |sum, (_, bill)| sum.plus(*bill))
    }

    /// Everything that exists and is paid for: from Idle until it is given back.
    pub fn spend(&self) -> Bill {
        self.sum(is_paid_for)
    }

    /// What clusters are bound to.
    pub fn bound(&self) -> Bill {
        self.sum(MachineState::is_bound)
    }

    /// Hardware nobody uses.
    pub fn idle(&self) -> Bill {
        self.sum(|state| state == MachineState::Idle)
    }
}

/// Whether a machine in this state costs money. A quota slot costs nothing, and so does a machine until it is there.
pub fn is_paid_for(state: MachineState) -> bool {
    !matches!(state, MachineState::Speculative | MachineState::Creating)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_can_be_taken_away_without_dust() {
        let mut money = Money::default();
        let shop: Arc<str> = "shop".into();
        let mut machine = Machine::new("m", MachineState::Configured);
        machine.capacity_type = CapacityType::Spot;
        for cents in 1..1000 {
            machine.price_usd_per_hour = 0.1 / f64::from(cents);
            money.count(&machine, Some(&shop), 1);
        }
        assert_eq!((money.spend().machines, money.of_cluster(&shop).machines), (999, 999));
        let held: Vec<_> =
            money.holding_of(&shop).map(|(kind, state, bill)| (kind, state, bill.machines)).collect();
        assert_eq!(held, [(CapacityType::Spot, MachineState::Configured, 999)]);
        for cents in 1..1000 {
            machine.price_usd_per_hour = 0.1 / f64::from(cents);
            money.count(&machine, Some(&shop), -1);
        }
        assert_eq!((money.by_state().count(), money.by_cluster().count()), (0, 0), "no empty series stays");
        assert_eq!(money.spend(), Bill::default());
    }

    #[test]
    fn quota_and_machines_on_order_cost_nothing() {
        let mut money = Money::default();
        for state in
            [MachineState::Speculative, MachineState::Creating, MachineState::Idle, MachineState::Failed]
        {
            let mut machine = Machine::new("m", state);
            machine.price_usd_per_hour = 1.5;
            money.count(&machine, None, 1);
        }
        assert_eq!((money.spend().usd_per_hour(), money.idle().usd_per_hour()), (3.0, 1.5));
    }
}
