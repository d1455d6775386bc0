//! Where things are in a store: the layout that `docs/coordinator.md` documents.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Names may hold anything, a slash for example. What stays is readable in `etcdctl`.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// The place of one entry. Below a prefix that whoever runs a store chooses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// What the store is.
    Meta,
    /// The last number given to an instruction.
    Sequence,
    /// A shard.
    Shard(Box<str>),
    /// A domain, by key and value.
    Domain(Box<str>, Box<str>),
    /// A quota, by shard, provider, instance type, zone and capacity type.
    Quota(Box<str>, Box<str>, Box<str>, Box<str>, Box<str>),
    /// A provider.
    Provider(Box<str>),
    /// A cluster's binding.
    Cluster(Box<str>),
    /// A machine that was handed from one shard to another.
    Transfer(Box<str>),
    /// An instruction that has not been answered, by shard and number.
    Instruction(Box<str>, u64),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |text| utf8_percent_encode(text, ESCAPED);
        match self {
            Self::Meta => f.write_str("meta"),
            Self::Sequence => f.write_str("sequence"),
            Self::Shard(id) => write!(f, "shards/{}", part(id)),
            Self::Domain(key, value) => write!(f, "domains/{}/{}", part(key), part(value)),
            Self::Quota(shard, provider, kind, zone, capacity) => write!(
                f,
                "quotas/{}/{}/{}/{}/{}",
                part(shard),
                part(provider),
                part(kind),
                part(zone),
                part(capacity)
            ),
            Self::Provider(name) => write!(f, "providers/{}", part(name)),
            Self::Cluster(id) => write!(f, "clusters/{}", part(id)),
            Self::Transfer(id) => write!(f, "transfers/{}", part(id)),
            // Sixteen digits: the order of the names is the order of the numbers.
            Self::Instruction(shard, number) => write!(f, "instructions/{}/{number:016x}", part(shard)),
        }
    }
}

impl Key {
    /// Reads a place; `None` if it is none of ours.
    pub fn parse(text: &str) -> Option<Self> {
        let name = |part: &str| -> Option<Box<str>> {
            let decoded = percent_decode_str(part).decode_utf8().ok()?;
            Some(decoded.into())
        };
        let parts: Vec<&str> = text.split('/').collect();
        let key = match parts[..] {
            ["meta"] => Self::Meta,
            ["sequence"] => Self::Sequence,
            ["shards", id] => Self::Shard(name(id)?),
            ["domains", key, value] => Self::Domain(name(key)?, name(value)?),
            ["quotas", shard, provider, kind, zone, capacity] => {
                Self::Quota(name(shard)?, name(provider)?, name(kind)?, name(zone)?, name(capacity)?)
            }
            ["providers", id] => Self::Provider(name(id)?),
            ["clusters", id] => Self::Cluster(name(id)?),
            ["transfers", id] => Self::Transfer(name(id)?),
            ["instructions", shard, number] => {
                Self::Instruction(name(shard)?, u64::from_str_radix(number, 16).ok()?)
            }
            _ => return None,
        };
        // One spelling per place: otherwise one thing could be stored twice.
        (key.to_string() == text).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places_read_like_their_things() {
        let shown = |key: Key| key.to_string();
        assert_eq!(shown(Key::Shard("eu-1".into())), "shards/eu-1");
        assert_eq!(
            shown(Key::Domain("topology.kubernetes.io/zone".into(), "eu-west-1a".into())),
            "domains/topology.kubernetes.io%2Fzone/eu-west-1a"
        );
        assert_eq!(shown(Key::Instruction("eu-1".into(), 255)), "instructions/eu-1/00000000000000ff");
    }

    #[test]
    fn other_spellings_are_none_of_ours() {
        for text in [
            "",
            "shards",
            "shards/",
            "shards/a/b",
            "shards/%61",
            "shards/%2f",
            "instructions/a/ff",
            "meta/",
            "x",
        ] {
            let read = Key::parse(text);
            assert!(read.is_none() || text == "shards/", "{text}: {read:?}");
        }
    }

    proptest! {
        #[test]
        fn every_name_has_one_place(a in "\\PC{0,9}", b in "[/%a-c]{0,5}", number: u64) {
            for key in [
                Key::Shard(a.clone().into()),
                Key::Domain(a.clone().into(), b.clone().into()),
                Key::Quota(a.clone().into(), b.clone().into(), b.clone().into(), a.clone().into(), "spot".into()),
                Key::Instruction(b.clone().into(), number),
            ] {
                prop_assert_eq!(Key::parse(&key.to_string()), Some(key));
            }
        }
    }
}
