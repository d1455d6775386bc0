//! Why a call was refused, and the one place that turns a reason into a status code.
//!
//! On this service `FAILED_PRECONDITION` tells a shard that it has been superseded, and the shard stops. So
//! it belongs to [`Refusal::Fenced`] and to nothing else, whatever else might seem to fit it.

use bigfleet_model::machine::MachineState;
use bigfleet_model::text::Quoted;
use thiserror::Error;
use tonic::{Code, Status};

use crate::fence::Mark;
use crate::operation::OperationKind;
use crate::record::ID_LIMIT_BYTES;
use crate::store::StoreError;

/// The most metadata a binding may carry, in bytes of keys and values.
pub(crate) const METADATA_LIMIT_BYTES: usize = 1 << 20;

/// Why a call was refused. No refusal changes a machine.
#[derive(Debug, Clone, Error)]
pub(crate) enum Refusal {
    #[error("the machine id is empty; name the machine")]
    NoMachineId,
    #[error("the {field} has {bytes} bytes; at most {ID_LIMIT_BYTES} are allowed")]
    IdTooLong { field: &'static str, bytes: usize },
    #[error("the metadata has {bytes} bytes; at most {METADATA_LIMIT_BYTES} are allowed")]
    MetadataTooLarge { bytes: usize },
    #[error("this provider cannot give machines back")]
    DeleteUnsupported,
    #[error("shard {} at epoch {}, sequence {} is fenced for machine {}: the mark stands at epoch {}, sequence {}",
        Quoted(.shard_id), .token.epoch, .token.sequence, Quoted(.machine_id), .mark.epoch, .mark.sequence)]
    Fenced { shard_id: String, machine_id: String, token: Mark, mark: Mark },
    #[error("machine {} is unknown", Quoted(.0))]
    UnknownMachine(String),
    #[error("machine {} is {state}; {kind} starts only from {}", Quoted(.id), .kind.from())]
    WrongPosition { id: String, kind: OperationKind, state: MachineState },
    #[error("machine {} cannot be bound to a cluster without a name; set cluster_id", Quoted(.0))]
    NoCluster(String),
    #[error("{0} transitions are under way already; try again later")]
    TooBusy(usize),
    #[error("the provider is stopping; try again when it is back")]
    Stopping,
    #[error("{0}; nothing was changed, try again")]
    Store(#[from] StoreError),
}

impl Refusal {
    fn code(&self) -> Code {
        match self {
            Self::NoMachineId
            | Self::IdTooLong { .. }
            | Self::MetadataTooLarge { .. }
            | Self::NoCluster(_) => Code::InvalidArgument,
            Self::DeleteUnsupported => Code::Unimplemented,
            Self::Fenced { .. } => Code::FailedPrecondition,
            Self::UnknownMachine(_) => Code::NotFound,
            Self::WrongPosition { .. } => Code::Internal,
            Self::TooBusy(_) => Code::ResourceExhausted,
            Self::Stopping | Self::Store(_) => Code::Unavailable,
        }
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.code(), refusal.to_string())
    }
}
