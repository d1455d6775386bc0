//! `bigfleet up` as a real process, and the documents that show it to people.

mod life;
mod process;
mod tour;
