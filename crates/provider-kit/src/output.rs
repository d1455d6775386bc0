//! What a machine printed while it joined, for providers that see it: asked by people, decided upon by nobody.

use std::sync::Arc;

use bigfleet_proto::provider_v1::machine_output_server::MachineOutput;
use bigfleet_proto::provider_v1::{ConfigureOutput, ConfigureOutputRequest};
use bigfleet_proto::transport::OUTPUT_LIMIT_BYTES;
use tonic::{Request, Response, Status};

use crate::backend::Backend;
use crate::provider::Provider;
use crate::refusal::Refusal;

/// A service that may know what a Configure has printed.
pub trait Outputs: Send + Sync + 'static {
    /// What the last Configure of this machine printed, at most so much of its end.
    fn configure_output(
        &self,
        machine_id: &str,
        most_bytes: usize,
    ) -> impl Future<Output = Result<ConfigureOutput, Status>> + Send {
        let _ = (machine_id, most_bytes);
        async { Err(Status::unimplemented("this provider does not see what bootstrap data prints")) }
    }
}

impl<B: Backend> Outputs for Provider<B> {
    async fn configure_output(&self, machine_id: &str, most_bytes: usize) -> Result<ConfigureOutput, Status> {
        if !self.backend.keeps_output() {
            return Err(Status::unimplemented("this provider does not see what bootstrap data prints"));
        }
        let machine = self.shared.fleet().get(machine_id).map(|row| row.machine.clone());
        let machine = machine.ok_or_else(|| Refusal::UnknownMachine(machine_id.into()))?;
        let output = self.backend.configure_output(&machine).await;
        let output = output.map_err(|failure| Status::unavailable(failure.0))?;
        output
            .map(|output| ending(output, most_bytes))
            .ok_or_else(|| Status::not_found("no Configure of it has printed anything that is still known"))
    }
}

/// The end of it, if it is longer than it may be.
fn ending(mut output: ConfigureOutput, most_bytes: usize) -> ConfigureOutput {
    let surplus = output.text.len().saturating_sub(most_bytes);
    output.is_cut |= surplus > 0;
    output.text = output.text.slice(surplus..);
    output
}

/// The service on a socket.
pub(crate) struct Asked<S>(pub(crate) Arc<S>);

#[tonic::async_trait]
impl<S: Outputs> MachineOutput for Asked<S> {
    async fn get_configure_output(
        &self,
        request: Request<ConfigureOutputRequest>,
    ) -> Result<Response<ConfigureOutput>, Status> {
        let ConfigureOutputRequest { machine_id, most_bytes } = request.into_inner();
        let most_bytes = match most_bytes as usize {
            0 => OUTPUT_LIMIT_BYTES,
            asked => asked.min(OUTPUT_LIMIT_BYTES),
        };
        Ok(Response::new(self.0.configure_output(&machine_id, most_bytes).await?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_text_is_what_counts() {
        let output = |text: &'static str, is_cut| ConfigureOutput {
            text: text.into(),
            is_cut,
            ..ConfigureOutput::default()
        };
        assert_eq!(ending(output("joined", false), 6), output("joined", false));
        assert_eq!(ending(output("it joined", false), 6), output("joined", true));
        assert_eq!(ending(output("ed", true), 6), output("ed", true));
    }
}
