//! What machines provide, cluster by cluster: for people who compare it with what is asked for. No decision looks at this.

use std::collections::BTreeMap;

use bigfleet_model::machine::MachineState;
use bigfleet_model::resource::ResourceVec;

use crate::fleet::Fleet;
use crate::intern::{Map, NONE};

/// What all machines of a fleet provide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provided {
    /// Those bound to a cluster, or about to be.
    pub bound: BTreeMap<String, ResourceVec>,
    /// Those that are there and bound to nobody. Quota is not there.
    pub idle: ResourceVec,
}

impl Fleet {
    /// What machines provide now. Walks all machines once: not for the thread that decides.
    pub fn provided(&self) -> Provided {
        // Counted by what they provide first: there are few sorts of machines, and many machines.
        let mut counts: Map<(u32, u32), u64> = Map::default();
        for (_, row) in self.inventory.rows() {
            let cluster = match row.state {
                Some(state) if state.is_bound() && row.cluster != NONE => row.cluster,
                Some(MachineState::Idle) => NONE,
                _ => continue,
            };
            *counts.entry((cluster, self.vocab.shape_of_kind(row.kind))).or_default() += 1;
        }
        let mut provided = Provided::default();
        for ((cluster, shape), count) in counts {
            let all = self.all_of(shape, count);
            let sum = match cluster {
                NONE => &mut provided.idle,
                bound => provided.bound.entry(self.vocab.cluster_name(bound).to_owned()).or_default(),
            };
            *sum = sum.add(&all);
        }
        provided
    }

    /// What these machines provide together, as far as the last cycle knew them.
    pub fn provided_by<'a>(&self, machines: impl IntoIterator<Item = &'a str>) -> ResourceVec {
        let mut counts: Map<u32, u64> = Map::default();
        for machine in machines {
            let Some(found) = self.inventory.find_decided(machine) else { continue };
            *counts.entry(self.vocab.shape_of_kind(self.inventory.decided(found).kind)).or_default() += 1;
        }
        counts
            .into_iter()
            .fold(ResourceVec::default(), |sum, (shape, count)| sum.add(&self.all_of(shape, count)))
    }

    fn all_of(&self, shape: u32, count: u64) -> ResourceVec {
        let amounts: Vec<_> = self.vocab.shape(shape).collect();
        self.vocab.vector(&amounts).scale(count)
    }
}
