//! What would change the answer, tried out and not guessed.
//!
//! Each proposal is made on a fork of the fleet and decided by the engine itself. What comes back is what the
//! next cycle would really do.

use std::sync::Arc;

use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::Operator;
use bigfleet_model::resource::ResourceVec;

use crate::fleet::Fleet;
use crate::options::Options;
use crate::verdict::Reason;

/// A change to a need that might help it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A higher priority.
    Priority(i32),
    /// One requirement less.
    Without(String),
    /// No strict spread.
    WithoutSpread,
    /// Asking for no more than this.
    Less(ResourceVec),
}

/// A change that was tried and helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// The change.
    pub change: Change,
    /// How many machines the need would acquire at once.
    pub acquires: usize,
    /// How many machines would be preempted for it.
    pub preempts: usize,
}

impl Fleet {
    /// The changes to a short need that would satisfy it, now or as soon as its victims have drained.
    /// `None` if the last cycle knew no such need; empty if it is not short or nothing helps.
    pub fn what_would_help(
        &self,
        key: &NeedKey,
        options: &Options,
        now_unix_nanos: i64,
    ) -> Option<Vec<Remedy>> {
        let seen = self.seen(key)?;
        let Some(short) = seen.short.filter(|short| !crate::amounts::is_zero(&short.missing)) else {
            return Some(Vec::new());
        };
        let cluster = self.vocab.find_cluster(&key.cluster)?;
        let rows = &self.needs.cluster(cluster)?.rows;
        let row = rows.iter().find(|row| row.need.key() == *key)?;
        let reached = row.need.aggregate.saturating_sub(&self.vocab.vector(&short.missing));
        let proposals = proposals(&row.need, self.highest_holder(key), &reached);
        let tried = proposals.into_iter().filter_map(|(change, need)| {
            let mut fork = self.fork();
            let changed: Vec<Need> = rows
                .iter()
                .map(|r| if r.need.key() == *key { need.clone() } else { r.need.clone() })
                .collect();
            fork.replace(&key.cluster, changed, now_unix_nanos).ok()?;
            fork.cycle(options, now_unix_nanos);
            let seen = fork.seen(&need.key())?;
            let judge = crate::verdict::Judge::new(&fork, seen.decision);
            let reason = seen.short.and_then(|short| judge.reason(short, seen.credited()));
            let helped = matches!(reason, None | Some(Reason::InFlight));
            helped.then(|| Remedy {
                change,
                acquires: seen.acquired().len(),
                preempts: seen.short.map_or(0, |short| short.victims.len()),
            })
        });
        Some(tried.collect())
    }

    /// The highest priority among those that hold what a need could use.
    fn highest_holder(&self, key: &NeedKey) -> Option<i32> {
        self.funnel(key)?.holders.iter().map(|holder| holder.priority).max()
    }
}

/// Changes worth trying, each with the need as it would be.
fn proposals(need: &Need, highest_holder: Option<i32>, reached: &ResourceVec) -> Vec<(Change, Need)> {
    let profile = &need.profile;
    let with_profile = |requirements: Vec<_>, spread: Vec<_>, priority: i32| {
        let profile =
            Profile::new(requirements, spread, priority, profile.interruption(), profile.reclamation());
        let parked = need.parked && profile.same().is_some();
        Need { profile: Arc::new(profile), parked, ..need.clone() }
    };
    let (requirements, spread) = (profile.requirements().to_vec(), profile.spread().to_vec());
    let mut proposals = Vec::new();
    let above =
        highest_holder.and_then(|priority| priority.checked_add(1)).filter(|p| *p > profile.priority());
    if let Some(priority) = above {
        let changed = with_profile(requirements.clone(), spread.clone(), priority);
        proposals.push((Change::Priority(priority), changed));
    }
    for (at, requirement) in requirements.iter().enumerate() {
        let mut fewer = requirements.clone();
        fewer.remove(at);
        let mut changed = with_profile(fewer, spread.clone(), profile.priority());
        if requirement.operator() == Operator::Same && changed.profile.same().is_none() {
            changed.group = Arc::from("");
        }
        proposals.push((Change::Without(requirement.to_string()), changed));
    }
    if profile.strict_spread().is_some() {
        let soft = spread.iter().filter(|s| !s.is_strict()).cloned().collect();
        proposals.push((Change::WithoutSpread, with_profile(requirements, soft, profile.priority())));
    }
    if !reached.is_zero() {
        proposals.push((Change::Less(reached.clone()), Need { aggregate: reached.clone(), ..need.clone() }));
    }
    proposals
}
