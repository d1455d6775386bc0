//! `bigfleet up` as a real process, and the documents that show it to people.

mod life;
mod memory;
mod process;
mod shards;
mod tour;
