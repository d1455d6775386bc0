//! A question to a coordinator. If another replica leads, it is asked instead.

use std::path::PathBuf;
use std::sync::Mutex;

use bigfleet_coordinator_server::LEADER_HEADER;
use bigfleet_proto::coordinator_v1::fleet_client::FleetClient;
use bigfleet_proto::transport;
use bigfleet_proto::v1alpha1::coordinator_client::CoordinatorClient;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

use crate::context::{Reach, Target};
use crate::exit::Failure;
use crate::reach::Trouble;

/// The flags of every command that asks a coordinator.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Coordinator")]
pub(crate) struct Whom {
    /// Any replica, as host:port or URL
    #[arg(long, value_name = "ADDRESS", env = "BIGFLEET_COORDINATOR", default_value = "127.0.0.1:7790")]
    coordinator: String,
    /// Our certificate chain, if it speaks TLS
    #[arg(long, value_name = "FILE", env = "BIGFLEET_TLS_CERT")]
    tls_cert: Option<PathBuf>,
    /// The key of our certificate
    #[arg(long, value_name = "FILE", env = "BIGFLEET_TLS_KEY")]
    tls_key: Option<PathBuf>,
    /// The CA whose certificates we believe
    #[arg(long, value_name = "FILE", env = "BIGFLEET_TLS_CA")]
    tls_ca: Option<PathBuf>,
}

/// A coordinator that can be asked.
pub(super) struct Coordinator {
    target: Mutex<Target>,
}

impl Coordinator {
    /// The one the flags mean. Nothing is connected before the first question.
    pub(super) fn new(whom: &Whom) -> Result<Self, Failure> {
        let reach = Reach {
            record: None,
            server: Some(whom.coordinator.clone()),
            context: None,
            tls_cert: whom.tls_cert.clone(),
            tls_key: whom.tls_key.clone(),
            tls_ca: whom.tls_ca.clone(),
        };
        Ok(Self { target: Mutex::new(reach.target()?) })
    }

    /// What a failed call means.
    pub(super) fn trouble(&self, status: &Status) -> Trouble {
        Trouble::of(status, &self.target())
    }

    fn target(&self) -> Target {
        self.target.lock().expect("no holder panics").clone()
    }

    /// Asks one thing of our own package.
    pub(super) async fn ask<T, F>(&self, call: impl Fn(FleetClient<Channel>) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        self.at_the_leader(|channel| call(transport::fleet_client(channel))).await
    }

    /// Asks one thing of the wire.
    pub(super) async fn ask_wire<T, F>(
        &self,
        call: impl Fn(CoordinatorClient<Channel>) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        self.at_the_leader(|channel| call(transport::coordinator_client(channel))).await
    }

    async fn at_the_leader<T, F>(&self, call: impl Fn(Channel) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let answer = call(self.target().channel()?).await;
        let leader = answer.as_ref().err().filter(|status| status.code() == Code::FailedPrecondition);
        let leader =
            leader.and_then(|status| status.metadata().get(LEADER_HEADER)?.to_str().ok()).map(str::to_owned);
        let answer = match leader {
            None => answer,
            // Once: leaders that name each other would go round for ever.
            Some(leader) => {
                self.target.lock().expect("no holder panics").server = leader;
                call(self.target().channel()?).await
            }
        };
        Ok(answer.map_err(|status| self.trouble(&status))?.into_inner())
    }
}
