//! Between messages and the model: everything that enters is checked here, once.
//!
//! Towards the model a conversion can fail, with an error that names what was wrong and what to do. Towards
//! the wire it cannot. Each direction is a `TryFrom` or `From`; what belongs together is in one file.

pub mod demand;
pub mod machine;
pub mod resources;
