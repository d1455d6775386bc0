//! What a provider knows of a machine beyond what it lists: asked when a person asks, never by itself.

use bigfleet_proto::provider_v1::ConfigureOutput;
use tonic::{Code, Status};

use crate::v1;

/// How much a provider's own words of refusal may have.
const MOST_WORDS: usize = 400;

/// Whoever can ask the provider behind a machine. The answer is bounded in bytes and time by whoever implements this.
#[tonic::async_trait]
pub trait Outputs: Send + Sync + 'static {
    /// What the last Configure of the machine printed, as far as the provider knows.
    async fn configure_output(&self, provider: &str, machine: &str) -> Result<ConfigureOutput, Status>;
}

/// Writes into an explanation what a provider said, or why it said nothing.
pub(crate) fn tell(answer: &mut v1::MachineExplanation, said: Result<ConfigureOutput, Status>) {
    match said {
        Ok(output) => {
            answer.join_output = Some(v1::JoinOutput {
                operation_id: output.operation_id,
                cluster: output.cluster_id,
                outcome: output.outcome,
                ended_unix_nanos: output.ended_unix_nanos,
                // Any bytes at all may come from a host.
                text: String::from_utf8_lossy(&output.text).into_owned(),
                is_cut: output.is_cut,
            });
        }
        // A provider that cannot know, and a machine nothing is known of, are no trouble.
        Err(status) if matches!(status.code(), Code::Unimplemented | Code::NotFound) => {}
        Err(status) => answer.join_output_trouble = status.message().chars().take(MOST_WORDS).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(said: Result<ConfigureOutput, Status>) -> v1::MachineExplanation {
        let mut answer = v1::MachineExplanation::default();
        tell(&mut answer, said);
        answer
    }

    #[test]
    fn bytes_become_text_and_only_trouble_is_trouble() {
        let output =
            ConfigureOutput { text: vec![b'a', 0xff, b'b'].into(), is_cut: true, ..Default::default() };
        let said = told(Ok(output)).join_output.expect("an output");
        assert_eq!((said.text.as_str(), said.is_cut), ("a\u{fffd}b", true));
        for quiet in [Status::unimplemented("x"), Status::not_found("x")] {
            assert_eq!(told(Err(quiet)), v1::MachineExplanation::default());
        }
        assert_eq!(told(Err(Status::unavailable("ä".repeat(500)))).join_output_trouble, "ä".repeat(400));
    }
}
