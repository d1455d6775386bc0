//! Resource names and resource vectors: how much of what.
//!
//! Demand and supply are compared dimension by dimension, millions of times a cycle in other systems of
//! this kind, usually on strings. Here an amount is an integer from the moment it passes the border: cpu
//! in thousandths, everything else in whole units, rounded up. Amounts are at most 2⁶³−1 and sums saturate
//! there; nothing wraps.
//!
//! A vector has an amount for every resource there is; all but a few are zero. So a missing dimension is a
//! zero, and equal demands are equal values however they were spelled.
//!
//! ```
//! use bigfleet_model::resource::ResourceVec;
//! let spelled = ResourceVec::parse([("memory", "16Gi"), ("cpu", "1")]).unwrap();
//! let otherwise = ResourceVec::parse([("cpu", "1000m"), ("memory", "17179869184"), ("pods", "0")]).unwrap();
//! assert_eq!(spelled, otherwise);
//! assert_eq!(spelled.to_string(), "cpu 1000m, memory 17179869184");
//! ```

use thiserror::Error;

use crate::quantity::QuantityError;
use crate::text::Quoted;

mod foreign;
mod name;
mod vector;

pub use name::ResourceName;
pub use vector::ResourceVec;

/// The largest amount of one resource: 2⁶³−1. Sums saturate here.
pub const MAX_AMOUNT: u64 = i64::MAX as u64;

/// Why a resource vector was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ResourceError {
    /// A resource without a name.
    #[error("a resource name is empty; name the resource, for example cpu or memory")]
    EmptyName,
    /// The same resource twice in one list.
    #[error("resource {} is listed twice; give each resource once", Quoted(.0.as_str()))]
    Duplicate(ResourceName),
    /// The amount is not a quantity we take.
    #[error("resource {}: {source}", Quoted(.resource.as_str()))]
    Amount {
        /// Which resource.
        resource: ResourceName,
        /// What is wrong with its amount.
        source: QuantityError,
    },
    /// An amount in engine units above [`MAX_AMOUNT`].
    #[error("resource {} is above 2^63-1; ask for less or use a larger unit", Quoted(.0.as_str()))]
    TooLarge(ResourceName),
}
