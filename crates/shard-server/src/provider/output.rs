//! Asking a provider what a machine printed while it joined: for somebody who asks why, never for the shard.
//!
//! The core thread is not involved. The answer has a bound in bytes and in time, and so has the number of questions: a
//! provider that hangs costs those who ask a moment and nobody else anything.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_net::nanos;
use bigfleet_proto::provider_v1::{ConfigureOutput, ConfigureOutputRequest};
use bigfleet_proto::transport::OUTPUT_LIMIT_BYTES;
use bigfleet_view::Outputs;
use prost::Message;
use tokio::sync::Semaphore;
use tonic::Status;
use tonic::codegen::http::uri::PathAndQuery;

use super::Provider;
use crate::raw::Raw;

/// How long somebody who asks is kept waiting.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many may ask at once.
const AT_ONCE: usize = 16;
/// What the answer may have beside the text.
const NAMES_BYTES: usize = 16 << 10;
const PATH: &str = "/bigfleet.provider.v1.MachineOutput/GetConfigureOutput";

/// Asks the provider behind a machine.
pub(crate) struct Asker {
    providers: Vec<Provider>,
    places: Semaphore,
}

impl Asker {
    pub(crate) fn new(providers: Vec<Provider>) -> Arc<Self> {
        Arc::new(Self { providers, places: Semaphore::new(AT_ONCE) })
    }
}

#[tonic::async_trait]
impl Outputs for Asker {
    async fn configure_output(&self, provider: &str, machine: &str) -> Result<ConfigureOutput, Status> {
        let found = self.providers.iter().find(|one| &*one.0.name == provider);
        let found = found.ok_or_else(|| Status::not_found("its provider is not one of this shard's"))?;
        let busy = || Status::resource_exhausted("too many ask for outputs at this moment; try again");
        let _place = self.places.try_acquire().map_err(|_| busy())?;
        found.clone().configure_output(machine).await
    }
}

impl Provider {
    async fn configure_output(self, machine: &str) -> Result<ConfigureOutput, Status> {
        let most_bytes = OUTPUT_LIMIT_BYTES as u32;
        let request = ConfigureOutputRequest { machine_id: machine.into(), most_bytes };
        let asked = async {
            let mut client = self.client(OUTPUT_LIMIT_BYTES + NAMES_BYTES).await?;
            let request = tonic::Request::new(request.encode_to_vec().into());
            let answer = client.unary(request, PathAndQuery::from_static(PATH), Raw).await?.into_inner();
            ConfigureOutput::decode(answer).map_err(|error| Status::internal(error.to_string()))
        };
        self.within("MachineOutput.GetConfigureOutput", nanos(PATIENCE), asked).await
    }
}
