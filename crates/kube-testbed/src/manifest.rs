//! Applying manifests as `kubectl apply` does.

use kube::Client;
use kube::api::{Api, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::discovery::{Scope, pinned_kind};
use serde_json::Value;

/// Applies one object, whatever its kind.
///
/// # Panics
/// If it is no object, the server does not know its kind, or refuses it.
pub async fn apply(client: &Client, object: &Value) {
    let name = &object["metadata"]["name"];
    let applied = try_apply(client, object, Apply::ForGood).await;
    applied.unwrap_or_else(|error| panic!("{} {name}: {error}", object["kind"]));
}

/// Whether what is applied is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apply {
    /// It is.
    ForGood,
    /// The server checks everything and keeps nothing: `kubectl apply --dry-run=server`.
    DryRun,
}

/// The same, with what the server says against it.
///
/// # Panics
/// If it is no object.
pub async fn try_apply(client: &Client, object: &Value, how: Apply) -> kube::Result<()> {
    let field = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let (group, version) = match field("/apiVersion").expect("an object says its version").split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", field("/apiVersion").unwrap_or_default()),
    };
    let kind = GroupVersionKind::gvk(group, version, field("/kind").expect("an object says its kind"));
    let (resource, capabilities) = pinned_kind(client, &kind).await?;
    let api: Api<DynamicObject> = match (capabilities.scope, field("/metadata/namespace")) {
        (Scope::Namespaced, namespace) => {
            Api::namespaced_with(client.clone(), namespace.unwrap_or("default"), &resource)
        }
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
    };
    let name = field("/metadata/name").expect("an object has a name");
    let mut params = PatchParams::apply("testbed").force();
    params.dry_run = how == Apply::DryRun;
    api.patch(name, &params, &Patch::Apply(object)).await.map(drop)
}
