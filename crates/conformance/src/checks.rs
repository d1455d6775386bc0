//! The checks, one file per group, each a small function that ends well or says what was wrong.

pub(crate) mod cost;
pub(crate) mod dur;
pub(crate) mod fault;
pub(crate) mod fence;
pub(crate) mod field;
pub(crate) mod health;
pub(crate) mod idem;
pub(crate) mod input;
pub(crate) mod life;
pub(crate) mod list;
pub(crate) mod meta;
pub(crate) mod model;
pub(crate) mod moves;
pub(crate) mod scale;
pub(crate) mod soak;
