//! Profiles: the identity under which demand aggregates.
//!
//! Two requests may be served by the same machines, at the same priority and the same price of disturbance,
//! exactly if their profiles are equal. A profile carries no amounts; those belong to the need.
//!
//! A profile is brought into canonical form once, when it is made, and its fingerprint text is kept: the
//! text is what existing peers stamp on machines, and its bytes take part in the order of demand.
//!
//! The text is `p=<priority>|ipb=<bucket>|rpb=<bucket>|reqs=<key>:<operator>:<values>;…|spr=<key>:<skew>:<mode>;…`
//! with wire numbers for buckets, operators and modes, and commas between values. Two profiles that pass
//! [`Profile::validate`] have the same text only if they are the same, with one exception that the form of
//! the text forces on us: no values at all, and the empty value alone, read alike. Kubernetes allows the
//! second (`In [""]` is how a node selector asks for a label without a value) and refuses the first.
//!
//! ```
//! use bigfleet_model::penalty::PenaltyBucket;
//! use bigfleet_model::profile::Profile;
//! use bigfleet_model::requirement::Requirement;
//!
//! let profile = |values: &[&str]| {
//!     let requirement = Requirement::is_in("pool", values.iter().copied());
//!     Profile::new(vec![requirement], vec![], 0, PenaltyBucket::ZERO, PenaltyBucket::PINNED)
//! };
//! assert_eq!(profile(&["b", "a", "b"]), profile(&["a", "b"]));
//! assert_eq!(profile(&["b", "a"]).fingerprint(), "p=0|ipb=1|rpb=27|reqs=pool:1:a,b;|spr=");
//! ```

use std::fmt::{self, Write};

use thiserror::Error;

use crate::label::Facts;
use crate::penalty::PenaltyBucket;
use crate::requirement::{Operator, Requirement, RequirementError};
use crate::spread::{SpreadError, TopologySpread};

/// What the fingerprint text is put together with. A key or value that contains one is refused.
pub(crate) const FINGERPRINT_SEPARATORS: [char; 4] = [',', ';', ':', '|'];

