//! What a provider author writes: how machines are really made, joined, emptied and given back.
//!
//! Each function does one thing to one machine and takes as long as it takes; the kit has answered the
//! caller long before. An `Err` makes the machine Failed with that text. A function that outlives its
//! time-out is dropped at its next `await`, so leave nothing behind that a drop does not clean up.

use std::future::Future;
use std::time::Duration;

use bigfleet_proto::provider_v1::ConfigureOutput;
use bigfleet_proto::v1alpha1::Machine;

use crate::offering::Offering;
use crate::operation::OperationKind;

/// Why a machine could not be moved, in words for the person on call. Becomes `last_error`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

impl<T: Into<String>> From<T> for Failure {
    fn from(reason: T) -> Self {
        Self(reason.into())
    }
}

/// What has become of a move that was under way when the process died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Nobody knows: the machine is Failed, with this text.
    Failed(String),
    /// It ended well. For a Create this is the provider's own name for the hardware; otherwise empty.
    Ended(String),
    /// It never took effect: the machine is where it was before.
    Undone,
}

/// The provider behind the kit.
pub trait Backend: Send + Sync + 'static {
    /// The provider's name, as it appears in host references.
    fn name(&self) -> &str;

    /// The slots this provider has to offer, asked for once at every start. A slot that is stored already
    /// keeps its state and takes over what else changed; one that is no longer offered stays listed.
    fn offerings(&self) -> impl Future<Output = Result<Vec<Offering>, Failure>> + Send;

    /// Whether a slot that is stored already takes over what an offering says anew. If not, its record stays
    /// as it was left: for a provider that changes prices and labels of its own accord, by the
    /// [`Handle`](crate::Handle).
    fn renews_offerings(&self) -> bool {
        true
    }

    /// Makes the machine and returns the provider's own name for the hardware.
    fn create(&self, machine: &Machine) -> impl Future<Output = Result<String, Failure>> + Send;

    /// Starts the machine as a node of `machine.cluster`, with what it has to run to join.
    fn configure(
        &self,
        machine: &Machine,
        bootstrap: &[u8],
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Whether the machine is seen Ready in its cluster. Asked again and again after [`Self::configure`],
    /// until it says yes or the time-out is over.
    fn confirm_ready(&self, machine: &Machine) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// Whether the provider sees what bootstrap data prints and keeps it. If not, who asks is told `UNIMPLEMENTED`.
    fn keeps_output(&self) -> bool {
        false
    }

    /// What the last Configure of the machine printed, if anything is known of it. Only people ask, and nobody but
    /// [`Self::keeps_output`] lets them.
    fn configure_output(
        &self,
        machine: &Machine,
    ) -> impl Future<Output = Result<Option<ConfigureOutput>, Failure>> + Send {
        let _ = machine;
        async { Ok(None) }
    }

    /// Takes the machine out of its cluster; pods have `grace` to leave.
    fn drain(&self, machine: &Machine, grace: Duration) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Whether hardware can be given back. If not, Delete is answered `UNIMPLEMENTED`.
    fn supports_delete(&self) -> bool {
        true
    }

    /// Gives the hardware back.
    fn delete(&self, machine: &Machine) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Whether [`Self::recover`] takes its time. If so the provider serves meanwhile: a machine whose move was
    /// cut short stays in its transitional state until `recover` has an answer, at most for the time-out of
    /// the move. If not, all answers are waited for, one after the other, before anything is served.
    fn recovers_while_serving(&self) -> bool {
        false
    }

    /// What has become of a move that was under way when the process died. Without an answer of your own
    /// the machine is Failed, which is always safe.
    fn recover(&self, machine: &Machine, kind: OperationKind) -> impl Future<Output = Recovery> + Send {
        let reason =
            format!("the provider restarted during {kind} of machine {}; its outcome is unknown", machine.id);
        async { Recovery::Failed(reason) }
    }
}
