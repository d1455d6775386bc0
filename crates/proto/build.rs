//! Compiles the proto files with a compiler written in Rust, so that nobody needs `protoc`.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

/// The wire that others speak as well.
const SHARED: [&str; 5] = ["capacity", "provider", "shard", "shardread", "coordinator"];
/// What we add to it, in a package of our own.
const OURS: [&str; 2] =
    ["bigfleet/provider/v1/machine_stream.proto", "bigfleet/provider/v1/machine_output.proto"];
const FLEET: &str = "bigfleet/coordinator/v1/fleet.proto";

fn main() -> Result<(), Box<dyn Error>> {
    let shared = protox::compile(SHARED.map(|name| format!("bigfleet/v1alpha1/{name}.proto")), ["proto"])?;
    let ours = protox::compile(OURS, ["proto"])?;
    let fleet = protox::compile([FLEET], ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    // Served by reflection, and read by the test that holds the files against the table of the wire.
    std::fs::write(out.join("descriptors.bin"), shared.encode_to_vec())?;
    std::fs::write(out.join("stream_descriptors.bin"), ours.encode_to_vec())?;
    std::fs::write(out.join("fleet_descriptors.bin"), fleet.encode_to_vec())?;
    tonic_prost_build::configure()
        .btree_map(".")
        .extern_path(".bigfleet.v1alpha1", "crate::v1alpha1")
        .compile_fds(fleet)?;
    tonic_prost_build::configure()
        // Maps in key order: the same message has the same bytes in every run.
        .btree_map(".")
        .compile_fds(shared)?;
    tonic_prost_build::configure()
        // Records are cut out of one buffer and not copied one by one.
        .bytes(".")
        .compile_fds(ours)?;
    println!("cargo::rerun-if-changed=proto");
    Ok(())
}
