//! What a machine is doing and why it is kept.

use bigfleet_model::machine::MachineState;
use bigfleet_model::need::NeedKey;

use crate::action::ActionKind;
use crate::fleet::Fleet;
use crate::intern::NONE;
use crate::options::Options;

use super::Origin;

/// One machine as the last cycle saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineStory {
    /// Where it is in its life.
    pub state: MachineState,
    /// The cluster it is bound to; empty for none.
    pub cluster: Box<str>,
    /// Its price an hour.
    pub price_usd_per_hour: f64,
    /// The need that claims it now: why it is kept, or where it goes.
    pub claimed_by: Option<NeedKey>,
    /// How the need that claims it came by it.
    pub origin: Option<Origin>,
    /// The need it was bound or is being created for.
    pub bound_for: Option<NeedKey>,
    /// The need it drains for.
    pub draining_for: Option<NeedKey>,
    /// What the last cycle ordered for it.
    pub ordered: Option<ActionKind>,
    /// When it may be given back, if it is idle and ever may; `None` holds it for ever.
    pub release_due_unix_nanos: Option<i64>,
}

impl Fleet {
    /// What a machine is doing and why it is kept. `None` if it is not known or nothing was decided yet.
    pub fn explain_machine(&self, id: &str, options: &Options) -> Option<MachineStory> {
        let machine = self.inventory.find_decided(id)?;
        let row = self.inventory.decided(machine);
        let key = |key: u32| (key != NONE).then(|| self.vocab.need_key(key));
        let ordered = self.cache.last()?.actions.iter().find(|action| *action.machine == *id);
        let due = row.stamped.then(|| options.release.due_unix_nanos(row.capacity, row.idle_since)).flatten();
        let claimant = self.claimant(machine);
        let origin = claimant.and_then(|demand| Some(self.seen_exactly(demand)?.origin_of(machine)));
        Some(MachineStory {
            origin,
            state: row.state?,
            cluster: self.name_of_cluster(row.cluster).into(),
            price_usd_per_hour: row.price,
            claimed_by: claimant.map(|demand| demand.need.key()),
            bound_for: key(row.key),
            draining_for: key(row.draining_for),
            ordered: ordered.map(|action| action.kind),
            release_due_unix_nanos: due,
        })
    }
}
