//! 10: provider truth is adopted within one reconcile. A machine whose call is under way may wait for its answer, so a
//! difference counts when three full listings in a row show it.

use std::collections::BTreeMap;

use super::{Invariant, Moment};

/// Listings that must agree before a difference is a violation.
const LISTINGS: u32 = 3;

#[derive(Default)]
pub(super) struct TruthAdopted {
    differs: BTreeMap<(usize, String), u32>,
}

impl Invariant for TruthAdopted {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        let Moment::Listed { host, shard, machines, full: true } = moment else { return None };
        machines.iter().find_map(|listed| {
            let key = (*host, listed.id.clone());
            let view = shard.machine(&listed.id);
            let differs = view.is_some_and(|view| {
                view.flight.is_none()
                    && (view.told.to_wire() != listed.state
                        || view.machine.price_usd_per_hour != listed.price_per_hour)
            });
            if !differs {
                self.differs.remove(&key);
                return None;
            }
            let times = self.differs.entry(key).or_default();
            *times += 1;
            let known = view.map(|view| view.told);
            (*times >= LISTINGS).then(|| {
                format!("machine {} is listed in state {} and known as {known:?}", listed.id, listed.state)
            })
        })
    }
}
