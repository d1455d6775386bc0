//! How much of anything from outside is taken: one list, enforced at the borders, stated in `docs/security.md`.
//!
//! Whoever sends more is refused before anything is stored or decided, with the field and the bound. The bounds leave room
//! for real fleets (a cluster of 50,000 rows over 256 resource names passes) and keep the work for one message linear in
//! its bytes: what the engine numbers once per fleet, names and keys, is bounded per fleet, and per cluster so that no
//! cluster can use up the share of the others.

use std::fmt;

use thiserror::Error;

/// A bound, as the document lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The name of the constant.
    pub name: &'static str,
    /// The bound itself: the largest number that passes.
    pub most: usize,
    /// What it bounds.
    pub what: &'static str,
}

macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $name:ident = $most:expr;)+) => {
        $($(#[doc = $doc])+ pub const $name: usize = $most;)+

        /// All of them, in the order of the document.
        pub const ALL: &[Limit] = &[$(Limit { name: stringify!($name), most: $name, what: concat!($($doc),+) }),+];
    };
}

limits! {
    /// Bytes of one frame from an operator, a roll-up included.
    FRAME_BYTES = 32 << 20;
    /// Bytes of any other message.
    MESSAGE_BYTES = 256 << 20;
    /// Rows of one roll-up.
    ROLLUP_ROWS = 50_000;
    /// Requirements of one roll-up, over all rows.
    ROLLUP_REQUIREMENTS = 200_000;
    /// Values of one roll-up's requirements, over all rows.
    ROLLUP_VALUES = 200_000;
    /// Amounts of one roll-up, over all rows.
    ROLLUP_AMOUNTS = 400_000;
    /// Requirements of one row.
    ROW_REQUIREMENTS = 1_000;
    /// Values of one requirement.
    REQUIREMENT_VALUES = 1_000;
    /// Spread constraints of one row.
    ROW_SPREADS = 32;
    /// Resource names in one of a row's two amounts.
    ROW_RESOURCES = 256;
    /// Bytes of a row's fingerprint, the text that is stamped on machines.
    FINGERPRINT_BYTES = 64 << 10;
    /// Bytes of a label key: a prefix, a slash and a name of Kubernetes.
    KEY_BYTES = 317;
    /// Bytes of a value in a requirement.
    VALUE_BYTES = 253;
    /// Bytes of a resource name.
    RESOURCE_NAME_BYTES = 317;
    /// Bytes of an amount as text.
    QUANTITY_BYTES = 64;
    /// Bytes of a group's name.
    GROUP_BYTES = 512;
    /// Bytes of a cluster's name.
    CLUSTER_NAME_BYTES = 253;
    /// Resource names that one cluster may bring in one life of a shard, beyond those known already.
    CLUSTER_RESOURCE_NAMES = 256;
    /// Keys that one cluster's needs may ask about in one life of a shard, beyond those known already.
    CLUSTER_KEYS = 1_000;
    /// Resource names of a whole fleet, those of machines included, in one life of a shard.
    FLEET_RESOURCE_NAMES = 1_024;
    /// The share of those that demand may take; the rest is kept for machines.
    FLEET_DEMAND_RESOURCE_NAMES = 768;
    /// Keys that the needs of a whole fleet ask about, in one life of a shard.
    FLEET_KEYS = 4_096;
    /// Bytes of a machine's id.
    MACHINE_ID_BYTES = 1_024;
    /// Bytes of any other text of a machine: type, zone, host, a label's key or value.
    MACHINE_TEXT_BYTES = 1_024;
    /// Labels of one machine.
    MACHINE_LABELS = 256;
    /// Resource names of one machine.
    MACHINE_RESOURCES = 256;
    /// Bytes of a machine's metadata, keys and values together.
    MACHINE_METADATA_BYTES = 128 << 10;
    /// Bytes of a machine's last error; what is longer is cut, because a record that says "failed" must count.
    MACHINE_ERROR_BYTES = 4_096;
}

/// More of something than is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub struct OverLimit {
    /// The field, as the wire calls it.
    pub field: &'static str,
    /// How much came.
    pub found: usize,
    /// How much is taken.
    pub most: usize,
    /// Of what.
    pub unit: &'static str,
}

impl fmt::Display for OverLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, found, most, unit } = self;
        write!(f, "{field} has {found} {unit}; at most {most} are taken")
    }
}

/// Refuses more than `most` of something.
pub fn count(field: &'static str, unit: &'static str, found: usize, most: usize) -> Result<(), OverLimit> {
    if found <= most { Ok(()) } else { Err(OverLimit { field, found, most, unit }) }
}

/// Refuses a text that is too long.
pub fn text(field: &'static str, text: &str, most: usize) -> Result<(), OverLimit> {
    count(field, "bytes", text.len(), most)
}

/// The beginning of a text, cut to so many bytes at a character.
pub fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_itself_passes_and_one_more_does_not() {
        assert_eq!(count("needs", "rows", 5, 5), Ok(()));
        let over = count("needs", "rows", 6, 5).unwrap_err();
        assert_eq!(over.to_string(), "needs has 6 rows; at most 5 are taken");
        assert_eq!(text("group", "é", 1).unwrap_err().found, 2, "bytes count, not characters");
    }

    #[test]
    fn text_is_cut_at_a_character() {
        for (whole, most, kept) in
            [("abc", 3, "abc"), ("abc", 2, "ab"), ("aé", 2, "a"), ("é", 1, ""), ("", 0, "")]
        {
            assert_eq!(cut(whole, most), kept);
        }
    }
}
