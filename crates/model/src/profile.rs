//! Profiles: the identity under which demand aggregates.
//!
//! Two requests may be served by the same machines, at the same priority and the same price of disturbance,
//! exactly if their profiles are equal. A profile carries no amounts; those belong to the need.
//!
//! A profile is brought into canonical form once, when it is made, and its fingerprint text is kept: the
//! text is what existing peers stamp on machines, and its bytes take part in the order of demand.

use std::fmt::{self, Write};

use crate::label::Facts;
use crate::penalty::PenaltyBucket;
use crate::requirement::{Operator, Requirement};
use crate::spread::TopologySpread;

/// Requirements, spread, priority and both penalty buckets, in canonical form.
#[derive(Clone)]
pub struct Profile {
    requirements: Box<[Requirement]>,
    spread: Box<[TopologySpread]>,
    priority: i32,
    interruption: PenaltyBucket,
    reclamation: PenaltyBucket,
    fingerprint: Box<str>,
}

impl Profile {
    /// A profile in canonical form: requirements ordered by key, operator, values; spread by key, skew,
    /// mode. Equal requirements are kept as often as they were given.
    pub fn new(
        mut requirements: Vec<Requirement>,
        mut spread: Vec<TopologySpread>,
        priority: i32,
        interruption: PenaltyBucket,
        reclamation: PenaltyBucket,
    ) -> Self {
        requirements.sort_unstable();
        spread.sort_unstable();
        let fingerprint =
            fingerprint_text(&requirements, &spread, priority, interruption, reclamation).into();
        let (requirements, spread) = (requirements.into(), spread.into());
        Self { requirements, spread, priority, interruption, reclamation, fingerprint }
    }

    /// The requirements in canonical order.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// The spread constraints in canonical order.
    pub fn spread(&self) -> &[TopologySpread] {
        &self.spread
    }

    /// The priority: higher goes first.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// What interrupting the workload costs.
    pub fn interruption(&self) -> PenaltyBucket {
        self.interruption
    }

    /// What taking this very machine from the workload costs.
    pub fn reclamation(&self) -> PenaltyBucket {
        self.reclamation
    }

    /// The identity as text.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The requirement that names the domain: the first `Same` by key.
    pub fn same(&self) -> Option<&Requirement> {
        self.requirements.iter().find(|r| r.operator() == Operator::Same)
    }

    /// The spread constraint the engine enforces: the first strict one by key, unless `Same` decides.
    pub fn strict_spread(&self) -> Option<&TopologySpread> {
        if self.same().is_some() { None } else { self.spread.iter().find(|s| s.is_strict()) }
    }

    /// Whether one machine meets every requirement.
    pub fn matches(&self, facts: Facts<'_>) -> bool {
        self.requirements.iter().all(|r| r.matches(facts))
    }

    /// The profile of a gang that fits one machine: without `Same`, whose listed values live on as `In`.
    #[must_use]
    pub fn without_same(&self) -> Self {
        let kept = self.requirements.iter().filter_map(|r| match (r.operator(), r.values()) {
            (Operator::Same, []) => None,
            (Operator::Same, values) => Some(Requirement::is_in(r.key(), values.iter().cloned())),
            _ => Some(r.clone()),
        });
        Self::new(kept.collect(), self.spread.to_vec(), self.priority, self.interruption, self.reclamation)
    }
}

/// The fingerprint text shared with existing peers; its form is fixed by the wire.
fn fingerprint_text(
    requirements: &[Requirement],
    spread: &[TopologySpread],
    priority: i32,
    interruption: PenaltyBucket,
    reclamation: PenaltyBucket,
) -> String {
    let mut text = String::with_capacity(64);
    let mut write = || -> fmt::Result {
        write!(text, "p={priority}|ipb={}|rpb={}|reqs=", interruption.to_wire(), reclamation.to_wire())?;
        for r in requirements {
            write!(text, "{}:{}:", r.key(), r.operator().to_wire())?;
            for (index, value) in r.values().iter().enumerate() {
                let separator = if index == 0 { "" } else { "," };
                write!(text, "{separator}{value}")?;
            }
            text.push(';');
        }
        text.push_str("|spr=");
        for s in spread {
            write!(text, "{}:{}:{};", s.key, s.max_skew, s.when.to_wire())?;
        }
        Ok(())
    };
    write().expect("writing to a string does not fail");
    text
}

impl PartialEq for Profile {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl Eq for Profile {}

impl std::hash::Hash for Profile {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.fingerprint.hash(state);
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Profile({})", self.fingerprint)
    }
}
