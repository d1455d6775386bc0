//! What would change the answer, tried out and not guessed.
//!
//! Each proposal is made on a fork of the fleet and decided by the engine itself, up to the need in question. What comes
//! back is what a cycle would really do.

use std::sync::Arc;

use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::profile::Profile;
use bigfleet_model::resource::ResourceVec;

use crate::cycle::{Trials, Tried};
use crate::explain::Funnel;
use crate::fleet::Fleet;
use crate::options::Options;

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
        let changes = self.changes_worth_trying(key, self.funnel(key).as_ref())?;
        if changes.is_empty() {
            return Some(Vec::new());
        }
        let trials = self.trials(options, now_unix_nanos);
        let tried = changes.into_iter().filter_map(|change| {
            let Tried { satisfied, acquires, preempts } = self.try_change(&trials, key, &change)?;
            satisfied.then_some(Remedy { change, acquires, preempts })
        });
        Some(tried.collect())
    }

    /// The changes that might help a short need: a priority above all who hold what it could use, each requirement
    /// less, no strict spread, and no more than it can have. `funnel` is that of the need. `None` if the last cycle
    /// knew no such need; empty if it is not short.
    pub fn changes_worth_trying(&self, key: &NeedKey, funnel: Option<&Funnel>) -> Option<Vec<Change>> {
        let seen = self.seen(key)?;
        let Some(short) = seen.short.filter(|short| !crate::amounts::is_zero(&short.missing)) else {
            return Some(Vec::new());
        };
        let need = &self.need(key)?.need;
        let profile = &need.profile;
        // In the domain a gang is in, and in any other it might be given instead.
        let held_at = funnel.map_or([None; 2], |f| [f.highest_priority, f.highest_priority_anywhere]);
        let mut above: Vec<i32> =
            held_at.into_iter().flatten().filter_map(|held| held.checked_add(1)).collect();
        above.retain(|priority| *priority > profile.priority());
        above.dedup();
        let above = above.into_iter().map(Change::Priority);
        let without = profile.requirements().iter().map(|one| Change::Without(one.to_string()));
        let no_spread = profile.strict_spread().is_some().then_some(Change::WithoutSpread);
        let reached = need.aggregate.saturating_sub(&self.vocab.vector(&short.missing));
        // A gang may find more in another domain than it has in its own.
        let elsewhere = self.domain_coverage(key).and_then(|domains| {
            let best = domains.first()?.reachable_per_mille.min(999);
            let part = need.aggregate.iter().map(|(name, amount)| {
                let part = (u128::from(amount) * u128::from(best) / 1000) as u64;
                // Whole pieces only: half of one is of no use to anybody.
                let piece = need.min_unit.get(name).max(1);
                (name.clone(), part / piece * piece)
            });
            ResourceVec::new(part).ok()
        });
        let useful = |less: &ResourceVec| !less.is_zero() && *less != need.aggregate;
        let less = [Some(reached), elsewhere].into_iter().flatten().filter(useful);
        let mut less: Vec<Change> = less.map(Change::Less).collect();
        less.dedup();
        Some(above.chain(without).chain(no_spread).chain(less).collect())
    }

    /// What a cycle would do for a need if it were changed, on the fleet as the last cycle saw it. `None` if there is
    /// no such need, or it does not have what the change would take away.
    pub fn try_change(&self, trials: &Trials<'_>, key: &NeedKey, change: &Change) -> Option<Tried> {
        let changed = change.apply(&self.need(key)?.need)?;
        let needs = self.rows_of(&key.cluster).iter().map(|row| {
            let need = &row.need;
            if need.key() == *key { changed.clone() } else { need.clone() }
        });
        trials.decide(&key.cluster, needs.collect(), &changed.key())
    }
}

impl Change {
    /// The need as it would be; `None` if it does not have what is to be taken away.
    pub fn apply(&self, need: &Need) -> Option<Need> {
        let profile = &need.profile;
        let (mut requirements, mut spread) = (profile.requirements().to_vec(), profile.spread().to_vec());
        let mut priority = profile.priority();
        let mut changed = need.clone();
        match self {
            Self::Priority(other) => priority = *other,
            Self::Without(text) => {
                let at = requirements.iter().position(|one| one.to_string() == *text)?;
                requirements.remove(at);
            }
            Self::WithoutSpread => spread.retain(|one| !one.is_strict()),
            Self::Less(amounts) => changed.aggregate = amounts.clone(),
        }
        let (interruption, reclamation) = (profile.interruption(), profile.reclamation());
        let profile = Profile::new(requirements, spread, priority, interruption, reclamation);
        // A changed gang has not failed yet: what would help is tried as if it might try now.
        changed.parked = false;
        if profile.same().is_none() && need.profile.same().is_some() {
            changed.group = Arc::from("");
        }
        changed.profile = Arc::new(profile);
        Some(changed)
    }
}
