//! What is stored: one value per key, as JSON that a person can read with the store's own tools.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::error::LoadError;
use crate::key::Key;

/// What the store is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// The form of everything else.
    pub edition: u32,
    /// The highest term this fleet was led in. What comes after never falls below, whatever store it is moved to.
    pub term: i64,
}

/// The last number given to an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequence {
    /// The number.
    pub last: u64,
}

/// A shard that has reported once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// Its id.
    pub id: Box<str>,
    /// Where it said it serves when it first reported.
    pub address: Box<str>,
    /// When that was.
    pub registered_unix_nanos: i64,
    /// Whether an admin has removed it: what it owned is freed, and then this entry goes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_leaving: bool,
}

/// A topology domain with an owner. A domain without an entry is nobody's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Domain {
    /// The label's key.
    pub key: Box<str>,
    /// The label's value.
    pub value: Box<str>,
    /// Whose it is.
    pub tenure: Tenure,
    /// Since when.
    pub since_unix_nanos: i64,
}

/// Who may act on the machines of a domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Tenure {
    /// One shard, from when it takes the order; it has not said that it has.
    Arriving {
        /// Which.
        by: Box<str>,
    },
    /// One shard.
    Held {
        /// Which.
        by: Box<str>,
    },
    /// One shard still: it was told to let go and has not said that it has.
    Leaving {
        /// Which.
        by: Box<str>,
        /// Who has it next.
        next: Option<Box<str>>,
    },
}

impl Tenure {
    /// The one shard that may act.
    pub fn holder(&self) -> &str {
        match self {
            Self::Arriving { by } | Self::Held { by } | Self::Leaving { by, .. } => by,
        }
    }
}

/// How many machines of a kind a shard may hold. Slots beyond it are no supply for that shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// For which shard.
    pub shard: Box<str>,
    /// At which provider.
    pub provider: Box<str>,
    /// Of which instance type; empty means all together.
    pub instance_type: Box<str>,
    /// In which zone; empty means all together.
    pub zone: Box<str>,
    /// Of which capacity type; empty means all together.
    pub capacity_type: Box<str>,
    /// How many.
    pub machines: u32,
}

/// A provider, and who uses it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// Its name.
    pub name: Box<str>,
    /// Where it serves.
    pub address: Box<str>,
    /// The shards that use it; none means all.
    pub shards: Vec<Box<str>>,
}

/// Which shard a cluster talks to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Its id.
    pub id: Box<str>,
    /// Which.
    pub shard: Box<str>,
}

/// A machine that goes, or went, from one shard to another: from then on its domain does not say whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// The machine.
    pub machine: Box<str>,
    /// Its value of the fleet's domain key; empty if it has no such label.
    pub domain: Box<str>,
    /// Who gives.
    pub from: Box<str>,
    /// Who gets.
    pub to: Box<str>,
    /// Whether the giver has it by an earlier transfer.
    pub was_given: bool,
    /// How far it is.
    pub step: Step,
    /// When that was.
    pub since_unix_nanos: i64,
    /// For what: shown by `explain`.
    pub reason: String,
}

/// How far a transfer is. At every step one shard at most may act on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The giver was told to let go and has not said that it has.
    Leaving,
    /// The giver has let go; the getter may act from when it takes the order, and has not said that it has.
    Arriving,
    /// The getter has it.
    Arrived,
}

/// An order that has not been answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instruction {
    /// For whom.
    pub shard: Box<str>,
    /// Its number; later ones are greater.
    pub number: u64,
    /// In which term it was given.
    pub term: i64,
    /// What to do.
    pub order: Order,
}

impl Instruction {
    /// Names it, for ever.
    pub fn id(&self) -> String {
        format!("{}-{}", self.term, self.number)
    }
}

