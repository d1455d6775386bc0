//! The rows of a scenario file, as they stand there.
//!
//! One set of structs serves both ways. Strings are borrowed from the text wherever it holds them unescaped:
//! half a million machines cost no allocation before they become machines.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::InputError;

/// A file: an input under `input`, or the fields of an input at the top.
#[derive(Deserialize)]
pub(super) struct Document<'a> {
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(borrow, default)]
    input: Option<Input<'a>>,
    #[serde(default)]
    now_unix_nanos: i64,
    #[serde(default)]
    release_policy: Option<Release>,
    #[serde(default)]
    phase2: Option<Phase2>,
    #[serde(borrow, default)]
    ready_clusters: Option<Vec<Text<'a>>>,
    #[serde(borrow, default)]
    machines: Option<Vec<MachineRow<'a>>>,
    #[serde(borrow, default)]
    needs: Option<Vec<NeedRow<'a>>>,
}

impl<'a> Document<'a> {
    /// The input, wherever it stands.
    pub(super) fn into_input(self) -> Result<Input<'a>, InputError> {
        if let Some(input) = self.input {
            return Ok(input);
        }
        if self.machines.is_none() && self.needs.is_none() {
            return Err(InputError::NoInput);
        }
        Ok(Input {
            now_unix_nanos: self.now_unix_nanos,
            release_policy: self.release_policy,
            phase2: self.phase2,
            ready_clusters: self.ready_clusters,
            machines: self.machines.unwrap_or_default(),
            needs: self.needs.unwrap_or_default(),
        })
    }
}

/// The snapshot and the options.
#[derive(Deserialize)]
pub(super) struct Input<'a> {
    #[serde(default)]
    pub(super) now_unix_nanos: i64,
    #[serde(default)]
    pub(super) release_policy: Option<Release>,
    #[serde(default)]
    pub(super) phase2: Option<Phase2>,
    #[serde(borrow, default)]
    pub(super) ready_clusters: Option<Vec<Text<'a>>>,
    #[serde(borrow, default)]
    pub(super) machines: Vec<MachineRow<'a>>,
    #[serde(borrow, default)]
    pub(super) needs: Vec<NeedRow<'a>>,
}

/// How long idle machines are held.
#[derive(Serialize, Deserialize)]
pub(super) struct Release {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) on_demand_hold_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) spot_hold_ns: Option<u64>,
}

/// How victims are scored.
#[derive(Serialize, Deserialize)]
pub(super) struct Phase2 {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) estimated_drain_ns: Option<u64>,
    #[serde(default)]
    pub(super) weights: Weights,
}

/// The weights of the victim score; an absent one keeps its default.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct Weights {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) drain_speed: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) interruption: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) priority: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reclamation: Option<f64>,
}

/// One machine. Fields stand in the order of their names, as the vector files have them.
#[derive(Serialize, Deserialize)]
pub(super) struct MachineRow<'a> {
    #[serde(borrow, default, skip_serializing_if = "Pairs::is_empty")]
    pub(super) allocatable: Pairs<'a, Amount<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) assigned_cluster: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) assigned_fingerprint: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) assigned_group: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) assigned_interruption_penalty: Dollars,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) assigned_need: Option<u64>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) assigned_priority: i32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) assigned_reclamation_penalty: Dollars,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) capacity_type: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) cluster: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) draining_for: Option<DrainingFor<'a>>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) idle_since_unix_nanos: Option<i64>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) instance_type: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) interruption_probability: f64,
    #[serde(borrow, default, skip_serializing_if = "Pairs::is_empty")]
    pub(super) labels: Pairs<'a, Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) last_error: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) price: f64,
    #[serde(borrow, default, skip_serializing_if = "Pairs::is_empty")]
    pub(super) resources: Pairs<'a, Amount<'a>>,
    #[serde(borrow)]
    pub(super) state: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) zone: Option<Text<'a>>,
}

