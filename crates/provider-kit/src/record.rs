//! What every record must be before the kit keeps it: a provider that lists a broken one is refused by the
//! shard, one machine at a time, and nobody sees why. Better to refuse it where it is made.

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::text::Quoted;
use bigfleet_proto::convert::machine::{MachineWireError, Received};
use bigfleet_proto::v1alpha1::Machine;
use thiserror::Error;

/// The longest machine or shard id.
pub const ID_LIMIT_BYTES: usize = 4096;

/// Labels that would say again, and perhaps differently, what a field says.
const FORBIDDEN_LABELS: [&str; 9] = [
    "instance-type",
    "instance_type",
    "instanceType",
    "zone",
    "availability-zone",
    "availability_zone",
    "capacity-type",
    "capacity_type",
    "capacityType",
];

/// Why a record was refused.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RecordError {
    /// What the shard would refuse as well.
    #[error("{0}")]
    Wire(#[from] MachineWireError),
    /// An id nobody could call by.
    #[error("machine {}: its id has {bytes} bytes; at most {ID_LIMIT_BYTES} are allowed", Quoted(.id))]
    IdTooLong {
        /// Which machine.
        id: String,
        /// How long its id is.
        bytes: usize,
    },
    /// A mandatory field is empty.
    #[error("machine {}: {field} is empty; say what it is", Quoted(.id))]
    Missing {
        /// Which machine.
        id: String,
        /// Which field.
        field: &'static str,
    },
    /// A label that repeats a field.
    #[error("machine {}: label {label} repeats a field; remove it and set the field", Quoted(.id))]
    ForbiddenLabel {
        /// Which machine.
        id: String,
        /// Which label.
        label: &'static str,
    },
    /// Spot capacity that nobody could ever lose.
    #[error("machine {} is spot but its interruption probability is 0; say how likely it is lost in an hour", Quoted(.id))]
    SafeSpot {
        /// Which machine.
        id: String,
    },
    /// An update gave the machine another id.
    #[error("machine {} cannot become {}; an id is for ever", Quoted(.id), Quoted(.other))]
    Renamed {
        /// Which machine.
        id: String,
        /// What it would have been called.
        other: String,
    },
}

/// Checks a record of this provider.
pub(crate) fn check(machine: &Machine) -> Result<(), RecordError> {
    let id = || machine.id.clone();
    if machine.id.len() > ID_LIMIT_BYTES {
        return Err(RecordError::IdTooLong { id: id(), bytes: machine.id.len() });
    }
    Received::try_from(machine)?;
    for (field, text) in [("instance_type", &machine.instance_type), ("zone", &machine.zone)] {
        if text.is_empty() {
            return Err(RecordError::Missing { id: id(), field });
        }
    }
    if machine.capacity_type == CapacityType::Unspecified.to_wire() {
        return Err(RecordError::Missing { id: id(), field: "capacity_type" });
    }
    if let Some(label) = FORBIDDEN_LABELS.into_iter().find(|label| machine.labels.contains_key(*label)) {
        return Err(RecordError::ForbiddenLabel { id: id(), label });
    }
    if machine.capacity_type == CapacityType::Spot.to_wire() && machine.interruption_probability == 0.0 {
        return Err(RecordError::SafeSpot { id: id() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offering::Offering;

    fn good() -> Machine {
        Offering::new("m", "t", "z").with_resource("cpu", "4").into_machine("p")
    }

    #[test]
    fn a_plain_offering_passes() {
        assert_eq!(check(&good()), Ok(()));
    }

    #[test]
    fn each_fault_is_named() {
        let fault = |change: &dyn Fn(&mut Machine)| {
            let mut machine = good();
            change(&mut machine);
            check(&machine).expect_err("a broken record")
        };
        assert!(matches!(fault(&|m| m.zone.clear()), RecordError::Missing { field: "zone", .. }));
        assert!(matches!(
            fault(&|m| m.instance_type.clear()),
            RecordError::Missing { field: "instance_type", .. }
        ));
        assert!(matches!(
            fault(&|m| m.capacity_type = 0),
            RecordError::Missing { field: "capacity_type", .. }
        ));
        assert!(matches!(fault(&|m| m.capacity_type = 4), RecordError::SafeSpot { .. }));
        assert!(matches!(fault(&|m| m.id = "x".repeat(5000)), RecordError::IdTooLong { bytes: 5000, .. }));
        assert!(matches!(fault(&|m| m.price_per_hour = f64::NAN), RecordError::Wire(_)));
        assert!(matches!(fault(&|m| m.state = 0), RecordError::Wire(_)));
        for label in FORBIDDEN_LABELS {
            let error = fault(&|m| {
                m.labels.insert(label.into(), "x".into());
            });
            assert_eq!(error, RecordError::ForbiddenLabel { id: "m".into(), label });
        }
    }
}