/// What a shard is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    /// From now on the machines of this domain are yours.
    AssignDomain {
        /// The label's key.
        key: Box<str>,
        /// The label's value.
        value: Box<str>,
    },
    /// Let go of them, and say so when nothing of yours is under way there any more.
    UnassignDomain {
        /// The label's key.
        key: Box<str>,
        /// The label's value.
        value: Box<str>,
    },
    /// Let go of machines, if you are the giver, or take them, if you are the getter.
    Transfer {
        /// Which.
        machines: Vec<Box<str>>,
        /// Who gives.
        from: Box<str>,
        /// Who gets.
        to: Box<str>,
    },
}

/// Any value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// See there.
    Meta(Meta),
    /// See there.
    Sequence(Sequence),
    /// See there.
    Shard(Shard),
    /// See there.
    Domain(Domain),
    /// See there.
    Quota(Quota),
    /// See there.
    Provider(Provider),
    /// See there.
    Cluster(Cluster),
    /// See there.
    Transfer(Transfer),
    /// See there.
    Instruction(Instruction),
}

impl Entry {
    /// Where it belongs.
    pub fn key(&self) -> Key {
        match self {
            Self::Meta(_) => Key::Meta,
            Self::Sequence(_) => Key::Sequence,
            Self::Shard(shard) => Key::Shard(shard.id.clone()),
            Self::Domain(domain) => Key::Domain(domain.key.clone(), domain.value.clone()),
            Self::Quota(quota) => quota.key(),
            Self::Provider(provider) => Key::Provider(provider.name.clone()),
            Self::Cluster(cluster) => Key::Cluster(cluster.id.clone()),
            Self::Transfer(transfer) => Key::Transfer(transfer.machine.clone()),
            Self::Instruction(order) => Key::Instruction(order.shard.clone(), order.number),
        }
    }

    /// As it is stored.
    pub fn encode(&self) -> Vec<u8> {
        let encoded = match self {
            Self::Meta(value) => serde_json::to_vec(value),
            Self::Sequence(value) => serde_json::to_vec(value),
            Self::Shard(value) => serde_json::to_vec(value),
            Self::Domain(value) => serde_json::to_vec(value),
            Self::Quota(value) => serde_json::to_vec(value),
            Self::Provider(value) => serde_json::to_vec(value),
            Self::Cluster(value) => serde_json::to_vec(value),
            Self::Transfer(value) => serde_json::to_vec(value),
            Self::Instruction(value) => serde_json::to_vec(value),
        };
        encoded.expect("entries are plain data")
    }

    /// Reads what is stored at a key, which must be where it belongs.
    pub fn decode(key: &str, value: &[u8]) -> Result<Self, LoadError> {
        fn read<T: DeserializeOwned>(key: &str, value: &[u8]) -> Result<T, LoadError> {
            serde_json::from_slice(value)
                .map_err(|problem| LoadError::Value { key: key.into(), problem: problem.to_string() })
        }
        let entry = match Key::parse(key).ok_or_else(|| LoadError::Key(key.into()))? {
            Key::Meta => Self::Meta(read(key, value)?),
            Key::Sequence => Self::Sequence(read(key, value)?),
            Key::Shard(_) => Self::Shard(read(key, value)?),
            Key::Domain(..) => Self::Domain(read(key, value)?),
            Key::Quota(..) => Self::Quota(read(key, value)?),
            Key::Provider(_) => Self::Provider(read(key, value)?),
            Key::Cluster(_) => Self::Cluster(read(key, value)?),
            Key::Transfer(_) => Self::Transfer(read(key, value)?),
            Key::Instruction(..) => Self::Instruction(read(key, value)?),
        };
        let belongs = entry.key().to_string();
        if belongs == key { Ok(entry) } else { Err(LoadError::Misplaced { key: key.into(), belongs }) }
    }
}

impl Quota {
    pub(crate) fn key(&self) -> Key {
        Key::Quota(
            self.shard.clone(),
            self.provider.clone(),
            self.instance_type.clone(),
            self.zone.clone(),
            self.capacity_type.clone(),
        )
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_false(value: &bool) -> bool {
    !value
}
