//! 20: money spent equals the sum of machine-time times price, and the shard's rate is that of the machines it knows.

use std::collections::BTreeMap;

use bigfleet_shard::is_paid_for;

use super::{Invariant, Moment};
use crate::cloud::state_of;
use crate::world::billionths;

#[derive(Default)]
pub(super) struct MoneyAddsUp {
    /// What each machine costs, in billionths of a dollar an hour, and since when.
    running: BTreeMap<String, (i128, i64)>,
    spent: i128,
}

impl Invariant for MoneyAddsUp {
    fn see(&mut self, now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Changed { machine, .. } => {
                let paid = is_paid_for(state_of(machine));
                let rate = if paid { billionths(machine.price_per_hour) } else { 0 };
                let before = self.running.insert(machine.id.clone(), (rate, now));
                if let Some((rate, since)) = before {
                    self.spent += rate * i128::from(now - since);
                }
                None
            }
            Moment::Cycle { shard, record, .. } => {
                let known = shard.machines_from(0).filter(|view| is_paid_for(view.machine.state));
                let rate: i128 = known.map(|view| billionths(view.machine.price_usd_per_hour)).sum();
                let said = shard.money().spend().usd_per_hour();
                let is = rate as f64 / 1e9;
                ((said - is).abs() > 1e-6 * is.max(1.0)).then(|| {
                    format!("cycle {} says {said} dollars an hour, its machines cost {is}", record.cycle)
                })
            }
            Moment::Settled { money, .. } => {
                let running = self.running.values().map(|(rate, since)| rate * i128::from(now - since));
                let spent = (self.spent + running.sum::<i128>()) as f64 / 1e9 / 3.6e12;
                let metered = money.usd(now);
                ((spent - metered).abs() > 1e-6 * spent.max(1.0))
                    .then(|| format!("{metered} dollars were metered, machines cost {spent}"))
            }
            _ => None,
        }
    }
}
