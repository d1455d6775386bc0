//! Making a server know our custom resources.

use std::time::Duration;

use bigfleet_crds::{ServerVersion, definitions};
use bigfleet_net::Clock;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use thiserror::Error;

/// How often the server is asked whether it is ready.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// How often in all.
const QUESTIONS: u32 = 300;

/// Why the definitions are not there.
#[derive(Debug, Error)]
pub enum InstallError {
    /// A call failed.
    #[error("the server refuses {what}: {source}")]
    Call {
        /// What was to be done.
        what: String,
        /// Its answer.
        source: kube::Error,
    },
    /// The server's version cannot be read.
    #[error("the server says it is {0:?}, which is no version")]
    Version(String),
    /// The server has the definition and does not serve it.
    #[error("the server does not serve {0} although it has its definition; see kubectl describe crd {0}")]
    NotServed(String),
}

/// Which Kubernetes the server is.
pub async fn server_version(client: &Client) -> Result<ServerVersion, InstallError> {
    let said = client.apiserver_version().await;
    let said = said.map_err(|source| InstallError::Call { what: "to say its version".into(), source })?;
    let text = format!("{}.{}", said.major, said.minor);
    text.parse().map_err(|_| InstallError::Version(text))
}

/// Gives the server the definitions, as far as it knows what is in them, and waits until it serves them. Those that are
/// there already are brought up to date.
pub async fn install(client: &Client, clock: &dyn Clock) -> Result<Vec<String>, InstallError> {
    let version = server_version(client).await?;
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut names = Vec::new();
    for definition in definitions(version) {
        let name = definition.name_any();
        let apply = PatchParams::apply("bigfleet").force();
        let applied = api.patch(&name, &apply, &Patch::Apply(&definition)).await;
        applied.map_err(|source| InstallError::Call { what: format!("the definition of {name}"), source })?;
        names.push(name);
    }
    for name in &names {
        let mut questions = 0;
        loop {
            let found = api.get(name).await;
            let found =
                found.map_err(|source| InstallError::Call { what: format!("to show {name}"), source })?;
            if is_established(&found) {
                break;
            }
            questions += 1;
            if questions == QUESTIONS {
                return Err(InstallError::NotServed(name.clone()));
            }
            clock.sleep(ASK_AGAIN).await;
        }
    }
    Ok(names)
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    let conditions = definition.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Established" && condition.status == "True")
}
