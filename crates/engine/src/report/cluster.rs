//! What a cluster is told beside verdicts: which machines are on their way to it, and which would count for a need if the
//! need asked for smaller pieces.

use std::collections::BTreeSet;

use bigfleet_model::need::NeedKey;
use bigfleet_model::resource::ResourceVec;

use crate::fleet::Fleet;
use crate::vocab::Amounts;

impl Fleet {
    /// The machines being configured for a cluster or created for one of its needs, as of the last cycle.
    pub fn coming(&self, cluster: &str) -> Vec<&str> {
        let Some(cluster) = self.vocab.find_cluster(cluster) else { return Vec::new() };
        let Some(supply) = self.index.holdings.find_supply(cluster) else { return Vec::new() };
        supply.coming().iter().map(|held| self.inventory.id(held.machine)).collect()
    }

    /// What machines provide that meet a need's requirements and hold less than its minimum unit: of those that are free or
    /// its cluster's own the largest, none of which another covers, and at most so many. A need that merges pieces of
    /// several sizes may find its smaller pieces a place on these, if it asks for them apart.
    pub fn too_small(&self, key: &NeedKey, most: usize) -> Vec<ResourceVec> {
        let Some(seen) = self.seen(key) else { return Vec::new() };
        let (demand, classes) = (seen.demand(), &self.index.classes);
        let admitted = self.sets.admits(demand.requirements);
        let supply = self.vocab.find_cluster(&key.cluster).and_then(|at| self.index.holdings.find_supply(at));
        let own = supply.map_or(&[][..], |supply| supply.all()).iter().map(|held| classes.of_kind(held.kind));
        let free = admitted.iter().filter(|class| self.index.is_any_free(*class));
        let shapes: BTreeSet<u32> = own
            .filter(|class| admitted.contains(*class))
            .chain(free)
            .filter(|class| !classes.covers(*class, &demand.min_unit))
            .map(|class| classes.shape(class))
            .collect();
        let mut largest: Vec<ResourceVec> = Vec::new();
        for shape in shapes {
            let provides = self.vocab.vector(&self.vocab.shape(shape).collect::<Amounts>());
            if !largest.iter().any(|other| other.covers(&provides)) {
                largest.retain(|other| !provides.covers(other));
                largest.push(provides);
            }
        }
        // Numbers of shapes tell in which order machines came, which is nobody's business.
        largest.sort_by(|a, b| b.iter().cmp(a.iter()));
        largest.truncate(most);
        largest
    }
}
