//! Pods need holes; a shard counts sums. This is where the cluster asks for the difference.
//!
//! A need can be covered in sums while one of its pods has no place: ten pods of five cpus fit seven machines of eight
//! by the sum, and need ten. The shard cannot see that; the cluster can, once every machine of the need has joined and
//! the scheduler still finds no place. Then the need asks for more: in each dimension for which no machine has a hole,
//! for what its machines already sum to, and the stuck pods' requests on top.
//!
//! ```text
//!   extra = what the joined machines sum to - what is asked + what the stuck pods ask
//!   so that asked + extra = machines + stuck pods, and a machine which counts must come
//! ```
//!
//! The extra is computed from what has joined and never added to itself: looking twice at the same cluster asks for the
//! same. It stays when the pods get their place, because it is what keeps their machines; it falls with the number of
//! pods of the shapes that caused it, and is gone with the last of them. Pods that are replaced by their like, as in a
//! roll-out, cause nothing. That is why it cannot swing: only pods that come and go move it.
//!
//! It gives up on a pod that no machine of its need could hold even if it were empty but for what every node carries,
//! and after [`MOST_ROUNDS`] rounds in a row that left pods without a place: more of what did not help would not help.

use std::collections::BTreeMap;

use bigfleet_model::resource::{ResourceName, ResourceVec};

use crate::demand::{Demand, RowId};

/// Rounds in a row that may leave somebody without a place. Four are enough on random catalogues.
pub const MOST_ROUNDS: u32 = 8;

/// One joined machine of a need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// What it counts for.
    pub allocatable: ResourceVec,
    /// What no pod has taken yet.
    pub free: ResourceVec,
    /// What it would offer if only what every node carries (daemons, static pods) stayed.
    pub bare: ResourceVec,
}

/// Pods of one shape that the scheduler has no place for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// What each asks for.
    pub shape: ResourceVec,
    /// How many they are.
    pub pods: u64,
    /// What would help them.
    pub wants: Wants,
}

/// What would help a stuck pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// A hole of its size.
    Hole,
    /// A machine without its like: a rule about its neighbours keeps it from those there are, whatever room they have.
    Machine,
}

/// Why stuck pods change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is a hole for it by its amounts; something else keeps it away: a taint, an affinity, a volume.
    HasRoom,
    /// No machine of its need could hold it.
    NothingHoldsIt,
    /// Enough was tried.
    GaveUp,
}

/// What came of looking at the stuck pods of one need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revision {
    /// The need asks for more than before.
    pub raised: bool,
    /// Shapes of stuck pods for which nothing was asked, with the reason.
    pub refused: Vec<(ResourceVec, Refusal)>,
}

/// What needs ask for beyond the sum of their requests.
#[derive(Debug, Default)]
pub struct Reserves {
    by_row: BTreeMap<RowId, Reserve>,
}

/// What one need asks for beyond its sum.
#[derive(Debug, Default)]
struct Reserve {
    /// In full, while all that caused it is there.
    extra: ResourceVec,
    /// The shapes that caused it, and how many of each there were.
    causes: Vec<(ResourceVec, u64)>,
    /// Rounds since nobody was stuck.
    rounds: u32,
}

impl Reserves {
    /// What a need asks for beyond the sum of its requests.
    pub fn extra(&self, row: RowId, demand: &Demand) -> Option<ResourceVec> {
        let extra = self.by_row.get(&row)?.now(row, demand);
        (!extra.is_zero()).then_some(extra)
    }

    /// Forgets what has no cause left.
    pub fn sweep(&mut self, demand: &Demand) {
        self.by_row
            .retain(|row, reserve| reserve.causes.iter().any(|(shape, _)| demand.count_of(*row, shape) > 0));
    }

    /// Nobody of this need is stuck.
    pub fn all_placed(&mut self, row: RowId) {
        if let Some(reserve) = self.by_row.get_mut(&row) {
            reserve.rounds = 0;
        }
    }

    /// Pods of a covered need whose machines have all joined are stuck.
    pub fn revise(
        &mut self,
        row: RowId,
        demand: &mut Demand,
        machines: &[Joined],
        stuck: &[Stuck],
    ) -> Revision {
        let mut revision = Revision::default();
        let Some(asked) = demand.asked(row) else { return revision };
        let sum = machines.iter().fold(ResourceVec::ZERO, |sum, machine| sum.add(&machine.allocatable));
        let mut wanted: BTreeMap<ResourceName, u64> = BTreeMap::new();
        let mut causes = Vec::new();
        for Stuck { shape, pods, wants } in stuck {
            let has_room = || machines.iter().any(|machine| machine.free.covers(shape));
            let refusal = if *wants == Wants::Hole && has_room() {
                Some(Refusal::HasRoom)
            } else if !machines.iter().any(|machine| machine.bare.covers(shape)) {
                Some(Refusal::NothingHoldsIt)
            } else {
                None
            };
            if let Some(refusal) = refusal {
                revision.refused.push((shape.clone(), refusal));
                continue;
            }
            let missing = match wants {
                Wants::Hole => without_hole(shape, machines, &sum, &asked),
                Wants::Machine => whole_machine(shape, machines, &sum, &asked),
            };
            for (name, amount) in missing {
                let sum = wanted.entry(name).or_insert(0);
                *sum = sum.saturating_add(amount.saturating_mul(*pods));
            }
            causes.push(shape.clone());
        }
        if causes.is_empty() {
            return revision;
        }
        let before = self.extra(row, demand).unwrap_or_default();
        let target = wanted.into_iter().map(|(name, stuck)| {
            let waste = sum.get(&name).saturating_sub(asked.get(&name));
            let extra = waste.saturating_add(stuck).min(i64::MAX as u64);
            (name, extra)
        });
        let target = ResourceVec::new(target).expect("each name once, each amount bounded");
        if before.covers(&target) {
            // The machines it asks for are still on their way.
            return revision;
        }
        let reserve = self.by_row.entry(row).or_default();
        if reserve.rounds >= MOST_ROUNDS {
            revision.refused.extend(causes.into_iter().map(|shape| (shape, Refusal::GaveUp)));
            return revision;
        }
        reserve.rounds += 1;
        reserve.raise(before.max(&target), causes, row, demand);
        revision.raised = true;
        revision
    }