/// Why a profile was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProfileError {
    /// One of its requirements.
    #[error(transparent)]
    Requirement(#[from] RequirementError),
    /// One of its spread constraints.
    #[error(transparent)]
    Spread(#[from] SpreadError),
}

/// Requirements, spread, priority and both penalty buckets, in canonical form.
///
/// Compares and hashes by its fingerprint.
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

    /// Checks what the border must refuse: requirements and spread constraints without a key, or with text
    /// that would make the fingerprint ambiguous.
    pub fn validate(&self) -> Result<(), ProfileError> {
        self.requirements.iter().try_for_each(Requirement::validate)?;
        self.spread.iter().try_for_each(TopologySpread::validate)?;
        Ok(())
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

    /// The profile of a gang that fits one machine: `Same` lives on as `In` its values or, if it lists none, as
    /// `Exists`. So whatever serves the folded gang would serve it unfolded too.
    #[must_use]
    pub fn without_same(&self) -> Self {
        let plain = self.requirements.iter().map(|r| match (r.operator(), r.values()) {
            (Operator::Same, []) => Requirement::new(r.key(), Operator::Exists, [""; 0]),
            (Operator::Same, values) => Requirement::is_in(r.key(), values.iter().cloned()),
            _ => r.clone(),
        });
        Self::new(plain.collect(), self.spread.to_vec(), self.priority, self.interruption, self.reclamation)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::{INSTANCE_TYPE, Labels, ZONE};
    use crate::spread::WhenUnsatisfiable::{DoNotSchedule, ScheduleAnyway};

    fn profile(requirements: Vec<Requirement>, spread: Vec<TopologySpread>) -> Profile {
        Profile::new(requirements, spread, 0, PenaltyBucket::ZERO, PenaltyBucket::ZERO)
    }

    fn of(requirements: Vec<Requirement>) -> Profile {
        profile(requirements, vec![])
    }

    #[test]
    fn the_fingerprint_text_is_exactly_this() {
        let none = Profile::new(vec![], vec![], i32::MIN, PenaltyBucket::UNSPECIFIED, PenaltyBucket::PINNED);
        assert_eq!(none.fingerprint(), "p=-2147483648|ipb=0|rpb=27|reqs=|spr=");

        // The vector credit/fingerprint-text.
        let requirements = vec![
            Requirement::is_in(INSTANCE_TYPE, ["std", "mem", "std"]),
            Requirement::new("example.org/pool", Operator::NotIn, ["red"]),
            Requirement::new("example.org/pool", Operator::NotIn, ["green"]),
            Requirement::new("example.org/pool", Operator::Exists, [""; 0]),
        ];
        let spread = vec![
            TopologySpread::new(ZONE, 2, DoNotSchedule),
            TopologySpread::new("example.org/rack", 1, ScheduleAnyway),
        ];
        let full = Profile::new(requirements, spread, -5, PenaltyBucket::PINNED, PenaltyBucket::UNSPECIFIED);
        assert_eq!(
            full.fingerprint(),
            "p=-5|ipb=27|rpb=0|reqs=example.org/pool:2:green;example.org/pool:2:red;example.org/pool:3:;\
             node.kubernetes.io/instance-type:1:mem,std;|spr=example.org/rack:1:2;\
             topology.kubernetes.io/zone:2:1;"
        );
    }

    #[test]
    fn equal_requirements_are_not_merged() {
        let once = of(vec![Requirement::same("k")]);
        let twice = of(vec![Requirement::same("k"), Requirement::same("k")]);
        assert_ne!(once, twice);
        assert_eq!(twice.fingerprint(), "p=0|ipb=1|rpb=1|reqs=k:5:;k:5:;|spr=");
    }

    #[test]
    fn the_first_same_by_key_names_the_domain() {
        assert_eq!(of(vec![Requirement::is_in("a", ["x"])]).same(), None);
        let two =
            of(vec![Requirement::same("rack"), Requirement::is_in("a", ["x"]), Requirement::same("block")]);
        assert_eq!(two.same(), Some(&Requirement::same("block")));
    }

    #[test]
    fn the_first_strict_spread_by_key_binds_unless_same_decides() {
        let spread = vec![
            TopologySpread::new("zone", 1, DoNotSchedule),
            TopologySpread::new("host", 1, ScheduleAnyway),
            TopologySpread::new("rack", 3, DoNotSchedule),
        ];
        let spread_only = profile(vec![], spread.clone());
        assert_eq!(spread_only.strict_spread(), Some(&spread[2]));
        assert_eq!(profile(vec![], spread[1..2].to_vec()).strict_spread(), None);
        assert_eq!(profile(vec![Requirement::same("zone")], spread).strict_spread(), None);
    }

    #[test]
    fn without_same_becomes_in_or_exists() {
        let gang = of(vec![
            Requirement::same("block"),
            Requirement::new("zone", Operator::Same, ["b", "a"]),
            Requirement::new("pool", Operator::Exists, [""; 0]),
        ]);
        let plain = gang.without_same();
        assert_eq!(plain.fingerprint(), "p=0|ipb=1|rpb=1|reqs=block:3:;pool:3:;zone:1:a,b;|spr=");
        assert_eq!(plain.same(), None);
        assert_eq!(plain.without_same(), plain);
    }

    #[test]
    fn a_machine_must_meet_every_requirement() {
        let labels = Labels::new([("pool", "blue")]).unwrap();
        let facts = Facts { instance_type: "std", zone: "za", labels: &labels };
        assert!(of(vec![]).matches(facts));
        let both = |zone| of(vec![Requirement::is_in("pool", ["blue"]), Requirement::is_in(ZONE, [zone])]);
        assert!(both("za").matches(facts));
        assert!(!both("zb").matches(facts));
    }

    #[test]
    fn validation_looks_at_requirements_and_at_spread() {
        let zone = |key: &str| TopologySpread::new(key, 1, DoNotSchedule);
        assert_eq!(profile(vec![Requirement::same("a")], vec![zone("b")]).validate(), Ok(()));
        let error = profile(vec![Requirement::same("")], vec![]).validate().unwrap_err();
        assert_eq!(error, RequirementError::EmptyKey { operator: Operator::Same }.into());
        let error = profile(vec![], vec![zone("")]).validate().unwrap_err();
        assert_eq!(error, SpreadError::EmptyKey.into());
        // Without the check these two would be one profile.
        let (blurred, clear) = (vec![zone("a:1:1;b")], vec![zone("a"), zone("b")]);
        assert_eq!(profile(vec![], blurred.clone()).fingerprint(), profile(vec![], clear).fingerprint());
        let error = profile(vec![], blurred).validate().unwrap_err();
        assert_eq!(
            error.to_string(),
            "topology spread: key \"a:1:1;b\" contains one of , ; : | which no label may; correct the spelling"
        );
    }
}
