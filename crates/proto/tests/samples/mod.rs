//! One sample per message, all fields set by the rule in `golden.rs`.

pub(crate) mod capacity;
pub(crate) mod coordinator;
pub(crate) mod provider;
pub(crate) mod shard;
pub(crate) mod shardread;

use std::collections::BTreeMap;

pub(crate) fn s(text: &str) -> String {
    text.into()
}

pub(crate) fn twice(text: &str) -> Vec<String> {
    vec![text.into(), text.into()]
}

pub(crate) fn bytes(name: &str) -> Vec<u8> {
    [b"\x00\xff", name.as_bytes()].concat()
}

pub(crate) fn texts() -> BTreeMap<String, String> {
    BTreeMap::from([(s("a"), s("1")), (s("b"), s("2"))])
}

pub(crate) fn counts() -> BTreeMap<String, i32> {
    BTreeMap::from([(s("a"), 1), (s("b"), 2)])
}
