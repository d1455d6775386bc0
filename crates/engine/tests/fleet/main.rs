//! The fleet as its callers see it: roll-ups and records in, decisions out, forks beside.
//!
//! What is decided is held against the oracle elsewhere. Here is what the tables promise: what they keep, what
//! they refuse, what they forget, and how little work a small change is.

mod build;
mod forks;
mod inventory;
mod months;
mod needs_table;
mod refusals;
mod work;