/// The need a machine drains for: a row of the file, written out, or a row with parts replaced.
#[derive(Serialize, Deserialize)]
pub(super) struct DrainingFor<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) cluster: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) fingerprint: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) group: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) need: Option<u64>,
}

/// One need.
#[derive(Serialize, Deserialize)]
pub(super) struct NeedRow<'a> {
    #[serde(borrow, default, skip_serializing_if = "Pairs::is_empty")]
    pub(super) aggregate: Pairs<'a, Amount<'a>>,
    #[serde(default)]
    pub(super) arrival_unix_nanos: i64,
    #[serde(borrow, default)]
    pub(super) cluster: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) group: Option<Text<'a>>,
    #[serde(default)]
    pub(super) interruption_bucket: i32,
    #[serde(borrow, default, skip_serializing_if = "Pairs::is_empty")]
    pub(super) min_unit: Pairs<'a, Amount<'a>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) parked: bool,
    #[serde(default)]
    pub(super) priority: i32,
    #[serde(default)]
    pub(super) reclamation_bucket: i32,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub(super) requirements: Vec<RequirementRow<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub(super) spread: Vec<SpreadRow<'a>>,
}

/// One requirement.
#[derive(Serialize, Deserialize)]
pub(super) struct RequirementRow<'a> {
    #[serde(borrow, default)]
    pub(super) key: Text<'a>,
    #[serde(borrow, default)]
    pub(super) op: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub(super) values: Vec<Text<'a>>,
}

/// One spread constraint.
#[derive(Serialize, Deserialize)]
pub(super) struct SpreadRow<'a> {
    #[serde(borrow, default)]
    pub(super) key: Text<'a>,
    #[serde(default)]
    pub(super) max_skew: i32,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) when: Option<Text<'a>>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A zero may be left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// A string, borrowed if the text holds it as it is.
#[derive(Serialize, Deserialize, Default)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

/// A Kubernetes quantity; a bare whole number is taken too.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Amount<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Amount<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AmountVisitor;
        impl<'de> Visitor<'de> for AmountVisitor {
            type Value = Amount<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity such as \"500m\" or \"16Gi\"")
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Amount(Cow::Borrowed(text)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Amount(Cow::Owned(text.to_owned())))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Amount(Cow::Owned(number.to_string())))
            }
        }
        deserializer.deserialize_any(AmountVisitor)
    }
}

/// Dollars: a number, or `"inf"`.
#[derive(Clone, Copy, Default)]
pub(super) struct Dollars(pub(super) f64);

/// By bits: a negative zero is not a zero, and must be written down.
impl PartialEq for Dollars {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 == f64::INFINITY {
            serializer.serialize_str("inf")
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DollarsVisitor;
        impl Visitor<'_> for DollarsVisitor {
            type Value = Dollars;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("dollars as a number, or \"inf\"")
            }
            fn visit_f64<E: de::Error>(self, dollars: f64) -> Result<Dollars, E> {
                Ok(Dollars(dollars))
            }
            fn visit_u64<E: de::Error>(self, dollars: u64) -> Result<Dollars, E> {
                Ok(Dollars(dollars as f64))
            }
            fn visit_i64<E: de::Error>(self, dollars: i64) -> Result<Dollars, E> {
                Ok(Dollars(dollars as f64))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Dollars, E> {
                if text == "inf" {
                    return Ok(Dollars(f64::INFINITY));
                }
                Err(E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(DollarsVisitor)
    }
}

/// An object with free keys, in the order of the text and with its duplicates, which are judged later.
pub(super) struct Pairs<'a, V>(pub(super) Vec<(Text<'a>, V)>);

impl<V> Pairs<'_, V> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<V> Default for Pairs<'_, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V: Serialize> Serialize for Pairs<'_, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de: 'a, 'a, V: Deserialize<'de>> Deserialize<'de> for Pairs<'a, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for PairsVisitor<V> {
            type Value = Vec<(Text<'de>, V)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::with_capacity(4);
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(pairs)
            }
        }
        deserializer.deserialize_map(PairsVisitor(PhantomData)).map(Pairs)
    }
}
