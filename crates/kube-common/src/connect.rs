//! Reaching the API server.

use std::path::PathBuf;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use thiserror::Error;

/// How long one read may take. Watches are answered at least this often, by bookmarks or by ending.
const READ_TIMEOUT: Duration = Duration::from_secs(330);
/// How long reaching the server may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the API server is, and who we are there.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// A kubeconfig. Without one: `KUBECONFIG`, then `~/.kube/config`, then the pod's own service account.
    pub kubeconfig: Option<PathBuf>,
    /// A context in it, if not the current one.
    pub context: Option<String>,
}

/// Why the server cannot be reached.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The kubeconfig cannot be used.
    #[error("kubeconfig: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// There is neither a kubeconfig nor a service account.
    #[error("no cluster: {0}; name a kubeconfig with --kubeconfig, or run in a pod with a service account")]
    NoCluster(#[from] kube::config::InferConfigError),
    /// What they say makes no client.
    #[error("the connection to the cluster cannot be set up: {0}")]
    Client(#[source] kube::Error),
}

impl Connection {
    /// What is known about the server.
    ///
    /// Failed calls are not repeated behind our back: whoever calls sees the failure, counts it and waits in its own
    /// way. In particular a 429 is an answer, since it is how an eviction is refused.
    pub async fn config(&self) -> Result<Config, ConnectError> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let mut config = match &self.kubeconfig {
            Some(path) => Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &options).await?,
            None if self.context.is_some() => Config::from_kubeconfig(&options).await?,
            None => Config::infer().await?,
        };
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.read_timeout = Some(READ_TIMEOUT);
        Ok(config)
    }

    /// A client.
    pub async fn client(&self) -> Result<Client, ConnectError> {
        Client::try_from(self.config().await?).map_err(ConnectError::Client)
    }
}
