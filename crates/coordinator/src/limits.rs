//! How much a coordinator takes: everything it keeps has a bound, and whoever exceeds it is told which.

use crate::error::Refusal;

/// Bytes of a name: a shard, provider, cluster, instance type, zone, domain key or value, machine.
pub const NAME_BYTES: usize = 317;
/// Bytes of an address.
pub const ADDRESS_BYTES: usize = 512;
/// Shards of a fleet.
pub const SHARDS: usize = 10_000;
/// Domains of a fleet.
pub const DOMAINS: usize = 1_000_000;
/// Clusters that are bound to a shard.
pub const CLUSTERS: usize = 1_000_000;
/// Quotas of a fleet.
pub const QUOTAS: usize = 1_000_000;
/// Providers of a fleet.
pub const PROVIDERS: usize = 10_000;
/// Machines that were handed from one shard to another.
pub const TRANSFERS: usize = 1_000_000;
/// Shortfalls of one report (wire).
pub const SHORTFALLS: usize = 100;
/// Instance types and zones that one report counts.
pub const COUNTED: usize = 100_000;
/// Instructions of one answer; the others follow with the next report.
pub const INSTRUCTIONS_PER_ANSWER: usize = 1_000;
/// Machines that one donor gives at once.
pub const MACHINES_PER_OFFER: usize = 80;
/// Machines that one instruction names.
pub const MACHINES_PER_ORDER: usize = 1_000;
/// Writes of one transaction: etcd takes 128 operations and we compare once.
pub const WRITES: usize = 100;

/// A name that can be kept and shown.
pub(crate) fn name(field: &'static str, text: &str) -> Result<Box<str>, Refusal> {
    let is_odd = |letter: char| letter.is_control() || bigfleet_model::text::is_hidden(letter);
    match text {
        "" => Err(Refusal::Missing { field }),
        long if long.len() > NAME_BYTES => {
            Err(Refusal::TooLong { field, bytes: long.len(), most: NAME_BYTES })
        }
        odd if odd.contains(is_odd) => Err(Refusal::Unreadable { field }),
        fine => Ok(fine.into()),
    }
}

/// As [`name`], or nothing: then it means any.
pub(crate) fn name_or_any(field: &'static str, text: &str) -> Result<Box<str>, Refusal> {
    if text.is_empty() { Ok("".into()) } else { name(field, text) }
}

/// Somewhere to dial. Whether anybody answers there is seen by whoever dials.
pub(crate) fn address(field: &'static str, text: &str) -> Result<Box<str>, Refusal> {
    match text {
        "" => Err(Refusal::Missing { field }),
        long if long.len() > ADDRESS_BYTES => {
            Err(Refusal::TooLong { field, bytes: long.len(), most: ADDRESS_BYTES })
        }
        odd if odd.contains(|letter: char| !letter.is_ascii_graphic()) => Err(Refusal::Unreadable { field }),
        fine => Ok(fine.into()),
    }
}

/// Room for one more.
pub(crate) fn room(what: &'static str, there_are: usize, most: usize) -> Result<(), Refusal> {
    if there_are < most { Ok(()) } else { Err(Refusal::Full { what, most }) }
}
