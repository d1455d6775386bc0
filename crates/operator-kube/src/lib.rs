//! The operator at work.
