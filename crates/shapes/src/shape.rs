//! The fleets and their sizes.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A benchmark fleet. Three are named after the number of machines they roughly bind, one after all it has, two after machines and needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shape {
    /// Twenty clusters of small gangs, a mostly Speculative fleet.
    Fleet5k,
    /// Two hundred clusters, much Idle and Speculative supply.
    Fleet50k,
    /// Two thousand clusters of 25 needs that want little more than they have.
    Fleet225k,
    /// Two thousand clusters, a mostly bound fleet.
    Fleet500k,
    /// Fifty clusters of 20 large needs: a shape other engines were measured on.
    Fleet100kBy1k,
    /// The same, five times over.
    Fleet500kBy5k,
}

/// How many of what a shape has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// All machines.
    pub machines: u32,
    /// Those that are Configured.
    pub configured: u32,
    /// Those that are Idle; the rest is Speculative.
    pub idle: u32,
    /// Clusters.
    pub clusters: u32,
    /// Rows of demand, before folding.
    pub needs: u32,
    /// Rows that ask for `Same`, where that is more than the rows of the two gang archetypes.
    pub same_needs: Option<u32>,
    /// The most machines of the largest type a multi-machine gang asks for.
    pub largest_gang: u64,
    /// The share of plain needs that want more than is bound for them.
    pub growing: f64,
}

/// A name that is no shape.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no shape {0:?}; the shapes are 5k, 50k, 225k, 500k, 100kx1k and 500kx5k")]
pub struct UnknownShape(String);

impl Shape {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Fleet5k,
        Self::Fleet50k,
        Self::Fleet225k,
        Self::Fleet500k,
        Self::Fleet100kBy1k,
        Self::Fleet500kBy5k,
    ];

    /// The name used on command lines and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fleet5k => "5k",
            Self::Fleet50k => "50k",
            Self::Fleet225k => "225k",
            Self::Fleet500k => "500k",
            Self::Fleet100kBy1k => "100kx1k",
            Self::Fleet500kBy5k => "500kx5k",
        }
    }

    /// The exact counts.
    pub fn size(self) -> Size {
        match self {
            Self::Fleet5k => Size {
                machines: 22_500,
                configured: 5_000,
                idle: 1_000,
                clusters: 20,
                needs: 2_600,
                same_needs: Some(2_418),
                largest_gang: 3,
                growing: 0.06,
            },
            Self::Fleet50k => Size {
                machines: 225_000,
                configured: 50_000,
                idle: 45_000,
                clusters: 200,
                needs: 31_000,
                same_needs: None,
                largest_gang: 3,
                growing: 0.05,
            },
            Self::Fleet225k => Size {
                machines: 225_000,
                configured: 135_000,
                idle: 22_500,
                clusters: 2_000,
                needs: 50_000,
                same_needs: None,
                largest_gang: 3,
                growing: 0.02,
            },
            Self::Fleet500k => Size {
                machines: 500_000,
                configured: 300_000,
                idle: 50_000,
                clusters: 2_000,
                needs: 50_000,
                same_needs: None,
                largest_gang: 8,
                growing: 0.20,
            },
            Self::Fleet100kBy1k => Size {
                machines: 100_000,
                configured: 60_000,
                idle: 10_000,
                clusters: 50,
                needs: 1_000,
                same_needs: None,
                largest_gang: 8,
                growing: 0.20,
            },
            Self::Fleet500kBy5k => Size {
                machines: 500_000,
                configured: 300_000,
                idle: 50_000,
                clusters: 250,
                needs: 5_000,
                same_needs: None,
                largest_gang: 8,
                growing: 0.20,
            },
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Shape {
    type Err = UnknownShape;

    fn from_str(text: &str) -> Result<Self, UnknownShape> {
        Self::ALL.into_iter().find(|shape| shape.name() == text).ok_or_else(|| UnknownShape(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for shape in Shape::ALL {
            assert_eq!(shape.to_string().parse(), Ok(shape));
        }
        assert!("5K".parse::<Shape>().unwrap_err().to_string().contains("5k, 50k, 225k, 500k,"));
    }
}
