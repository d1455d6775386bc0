//! Writing: tables that grow as rows refer to them.

use std::hash::{BuildHasher, Hash};

use bigfleet_model::label::Labels;
use bigfleet_model::machine::Machine;
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::profile::Profile;
use bigfleet_model::resource::ResourceVec;
use bigfleet_model::stamp::Assignment;
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};
use serde::Serialize;

use super::alike::{Kind, Stamp, Terms};
use super::rows::{
    AssignmentRow, KeyRow, KindRow, LabelsRow, MachineRow, NeedRow, ProfileRow, Tables, VectorRow,
};

/// Distinct values by number.
struct Numbered<T> {
    values: Vec<T>,
    places: HashTable<u32>,
    hasher: FixedState,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { values: Vec::new(), places: HashTable::new(), hasher: FixedState::default() }
    }
}

impl<T: Hash + Eq> Numbered<T> {
    fn number(&mut self, value: T) -> u32 {
        let Self { values, places, hasher } = self;
        let hash = hasher.hash_one(&value);
        if let Some(number) = places.find(hash, |number| values[*number as usize] == value) {
            return *number;
        }
        let number = u32::try_from(values.len()).expect("a piece has fewer than 2^32 distinct values");
        places.insert_unique(hash, number, |number| hasher.hash_one(&values[*number as usize]));
        values.push(value);
        number
    }
}

/// A piece being written: tables, and the rows so far.
#[derive(Default)]
pub(super) struct Packer<'a> {
    strings: Numbered<&'a str>,
    vectors: Numbered<VectorRow>,
    labels: Numbered<LabelsRow>,
    profiles: Numbered<ProfileRow>,
    kinds: Numbered<KindRow>,
    assignments: Numbered<AssignmentRow>,
    keys: Numbered<KeyRow>,
    kind_numbers: HashMap<Kind<'a>, u32, FixedState>,
    profile_numbers: HashMap<Terms<'a>, u32, FixedState>,
    stamp_numbers: HashMap<Stamp<'a>, u32, FixedState>,
    rows: Vec<u8>,
}

impl<'a> Packer<'a> {
    /// Adds a row.
    pub(super) fn push(&mut self, row: &impl Serialize) {
        let rows = std::mem::take(&mut self.rows);
        self.rows = postcard::to_extend(row, rows).expect("writing to memory does not fail");
    }

    /// The whole piece: version, tables, rows.
    pub(super) fn finish(self, version: u8) -> Vec<u8> {
        let tables = Tables {
            strings: self.strings.values,
            vectors: self.vectors.values,
            labels: self.labels.values,
            profiles: self.profiles.values,
            kinds: self.kinds.values,
            assignments: self.assignments.values,
            keys: self.keys.values,
        };
        let mut bytes = postcard::to_extend(&tables, vec![version]).expect("writing to memory does not fail");
        bytes.extend_from_slice(&self.rows);
        bytes
    }

    pub(super) fn string(&mut self, text: &'a str) -> u32 {
        self.strings.number(text)
    }

    pub(super) fn vector(&mut self, vector: &'a ResourceVec) -> u32 {
        let row = vector.iter().map(|(name, amount)| (self.strings.number(name.as_str()), amount)).collect();
        self.vectors.number(row)
    }

    fn labels(&mut self, labels: &'a Labels) -> u32 {
        let Self { strings, .. } = self;
        let row = labels.iter().map(|(key, value)| (strings.number(key), strings.number(value))).collect();
        self.labels.number(row)
    }

    fn profile(&mut self, profile: &'a Profile) -> u32 {
        if let Some(number) = self.profile_numbers.get(&Terms(profile)) {
            return *number;
        }
        let Self { strings, .. } = self;
        let requirements = profile.requirements().iter().map(|r| {
            let values = r.values().iter().map(|value| strings.number(value)).collect();
            (strings.number(r.key()), r.operator().to_wire() as u8, values)
        });
        let requirements = requirements.collect();
        let spread = profile.spread().iter();
        let spread = spread.map(|s| (strings.number(&s.key), s.max_skew, s.when.to_wire() as u8)).collect();
        let number = self.profiles.number(ProfileRow {
            requirements,
            spread,
            priority: profile.priority(),
            interruption: profile.interruption().to_wire() as u8,
            reclamation: profile.reclamation().to_wire() as u8,
        });
        self.profile_numbers.insert(Terms(profile), number);
        number
    }

    fn kind(&mut self, machine: &'a Machine) -> u32 {
        if let Some(number) = self.kind_numbers.get(&Kind(machine)) {
            return *number;
        }
        let row = KindRow {
            instance_type: self.string(&machine.instance_type),
            zone: self.string(&machine.zone),
            capacity: machine.capacity_type.to_wire() as u8,
            labels: self.labels(&machine.labels),
            resources: self.vector(&machine.resources),
            allocatable: self.vector(&machine.allocatable),
            price: machine.price_usd_per_hour.into(),
            probability: machine.interruption_probability.into(),
        };
        let number = self.kinds.number(row);
        self.kind_numbers.insert(Kind(machine), number);
        number
    }

    pub(super) fn assignment(&mut self, assigned: &'a Assignment) -> u32 {
        if let Some(number) = self.stamp_numbers.get(&Stamp(assigned)) {
            return *number;
        }
        let row = AssignmentRow {
            cluster: self.string(&assigned.cluster),
            priority: assigned.priority,
            interruption: assigned.interruption_penalty_usd.into(),
            reclamation: assigned.reclamation_penalty_usd.into(),
            fingerprint: self.string(&assigned.fingerprint),
            group: self.string(&assigned.group),
        };
        let number = self.assignments.number(row);
        self.stamp_numbers.insert(Stamp(assigned), number);
        number
    }

    pub(super) fn key(&mut self, key: &'a NeedKey) -> u32 {
        self.key_of(&key.cluster, &key.fingerprint, &key.group)
    }

    pub(super) fn key_of(&mut self, cluster: &'a str, fingerprint: &'a str, group: &'a str) -> u32 {
        let row = KeyRow {
            cluster: self.string(cluster),
            fingerprint: self.string(fingerprint),
            group: self.string(group),
        };
        self.keys.number(row)
    }

    pub(super) fn machine(&mut self, machine: &'a Machine) -> MachineRow<'a> {
        MachineRow {
            id: &machine.id,
            state: machine.state.to_wire() as u8,
            host: machine.host.as_ref().map(|host| (self.string(&host.provider), &*host.reference)),
            cluster: self.string(&machine.cluster),
            kind: self.kind(machine),
            assigned: self.assignment(&machine.assigned),
            draining_for: machine.draining_for.as_ref().map(|key| self.key(key)),
            idle_since: machine.idle_since_unix_nanos,
            last_error: self.string(&machine.last_error),
        }
    }

    pub(super) fn need(&mut self, need: &'a Need) -> NeedRow {
        NeedRow {
            cluster: self.string(&need.cluster),
            profile: self.profile(&need.profile),
            group: self.string(&need.group),
            aggregate: self.vector(&need.aggregate),
            min_unit: self.vector(&need.min_unit),
            first_seen: need.first_seen_unix_nanos,
            parked: need.parked,
        }
    }
}
