//! The shard as a whole, driven by hand: a provider and operators that do exactly what a test says.

#[path = "shard/harness.rs"]
mod harness;

#[path = "shard/acquire.rs"]
mod acquire;
#[path = "shard/carry_on.rs"]
mod carry_on;
#[path = "shard/chaos.rs"]
mod chaos;
#[path = "shard/give_back.rs"]
mod give_back;
#[path = "shard/instruct.rs"]
mod instruct;
#[path = "shard/lies.rs"]
mod lies;
#[path = "shard/limits.rs"]
mod limits;
#[path = "shard/line.rs"]
mod line;
#[path = "shard/modes.rs"]
mod modes;
#[path = "shard/next_list.rs"]
mod next_list;
#[path = "shard/purchase.rs"]
mod purchase;
#[path = "shard/rails.rs"]
mod rails;
#[path = "shard/reconcile.rs"]
mod reconcile;
#[path = "shard/remember.rs"]
mod remember;
#[path = "shard/sessions.rs"]
mod sessions;
#[path = "shard/trouble.rs"]
mod trouble;
