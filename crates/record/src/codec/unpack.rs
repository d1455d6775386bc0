//! Reading: tables are rebuilt once, then rows take from them.

use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::label::Labels;
use bigfleet_model::machine::{HostRef, Machine, MachineState};
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::{Operator, Requirement};
use bigfleet_model::resource::{ResourceName, ResourceVec};
use bigfleet_model::spread::{TopologySpread, WhenUnsatisfiable};
use bigfleet_model::stamp::Assignment;
use serde::Deserialize;

use super::rows::{
    AssignmentRow, KeyRow, KindRow, LabelsRow, MachineRow, NeedRow, ProfileRow, Tables, VectorRow,
};
use super::{CodecError, versioned};

/// A piece being read.
pub(super) struct Unpacker<'a> {
    strings: Vec<&'a str>,
    /// Those of the strings that were asked for as shared ones.
    shared: Vec<Option<Arc<str>>>,
    vectors: Vec<ResourceVec>,
    labels: Vec<Labels>,
    profiles: Vec<Arc<Profile>>,
    kinds: Vec<KindRow>,
    assignments: Vec<Assignment>,
    keys: Vec<NeedKey>,
    rest: &'a [u8],
    /// The version it was written in.
    pub(super) version: u8,
}

fn at<'t, T>(table: &'t [T], name: &'static str, index: u32) -> Result<&'t T, CodecError> {
    table.get(index as usize).ok_or(CodecError::Dangling { table: name, index })
}

impl<'a> Unpacker<'a> {
    /// Reads version and tables; the version may be any up to `reads`.
    pub(super) fn open(bytes: &'a [u8], reads: u8) -> Result<Self, CodecError> {
        let (version, bytes) = versioned(bytes, reads)?;
        let (tables, rest) = postcard::take_from_bytes::<Tables<'a>>(bytes)
            .map_err(|error| CodecError::form("tables", error))?;
        let mut piece = Self {
            shared: vec![None; tables.strings.len()],
            strings: tables.strings,
            vectors: Vec::new(),
            labels: Vec::new(),
            profiles: Vec::new(),
            kinds: tables.kinds,
            assignments: Vec::new(),
            keys: Vec::new(),
            rest,
            version,
        };
        for row in &tables.vectors {
            let vector = piece.read_vector(row)?;
            piece.vectors.push(vector);
        }
        for row in &tables.labels {
            let labels = piece.read_labels(row)?;
            piece.labels.push(labels);
        }
        for row in &tables.profiles {
            let profile = piece.read_profile(row)?;
            piece.profiles.push(Arc::new(profile));
        }
        for row in &tables.assignments {
            let assigned = piece.read_assignment(row)?;
            piece.assignments.push(assigned);
        }
        for row in &tables.keys {
            let key = piece.read_key(row)?;
            piece.keys.push(key);
        }
        Ok(piece)
    }

