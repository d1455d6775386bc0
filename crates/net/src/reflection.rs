//! What every gRPC port of ours answers beside its own services.

use tokio::sync::watch;
use tonic_reflection::server::{Builder, Error};

/// Reflection over our files, health's and `more`, in either version of its protocol: give `Builder::build_v1` or
/// `Builder::build_v1alpha`.
pub fn reflection<T>(more: &[&'static [u8]], build: impl FnOnce(Builder<'static>) -> Result<T, Error>) -> T {
    let ours = [bigfleet_proto::FILE_DESCRIPTOR_SET, tonic_health::pb::FILE_DESCRIPTOR_SET];
    let builder = ours
        .iter()
        .chain(more)
        .fold(Builder::configure(), |builder, files| builder.register_encoded_file_descriptor_set(files));
    build(builder).expect("our own descriptors decode")
}

/// Ends when the flag becomes true, or when nobody can set it any more.
pub async fn until(mut halted: watch::Receiver<bool>) {
    let _ = halted.wait_for(|halted| *halted).await;
}
