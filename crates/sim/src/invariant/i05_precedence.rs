//! 5: no need of lower precedence gets a machine in a cycle that a short need of higher precedence could use.

use std::cmp::Ordering;

use super::i04_free_is_used::could_use;
use super::{Invariant, Moment};

pub(super) struct Precedence;

impl Invariant for Precedence {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        let Moment::Decided { mirror, .. } = moment else { return None };
        let outcomes = mirror.fleet.outcomes();
        let short = outcomes.iter().filter(|o| {
            !o.deficit.is_zero() && !o.demand.need.parked && o.demand.need.profile.strict_spread().is_none()
        });
        for high in short {
            for low in &outcomes {
                if low.demand.need.cmp_precedence(&high.demand.need) != Ordering::Greater {
                    continue;
                }
                let got = low.acquired.iter().filter_map(|id| mirror.machines.get(*id));
                if let Some(machine) = got.into_iter().find(|machine| could_use(high, machine)) {
                    let (high, low) = (high.demand.need.key(), low.demand.need.key());
                    return Some(format!("machine {} goes to {low:?}, and {high:?} is short", machine.id));
                }
            }
        }
        None
    }
}
