//! What a demand must cost at least.
//!
//! The cheapest set of machines that covers a demand is an integer program. Its linear relaxation, in which a third of a
//! machine may be had, is a lower bound of the bill: nobody can cover the demand for less. What somebody pays, divided by the bound,
//! says how good the decisions were.
//!
//! A [`Problem`] has *offers* (so many machines alike, at one price) and *wants* (so much in total, at one penalty for being
//! interrupted, from these offers); all wants share the stock. [`Problem::of_fleet`] makes one from machines and needs: machines
//! that no need can tell apart become one offer. The bound is the minimum of
//!
//! > Σ effective cost × x, where 0 ≤ x, the x of an offer add up to its stock at most, and for each want Σ x × allocatable ≥ aggregate.
//!
//! A machine counts for a need if it matches and holds its `min_unit`, as in the engine. What the relaxation does not see makes
//! the true optimum dearer, never cheaper: whole machines, `Same` domains, strict spreads, and holes too small for a pod.
//!
//! [`Problem::exact`] solves the program, up to [`MAX_VARIABLES`]. [`Problem::coarser`] makes a smaller problem whose bound is
//! lower still. [`Problem::bound`] solves the finest that is small enough, and says which.
//!
//! ```
//! use bigfleet_bound::{Offer, Problem};
//! use bigfleet_model::{penalty::PenaltyBucket, resource::ResourceVec};
//!
//! let offer = |cpu, price_usd_per_hour| Offer {
//!     provides: ResourceVec::parse([("cpu", cpu)]).unwrap(),
//!     price_usd_per_hour,
//!     interruption_probability: 0.0,
//!     stock: 3,
//! };
//! let mut problem = Problem::default();
//! let offers = vec![problem.offer(offer("2", 0.10)), problem.offer(offer("16", 0.64))];
//! let any = problem.set(offers);
//! problem.want(&ResourceVec::parse([("cpu", "24")]).unwrap(), PenaltyBucket::ZERO, any);
//! // One and a half of the large ones: four cents a cpu instead of five.
//! assert!((problem.exact().unwrap().usd_per_hour - 0.96).abs() < 1e-9);
//! ```

mod coarse;
mod columns;
mod exact;
mod fleet;
mod problem;

pub use problem::{Bound, BoundError, MAX_VARIABLES, Method, Offer, OfferId, Problem, SetId};
