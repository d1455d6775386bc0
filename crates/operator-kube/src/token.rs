//! Bootstrap tokens: what a new machine joins with, minted through the API server and good for a short while.

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};

use bigfleet_kube_common::time;

/// Where the API server looks for them.
const NAMESPACE: &str = "kube-system";
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Mints a token that ends at this time, by the API server's clock: it is the one that ends it.
pub(crate) async fn mint(client: Client, cluster: &str, until_unix_nanos: i64) -> Result<String, String> {
    let (id, secret) = (letters::<6>()?, letters::<16>()?);
    let until = serde_json::to_value(time(until_unix_nanos)).map_err(|error| error.to_string())?;
    let fields = [
        ("token-id", id.clone()),
        ("token-secret", secret.clone()),
        ("expiration", until.as_str().unwrap_or_default().to_owned()),
        ("usage-bootstrap-authentication", "true".into()),
        ("usage-bootstrap-signing", "true".into()),
        ("description", format!("for one machine that joins cluster {cluster}")),
    ];
    let object = Secret {
        metadata: ObjectMeta { name: Some(format!("bootstrap-token-{id}")), ..ObjectMeta::default() },
        type_: Some("bootstrap.kubernetes.io/token".into()),
        string_data: Some(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ..Secret::default()
    };
    let secrets: Api<Secret> = Api::namespaced(client, NAMESPACE);
    secrets.create(&PostParams::default(), &object).await.map_err(|error| error.to_string())?;
    Ok(format!("{id}.{secret}"))
}

/// Letters nobody can guess: 32 of them are as likely as each other, 5 bits each.
fn letters<const N: usize>() -> Result<String, String> {
    let mut bytes = [0; N];
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| "no randomness to make a token with".to_owned())?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_the_form_kubernetes_asks_for_and_differ() {
        let (a, b) = (letters::<16>().unwrap(), letters::<16>().unwrap());
        assert_ne!(a, b);
        assert!(a.len() == 16 && a.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()));
    }
}
