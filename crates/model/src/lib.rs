//! The vocabulary of BigFleet.
//!
//! Everything else in this workspace speaks in the words defined here: how much of what
//! ([`quantity`], [`resource`]), where and of which kind ([`label`], [`requirement`], [`spread`],
//! [`capacity`]), how dear a disturbance is ([`penalty`]), who asks for what ([`profile`], [`need`]), what
//! there is to give ([`machine`], [`stamp`]), and the rules that are fixed by design ([`cost`],
//! [`release`]). [`text`] keeps what strangers wrote readable in our messages, and
//! [`splitmix`] spreads numbers and [`backoff`] says how long to wait after failures.
//!
//! Read the modules in that order; each opens with the reason it exists. Every law they state is proved by a
//! test; `tests/README.md` says which.
//!
//! The crate is pure. It has no clock, no I/O, no randomness and no global state: two equal values built in
//! two processes compare, print and hash alike. Times are Unix nanoseconds that come in as arguments.
//! Everything that enters from outside is checked here, once, and refused with an error that names the
//! object and the remedy; past this border nothing parses strings again.
//!
//! ```
//! use bigfleet_model::{need::Need, penalty::PenaltyBucket, profile::Profile, requirement::Requirement, resource::ResourceVec};
//!
//! let profile = Profile::new(
//!     vec![Requirement::is_in("topology.kubernetes.io/zone", ["zone-a", "zone-b"])],
//!     vec![],
//!     1_000,
//!     PenaltyBucket::for_dollars(0.40).unwrap(),
//!     PenaltyBucket::ZERO,
//! );
//! assert_eq!(profile.fingerprint(), "p=1000|ipb=2|rpb=1|reqs=topology.kubernetes.io/zone:1:zone-a,zone-b;|spr=");
//!
//! let pod = ResourceVec::parse([("cpu", "500m"), ("memory", "1Gi")]).unwrap();
//! let need = Need::of_unit("shop", profile.into(), pod.clone()).times(40);
//! assert_eq!(need.aggregate, ResourceVec::parse([("cpu", "20"), ("memory", "40Gi")]).unwrap());
//! assert_eq!(need.min_unit, pod);
//! ```

pub mod backoff;
pub mod capacity;
pub mod cost;
pub mod label;
pub mod limits;
pub mod machine;
pub mod need;
pub mod penalty;
pub mod profile;
pub mod quantity;
pub mod release;
pub mod requirement;
pub mod resource;
pub mod splitmix;
pub mod spread;
pub mod stamp;
pub mod text;
