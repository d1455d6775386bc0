//! The rows: how each type of the model lies on disk. Numbers are places in the tables of the same piece.

use serde::{Deserialize, Serialize};

use super::number::Bits;

/// The tables before the rows.
#[derive(Serialize, Deserialize)]
pub(super) struct Tables<'a> {
    #[serde(borrow)]
    pub(super) strings: Vec<&'a str>,
    pub(super) vectors: Vec<VectorRow>,
    pub(super) labels: Vec<LabelsRow>,
    pub(super) profiles: Vec<ProfileRow>,
    pub(super) kinds: Vec<KindRow>,
    pub(super) assignments: Vec<AssignmentRow>,
    pub(super) keys: Vec<KeyRow>,
}

/// Names and amounts.
pub(super) type VectorRow = Vec<(u32, u64)>;
/// Keys and values.
pub(super) type LabelsRow = Vec<(u32, u32)>;

#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct ProfileRow {
    /// Key, operator, values.
    pub(super) requirements: Vec<(u32, u8, Vec<u32>)>,
    /// Key, skew, mode.
    pub(super) spread: Vec<(u32, i32, u8)>,
    pub(super) priority: i32,
    pub(super) interruption: u8,
    pub(super) reclamation: u8,
}

/// What many machines have in common.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct KindRow {
    pub(super) instance_type: u32,
    pub(super) zone: u32,
    pub(super) capacity: u8,
    pub(super) labels: u32,
    pub(super) resources: u32,
    pub(super) allocatable: u32,
    pub(super) price: Bits,
    pub(super) probability: Bits,
}

#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct AssignmentRow {
    pub(super) cluster: u32,
    pub(super) priority: i32,
    pub(super) interruption: Bits,
    pub(super) reclamation: Bits,
    pub(super) fingerprint: u32,
    pub(super) group: u32,
}

#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct KeyRow {
    pub(super) cluster: u32,
    pub(super) fingerprint: u32,
    pub(super) group: u32,
}

#[derive(Serialize, Deserialize)]
pub(super) struct MachineRow<'a> {
    pub(super) id: &'a str,
    pub(super) state: u8,
    /// The provider and its name for the host.
    #[serde(borrow)]
    pub(super) host: Option<(u32, &'a str)>,
    pub(super) cluster: u32,
    pub(super) kind: u32,
    pub(super) assigned: u32,
    pub(super) draining_for: Option<u32>,
    pub(super) idle_since: Option<i64>,
    pub(super) last_error: u32,
}

#[derive(Serialize, Deserialize)]
pub(super) struct NeedRow {
    pub(super) cluster: u32,
    pub(super) profile: u32,
    pub(super) group: u32,
    pub(super) aggregate: u32,
    pub(super) min_unit: u32,
    pub(super) first_seen: i64,
    pub(super) parked: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) enum InputRow<'a> {
    #[serde(borrow)]
    Observe(MachineRow<'a>),
    Remove(&'a str),
    Replace {
        cluster: u32,
        at: i64,
        needs: Vec<NeedRow>,
    },
    Park {
        key: u32,
        parked: bool,
    },
}

#[derive(Serialize, Deserialize)]
pub(super) struct DecidedRow<'a> {
    pub(super) kind: u8,
    pub(super) machine: &'a str,
    pub(super) cluster: Option<u32>,
    /// Identity, folded, smallest machine.
    pub(super) need: Option<(u32, bool, u32)>,
    pub(super) grace_secs: Option<u32>,
    pub(super) fate: u8,
    #[serde(borrow)]
    pub(super) why: Option<WhyRow<'a>>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct WhyRow<'a> {
    pub(super) rule: u8,
    pub(super) figure: Bits,
    /// Machine, state, figure.
    #[serde(borrow)]
    pub(super) runner_up: Option<(&'a str, u8, Bits)>,
}

/// The head of a cycle. The rows follow: inputs, then decisions, as many as said.
#[derive(Serialize, Deserialize)]
pub(super) struct CycleRow {
    pub(super) cycle: u64,
    pub(super) epoch: i64,
    pub(super) now: i64,
    pub(super) reasons: u8,
    pub(super) is_full: bool,
    pub(super) inputs: u32,
    pub(super) decided: u32,
    pub(super) decided_in_all: u32,
    pub(super) digest: u64,
    pub(super) usd_per_hour: Bits,
    pub(super) short_needs: u32,
}

#[derive(Serialize, Deserialize)]
pub(super) struct OptionsRow<'a> {
    /// On-demand and spot; 0 for ever.
    pub(super) holds: (u64, u64),
    /// Priority, drain speed, interruption, reclamation.
    pub(super) weights: [Bits; 4],
    pub(super) estimated_drain_nanos: u64,
    /// All clusters if there is no list.
    #[serde(borrow)]
    pub(super) ready: Option<Vec<&'a str>>,
}