    /// The next row.
    pub(super) fn take<T: Deserialize<'a>>(&mut self, what: &'static str) -> Result<T, CodecError> {
        let (row, rest) =
            postcard::take_from_bytes(self.rest).map_err(|error| CodecError::form(what, error))?;
        self.rest = rest;
        Ok(row)
    }

    /// Nothing may be left over.
    pub(super) fn finish(self) -> Result<(), CodecError> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(CodecError::form("a whole piece", format_args!("{left} bytes are left over"))),
        }
    }

    pub(super) fn text(&self, index: u32) -> Result<&'a str, CodecError> {
        at(&self.strings, "string", index).copied()
    }

    pub(super) fn shared(&mut self, index: u32) -> Result<Arc<str>, CodecError> {
        let text = self.text(index)?;
        Ok(self.shared[index as usize].get_or_insert_with(|| text.into()).clone())
    }

    pub(super) fn vector(&self, index: u32) -> Result<&ResourceVec, CodecError> {
        at(&self.vectors, "vector", index)
    }

    pub(super) fn assignment(&self, index: u32) -> Result<&Assignment, CodecError> {
        at(&self.assignments, "assignment", index)
    }

    pub(super) fn key(&self, index: u32) -> Result<&NeedKey, CodecError> {
        at(&self.keys, "key", index)
    }

    fn read_vector(&self, row: &VectorRow) -> Result<ResourceVec, CodecError> {
        let refuse = |error| CodecError::value("resources", error);
        let amounts: Vec<_> = row
            .iter()
            .map(|(name, amount)| Ok((ResourceName::new(self.text(*name)?).map_err(refuse)?, *amount)))
            .collect::<Result<_, CodecError>>()?;
        ResourceVec::new(amounts).map_err(refuse)
    }

    fn read_labels(&self, row: &LabelsRow) -> Result<Labels, CodecError> {
        let pairs = row.iter().map(|(key, value)| Ok((self.text(*key)?, self.text(*value)?)));
        let pairs: Vec<_> = pairs.collect::<Result<_, CodecError>>()?;
        Labels::new(pairs).map_err(|error| CodecError::value("labels", error))
    }

    fn read_profile(&self, row: &ProfileRow) -> Result<Profile, CodecError> {
        let mut requirements = Vec::with_capacity(row.requirements.len());
        for (key, operator, values) in &row.requirements {
            let operator = Operator::from_wire(i32::from(*operator))
                .map_err(|error| CodecError::value("requirement", error))?;
            let values: Vec<&str> = values.iter().map(|value| self.text(*value)).collect::<Result<_, _>>()?;
            requirements.push(Requirement::new(self.text(*key)?, operator, values));
        }
        let mut spread = Vec::with_capacity(row.spread.len());
        for (key, max_skew, mode) in &row.spread {
            let when = WhenUnsatisfiable::from_wire(i32::from(*mode));
            if when.to_wire() != i32::from(*mode) {
                return Err(CodecError::value("spread", format_args!("mode {mode} is unknown")));
            }
            spread.push(TopologySpread::new(self.text(*key)?, *max_skew, when));
        }
        let bucket = |number: u8| {
            PenaltyBucket::from_wire(i32::from(number)).map_err(|error| CodecError::value("profile", error))
        };
        let (interruption, reclamation) = (bucket(row.interruption)?, bucket(row.reclamation)?);
        let profile = Profile::new(requirements, spread, row.priority, interruption, reclamation);
        profile.validate().map_err(|error| CodecError::value("profile", error))?;
        Ok(profile)
    }

    fn read_assignment(&mut self, row: &AssignmentRow) -> Result<Assignment, CodecError> {
        Ok(Assignment {
            cluster: self.shared(row.cluster)?,
            priority: row.priority,
            interruption_penalty_usd: row.interruption.into(),
            reclamation_penalty_usd: row.reclamation.into(),
            fingerprint: self.shared(row.fingerprint)?,
            group: self.shared(row.group)?,
        })
    }

    fn read_key(&mut self, row: &KeyRow) -> Result<NeedKey, CodecError> {
        Ok(NeedKey {
            cluster: self.shared(row.cluster)?,
            fingerprint: self.shared(row.fingerprint)?,
            group: self.shared(row.group)?,
        })
    }

    pub(super) fn machine(&self, row: &MachineRow<'_>) -> Result<Machine, CodecError> {
        let kind = at(&self.kinds, "kind", row.kind)?;
        let host = match row.host {
            Some((provider, reference)) => {
                Some(HostRef { provider: self.text(provider)?.into(), reference: reference.into() })
            }
            None => None,
        };
        Ok(Machine {
            id: row.id.into(),
            state: state(row.state)?,
            host,
            cluster: self.text(row.cluster)?.into(),
            instance_type: self.text(kind.instance_type)?.into(),
            zone: self.text(kind.zone)?.into(),
            capacity_type: CapacityType::from_wire(i32::from(kind.capacity))
                .ok_or_else(|| CodecError::value("capacity type", kind.capacity))?,
            labels: at(&self.labels, "label set", kind.labels)?.clone(),
            resources: self.vector(kind.resources)?.clone(),
            allocatable: self.vector(kind.allocatable)?.clone(),
            price_usd_per_hour: kind.price.into(),
            interruption_probability: kind.probability.into(),
            assigned: self.assignment(row.assigned)?.clone(),
            draining_for: row.draining_for.map(|key| self.key(key).cloned()).transpose()?,
            idle_since_unix_nanos: row.idle_since,
            last_error: self.text(row.last_error)?.into(),
        })
    }

    pub(super) fn need(&mut self, row: &NeedRow) -> Result<Need, CodecError> {
        Ok(Need {
            cluster: self.shared(row.cluster)?,
            profile: at(&self.profiles, "profile", row.profile)?.clone(),
            group: self.shared(row.group)?,
            aggregate: self.vector(row.aggregate)?.clone(),
            min_unit: self.vector(row.min_unit)?.clone(),
            first_seen_unix_nanos: row.first_seen,
            parked: row.parked,
        })
    }
}

pub(super) fn state(number: u8) -> Result<MachineState, CodecError> {
    MachineState::from_wire(i32::from(number)).ok_or_else(|| CodecError::value("machine state", number))
}
