//! The kit's questions, answered with real hosts.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_provider_kit::{Backend, ConfigureOutput, Failure, Machine, Offering, OperationKind, Recovery};

use crate::agent;
use crate::shared::Shared;

/// The longest grace a shard gives, for a drain whose grace a restart has forgotten.
const RESUMED_GRACE: Duration = Duration::from_mins(10);

/// The hosts of an inventory as a provider.
pub struct Metal {
    pub(crate) shared: Arc<Shared>,
    pub(crate) name: String,
    /// While people look at a store that serves nobody, moves that were cut short stay as they are.
    pub(crate) recovers: bool,
}

impl Backend for Metal {
    fn name(&self) -> &str {
        &self.name
    }

    async fn offerings(&self) -> Result<Vec<Offering>, Failure> {
        Ok(self.shared.inventory().hosts.values().map(crate::inventory::Host::offering).collect())
    }

    async fn create(&self, machine: &Machine) -> Result<String, Failure> {
        self.shared.create(machine).await
    }

    async fn configure(&self, machine: &Machine, bootstrap: &[u8]) -> Result<(), Failure> {
        self.shared.configure(machine, bootstrap).await
    }

    /// The hook on the host was asked already: the job of a Configure ends when it agrees.
    async fn confirm_ready(&self, _: &Machine) -> Result<bool, Failure> {
        Ok(true)
    }

    fn keeps_output(&self) -> bool {
        true
    }

    async fn configure_output(&self, machine: &Machine) -> Result<Option<ConfigureOutput>, Failure> {
        let (shared, name) = (self.shared.clone(), machine.id.clone());
        let read = tokio::task::spawn_blocking(move || shared.kept.configured(&name)).await;
        let kept = read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        Ok(kept.map(|kept| ConfigureOutput {
            operation_id: kept.operation,
            cluster_id: kept.cluster,
            outcome: kept.outcome,
            ended_unix_nanos: kept.ended_unix_nanos,
            is_cut: kept.output.len() >= agent::OUTPUT_LIMIT_BYTES,
            text: kept.output.into(),
        }))
    }

    async fn drain(&self, machine: &Machine, grace: Duration) -> Result<(), Failure> {
        self.shared.drain(machine, grace, Duration::ZERO).await
    }

    async fn delete(&self, machine: &Machine) -> Result<(), Failure> {
        self.shared.delete(machine).await
    }

    fn recovers_while_serving(&self) -> bool {
        true
    }

    /// Every move goes on where it was. Only the bootstrap data is gone: if it never arrived, the Configure
    /// never was.
    async fn recover(&self, machine: &Machine, kind: OperationKind) -> Recovery {
        if !self.recovers {
            return std::future::pending().await;
        }
        let outcome =
            match kind {
                OperationKind::Create => self.shared.create(machine).await.map(Recovery::Ended),
                OperationKind::Configure => self.shared.resume_configure(machine).await.map(|has_joined| {
                    if has_joined { Recovery::Ended(String::new()) } else { Recovery::Undone }
                }),
                OperationKind::Drain => {
                    let drained = self.shared.drain(machine, Duration::ZERO, RESUMED_GRACE).await;
                    drained.map(|()| Recovery::Ended(String::new()))
                }
                OperationKind::Delete => {
                    self.shared.delete(machine).await.map(|()| Recovery::Ended(String::new()))
                }
            };
        outcome.unwrap_or_else(|failure| Recovery::Failed(failure.0))
    }
}