    /// Pods of a machine that is asked back have no other place. The need asks for all that its machines sum to, that one
    /// included, so that it counts again. False if it asks for that much already.
    pub fn keep(
        &mut self,
        row: RowId,
        demand: &mut Demand,
        sum: &ResourceVec,
        shapes: &[ResourceVec],
    ) -> bool {
        let Some(asked) = demand.asked(row) else { return false };
        let scarce = shapes.iter().filter_map(|shape| scarcest(shape, sum, &asked));
        let wanted: BTreeMap<ResourceName, u64> = scarce
            .map(|(name, _)| {
                let waste = sum.get(&name).saturating_sub(asked.get(&name));
                (name, waste)
            })
            .collect();
        let target = ResourceVec::new(wanted).expect("each name once, none larger than a sum");
        let before = self.extra(row, demand).unwrap_or_default();
        if before.covers(&target) {
            return false;
        }
        let reserve = self.by_row.entry(row).or_default();
        reserve.raise(before.max(&target), shapes.to_vec(), row, demand);
        true
    }
}

impl Reserve {
    /// Asks for this much from now on, because of these shapes and those before.
    fn raise(&mut self, extra: ResourceVec, causes: Vec<ResourceVec>, row: RowId, demand: &Demand) {
        self.extra = extra;
        let earlier = std::mem::take(&mut self.causes).into_iter().map(|(shape, _)| shape);
        for shape in earlier.chain(causes) {
            let count = demand.count_of(row, &shape);
            if count > 0 && !self.causes.iter().any(|(known, _)| *known == shape) {
                self.causes.push((shape, count));
            }
        }
    }

    /// The extra in proportion to what is left of its causes, rounded up.
    fn now(&self, row: RowId, demand: &Demand) -> ResourceVec {
        let sum = |count: &dyn Fn(&(ResourceVec, u64)) -> u64| {
            let all = self.causes.iter().map(|cause| cause.0.scale(count(cause)));
            all.fold(ResourceVec::ZERO, |sum, part| sum.add(&part))
        };
        let then = sum(&|(_, count)| *count);
        let now = sum(&|(shape, _)| demand.count_of(row, shape));
        let scaled = self.extra.iter().map(|(name, amount)| {
            let (then, now) = (u128::from(then.get(name)), u128::from(now.get(name)));
            let part = (u128::from(amount) * now.min(then)).div_ceil(then.max(1));
            (name.clone(), part as u64)
        });
        ResourceVec::new(scaled).expect("each name once, none larger than before")
    }
}

/// The dimensions of a shape for which no machine has a hole; where each has one and only no machine has them together,
/// the dimension that is scarcest.
fn without_hole(
    shape: &ResourceVec,
    machines: &[Joined],
    sum: &ResourceVec,
    asked: &ResourceVec,
) -> Vec<(ResourceName, u64)> {
    let widest = machines.iter().fold(ResourceVec::ZERO, |widest, machine| widest.max(&machine.free));
    let none: Vec<(ResourceName, u64)> = shape
        .iter()
        .filter(|(name, amount)| widest.get(name) < *amount)
        .map(|(name, amount)| (name.clone(), amount))
        .collect();
    if !none.is_empty() {
        return none;
    }
    scarcest(shape, sum, asked).into_iter().collect()
}

/// As much of the scarcest dimension as the smallest machine has: one machine comes for each pod, and never two.
fn whole_machine(
    shape: &ResourceVec,
    machines: &[Joined],
    sum: &ResourceVec,
    asked: &ResourceVec,
) -> Vec<(ResourceName, u64)> {
    let scarcest = scarcest(shape, sum, asked).map(|(name, amount)| {
        let smallest = machines.iter().map(|machine| machine.allocatable.get(&name)).min();
        (name, amount.max(smallest.unwrap_or(0)))
    });
    scarcest.into_iter().collect()
}

/// The dimension of a shape of which the machines have least to spare.
fn scarcest(shape: &ResourceVec, sum: &ResourceVec, asked: &ResourceVec) -> Option<(ResourceName, u64)> {
    // Compared without dividing: slack a of b against slack c of d is a*d against c*b.
    let scarcest = shape.iter().min_by(|(a, _), (b, _)| {
        let slack = |name: &ResourceName| u128::from(sum.get(name).saturating_sub(asked.get(name)));
        let whole = |name: &ResourceName| u128::from(sum.get(name));
        (slack(a) * whole(b)).cmp(&(slack(b) * whole(a)))
    });
    scarcest.map(|(name, amount)| (name.clone(), amount))
}

#[cfg(test)]
mod tests;
