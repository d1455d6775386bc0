//! How a machine is kept on disk: as a message of our own around the machine of the wire, so that a field
//! can be added without a new format.

use std::sync::Arc;

use bigfleet_proto::v1alpha1::Machine;
use prost::Message;

use crate::fleet::{Operations, Row};
use crate::operation::OperationKind;
use crate::record::{RecordError, check};

#[derive(Clone, PartialEq, Message)]
struct StoredRow {
    #[prost(message, optional, tag = "1")]
    machine: Option<Machine>,
    #[prost(uint64, tag = "2")]
    revision: u64,
    #[prost(uint64, optional, tag = "3")]
    create: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    configure: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    drain: Option<u64>,
    #[prost(uint64, optional, tag = "6")]
    delete: Option<u64>,
}

pub(crate) fn encode_row(row: &Row) -> Vec<u8> {
    StoredRow {
        machine: Some(Machine::clone(&row.machine)),
        revision: row.revision,
        create: row.operations.get(OperationKind::Create),
        configure: row.operations.get(OperationKind::Configure),
        drain: row.operations.get(OperationKind::Drain),
        delete: row.operations.get(OperationKind::Delete),
    }
    .encode_to_vec()
}

/// Reads a row; what does not hold together is damage.
pub(crate) fn decode_row(id: &str, bytes: &[u8]) -> Result<Row, String> {
    let stored = StoredRow::decode(bytes).map_err(|error| format!("machine {id:?}: {error}"))?;
    let machine = stored.machine.ok_or_else(|| format!("machine {id:?} has no record"))?;
    if machine.id != id {
        return Err(format!("machine {id:?} holds the record of {:?}", machine.id));
    }
    check(&machine).map_err(|error: RecordError| error.to_string())?;
    let operations = Operations::default()
        .with(OperationKind::Create, stored.create)
        .with(OperationKind::Configure, stored.configure)
        .with(OperationKind::Drain, stored.drain)
        .with(OperationKind::Delete, stored.delete);
    Ok(Row { machine: Arc::new(machine), revision: stored.revision, operations })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offering::Offering;

    #[test]
    fn a_row_reads_back_as_it_was_written() {
        let machine = Offering::new("m", "t", "z").into_machine("p");
        let operations = Operations::default().with(OperationKind::Drain, Some(9));
        let row = Row { machine: machine.into(), revision: 7, operations };
        assert_eq!(decode_row("m", &encode_row(&row)), Ok(row.clone()));
        assert!(decode_row("n", &encode_row(&row)).is_err());
        assert!(decode_row("m", b"\xff").is_err());
        assert!(decode_row("m", b"").is_err());
    }
}
